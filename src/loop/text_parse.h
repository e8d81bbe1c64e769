#pragma once
// The parser of level 1, in pieces: the program, its bodies, its structured and control nodes.

#include <map>
#include <string>
#include <string_view>

#include "base/text.h"
#include "loop/program.h"
#include "loop/text_region.h"

namespace coil::loop_text {

using Names = std::map<std::string, sym::Expr, std::less<>>;

/// Nested programs deeper than this are an Error, so that recursion is safe.
inline constexpr int kMaxProgramDepth = 50;

/// Reads one `program NAME { ... }`. `outer` are the sizes and step variables in scope.
class ProgramParser {
 public:
  ProgramParser(TextReader& in, std::shared_ptr<sym::Arena> syms, Names outer, int depth);
  Result<LoopProgram> parse();

 private:
  struct Origin {
    std::vector<ValueId> from;
    std::vector<LocId> locs;
    bool init = false;
  };

  Status parse_item();
  Status parse_size();
  Status parse_scalar_name();
  Status parse_input();
  Status parse_buffers();
  Status parse_layout(Buffer& buffer);
  bool at_output_mark() const;
  Status parse_kind(Buffer& buffer, bool& marked_output);
  Result<Layout> parse_layout_entries();
  Status parse_constant(Buffer& buffer);
  Status parse_inline(Storage& storage, DType dtype);
  Status parse_output();
  Status parse_window(ProgramOutput& output);
  /// `int 3`, `float 0.5`, `bool true`, `string "x"` or `none`.
  Result<Arg> parse_constant_arg();
  Status parse_commit();
  Status finish();

  Status parse_body();
  Status parse_dims(Body& body, Names& scope);
  Status parse_access(Structured& node);
  Status parse_structured(std::string_view kind);
  Result<StructuredAttrs> parse_fft();
  Result<StructuredAttrs> parse_attrs(std::string_view kind);
  Result<StructuredAttrs> parse_factor();
  Status parse_control(std::string_view kind);
  Status parse_control_kind(std::string_view word, Control& control, Names& scope);

  /// `init from %a, %b @ model.py:12 in encoder`, each part optional; places may be quoted.
  Result<Origin> parse_origin();
  ValueId value_named(const std::string& name);
  Result<sym::Expr> parse_expr(const Names& scope);
  Result<std::vector<sym::Expr>> parse_exprs(const Names& scope);  // in [ ]
  Result<std::vector<i64>> parse_ints();                           // in [ ]
  Result<BufferId> parse_buffer();
  Result<std::vector<BufferId>> parse_buffer_list();
  Result<DType> parse_dtype();
  /// `NAME < extent`: a new variable, not yet in scope.
  Result<Dim> parse_dim(DimKind kind, sym::Role role, const Names& scope);

  TextReader& in_;
  LoopProgram program_;
  sym::Arena& syms_;
  Names scope_;
  int depth_;
  std::map<std::string, BufferId, std::less<>> buffers_;
  std::map<std::string, ValueId, std::less<>> values_;
  std::map<std::pair<std::string, std::string>, LocId> locs_;
  // Buffers that are named before they are declared: of sizes and of `input` lines, by index.
  std::vector<std::pair<std::size_t, std::string>> size_sources_;
  std::vector<std::pair<std::size_t, std::string>> pending_inputs_;
  std::vector<BufferId> marked_outputs_;
  Side<BufferId, std::optional<bool>> stated_open_;

  friend class BodyParser;
};

/// Reads the instructions of one body, up to its closing brace.
class BodyParser {
 public:
  BodyParser(ProgramParser& program, Body& body, Names scope)
      : program_(program), in_(program.in_), body_(body), scope_(std::move(scope)) {}
  Status parse();

 private:
  Status parse_inst();
  Status parse_store();
  Status parse_right_side(std::vector<std::string> targets);
  Status parse_index(const std::string& variable);
  Status parse_op(Inst& inst, const std::string& word);
  Status parse_load(Inst& inst);
  Status parse_combining(Inst& inst, const std::string& word, std::vector<DType>& results);
  Status parse_over(const Inst& inst);
  Status parse_tree(ops::Tree& tree);
  Status parse_element(Inst& inst);
  Status parse_mask(Inst& inst);
  Result<Val> parse_val();
  Result<std::vector<Val>> parse_vals();
  Status define(Inst& inst, const std::vector<std::string>& targets,
                const std::vector<DType>& dtypes);
  DType dtype(Val v) const { return body_.val_dtypes.at(v.index); }

  ProgramParser& program_;
  TextReader& in_;
  Body& body_;
  Names scope_;
  std::map<std::string, Val, std::less<>> vals_;
};

}  // namespace coil::loop_text
