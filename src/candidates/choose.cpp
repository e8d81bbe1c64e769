#include <algorithm>

#include "candidates/candidate.h"

namespace coil {
namespace {

struct Row {
  NodeKind kind;
  std::string_view candidate;
  std::string_view reason;
};

constexpr Row kOrder[] = {
#define C(kind, candidate, reason) {NodeKind::kind, #candidate, reason},
#include "candidates/order.def"
#undef C
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    out.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

NodeKind kind_of(const LoopProgram& program, const Structured& node) {
  if (std::holds_alternative<Gemm>(node.attrs)) return NodeKind::Gemm;
  if (std::holds_alternative<Attention>(node.attrs)) return NodeKind::Attention;
  if (const auto* sort = std::get_if<Sort>(&node.attrs))
    return sort->is_topk ? NodeKind::Topk : NodeKind::Sort;
  if (std::holds_alternative<Factor>(node.attrs)) return NodeKind::Factor;
  if (std::holds_alternative<Fft>(node.attrs)) return NodeKind::Fft;
  if (std::get<Conv>(node.attrs).groups > 1) return NodeKind::GroupedConv;
  const std::vector<sym::Expr>& weight = node.inputs[1].extents;
  const bool is_point = std::all_of(weight.begin() + 2, weight.end(), [&](sym::Expr extent) {
    return program.syms->as_const(extent) == 1;
  });
  return is_point ? NodeKind::PointConv : NodeKind::Conv;
}

std::string_view name(NodeKind kind) {
  switch (kind) {
    case NodeKind::Gemm: return "matrix product";
    case NodeKind::Conv:
    case NodeKind::PointConv:
    case NodeKind::GroupedConv: return "convolution";
    case NodeKind::Attention: return "attention";
    case NodeKind::Sort: return "sort";
    case NodeKind::Topk: return "topk";
    case NodeKind::Factor: return "factorisation";
    case NodeKind::Fft: return "Fourier transform";
  }
  COIL_UNREACHABLE();
}

Result<Candidates> Candidates::create(const std::string& prefer) {
  std::vector<std::string> known;
  for (const Row& row : kOrder)
    if (std::find(known.begin(), known.end(), row.candidate) == known.end())
      known.emplace_back(row.candidate);
  Candidates out;
  out.preferred_ = split(prefer);
  for (const std::string& name : out.preferred_)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return error("option prefer: there is no candidate '{}'; there are: {}", name,
                   join(known, ", ", [](const std::string& text) { return text; }));
  return out;
}

void Candidates::add(std::string_view candidate, Offer offer) {
  offers_.push_back({std::string(candidate), std::move(offer)});
}

const Offer* Candidates::find(std::string_view candidate) const {
  for (const Named& named : offers_)
    if (named.name == candidate) return &named.offer;
  return nullptr;
}

Result<Choice> Candidates::choose(const LoopProgram& program, const Structured& node) const {
  const NodeKind kind = kind_of(program, node);
  const auto rank = [&](const Row& row) {
    return std::find(preferred_.begin(), preferred_.end(), row.candidate) - preferred_.begin();
  };
  std::vector<const Row*> rows;
  for (const Row& row : kOrder)
    if (row.kind == kind) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row* a, const Row* b) { return rank(*a) < rank(*b); });
  Choice choice;
  choice.node = node.name;
  for (const Row* row : rows) {
    const Offer* offer = find(row->candidate);
    Result<Implementation> offered =
        offer ? (*offer)(program, node) : error("it is not part of this build");
    if (offered.ok()) {
      choice.candidate = row->candidate;
      choice.reason =
          static_cast<std::size_t>(rank(*row)) < preferred_.size() ? "option prefer" : row->reason;
      choice.implementation = std::move(*offered);
      return choice;
    }
    choice.refused.push_back({std::string(row->candidate), offered.error().message});
  }
  return error("{}: nobody computes this {} on the cpp target ({}); --target interp does",
               node.name, name(kind), join(choice.refused, "; ", [](const Choice::Refusal& r) {
                 return str("{}: {}", r.candidate, r.reason);
               }));
}

}  // namespace coil
