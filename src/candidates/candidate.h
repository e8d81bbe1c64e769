#pragma once
// Who can compute a structured node: candidates answer with an implementation or a reason why not,
// and the first that has one, in a fixed order, is chosen.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "loop/program.h"
#include "runtime/plan.h"

namespace coil {

/// Who computes a structured node: what its runtime::Call says of it.
struct Implementation {
  std::string name;                  // "gemm.avx2"
  std::vector<i64> attributes = {};  // what the name and the operands do not say
  /// Gives a call of this name its function; one named "pack.NAME" that of the packing.
  std::function<Status(runtime::Call&)> bind;
  /// The size of a weight in the layout that the function reads, from the node's inputs without
  /// memory. The call "pack.NAME" brings it into that layout, once at init: input `weight` of the
  /// node. Empty: the function has no layout of its own.
  std::function<i64(std::span<const runtime::CallOperand>)> packed_bytes;
  u32 weight = 1;
  /// What the packed layout depends on besides `name` and the weight: nodes that read one weight
  /// share its packed form where this is equal.
  std::string layout = {};
};

/// Structured nodes as far as the order of candidates tells them apart. PointConv: a kernel of one
/// point; GroupedConv: more than one group, depthwise ones among them; Conv: all others.
enum class NodeKind : u8 { Gemm, Conv, PointConv, GroupedConv, Attention, Sort, Topk, Factor, Fft };
NodeKind kind_of(const LoopProgram& program, const Structured& node);
std::string_view name(NodeKind kind);

/// Offers an implementation of a node, or an Error: the reason why not.
using Offer = std::function<Result<Implementation>(const LoopProgram&, const Structured&)>;

/// Who was chosen for a node, and the reasons of those who were asked before.
struct Choice {
  struct Refusal {
    std::string candidate, reason;
  };
  std::string node;       // its name
  std::string candidate;  // its row's
  std::string reason;     // why it stands where it does in the order
  Implementation implementation;
  std::vector<Refusal> refused;
};

/// The candidates that there are, and the order in which they are asked (order.def).
class Candidates {
 public:
  /// `prefer`, of option prefer: candidates that are asked before all others. An Error names those
  /// that no row knows.
  static Result<Candidates> create(const std::string& prefer);
  /// What stands behind a candidate of order.def. One without an offer refuses.
  void add(std::string_view candidate, Offer offer);
  /// The first that takes the node; an Error with all reasons where none does.
  Result<Choice> choose(const LoopProgram& program, const Structured& node) const;

 private:
  struct Named {
    std::string name;
    Offer offer;
  };
  const Offer* find(std::string_view candidate) const;

  std::vector<std::string> preferred_;
  std::vector<Named> offers_;
};

}  // namespace coil
