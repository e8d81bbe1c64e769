#include "ops/schema.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace coil::ops {
namespace {

TEST(OpsSchema, EveryRowParsesUnderItsOwnName) {
  const auto lines = schema_lines();
  EXPECT_GT(lines.size(), 1900u);
  std::vector<std::string> names;
  for (std::string_view line : lines) {
    const auto schema = parse_schema(line);
    ASSERT_TRUE(schema) << line;
    EXPECT_EQ(schema->full_name(), line.substr(0, line.find('(')));
    for (const SchemaArg& arg : schema->args) {
      EXPECT_FALSE(arg.name.empty()) << line;
      EXPECT_FALSE(arg.written && arg.keyword_only) << line;  // no out variants
      EXPECT_TRUE(!arg.optional_items || arg.list) << line;
      EXPECT_TRUE(arg.list_size == 0 || arg.list) << line;
    }
    names.push_back(schema->full_name());
  }
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  for (const std::string& name : names) EXPECT_TRUE(find_schema(name)) << name;
}

TEST(OpsSchema, FindsByFullName) {
  const auto add = find_schema("add.Tensor");
  ASSERT_TRUE(add);
  EXPECT_EQ(add->name, "add");
  EXPECT_EQ(add->overload, "Tensor");
  ASSERT_EQ(add->args.size(), 3u);
  EXPECT_EQ(add->args[2].name, "alpha");
  EXPECT_EQ(add->args[2].type, ArgType::Scalar);
  EXPECT_EQ(add->args[2].fallback, "1");
  EXPECT_TRUE(add->args[2].keyword_only);
  EXPECT_FALSE(add->args[1].keyword_only);
  EXPECT_FALSE(add->args[1].fallback);
  EXPECT_EQ(add->arg_index("other"), 1);
  EXPECT_EQ(add->arg_index("out"), -1);
  EXPECT_FALSE(find_schema("add"));
  EXPECT_FALSE(find_schema("add.out"));
  EXPECT_FALSE(find_schema("no_such_op"));
  EXPECT_FALSE(find_schema(""));
  EXPECT_FALSE(find_schema("zzzz"));
}

TEST(OpsSchema, ListsOverloads) {
  EXPECT_EQ(overloads("add"), (std::vector<std::string>{"add.Scalar", "add.Tensor"}));
  EXPECT_EQ(overloads("relu"), std::vector<std::string>{"relu"});
  const auto max = overloads("max");
  EXPECT_TRUE(std::ranges::count(max, "max"));
  EXPECT_TRUE(std::ranges::count(max, "max.dim"));
  EXPECT_FALSE(std::ranges::count(max, "max_pool2d"));
  EXPECT_TRUE(overloads("ad").empty());
}

TEST(OpsSchema, HoldsWhatTorchDerives) {
  EXPECT_TRUE(find_schema("normal_functional"));
  EXPECT_TRUE(find_schema("_native_batch_norm_legit_functional"));
  EXPECT_TRUE(find_schema("add_.Tensor"));
  EXPECT_TRUE(find_schema("gelu_backward"));
}

TEST(OpsSchema, ParsesAliases) {
  const auto in_place = parse_schema("add_.Tensor(Tensor(a!) self) -> Tensor(a!)");
  ASSERT_TRUE(in_place);
  EXPECT_TRUE(in_place->args[0].written);
  EXPECT_EQ(in_place->args[0].alias, 'a');
  EXPECT_TRUE(in_place->results[0].written);
  const auto views = parse_schema("split(Tensor(a -> *) self, SymInt n) -> Tensor(a)[]");
  ASSERT_TRUE(views);
  EXPECT_EQ(views->args[0].alias, 'a');
  EXPECT_FALSE(views->args[0].written);
  EXPECT_TRUE(views->results[0].list);
  EXPECT_EQ(views->results[0].alias, 'a');
  EXPECT_EQ(views->args[1].type, ArgType::SymInt);
}

TEST(OpsSchema, ParsesListsAndOptionals) {
  const auto schema = parse_schema(
      "f(Tensor?[] indices, int[2] stride=1, SymInt[]? size=None, int[1]? dim=None, "
      "float[]? scales=None, bool[3] mask, Dimname[]? names=None, Tensor[] list) -> ()");
  ASSERT_TRUE(schema);
  const auto& args = schema->args;
  ASSERT_EQ(args.size(), 8u);
  EXPECT_TRUE(args[0].list && args[0].optional_items && !args[0].optional);
  EXPECT_TRUE(args[1].list && !args[1].optional);
  EXPECT_EQ(args[1].list_size, 2);
  EXPECT_EQ(args[1].fallback, "1");
  EXPECT_TRUE(args[2].list && args[2].optional && !args[2].optional_items);
  EXPECT_EQ(args[3].list_size, 1);
  EXPECT_TRUE(args[3].optional);
  EXPECT_EQ(args[4].type, ArgType::Float);
  EXPECT_EQ(args[5].type, ArgType::Bool);
  EXPECT_EQ(args[6].type, ArgType::Other);
  EXPECT_FALSE(args[7].optional_items);
  EXPECT_TRUE(schema->results.empty());
}

TEST(OpsSchema, ParsesDefaults) {
  const auto schema = parse_schema(
      R"s(f(int a=-1, float b=1e-05, int[] c=[0, 1], str d="x, (y)", str e='"\'\\', int r=Mean, )s"
      "*, ScalarType? dtype=long, MemoryFormat? m=contiguous_format, Device? v=None) -> Tensor");
  ASSERT_TRUE(schema);
  const auto& args = schema->args;
  EXPECT_EQ(args[0].fallback, "-1");
  EXPECT_EQ(args[1].fallback, "1e-05");
  EXPECT_EQ(args[2].fallback, "[0, 1]");
  EXPECT_EQ(args[3].fallback, "\"x, (y)\"");
  EXPECT_EQ(args[4].fallback, R"('"\'\\')");
  EXPECT_EQ(args[5].fallback, "Mean");
  EXPECT_FALSE(args[5].keyword_only);
  EXPECT_EQ(args[6].fallback, "long");
  EXPECT_EQ(args[6].type, ArgType::DType);
  EXPECT_TRUE(args[6].keyword_only);
  EXPECT_EQ(args[7].type, ArgType::MemoryFormat);
  EXPECT_EQ(args[8].type, ArgType::Device);
}

TEST(OpsSchema, ParsesResults) {
  const auto pair = parse_schema("max.dim(Tensor self) -> (Tensor values, Tensor indices)");
  ASSERT_TRUE(pair);
  ASSERT_EQ(pair->results.size(), 2u);
  EXPECT_EQ(pair->results[1].name, "indices");
  const auto unnamed = parse_schema("f(Tensor self) -> (Tensor(a!), Tensor(b!), int)");
  ASSERT_TRUE(unnamed);
  EXPECT_EQ(unnamed->results[1].alias, 'b');
  EXPECT_EQ(unnamed->results[2].type, ArgType::Int);
}

TEST(OpsSchema, RefusesWhatIsNoSchema) {
  for (auto line : {"", "f", "f(", "f()", "f() ->", "f() -> Tensor x y", "f(Tensor) -> Tensor",
                    "f(Tensor x,) -> Tensor", "f(Tensor x=) -> Tensor", "f(Tensor x=1 -> Tensor",
                    "f(int[0] x) -> Tensor", "f(int[ x) -> Tensor", "f(int?? x) -> Tensor",
                    "f(Tensor( x) -> Tensor", "f(Tensor() x) -> Tensor", "f.(Tensor x) -> Tensor",
                    "f(str s=\"x) -> Tensor", "f(*, *, int x) -> Tensor", "f(int x) -> (Tensor"})
    EXPECT_FALSE(parse_schema(line)) << line;
}

}  // namespace
}  // namespace coil::ops
