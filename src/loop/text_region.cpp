#include "loop/text_region.h"

#include <algorithm>

#include "loop/text_marks.h"

namespace coil::loop_text {

DType result_dtype(ops::ScalarOp op, std::span<const DType> operands, DType given) {
  switch (ops::info(op).result) {
    case ops::ResultRule::Same:
      return operands[op == ops::ScalarOp::where && operands.size() > 1 ? 1 : 0];
    case ops::ResultRule::Bool: return DType::b8;
    case ops::ResultRule::Given: return given;
  }
  COIL_UNREACHABLE();
}

void print_region(TextWriter& out, const std::string& head, const ops::Combine& combine) {
  const std::size_t count = combine.values.size();
  const auto operand = [&](u32 i) {
    if (i < count) return str("a{}", i);
    if (i < 2 * count) return str("b{}", i - count);
    return str("c{}", i - 2 * count);
  };
  const auto start = [](const ops::Scalar& s) {
    return str("{} {}", name(s.dtype), scalar_text(s));
  };
  out.line("{} from {} {{", head, join(combine.identity, ", ", start));
  out.indent();
  for (std::size_t i = 0; i < combine.insts.size(); ++i) {
    const ops::RegionInst& inst = combine.insts[i];
    if (inst.constant) {
      out.line("c{} = const {} {}", i, name(inst.dtype), scalar_text(*inst.constant));
      continue;
    }
    const ops::ScalarInfo& row = ops::info(inst.op);
    const std::string given =
        row.result == ops::ResultRule::Given ? " " + std::string(name(inst.dtype)) : "";
    out.line("c{} = {}{} {}", i, row.name, given, join(inst.operands, ", ", operand));
  }
  out.line("return {}", join(combine.results, ", ", operand));
  out.dedent();
  out.line("}}");
}

namespace {

class RegionParser {
 public:
  explicit RegionParser(TextReader& in) : in_(in) {}

  Result<ops::Combine> parse() {
    COIL_TRY(in_.expect("from"));
    do {
      const DType dtype = COIL_TRY(parse_dtype());
      combine_.values.push_back(dtype);
      combine_.identity.push_back(COIL_TRY(parse_scalar(in_, dtype)));
    } while (in_.accept(","));
    dtypes_ = combine_.values;
    dtypes_.insert(dtypes_.end(), combine_.values.begin(), combine_.values.end());
    COIL_TRY(in_.expect("{"));
    while (!in_.accept("return")) COIL_TRY(parse_inst());
    do {
      combine_.results.push_back(COIL_TRY(parse_operand()));
    } while (in_.accept(","));
    COIL_TRY(in_.expect("}"));
    return std::move(combine_);
  }

 private:
  Result<DType> parse_dtype() {
    const Error unknown = in_.error_here(str("expected a dtype, found {}", in_.found()));
    const std::optional<DType> dtype = dtype_from_name(COIL_TRY(in_.word()));
    if (!dtype) return unknown;
    return *dtype;
  }

  Status parse_inst() {
    COIL_TRY(in_.expect(str("c{}", combine_.insts.size())));
    COIL_TRY(in_.expect("="));
    const Error unknown = in_.error_here(str("expected a scalar op, found {}", in_.found()));
    const std::string word = COIL_TRY(in_.word());
    ops::RegionInst inst;
    if (word == "const") {
      inst.dtype = COIL_TRY(parse_dtype());
      inst.constant = COIL_TRY(parse_scalar(in_, inst.dtype));
    } else {
      const std::optional<ops::ScalarOp> op = ops::scalar_from_name(word);
      if (!op) return unknown;
      inst.op = *op;
      if (ops::info(*op).result == ops::ResultRule::Given) inst.dtype = COIL_TRY(parse_dtype());
      std::vector<DType> operands;
      do {
        inst.operands.push_back(COIL_TRY(parse_operand()));
        operands.push_back(dtypes_[inst.operands.back()]);
      } while (in_.accept(","));
      inst.dtype = result_dtype(*op, operands, inst.dtype);
    }
    dtypes_.push_back(inst.dtype);
    combine_.insts.push_back(std::move(inst));
    return Ok{};
  }

  /// a0, ... of the left side, b0, ... of the right side, c0, ... of earlier instructions.
  Result<u32> parse_operand() {
    const Error unknown = in_.error_here(str("expected a0, b0 or c0, found {}", in_.found()));
    const std::string word = COIL_TRY(in_.word());
    const std::size_t values = combine_.values.size();
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (word.size() < 2 || word.size() > 7 || !std::all_of(word.begin() + 1, word.end(), is_digit))
      return unknown;
    const std::size_t at = std::stoul(word.substr(1));
    if (word[0] == 'a' && at < values) return static_cast<u32>(at);
    if (word[0] == 'b' && at < values) return static_cast<u32>(values + at);
    if (word[0] == 'c' && at < combine_.insts.size()) return static_cast<u32>(2 * values + at);
    return unknown;
  }

  TextReader& in_;
  ops::Combine combine_;
  std::vector<DType> dtypes_;  // of the operands that may be named so far
};

}  // namespace

Result<ops::Combine> parse_region(TextReader& in) { return RegionParser(in).parse(); }

}  // namespace coil::loop_text
