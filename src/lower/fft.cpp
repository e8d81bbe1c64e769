// Fourier transforms: one structured node a dim, one after the other.

#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

/// Any number but 0 and 1 is a division by the number of elements, as in eager.
FftScale scale_of(i64 normalization) {
  if (normalization == 0) return FftScale::None;
  return normalization == 1 ? FftScale::ByRootN : FftScale::ByN;
}

/// The nodes of a transform over several dims.
class Chain {
 public:
  Chain(Lowering& l, const Args& args, std::size_t rank)
      : l_(l),
        now_(l.access(args.tensor("self"))),
        scale_(scale_of(args.integer("normalization"))) {
    for (i64 d : args.integers("dim")) dims_.push_back(d < 0 ? d + static_cast<i64>(rank) : d);
  }

  const std::vector<i64>& dims() const { return dims_; }
  i64 last_dim() const { return dims_.back(); }
  Expr extent(i64 dim) const { return l_.extent(now_, dim); }

  /// A node along `dim`, which then has `extent` elements; the last one gives the op's result.
  void add(FftKind kind, i64 dim, bool forward, Expr extent) {
    const Access x = l_.linear(now_, str("dim{}.x", dim));
    Exprs shape = x.extents;
    if (kind == FftKind::R2c) shape.push_back(l_.syms.constant(2));
    if (kind == FftKind::C2r) shape.pop_back();
    shape.at(static_cast<std::size_t>(dim)) = extent;
    const bool is_last = ++count_ == dims_.size();
    Structured s;
    s.name = l_.name();
    s.attrs = Fft{kind, dim, forward, scale_};
    s.inputs = {x};
    now_ = l_.whole(is_last ? l_.result() : l_.temp(str("dim{}", dim), l_.dtype_of(x), shape));
    s.outputs = {now_};
    l_.add_structured(std::move(s));
  }
  /// Complex to complex along all dims but the last `without`.
  void add_complex(bool forward, std::size_t without) {
    for (std::size_t k = dims_.size() - without; k-- > 0;)
      add(FftKind::C2c, dims_[k], forward, extent(dims_[k]));
  }

 private:
  Lowering& l_;
  Access now_;
  FftScale scale_;
  std::vector<i64> dims_;
  std::size_t count_ = 0;
};

}  // namespace

Status lower_fft(Lowering& l, const Node& node, const Args& args) {
  const Type& type = l.type(node.outs[0]);
  Chain chain(l, args, type.ndim());
  if (chain.dims().empty()) {
    l.copy(l.access(args.tensor("self")), l.result(), l.name());
  } else if (node.op == "_fft_c2c") {
    chain.add_complex(args.flag("forward"), 0);
  } else if (node.op == "_fft_r2c") {
    const i64 last = chain.last_dim();
    chain.add(FftKind::R2c, last, true, type.shape[static_cast<std::size_t>(last)]);
    chain.add_complex(true, 1);
  } else {
    chain.add_complex(false, 1);
    chain.add(FftKind::C2r, chain.last_dim(), false, args.size("last_dim_size"));
  }
  return Ok{};
}

}  // namespace coil::lowering
