#pragma once
// Writes the region of a combine, instruction by instruction.

#include <utility>

#include "ops/combine.h"

namespace coil::ops {

/// Writes a Combine: declares its values, appends instructions, each giving its operand index.
class CombineBuilder {
 public:
  CombineBuilder(std::string_view name, std::vector<DType> values) {
    combine_.name = name;
    combine_.values = std::move(values);
  }
  u32 left(u32 value = 0) const { return value; }
  u32 right(u32 value = 0) const { return static_cast<u32>(combine_.values.size()) + value; }
  u32 add(ScalarOp op, DType dtype, std::vector<u32> operands) {
    return append({op, dtype, std::move(operands), std::nullopt});
  }
  u32 test(ScalarOp op, std::vector<u32> operands) {
    return add(op, DType::b8, std::move(operands));
  }
  u32 constant(const Scalar& value) { return append({ScalarOp::add, value.dtype, {}, value}); }
  Combine finish(std::vector<Scalar> identity, std::vector<u32> results) {
    combine_.identity = std::move(identity);
    combine_.results = std::move(results);
    return std::move(combine_);
  }

 private:
  u32 append(RegionInst inst) {
    combine_.insts.push_back(std::move(inst));
    return static_cast<u32>(2 * combine_.values.size() + combine_.insts.size() - 1);
  }
  Combine combine_;
};

}  // namespace coil::ops
