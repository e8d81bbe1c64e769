// The text form of level 1: parsing of structured nodes and control flow.

#include "loop/text_parse.h"

namespace coil::loop_text {

Result<Dim> ProgramParser::parse_dim(DimKind kind, sym::Role role, const Names& scope) {
  const std::string name = COIL_TRY(in_.word());
  if (scope.contains(name)) return in_.error_here(str("'{}' is declared twice", name));
  COIL_TRY(in_.expect("<"));
  Dim dim;
  dim.kind = kind;
  dim.extent = COIL_TRY(parse_expr(scope));
  dim.var = syms_.variable({name, role, {}, dim.extent});
  return dim;
}

Status ProgramParser::parse_dims(Body& body, Names& scope) {
  DimKind kind = DimKind::Parallel;
  // Extents use sizes only, so that the order of the dims says nothing.
  const Names sizes = scope;
  while (true) {
    if (in_.accept("|")) {
      const bool reduce = in_.accept("reduce");
      if (!reduce) COIL_TRY(in_.expect("scan"));
      kind = reduce ? DimKind::Reduce : DimKind::Scan;
    } else if (!body.dims.empty() && !in_.accept(",")) {
      return Ok{};
    }
    const sym::Role role = kind == DimKind::Reduce ? sym::Role::Reduce : sym::Role::Loop;
    body.dims.push_back(COIL_TRY(parse_dim(kind, role, sizes)));
    const std::string& name = syms_.var(body.dims.back().var).name;
    if (!scope.emplace(name, body.dims.back().var).second)
      return in_.error_here(str("dim {} is declared twice", name));
  }
}

/// `in %x over i0 < s0, i1 < 64 at [i0, i1 // 8]`; without dims, `in %x at [3]`.
Status ProgramParser::parse_access(Structured& node) {
  const bool is_input = in_.accept("in");
  if (!is_input) COIL_TRY(in_.expect("out"));
  Access access;
  access.buffer = COIL_TRY(parse_buffer());
  Names scope = scope_;
  if (in_.accept("over")) {
    do {
      const Dim dim = COIL_TRY(parse_dim(DimKind::Parallel, sym::Role::Loop, scope_));
      access.vars.push_back(dim.var);
      access.extents.push_back(dim.extent);
      if (!scope.emplace(syms_.var(dim.var).name, dim.var).second)
        return in_.error_here(str("dim {} is declared twice", syms_.var(dim.var).name));
    } while (in_.accept(","));
  }
  COIL_TRY(in_.expect("at"));
  access.index = COIL_TRY(parse_exprs(scope));
  (is_input ? node.inputs : node.outputs).push_back(std::move(access));
  return Ok{};
}

/// `cholesky`, or `triangular upper unit`: a kind and its flags.
Result<StructuredAttrs> ProgramParser::parse_factor() {
  Factor factor;
  const std::string word = COIL_TRY(in_.word());
  const std::optional<FactorKind> kind = find_factor(word);
  if (!kind) return in_.error_here(str("there is no factorisation '{}'", word));
  factor.kind = *kind;
  for (const FactorFlagName& row : kFactorFlags)
    if (in_.accept(row.name)) factor.flags |= row.flag;
  return StructuredAttrs(factor);
}

Result<StructuredAttrs> ProgramParser::parse_fft() {
  Fft fft;
  if (in_.accept("r2c")) {
    fft.kind = FftKind::R2c;
  } else if (in_.accept("c2r")) {
    fft.kind = FftKind::C2r;
  } else {
    COIL_TRY(in_.expect("c2c"));
  }
  COIL_TRY(in_.expect("dim"));
  fft.dim = COIL_TRY(in_.integer());
  fft.forward = !in_.accept("backward");
  if (fft.forward) COIL_TRY(in_.expect("forward"));
  if (in_.accept("by_root_n")) fft.scale = FftScale::ByRootN;
  if (fft.scale == FftScale::None && in_.accept("by_n")) fft.scale = FftScale::ByN;
  return StructuredAttrs(fft);
}

Result<StructuredAttrs> ProgramParser::parse_attrs(std::string_view kind) {
  if (kind == "gemm") return StructuredAttrs(Gemm{});
  if (kind == "sort" || kind == "topk") {
    Sort sort;
    sort.is_topk = kind == "topk";
    sort.descending = in_.accept("descending");
    return StructuredAttrs(sort);
  }
  if (kind == "factor") return parse_factor();
  if (kind == "fft") return parse_fft();
  if (kind == "attention") {
    Attention attention;
    COIL_TRY(in_.expect("scale"));
    attention.scale = COIL_TRY(in_.number());
    attention.causal = in_.accept("causal");
    attention.has_mask = in_.accept("mask");
    attention.nan_rows = in_.accept("nan_rows");
    return StructuredAttrs(attention);
  }
  Conv conv;
  COIL_TRY(in_.expect("stride"));
  conv.stride = COIL_TRY(parse_ints());
  COIL_TRY(in_.expect("padding"));
  conv.padding = COIL_TRY(parse_ints());
  COIL_TRY(in_.expect("dilation"));
  conv.dilation = COIL_TRY(parse_ints());
  conv.output_padding.assign(conv.stride.size(), 0);
  conv.transposed = in_.accept("transposed");
  if (conv.transposed) {
    COIL_TRY(in_.expect("output_padding"));
    conv.output_padding = COIL_TRY(parse_ints());
  }
  if (in_.accept("groups")) conv.groups = COIL_TRY(in_.integer());
  return StructuredAttrs(std::move(conv));
}

Status ProgramParser::parse_structured(std::string_view kind) {
  Structured node;
  node.name = COIL_TRY(in_.word());
  node.attrs = COIL_TRY(parse_attrs(kind));
  Origin origin = COIL_TRY(parse_origin());
  node.from = std::move(origin.from);
  node.locs = std::move(origin.locs);
  node.init = origin.init;
  COIL_TRY(in_.expect("{"));
  while (!in_.accept("}")) COIL_TRY(parse_access(node));
  program_.order.emplace_back(program_.structured.add(std::move(node)));
  return Ok{};
}

Status ProgramParser::parse_control_kind(std::string_view word, Control& control, Names& scope) {
  if (word == "while") {
    control.kind = While{};
  } else if (word == "for") {
    For loop;
    const Dim dim = COIL_TRY(parse_dim(DimKind::Parallel, sym::Role::Step, scope_));
    loop.step = dim.var;
    loop.extent = dim.extent;
    scope.emplace(syms_.var(dim.var).name, dim.var);
    control.kind = loop;
  } else {
    If branch;
    COIL_TRY(in_.expect("on"));
    if (in_.peek().kind == TokenKind::Name) {
      branch.predicate = COIL_TRY(parse_buffer());
    } else {
      branch.condition = COIL_TRY(parse_expr(scope_));
    }
    control.kind = branch;
  }
  return Ok{};
}

Status ProgramParser::parse_control(std::string_view kind) {
  Control control;
  control.name = COIL_TRY(in_.word());
  Names scope = scope_;
  COIL_TRY(parse_control_kind(kind, control, scope));
  if (in_.accept("carry")) control.carried = COIL_TRY(parse_buffer_list());
  if (in_.accept("with")) control.operands = COIL_TRY(parse_buffer_list());
  if (in_.accept("gives")) control.results = COIL_TRY(parse_buffer_list());
  Origin origin = COIL_TRY(parse_origin());
  if (origin.init) return in_.error_here("control flow is never init");
  control.from = std::move(origin.from);
  control.locs = std::move(origin.locs);
  COIL_TRY(in_.expect("{"));
  while (!in_.accept("}")) {
    control.programs.push_back(static_cast<u32>(program_.subprograms.size()));
    program_.subprograms.push_back(
        COIL_TRY(ProgramParser(in_, program_.syms, scope, depth_ + 1).parse()));
  }
  program_.order.emplace_back(program_.controls.add(std::move(control)));
  return Ok{};
}

}  // namespace coil::loop_text
