// Ops whose result always views their first argument.

#include <algorithm>
#include <numeric>

#include "graph/rule.h"

namespace coil {
namespace {

Type with_layout(const Type& self, Sizes shape, Sizes strides) {
  Type out = self;
  out.shape = std::move(shape);
  out.strides = std::move(strides);
  return out;
}

Types permuted(const Type& self, std::span<const i64> order) {
  Sizes shape, strides;
  for (i64 d : order) {
    shape.push_back(self.shape[static_cast<std::size_t>(d)]);
    strides.push_back(self.strides[static_cast<std::size_t>(d)]);
  }
  return {with_layout(self, std::move(shape), std::move(strides))};
}

Result<Types> same(const Call& call) { return Types{call.self()}; }

Result<Types> view(const Call& call) {
  const Type& self = call.self();
  Sizes shape = COIL_TRY(call.named(complete_shape(call.graph, self.shape, call.sizes("size"))));
  std::optional<Sizes> strides = view_strides(call.graph, self, shape);
  if (!strides)
    return call.fail("{} cannot be viewed as {} without a copy: use reshape", text(call.syms, self),
                     call.shape_text(shape));
  return Types{with_layout(self, std::move(shape), std::move(*strides))};
}

Result<Types> view_dtype(const Call& call) {
  Type out = call.self();
  const DType dtype = call.dtype("dtype", out.dtype);
  const i64 have = size_of(out.dtype), want = size_of(dtype);
  out.dtype = dtype;
  if (have == want) return Types{std::move(out)};
  if (out.ndim() == 0 || !known_value(call.graph, out.strides.back(), 1))
    return call.fail("{} has no last dim of stride 1, elements of {} bytes cannot be seen as {}",
                     text(call.syms, call.self()), have, name(dtype));
  // Sizes and strides count elements, of which there are more or fewer.
  const i64 parts = std::max(have, want) / std::min(have, want);
  const sym::Expr ratio = call.number(parts);
  const auto counted = [&](sym::Expr n) {
    return have > want ? call.syms.mul(n, ratio) : call.syms.floordiv(n, ratio);
  };
  const auto is_whole = [&](sym::Expr n) {
    return have > want || known_value(call.graph, call.syms.mod(n, ratio), 0);
  };
  for (std::size_t d = 0; d + 1 < out.ndim(); ++d) {
    if (!is_whole(out.strides[d]))
      return call.fail("stride {} of {} must be a multiple of {}", d, text(call.syms, call.self()),
                       parts);
    out.strides[d] = counted(out.strides[d]);
  }
  if (!is_whole(out.shape.back()))
    return call.fail("the last size of {} must be a multiple of {}", text(call.syms, call.self()),
                     parts);
  out.shape.back() = counted(out.shape.back());
  return Types{std::move(out)};
}

Result<Types> permute(const Call& call) {
  const Type& self = call.self();
  const std::vector<i64> order = COIL_TRY(call.dims("dims", self.ndim()));
  if (order.size() != self.ndim())
    return call.fail("{} dims are given for {}", order.size(), text(call.syms, self));
  return permuted(self, order);
}

Result<Types> swap_dims(const Call& call, i64 a, i64 b) {
  std::vector<i64> order(call.self().ndim());
  std::iota(order.begin(), order.end(), i64{0});
  if (!order.empty())
    std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return permuted(call.self(), order);
}

template <bool swapaxes>
Result<Types> transpose(const Call& call) {
  const std::size_t ndim = call.self().ndim();
  const i64 a = COIL_TRY(call.dim(swapaxes ? "axis0" : "dim0", ndim));
  const i64 b = COIL_TRY(call.dim(swapaxes ? "axis1" : "dim1", ndim));
  return swap_dims(call, a, b);
}

Result<Types> matrix_transpose(const Call& call) {
  const i64 ndim = static_cast<i64>(call.self().ndim());
  if (call.base() == "t" ? ndim > 2 : ndim < 2)
    return call.fail("does not take {}", text(call.syms, call.self()));
  return ndim < 2 ? Types{call.self()} : swap_dims(call, ndim - 2, ndim - 1);
}

Result<Types> reverse_dims(const Call& call) {
  std::vector<i64> order(call.self().ndim());
  std::iota(order.rbegin(), order.rend(), i64{0});
  return permuted(call.self(), order);
}

Result<Types> move_dims(const Call& call) {
  const Type& self = call.self();
  std::vector<i64> from, to;
  if (call.op().ends_with(".intlist")) {
    from = COIL_TRY(call.dims("source", self.ndim()));
    to = COIL_TRY(call.dims("destination", self.ndim()));
  } else {
    from = {COIL_TRY(call.dim("source", self.ndim()))};
    to = {COIL_TRY(call.dim("destination", self.ndim()))};
  }
  if (from.size() != to.size()) return call.fail("source and destination differ in length");
  std::vector<i64> order(self.ndim(), -1);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (self.ndim() > 0) order[static_cast<std::size_t>(to[i])] = from[i];
  }
  i64 next = 0;
  for (i64& d : order) {
    if (d >= 0) continue;
    while (std::ranges::find(from, next) != from.end()) ++next;
    d = next++;
  }
  return permuted(self, order);
}

Result<Types> expand_to(const Call& call, const Sizes& target) {
  const Type& self = call.self();
  if (target.size() < self.ndim())
    return call.fail("{} has more dims than {}", text(call.syms, self), call.shape_text(target));
  const std::size_t lead = target.size() - self.ndim();
  Sizes shape(target.size()), strides(target.size());
  for (std::size_t i = target.size(); i-- > 0;) {
    const bool is_new = i < lead;
    sym::Expr size = is_new ? call.number(1) : self.shape[i - lead];
    sym::Expr stride = call.number(self.ndim() == 0 ? 0 : 1);
    if (!is_new) stride = self.strides[i - lead];
    if (is_new && i + 1 < target.size()) stride = call.syms.mul(shape[i + 1], strides[i + 1]);
    const bool keeps = !is_new && known_value(call.graph, target[i], -1);
    if (!keeps && !known_equal(call.graph, size, target[i])) {
      if (known_value(call.graph, size, 1)) {
        stride = call.number(0);
      } else {
        COIL_TRY(call.sizes_agree(size, target[i]));
      }
      size = target[i];
    }
    shape[i] = size;
    strides[i] = stride;
  }
  return Types{with_layout(self, std::move(shape), std::move(strides))};
}

Result<Types> expand(const Call& call) { return expand_to(call, call.sizes("size")); }
Result<Types> expand_as(const Call& call) { return expand_to(call, call.tensor("other").shape); }

Result<Types> select(const Call& call) {
  Type out = call.self();
  if (out.ndim() == 0) return call.fail("a tensor without dims has nothing to select");
  const i64 dim = COIL_TRY(call.dim("dim", out.ndim()));
  const sym::Expr size = out.shape[static_cast<std::size_t>(dim)];
  const sym::Expr index = call.integer("index");
  const std::optional<i64> at = call.syms.as_const(index);
  const std::optional<i64> count = call.syms.as_const(size);
  if (at && count && (*at < -*count || *at >= *count))
    return call.fail("index {} is outside a dim of size {}", *at, *count);
  out.shape.erase(out.shape.begin() + dim);
  out.strides.erase(out.strides.begin() + dim);
  return Types{std::move(out)};
}

/// A slice bound counted from 0 and kept within [low, size].
sym::Expr slice_bound(const Call& call, sym::Expr bound, sym::Expr low, sym::Expr size) {
  Graph& graph = call.graph;
  const sym::Expr zero = call.number(0);
  if (std::optional<i64> value = call.syms.as_const(bound); value && *value == INT64_MAX)
    return size;
  if (known_less(graph, bound, zero)) {
    bound = call.syms.add(bound, size);
  } else if (!known_less_equal(graph, zero, bound)) {
    bound = call.syms.select(call.syms.lt(bound, zero), call.syms.add(bound, size), bound);
  }
  return smaller(graph, larger(graph, bound, low), size);
}

Result<Types> slice(const Call& call) {
  Type out = call.self();
  if (out.ndim() == 0) return call.fail("a tensor without dims cannot be sliced");
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", out.ndim())));
  const i64 step = COIL_TRY(call.constant("step"));
  if (step < 1) return call.fail("step is {}, but must be positive", step);
  const sym::Expr size = out.shape[dim];
  sym::Expr start = call.number(0);
  if (call.has("start")) start = slice_bound(call, call.integer("start"), start, size);
  sym::Expr end = size;
  if (call.has("end")) end = slice_bound(call, call.integer("end"), start, size);
  out.shape[dim] = call.syms.ceildiv(call.syms.sub(end, start), call.number(step));
  out.strides[dim] = call.syms.mul(out.strides[dim], call.number(step));
  return Types{std::move(out)};
}

Result<Types> narrow(const Call& call) {
  Type out = call.self();
  if (out.ndim() == 0) return call.fail("a tensor without dims cannot be sliced");
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", out.ndim())));
  const sym::Expr size = out.shape[dim], length = call.integer("length");
  const sym::Expr start = slice_bound(call, call.integer("start"), call.number(0), size);
  const sym::Expr end = smaller(call.graph, call.syms.add(start, length), size);
  out.shape[dim] = call.syms.sub(end, start);
  COIL_TRY(call.sizes_agree(out.shape[dim], length));
  if (known_equal(call.graph, out.shape[dim], length)) out.shape[dim] = length;
  return Types{std::move(out)};
}

Result<Types> unsqueeze(const Call& call) {
  Type out = call.self();
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", out.ndim() + 1)));
  sym::Expr stride = call.number(1);
  if (dim < out.ndim()) stride = call.syms.mul(out.shape[dim], out.strides[dim]);
  out.shape.insert(out.shape.begin() + static_cast<i64>(dim), call.number(1));
  out.strides.insert(out.strides.begin() + static_cast<i64>(dim), stride);
  return Types{std::move(out)};
}

Result<Types> squeeze(const Call& call) {
  const Type& self = call.self();
  std::vector<i64> dims(self.ndim());
  std::iota(dims.begin(), dims.end(), i64{0});
  if (call.op() == "squeeze.dim") dims = {COIL_TRY(call.dim("dim", self.ndim()))};
  if (call.op() == "squeeze.dims") dims = COIL_TRY(call.dims("dim", self.ndim()));
  Sizes shape, strides;
  for (std::size_t i = 0; i < self.ndim(); ++i) {
    const bool named = std::ranges::find(dims, static_cast<i64>(i)) != dims.end();
    if (named && known_value(call.graph, self.shape[i], 1)) continue;
    shape.push_back(self.shape[i]);
    strides.push_back(self.strides[i]);
  }
  return Types{with_layout(self, std::move(shape), std::move(strides))};
}

Result<Types> diagonal(const Call& call) {
  Type out = call.self();
  const i64 first = COIL_TRY(call.dim("dim1", out.ndim()));
  const i64 second = COIL_TRY(call.dim("dim2", out.ndim()));
  if (first == second || out.ndim() < 2) return call.fail("needs two different dims");
  const i64 offset = COIL_TRY(call.constant("offset"));
  constexpr i64 kMostOffset = i64{1} << 48;
  if (offset < -kMostOffset || offset > kMostOffset)
    return call.fail("offset {} is out of range", offset);
  sym::Expr rows = out.shape[static_cast<std::size_t>(first)];
  sym::Expr columns = out.shape[static_cast<std::size_t>(second)];
  if (offset >= 0) columns = call.syms.sub(columns, call.number(offset));
  if (offset < 0) rows = call.syms.add(rows, call.number(offset));
  const sym::Expr size = larger(call.graph, smaller(call.graph, rows, columns), call.number(0));
  const sym::Expr stride = call.syms.add(out.strides[static_cast<std::size_t>(first)],
                                         out.strides[static_cast<std::size_t>(second)]);
  for (i64 d : {std::max(first, second), std::min(first, second)}) {
    out.shape.erase(out.shape.begin() + d);
    out.strides.erase(out.strides.begin() + d);
  }
  out.shape.push_back(size);
  out.strides.push_back(stride);
  return Types{std::move(out)};
}

Result<Types> unfold(const Call& call) {
  Type out = call.self();
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dimension", out.ndim())));
  const sym::Expr size = call.integer("size");
  const i64 step = COIL_TRY(call.constant("step"));
  if (step < 1) return call.fail("step is {}, but must be positive", step);
  if (out.ndim() == 0) {
    out.shape = {size};
    out.strides = {call.number(1)};
    return Types{std::move(out)};
  }
  if (known_less(call.graph, out.shape[dim], size))
    return call.fail("windows of {} do not fit a dim of size {}", call.syms.text(size),
                     call.syms.text(out.shape[dim]));
  const sym::Expr stride = out.strides[dim];
  out.shape[dim] = call.syms.add(
      call.syms.floordiv(call.syms.sub(out.shape[dim], size), call.number(step)), call.number(1));
  out.strides[dim] = call.syms.mul(stride, call.number(step));
  out.shape.push_back(size);
  out.strides.push_back(stride);
  return Types{std::move(out)};
}

Result<Types> as_strided(const Call& call) {
  const Sizes& shape = call.sizes("size");
  const Sizes& strides = call.sizes("stride");
  if (shape.size() != strides.size()) return call.fail("size and stride differ in length");
  return Types{with_layout(call.self(), shape, strides)};
}

Types pieces(const Type& self, std::size_t dim, const Sizes& sizes) {
  Types out;
  for (sym::Expr size : sizes) {
    out.push_back(self);
    out.back().shape[dim] = size;
  }
  return out;
}

/// A dim is cut in as many pieces as tensors come out, so that it must be fixed, and not absurd.
Result<i64> fixed_size(const Call& call, std::size_t dim) {
  const std::optional<i64> size = call.syms.as_const(call.self().shape[dim]);
  if (!size) return call.fail("dim {} has a dynamic size", dim);
  if (*size > 65536) return call.fail("dim {} has {} elements, more than 65536", dim, *size);
  return *size;
}

Result<Types> split_with_sizes(const Call& call) {
  const Type& self = call.self();
  if (self.ndim() == 0) return call.fail("a tensor without dims cannot be split");
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", self.ndim())));
  const Sizes& sizes = call.sizes(call.op() == "split.sizes" ? "split_size" : "split_sizes");
  COIL_TRY(
      call.named(require_equal(call.graph, self.shape[dim], call.syms.sum(sizes), "split sizes")));
  return pieces(self, dim, sizes);
}

/// Pieces of `length` elements, the last one shorter if need be.
Result<Types> split_by(const Call& call, std::size_t dim, i64 total, i64 length) {
  if (length < 1 && total > 0) return call.fail("the size of a piece must be positive");
  Sizes sizes;
  for (i64 at = 0; at < total; at += length)
    sizes.push_back(call.number(std::min(length, total - at)));
  if (sizes.empty()) sizes.push_back(call.number(0));
  return pieces(call.self(), dim, sizes);
}

Result<Types> split(const Call& call) {
  const Type& self = call.self();
  if (self.ndim() == 0) return call.fail("a tensor without dims cannot be split");
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", self.ndim())));
  const bool is_chunk = call.op() == "chunk";
  // A dynamic dim can be split where the pieces' size is a fixed part of it.
  if (is_chunk && !call.syms.as_const(self.shape[dim])) {
    const i64 chunks = COIL_TRY(call.constant("chunks"));
    const sym::Expr size = self.shape[dim];
    if (chunks < 1 || chunks > 65536 ||
        sym::Prover(call.syms, call.graph.facts).divides(call.number(chunks), size) !=
            sym::Answer::Yes)
      return call.fail("size {} is not known to be a multiple of {}", call.syms.text(size), chunks);
    const sym::Expr piece = call.syms.floordiv(size, call.number(chunks));
    return pieces(self, dim, Sizes(static_cast<std::size_t>(chunks), piece));
  }
  const i64 total = COIL_TRY(fixed_size(call, dim));
  if (!is_chunk) return split_by(call, dim, total, COIL_TRY(call.constant("split_size")));
  const i64 chunks = COIL_TRY(call.constant("chunks"));
  if (chunks < 1) return call.fail("{} chunks", chunks);
  if (total == 0)
    return pieces(self, dim,
                  Sizes(static_cast<std::size_t>(std::min<i64>(chunks, 65536)), call.number(0)));
  return split_by(call, dim, total, total / chunks + (total % chunks != 0 ? 1 : 0));
}

Result<Types> unbind(const Call& call) {
  Type piece = call.self();
  if (piece.ndim() == 0) return call.fail("a tensor without dims cannot be unbound");
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", piece.ndim())));
  const i64 count = COIL_TRY(fixed_size(call, dim));
  piece.shape.erase(piece.shape.begin() + static_cast<i64>(dim));
  piece.strides.erase(piece.strides.begin() + static_cast<i64>(dim));
  return Types(static_cast<std::size_t>(count), piece);
}

Result<Types> view_as_real(const Call& call) {
  Type out = call.self();
  if (!is_complex(out.dtype)) return call.fail("{} is not complex", text(call.syms, out));
  out.dtype = real_of(out.dtype);
  for (sym::Expr& stride : out.strides) stride = call.syms.mul(stride, call.number(2));
  out.shape.push_back(call.number(2));
  out.strides.push_back(call.number(1));
  return Types{std::move(out)};
}

Result<Types> view_as_complex(const Call& call) {
  Type out = call.self();
  if (out.ndim() == 0 || !known_value(call.graph, out.shape.back(), 2) ||
      !known_value(call.graph, out.strides.back(), 1) || !is_float(out.dtype))
    return call.fail("needs floats with a last dim of size 2 and stride 1, not {}",
                     text(call.syms, out));
  out.dtype = complex_of(out.dtype);
  out.shape.pop_back();
  out.strides.pop_back();
  for (sym::Expr& stride : out.strides) stride = call.syms.floordiv(stride, call.number(2));
  return Types{std::move(out)};
}

Result<Types> complex_part(const Call& call) {
  Type out = call.self();
  if (!is_complex(out.dtype)) {
    if (call.op() == "imag") return call.fail("{} is not complex", text(call.syms, out));
    return Types{std::move(out)};
  }
  out.dtype = real_of(out.dtype);
  for (sym::Expr& stride : out.strides) stride = call.syms.mul(stride, call.number(2));
  return Types{std::move(out)};
}

constexpr RuleRow kRules[] = {
    {"alias", same},
    {"detach", same},
    {"lift_fresh", same},
    {"view", view},
    {"_unsafe_view", view},
    {"view.dtype", view_dtype},
    {"permute", permute},
    {"transpose.int", transpose<false>},
    {"swapaxes", transpose<true>},
    {"swapdims", transpose<false>},
    {"t", matrix_transpose},
    {"mT", matrix_transpose},
    {"mH", matrix_transpose},
    {"numpy_T", reverse_dims},
    {"movedim.int", move_dims},
    {"movedim.intlist", move_dims},
    {"moveaxis.int", move_dims},
    {"moveaxis.intlist", move_dims},
    {"expand", expand},
    {"expand_as", expand_as},
    {"broadcast_to", expand},
    {"select.int", select},
    {"slice.Tensor", slice},
    {"narrow", narrow},
    {"unsqueeze", unsqueeze},
    {"squeeze", squeeze},
    {"squeeze.dim", squeeze},
    {"squeeze.dims", squeeze},
    {"diagonal", diagonal},
    {"unfold", unfold},
    {"as_strided", as_strided},
    {"split_with_sizes", split_with_sizes},
    {"split.sizes", split_with_sizes},
    {"split.Tensor", split},
    {"chunk", split},
    {"unbind.int", unbind},
    {"view_as_real", view_as_real},
    {"view_as_complex", view_as_complex},
    {"real", complex_part},
    {"imag", complex_part},
};

}  // namespace

std::span<const RuleRow> view_rules() { return kRules; }

}  // namespace coil
