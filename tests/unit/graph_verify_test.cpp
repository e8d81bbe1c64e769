// Each rule of the verifier of level 0, broken once in a graph that is otherwise right.

#include "graph/verify.h"

#include <gtest/gtest.h>

#include "graph/text.h"

namespace coil {
namespace {

constexpr const char* kGraph = R"(
graph g(%x: f32[s0, 4], %y: f32[s0, 4], %n: int s1) {
  size s0 in 2..64
  size s1 in 2..64
  const %w: f32[4] = {1.0, 2.0, 3.0, 4.0}
  state %count: f32[4] = {0.0, 0.0, 0.0, 0.0}
  graph then_0(%a: f32[s0, 4]) {
    %relu = relu(%a)
    return %relu
  }
  graph else_0(%b: f32[s0, 4]) {
    %neg = neg(%b)
    return %neg
  }
  %add = add.Tensor(%x, %y)
  %gt = gt.Scalar(%w, 0)
  %any = any(%gt)
  %cond = cond[then_0, else_0](%any, [%x])
  %mul = mul.Tensor(%add, %w)
  %next = add.Tensor(%count, %w)
  %ones = ones([4])
  %upd = update(%x, %ones) at select.int(0, 0)
  mutates %x = %mul
  updates %count = %next
  return %cond, alias %y of input %y, alias %cond of output 1, %n, 2.5, None
}
)";

Graph parsed() {
  Result<Graph> graph = parse_graph(kGraph, "verify.graph");
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
  return graph.ok() ? std::move(*graph) : Graph{};
}

ValueId value(const Graph& graph, std::string_view name) {
  for (ValueId v : graph.values.ids())
    if (graph.values[v].name == name) return v;
  ADD_FAILURE() << "no value " << name;
  return {};
}

Node& node(Graph& graph, std::string_view out) {
  return graph.nodes[graph.values[value(graph, out)].def];
}

struct Case {
  const char* name;
  void (*harm)(Graph& graph);
  const char* says;  // a part of the message
};

const Case kCases[] = {
    {"GraphName", [](Graph& g) { g.name = "two words"; }, "'two words' is no name of a graph"},
    {"ValueName", [](Graph& g) { g.values[value(g, "add")].name = "a b"; },
     "'a b' is no name of a value"},
    {"TwoValuesOfOneName", [](Graph& g) { g.values[value(g, "add")].name = "mul"; },
     "two values are named %mul"},
    {"InputTwice", [](Graph& g) { g.inputs[1].value = g.inputs[0].value; }, "%x is defined twice"},
    {"InputNameTwice", [](Graph& g) { g.inputs[1].name = g.inputs[0].name; },
     "two inputs are named 'x'"},
    {"InputFromNode", [](Graph& g) { g.values[g.inputs[0].value].def = NodeId{0}; },
     "input %x is the result of a node"},
    {"StridesMissing", [](Graph& g) { g.values[value(g, "x")].type.strides.pop_back(); },
     "%x has 2 sizes and 1 strides"},
    {"ConstantWithoutStorage",
     [](Graph& g) { g.constants[0].storage = static_cast<u32>(g.storages.size()); },
     "%w has no storage"},
    {"ConstantPastItsStorage", [](Graph& g) { g.constants[0].offset = 1; },
     "%w reaches past the 16 bytes of its storage"},
    {"ConstantOfSymbolicSize",
     [](Graph& g) { g.values[value(g, "w")].type.shape[0] = g.sizes[0].var; }, "%w"},
    {"ConstantInSubgraph", [](Graph& g) { g.subgraphs[0].constants = g.constants; },
     "subgraph then_0 has constants"},
    {"UsedBeforeDefined", [](Graph& g) { node(g, "add").args[0] = value(g, "mul"); },
     "node add: uses %mul before it is defined"},
    {"UseOfNothing", [](Graph& g) { node(g, "add").args[0] = ValueId{999}; },
     "uses a value that does not exist"},
    {"DefinedByNothing", [](Graph& g) { g.add_value("lost", g.type(value(g, "x"))); },
     "%lost is defined by nothing"},
    {"NoSuchPlace", [](Graph& g) { node(g, "add").loc = LocId{7}; }, "has no such place"},
    {"ViewOfAnotherOp", [](Graph& g) { node(g, "add").view = node(g, "upd").view; },
     "only update has a view"},
    {"ViewUsesNothing", [](Graph& g) { node(g, "upd").view[0].args[1] = Arg(ValueId{999}); },
     "uses a value that does not exist"},
    {"UnknownOp", [](Graph& g) { node(g, "add").op = "subb.Tensor"; }, "unknown op"},
    {"ArgumentMissing", [](Graph& g) { node(g, "add").args.pop_back(); }, "add.Tensor"},
    {"ArgumentOfWrongKind", [](Graph& g) { node(g, "add").args[1] = Arg(true); }, "add.Tensor"},
    {"ResultsMissing", [](Graph& g) { node(g, "add").outs.push_back(value(g, "mul")); },
     "add.Tensor has 1 results, not 2"},
    {"ResultOfNothing", [](Graph& g) { node(g, "add").outs[0] = ValueId{999}; },
     "result 0 does not exist"},
    {"ResultOfAnotherNode", [](Graph& g) { g.values[value(g, "add")].def = NodeId{3}; },
     "%add does not name this node as its definition"},
    {"ResultType", [](Graph& g) { g.values[value(g, "add")].type.dtype = DType::f64; },
     "%add is f64[s0, 4], but the rules derive f32[s0, 4]"},
    {"ReturnsNothing", [](Graph& g) { g.outputs[1].value = ValueId{999}; },
     "output 1: returns a value that does not exist"},
    {"ReturnedAsWrongKind",
     [](Graph& g) {
       g.outputs[4].kind = OutputKind::Value;
       g.outputs[1].kind = OutputKind::Int;
     },
     "output 1: %cond is returned as the wrong kind"},
    {"MutationAfterOutputs", [](Graph& g) { std::swap(g.outputs[0], g.outputs[1]); },
     "mutated inputs must stand before other outputs"},
    {"MutatesNoInput", [](Graph& g) { g.outputs[0].target = 3; },
     "mutates an input that does not exist"},
    {"MutatesTwice", [](Graph& g) { g.outputs.insert(g.outputs.begin(), g.outputs[0]); },
     "mutates one input twice"},
    {"MutationOfAnotherShape", [](Graph& g) { g.outputs[0].value = value(g, "w"); },
     "%w cannot be written into input %x"},
    {"AliasOfNoInput", [](Graph& g) { g.outputs[2].target = 3; }, "is an alias of no input"},
    {"AliasOfLaterOutput", [](Graph& g) { g.outputs[3].target = 4; },
     "is an alias of no output before it"},
    {"ConstantThatIsAValue", [](Graph& g) { g.outputs[5].constant = value(g, "x"); },
     "is no constant"},
    {"UpdateOfNothing", [](Graph& g) { g.state_updates[0].constant = 9; },
     "a state update names what does not exist"},
    {"UpdateOfAConstant", [](Graph& g) { g.state_updates[0].constant = 0; },
     "%w is updated, but is no state"},
    {"UpdatedTwice", [](Graph& g) { g.state_updates.push_back(g.state_updates[0]); },
     "%count is updated twice"},
    {"UpdateOfAnotherShape", [](Graph& g) { g.state_updates[0].value = value(g, "add"); },
     "%add cannot replace %count"},
    {"SizeOfNobody", [](Graph& g) { g.sizes.pop_back(); }, "s1 is no size of the graph"},
    {"SubgraphOfOtherSymbols",
     [](Graph& g) { g.subgraphs[1].syms = std::make_shared<sym::Arena>(); },
     "subgraph else_0 has symbols of its own"},
    {"SubgraphWithSizes", [](Graph& g) { g.subgraphs[1].sizes = g.sizes; },
     "subgraph else_0 has checks, sizes or states of its own"},
    {"HarmInSubgraph", [](Graph& g) { node(g.subgraphs[0], "relu").args[0] = ValueId{999}; },
     "uses a value that does not exist"},
};

TEST(GraphVerify, AcceptsTheGraphThatTheCasesHarm) {
  const Graph graph = parsed();
  const Status status = verify(graph);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
}

class GraphVerifyCase : public testing::TestWithParam<Case> {};

TEST_P(GraphVerifyCase, IsFound) {
  Graph graph = parsed();
  GetParam().harm(graph);
  const Status status = verify(graph);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(GetParam().says), std::string::npos)
      << status.error().message;
}

INSTANTIATE_TEST_SUITE_P(Rules, GraphVerifyCase, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace coil
