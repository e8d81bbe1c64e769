// Reads the text form of level 0.

#include <algorithm>
#include <map>

#include "base/text.h"
#include "graph/data.h"
#include "graph/rules.h"
#include "graph/text.h"
#include "graph/text_args.h"
#include "graph/unify.h"
#include "graph/verify.h"

namespace coil {
namespace {

constexpr int kMaxGraphDepth = 16;

/// Variables of the whole file: subgraphs share them.
struct Variables {
  std::map<std::string, sym::Expr, std::less<>> by_name;
  i64 data_bytes = 0;
};

/// Which variables may come into being where an expression names an unknown one.
enum class Unknown : u8 { Error, NewSize, NewData };

class GraphParser {
 public:
  GraphParser(TextReader& in, const GraphTextOptions& options, Variables& variables, int depth)
      : in_(in), options_(options), variables_(variables), depth_(depth) {}

  Result<Graph> parse(const Graph* parent) {
    graph_.composites = options_.composites;
    if (parent != nullptr) {
      graph_.syms = parent->syms;
      graph_.facts = parent->facts;
    }
    scope_.graph = &graph_;
    scope_.value = [this](std::string_view name) { return find_value(name); };
    scope_.variable = [this](std::string_view name) { return find_variable(name); };
    COIL_TRY(in_.expect("graph"));
    graph_.name = COIL_TRY(in_.word());
    if (depth_ == 0) declare_ahead();
    COIL_TRY(read_inputs());
    COIL_TRY(in_.expect("{"));
    while (!in_.at("return")) COIL_TRY(statement());
    COIL_TRY(read_return());
    COIL_TRY(in_.expect("}"));
    graph_.outputs.insert(graph_.outputs.begin(), mutated_.begin(), mutated_.end());
    return std::move(graph_);
  }

 private:
  std::optional<ValueId> find_value(std::string_view name) const {
    const auto at = values_.find(name);
    return at == values_.end() ? std::nullopt : std::optional(at->second);
  }

  std::optional<sym::Expr> find_variable(std::string_view name) {
    const auto at = variables_.by_name.find(name);
    if (at != variables_.by_name.end()) return at->second;
    if (name.find('.') != name.npos) return std::nullopt;
    switch (unknown_) {
      case Unknown::Error: break;
      case Unknown::NewSize: {
        const sym::Expr e = add_variable(std::string(name), sym::Role::Size, {0, sym::kMaxInt});
        graph_.sizes.push_back({e, std::nullopt});
        return e;
      }
      case Unknown::NewData: return add_variable(std::string(name), sym::Role::Value, {});
    }
    return std::nullopt;
  }

  sym::Expr add_variable(std::string name, sym::Role role, sym::Range range) {
    const sym::Expr e = graph_.syms->variable({name, role, range, sym::Expr()});
    variables_.by_name.emplace(std::move(name), e);
    return e;
  }

  /// Variables that the body's first lines declare are known before the inputs, in whose types they
  /// occur, so that every expression is built with their ranges. What does not read as a
  /// declaration is left to `read_variable`, which says so.
  void declare_ahead() {
    int at = 0;
    while (in_.peek(at).kind != TokenKind::End && in_.peek(at).text != "{") ++at;
    const auto integer = [&](i64 none) {
      const std::string sign = in_.peek(at).text == "-" ? "-" : "";
      if (!sign.empty()) ++at;
      if (in_.peek(at).kind != TokenKind::Integer) return none;
      return static_cast<i64>(
          std::strtoll((sign + std::string(in_.peek(at++).text)).c_str(), nullptr, 10));
    };
    for (++at; in_.peek(at).text == "size" || in_.peek(at).text == "data";) {
      const bool is_size = in_.peek(at).text == "size";
      const std::string name(in_.peek(at + 1).text);
      if (in_.peek(at + 1).kind != TokenKind::Word || variables_.by_name.contains(name)) return;
      sym::Range range = is_size ? sym::Range{0, sym::kMaxInt} : sym::Range{};
      at += 2;
      if (in_.peek(at).text == "in") {
        ++at;
        range.lo = integer(range.lo);
        at += 2;
        range.hi = integer(range.hi);
        if (range.lo > range.hi) return;
      }
      if (in_.peek(at).text == "hint") {
        ++at;
        integer(0);
      }
      add_variable(name, is_size ? sym::Role::Size : sym::Role::Value, range);
    }
  }

  template <class T>
  Result<T> at_line(int line, Result<T> result) const {
    if (result.ok()) return result;
    return in_.error_at(line, result.error().message);
  }

  Result<sym::Expr> expression(Unknown unknown) {
    unknown_ = unknown;
    Result<sym::Expr> e = graph_.syms->parse(in_, scope_.variable);
    unknown_ = Unknown::Error;
    return e;
  }

  Result<std::vector<sym::Expr>> expressions(Unknown unknown) {
    std::vector<sym::Expr> out;
    COIL_TRY(in_.expect("["));
    if (in_.accept("]")) return out;
    do {
      out.push_back(COIL_TRY(expression(unknown)));
    } while (in_.accept(","));
    COIL_TRY(in_.expect("]"));
    return out;
  }

  Result<Type> read_type(Unknown unknown) {
    Type type;
    const int line = in_.line();
    const std::string word = COIL_TRY(in_.word());
    type.kind = word == "int"     ? TypeKind::Int
                : word == "bool"  ? TypeKind::Bool
                : word == "float" ? TypeKind::Float
                : word == "none"  ? TypeKind::None
                                  : TypeKind::Tensor;
    // `bool[3]` is a tensor, `bool s0 < 4` is not.
    if (type.kind == TypeKind::Bool && in_.at("[")) type.kind = TypeKind::Tensor;
    if (type.kind == TypeKind::Int || type.kind == TypeKind::Bool)
      type.expr = COIL_TRY(expression(unknown));
    if (!type.is_tensor()) return type;
    const std::optional<DType> dtype = dtype_from_name(word);
    if (!dtype) return in_.error_at(line, str("'{}' is no type", word));
    type.dtype = *dtype;
    type.shape = COIL_TRY(expressions(unknown));
    if (in_.accept("strides")) {
      type.strides = COIL_TRY(expressions(unknown));
      if (type.strides.size() != type.shape.size())
        return in_.error_at(line, "shape and strides differ in length");
    } else {
      type.strides = contiguous_strides(*graph_.syms, type.shape);
    }
    COIL_TRY(at_line(line, check_type(*graph_.syms, type)));
    return type;
  }

  Result<ValueId> define(int line, const std::string& name, Type type) {
    if (values_.contains(name)) return in_.error_at(line, str("%{} is defined twice", name));
    unifier_.define(type);
    const ValueId v = graph_.add_value(name, std::move(type));
    values_.emplace(name, v);
    return v;
  }

  Status read_inputs() {
    COIL_TRY(in_.expect("("));
    if (in_.accept(")")) return Ok{};
    do {
      const int line = in_.line();
      const std::string name = COIL_TRY(in_.name());
      std::string own = name;
      if (in_.peek().kind == TokenKind::String) own = COIL_TRY(in_.string());
      COIL_TRY(in_.expect(":"));
      Type type = COIL_TRY(read_type(depth_ == 0 ? Unknown::NewSize : Unknown::NewData));
      graph_.inputs.push_back({own, COIL_TRY(define(line, name, std::move(type))), {}});
    } while (in_.accept(","));
    return in_.expect(")");
  }

  Status statement() {
    if (in_.peek().kind == TokenKind::Name) return read_node();
    if (in_.at("graph")) return read_subgraph();
    if (in_.at("mutates")) return read_mutation();
    if (in_.peek().kind == TokenKind::Word && in_.peek(1).text == "(") return read_node();
    for (std::string_view word : {"size", "data", "fact", "check", "const", "state", "updates"}) {
      if (!in_.at(word)) continue;
      if (depth_ > 0) return in_.error_here(str("'{}' stands in the outermost graph only", word));
      in_.accept(word);
      if (word == "size" || word == "data") return read_variable(word == "size");
      if (word == "fact") return read_fact();
      if (word == "check") return read_check();
      if (word == "updates") return read_update();
      return read_constant(word == "state");
    }
    return in_.error_here(str("expected a statement, found {}", in_.found()));
  }

  Status read_variable(bool is_size) {
    const int line = in_.line();
    const std::string name = COIL_TRY(in_.word());
    if (name.find('.') != name.npos) return in_.error_at(line, "a name of a size has no dots");
    if (!declared_.insert({name, line}).second)
      return in_.error_at(line, str("{} is declared twice", name));
    std::optional<sym::Expr> e = find_variable(name);
    sym::Range range = is_size ? sym::Range{0, sym::kMaxInt} : sym::Range{};
    if (!e) e = add_variable(name, is_size ? sym::Role::Size : sym::Role::Value, range);
    if (in_.accept("in")) {
      if (!in_.at(".")) range.lo = COIL_TRY(in_.integer());
      COIL_TRY(in_.expect("."));
      COIL_TRY(in_.expect("."));
      if (in_.at("-") || in_.peek().kind == TokenKind::Integer) range.hi = COIL_TRY(in_.integer());
      if (range.lo > range.hi || (is_size && range.lo < 0))
        return in_.error_at(line, str("the range of {} is not valid", name));
    }
    graph_.syms->set_range(*e, range);
    if (!is_size) return Ok{};
    SizeVar size{*e, std::nullopt};
    if (in_.accept("hint")) size.hint = COIL_TRY(in_.integer());
    const auto known = std::ranges::find(graph_.sizes, *e, &SizeVar::var);
    if (known != graph_.sizes.end()) graph_.sizes.erase(known);
    graph_.sizes.push_back(size);
    return Ok{};
  }

  Status read_fact() {
    graph_.facts.add(COIL_TRY(expression(Unknown::Error)));
    return Ok{};
  }

  Status read_check() {
    const sym::Expr condition = COIL_TRY(expression(Unknown::Error));
    graph_.checks.push_back({condition, COIL_TRY(in_.string())});
    return Ok{};
  }

  Status read_constant(bool is_state) {
    const int line = in_.line();
    const std::string name = COIL_TRY(in_.name());
    Constant constant;
    constant.is_state = is_state;
    if (in_.peek().kind == TokenKind::String) constant.fqn = COIL_TRY(in_.string());
    COIL_TRY(in_.expect(":"));
    Type type = COIL_TRY(read_type(Unknown::Error));
    if (in_.accept("offset")) constant.offset = COIL_TRY(in_.integer());
    const i64 extent = COIL_TRY(at_line(line, storage_extent(*graph_.syms, type, constant.offset)));
    COIL_TRY(in_.expect("="));
    constant.storage = COIL_TRY(read_storage(type.dtype, extent));
    constant.value = COIL_TRY(define(line, name, std::move(type)));
    graph_.constants.push_back(std::move(constant));
    return Ok{};
  }

  Status take_bytes(i64 bytes) {
    if (bytes > options_.max_data_bytes - variables_.data_bytes)
      return in_.error_here(
          str("constants of this text need more than {} bytes", options_.max_data_bytes));
    variables_.data_bytes += bytes;
    return Ok{};
  }

  /// Where the elements are; `extent` is how many of them the constant reaches into.
  Result<u32> read_storage(DType dtype, i64 extent) {
    const int line = in_.line();
    if (in_.accept("of")) return shared_storage(line, extent * size_of(dtype));
    Storage storage;
    if (in_.accept("seed")) {
      const u64 seed = static_cast<u64>(COIL_TRY(in_.integer()));
      COIL_TRY(take_bytes(extent * size_of(dtype)));
      storage = seeded_storage(dtype, seed, extent);
    } else if (in_.accept("file")) {
      storage.source = StorageSource::File;
      storage.file = COIL_TRY(in_.string());
      storage.key = COIL_TRY(in_.string());
    } else if (in_.accept("absent")) {
      storage.source = StorageSource::Absent;
    } else if (in_.at("{")) {
      std::vector<std::byte> bytes;
      COIL_TRY(read_elements(dtype, bytes, 0));
      if (static_cast<i64>(bytes.size()) < extent * size_of(dtype))
        return in_.error_at(line, str("the type needs {} elements, not {}", extent,
                                      bytes.size() / static_cast<std::size_t>(size_of(dtype))));
      storage = inline_storage(bytes);
    } else {
      return in_.error_here(str(
          "expected {{elements}}, seed N, file F NAME, of %NAME or absent, found {}", in_.found()));
    }
    graph_.storages.push_back(std::move(storage));
    return static_cast<u32>(graph_.storages.size() - 1);
  }

  Result<u32> shared_storage(int line, i64 bytes) {
    const std::string name = COIL_TRY(in_.name());
    const std::optional<ValueId> v = find_value(name);
    for (const Constant& constant : graph_.constants) {
      if (!v || constant.value != *v) continue;
      const Storage& storage = graph_.storages[constant.storage];
      if (storage.data != nullptr && storage.bytes < bytes)
        return in_.error_at(line, str("reaches past the {} bytes of %{}", storage.bytes, name));
      return constant.storage;
    }
    return in_.error_at(line, str("%{} is no constant", name));
  }

  /// `{1, 2}`; inner braces are for the reader's eye.
  Status read_elements(DType dtype, std::vector<std::byte>& bytes, int depth) {
    if (depth > 16) return in_.error_here("braces are nested too deeply");
    COIL_TRY(in_.expect("{"));
    if (in_.accept("}")) return Ok{};
    do {
      if (in_.at("{")) {
        COIL_TRY(read_elements(dtype, bytes, depth + 1));
        continue;
      }
      COIL_TRY(take_bytes(size_of(dtype)));
      std::byte element[16];
      COIL_TRY(read_element(in_, dtype, element));
      bytes.insert(bytes.end(), element, element + size_of(dtype));
    } while (in_.accept(","));
    return in_.expect("}");
  }

  Status read_subgraph() {
    const int line = in_.line();
    if (depth_ + 1 >= kMaxGraphDepth) return in_.error_here("graphs are nested too deeply");
    Graph sub = COIL_TRY(GraphParser(in_, options_, variables_, depth_ + 1).parse(&graph_));
    for (const Graph& other : graph_.subgraphs)
      if (other.name == sub.name)
        return in_.error_at(line, str("graph {} is defined twice", sub.name));
    for (Check& check : sub.checks) add_check(std::move(check));
    sub.checks.clear();
    graph_.subgraphs.push_back(std::move(sub));
    return Ok{};
  }

  void add_check(Check check) {
    for (const Check& known : graph_.checks)
      if (known.condition == check.condition) return;
    graph_.checks.push_back(std::move(check));
  }

  Status read_node() {
    const int line = in_.line();
    std::vector<std::string> names;
    if (in_.peek().kind == TokenKind::Name) {
      do {
        names.push_back(COIL_TRY(in_.name()));
      } while (in_.accept(","));
      COIL_TRY(in_.expect("="));
    }
    Node node;
    node.op = COIL_TRY(in_.word());
    COIL_TRY(read_subgraph_names(node));
    const RawArgs raw = COIL_TRY(read_args(in_, scope_));
    COIL_TRY(at_line(line, set_args(node, raw)));
    if (in_.accept("at")) COIL_TRY(read_view(node));
    std::vector<Type> written;
    if (in_.accept(":")) {
      do {
        written.push_back(COIL_TRY(read_type(Unknown::NewData)));
      } while (in_.accept(","));
    }
    COIL_TRY(read_loc(node));
    Result<std::vector<Type>> types = infer(graph_, node);
    if (!types.ok()) return in_.error_at(line, types.error().message);
    COIL_TRY(at_line(line, check_results(names, written, *types)));
    const NodeId id = graph_.nodes.add(std::move(node));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const ValueId v = COIL_TRY(define(line, names[i], std::move((*types)[i])));
      graph_.values[v].def = id;
      graph_.values[v].out_index = static_cast<u32>(i);
      graph_.nodes[id].outs.push_back(v);
    }
    return Ok{};
  }

  Status check_results(const std::vector<std::string>& names, const std::vector<Type>& written,
                       std::vector<Type>& types) {
    if (types.size() != names.size())
      return error("{} results are named, but there are {}", names.size(), types.size());
    if (written.empty()) return Ok{};
    if (written.size() != names.size())
      return error("{} types are given for {} results", written.size(), names.size());
    unifier_.next_node();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string derived = text(*graph_.syms, types[i]);
      if (!unifier_.match(types[i], written[i]))
        return error("%{} is {}, but {} is written", names[i], derived,
                     text(*graph_.syms, written[i]));
      types[i] = written[i];
    }
    return Ok{};
  }

  Status set_args(Node& node, const RawArgs& raw) {
    if (!node.subgraphs.empty() || node.op == "update") {
      if (!raw.keywords.empty()) return error("{} takes no named arguments", node.op);
      for (const RawArg& arg : raw.positional)
        node.args.push_back(COIL_TRY(plain_arg(scope_, arg)));
      return Ok{};
    }
    auto [op, args] = COIL_TRY(resolve(scope_, node.op, raw, ValueId()));
    node.op = op;
    node.args = std::move(args);
    return Ok{};
  }

  Status read_subgraph_names(Node& node) {
    if (!in_.accept("[")) return Ok{};
    do {
      const int line = in_.line();
      const std::string name = COIL_TRY(in_.word());
      const auto at = std::ranges::find(graph_.subgraphs, name, &Graph::name);
      if (at == graph_.subgraphs.end())
        return in_.error_at(line, str("graph {} is not defined here", name));
      node.subgraphs.push_back(static_cast<u32>(at - graph_.subgraphs.begin()));
    } while (in_.accept(","));
    return in_.expect("]");
  }

  Status read_view(Node& node) {
    const int line = in_.line();
    const ValueId* base = node.args.empty() ? nullptr : std::get_if<ValueId>(&node.args[0]);
    if (base == nullptr || !base->valid() || node.op != "update")
      return in_.error_here("'at' belongs to update(%base, %value)");
    do {
      const std::string op = COIL_TRY(in_.word());
      const RawArgs raw = COIL_TRY(read_args(in_, scope_));
      auto [full_name, args] = COIL_TRY(at_line(line, resolve(scope_, op, raw, *base)));
      args.erase(args.begin());
      node.view.push_back({full_name, std::move(args)});
    } while (in_.accept(","));
    return Ok{};
  }

  Status read_loc(Node& node) {
    if (!in_.accept("@")) return Ok{};
    Loc loc;
    loc.frame = COIL_TRY(word_or_string());
    if (in_.accept(":")) loc.frame += str(":{}", COIL_TRY(in_.integer()));
    if (in_.accept("in")) loc.module = COIL_TRY(word_or_string());
    node.loc = graph_.intern(loc);
    return Ok{};
  }

  Result<std::string> word_or_string() {
    return in_.peek().kind == TokenKind::String ? in_.string() : in_.word();
  }

  Result<ValueId> known_value() {
    const int line = in_.line();
    const std::string name = COIL_TRY(in_.name());
    if (const std::optional<ValueId> v = find_value(name)) return *v;
    return in_.error_at(line, str("%{} is not defined here", name));
  }

  Result<u32> known_input() {
    const int line = in_.line();
    const ValueId v = COIL_TRY(known_value());
    const auto at = std::ranges::find(graph_.inputs, v, &Input::value);
    if (at == graph_.inputs.end())
      return in_.error_at(line, str("%{} is no input", graph_.values[v].name));
    return static_cast<u32>(at - graph_.inputs.begin());
  }

  Status read_mutation() {
    COIL_TRY(in_.expect("mutates"));
    Output output;
    output.kind = OutputKind::MutatedInput;
    output.target = COIL_TRY(known_input());
    COIL_TRY(in_.expect("="));
    output.value = COIL_TRY(known_value());
    mutated_.push_back(output);
    return Ok{};
  }

  Status read_update() {
    const int line = in_.line();
    const ValueId state = COIL_TRY(known_value());
    const auto at = std::ranges::find(graph_.constants, state, &Constant::value);
    if (at == graph_.constants.end() || !at->is_state)
      return in_.error_at(line, str("%{} is no state", graph_.values[state].name));
    COIL_TRY(in_.expect("="));
    graph_.state_updates.push_back(
        {static_cast<u32>(at - graph_.constants.begin()), COIL_TRY(known_value())});
    return Ok{};
  }

  Status read_return() {
    COIL_TRY(in_.expect("return"));
    if (in_.at("}")) return Ok{};
    do {
      graph_.outputs.push_back(COIL_TRY(read_output()));
    } while (in_.accept(","));
    return Ok{};
  }

  Result<Output> read_output() {
    Output output;
    const int line = in_.line();
    if (in_.at("alias") && in_.peek(1).kind == TokenKind::Name) {
      in_.accept("alias");
      output.value = COIL_TRY(known_value());
      COIL_TRY(in_.expect("of"));
      output.kind = in_.at("input") ? OutputKind::AliasOfInput : OutputKind::AliasOfOutput;
      if (in_.accept("input")) {
        output.target = COIL_TRY(known_input());
        return output;
      }
      COIL_TRY(in_.expect("output"));
      const i64 target = COIL_TRY(in_.integer());
      if (target < 0 || target >= static_cast<i64>(mutated_.size() + graph_.outputs.size()))
        return in_.error_at(line, str("there is no output {} before this one", target));
      output.target = static_cast<u32>(target);
      return output;
    }
    const RawArg raw = COIL_TRY(read_arg(in_, scope_));
    Arg arg = COIL_TRY(at_line(line, plain_arg(scope_, raw)));
    if (const ValueId* v = std::get_if<ValueId>(&arg)) {
      output.value = *v;
      output.kind = graph_.type(*v).is_tensor() ? OutputKind::Value : OutputKind::Int;
    } else if (std::holds_alternative<None>(arg)) {
      output.kind = OutputKind::None;
    } else if (std::holds_alternative<std::vector<ValueId>>(arg)) {
      return in_.error_at(line, "a list cannot be returned");
    } else if (const sym::Expr* e = std::get_if<sym::Expr>(&arg);
               e != nullptr && !graph_.syms->as_const(*e)) {
      output.kind = OutputKind::Int;
      output.value =
          graph_.add_value(graph_.fresh_name("size"), Type{TypeKind::Int, {}, {}, {}, *e});
    } else {
      output.kind = OutputKind::Constant;
      output.constant = std::move(arg);
    }
    return output;
  }

  TextReader& in_;
  const GraphTextOptions& options_;
  Variables& variables_;
  const int depth_;
  Graph graph_;
  Unifier unifier_{graph_};
  ArgScope scope_;
  Unknown unknown_ = Unknown::Error;
  std::map<std::string, ValueId, std::less<>> values_;
  std::map<std::string, int> declared_;
  std::vector<Output> mutated_;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text, const std::string& file,
                          const GraphTextOptions& options) {
  TextReader in(text, file);
  Variables variables;
  Graph graph = COIL_TRY(GraphParser(in, options, variables, 0).parse(nullptr));
  if (!in.at_end()) return in.error_here(str("expected the end of the file, found {}", in.found()));
  if (const Status sound = verify(graph); !sound.ok()) return in_context(file, sound.error());
  return graph;
}

}  // namespace coil
