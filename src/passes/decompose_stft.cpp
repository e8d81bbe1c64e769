// Short-time Fourier transforms: transforms of overlapping frames of a signal, and the way back.

#include "passes/composite.h"

namespace coil {
namespace {

/// What stft and istft are told about frames; a window is filled up to n_fft on both sides.
struct Frames {
  i64 n_fft, hop;
  ValueId window;  // invalid: none

  Frames(Composite& c, DType otherwise) : n_fft(c.fixed("n_fft")) {
    hop = c.has("hop_length") ? c.fixed("hop_length") : n_fft / 4;
    const i64 length = c.has("win_length") ? c.fixed("win_length") : n_fft;
    if (n_fft <= 0 || hop <= 0 || length <= 0 || length > n_fft)
      c.fail("n_fft {}, hop_length {}, win_length {} do not go together", n_fft, hop, length);
    window = c.tensor("window");
    if (window.valid() && (c.ndim(window) != 1 || !c.is(c.size(window, 0), length)))
      c.fail("the window is not 1-d of length {}", length);
    if (length == n_fft) return;
    if (!window.valid()) window = c.filled({c.n(length)}, 1, otherwise);
    const i64 left = (n_fft - length) / 2;
    window =
        c.call("constant_pad_nd", {window, Exprs{c.n(left), c.n(n_fft - length - left)}, c.n(0)});
  }
};

/// A signal with `amount` more elements on both sides.
ValueId padded(Composite& c, ValueId v, i64 amount, const std::string& mode) {
  const Exprs sides{c.n(amount), c.n(amount)};
  const ValueId out = c.call("pad", {c.unsqueeze(v, 0), sides, mode, None{}});
  return c.squeeze(out, {0});
}

Values stft(Composite& c) {
  ValueId v = c.self();
  const bool is_single = c.ndim(v) == 1;
  if (c.ndim(v) != 1 && c.ndim(v) != 2) c.fail("expects a signal or a batch of them");
  if (is_single) v = c.unsqueeze(v, 0);
  const Frames frames(c, c.dtype(v));
  const bool is_centred = c.op() == "stft.center" && c.flag("center");
  const std::string mode = c.op() == "stft.center" ? c.word("pad_mode") : "reflect";
  if (is_centred) v = padded(c, v, frames.n_fft / 2, mode);
  if (!is_centred && c.has("align_to_window") && c.flag("align_to_window")) {
    const i64 length = c.has("win_length") ? c.fixed("win_length") : frames.n_fft;
    v = padded(c, v, (frames.n_fft - length) / 2, mode);
  }
  v = c.call("unfold", {v, c.n(-1), c.n(frames.n_fft), c.n(frames.hop)});
  if (frames.window.valid()) v = c.mul(v, frames.window);
  const bool has_parts = is_complex(c.dtype(v));
  const bool onesided = c.has("onesided") ? c.flag("onesided") : !has_parts;
  if (onesided && has_parts) c.fail("a complex signal or window has no onesided transform");
  const bool gives_complex = c.has("return_complex") ? c.flag("return_complex") : has_parts;
  const sym::Expr scale = c.n(c.flag("normalized") ? 1 : 0);
  v = has_parts ? c.call("_fft_c2c", {v, Exprs{c.n(2)}, scale, true})
                : c.call("_fft_r2c", {v, Exprs{c.n(2)}, scale, onesided});
  v = c.transpose(v, 1, 2);
  if (is_single) v = c.squeeze(v, {0});
  return {gives_complex ? v : c.call("view_as_real", {v})};
}

/// Frames added up where they overlap: [batch, frames, n_fft] to [batch, length].
ValueId overlap(Composite& c, ValueId v, sym::Expr length, const Frames& frames) {
  return c.call("unfold_backward",
                {v, Exprs{c.size(v, 0), length}, c.n(1), c.n(frames.n_fft), c.n(frames.hop)});
}

/// The frames, each transformed back and times the window.
ValueId istft_frames(Composite& c, ValueId v, const Frames& frames) {
  const sym::Expr n = c.n(frames.n_fft), half = c.n(frames.n_fft / 2 + 1);
  const bool onesided = c.has("onesided") ? c.flag("onesided") : !c.same(c.size(v, 1), n);
  if (!c.same(c.size(v, 1), onesided ? half : n))
    c.fail("the frequencies do not go with n_fft {}", frames.n_fft);
  const bool gives_complex = c.flag("return_complex");
  if (gives_complex && onesided) c.fail("a complex result has no onesided transform");
  const sym::Expr scale = c.n(c.flag("normalized") ? 1 : 2);
  v = c.transpose(v, 1, 2);
  if (gives_complex) {
    v = c.call("_fft_c2c", {v, Exprs{c.n(2)}, scale, false});
  } else {
    if (!onesided) v = c.slice(v, 2, c.n(0), half);
    v = c.call("_fft_c2r", {v, Exprs{c.n(2)}, scale, n});
  }
  return frames.window.valid() ? c.mul(v, frames.window) : v;
}

Values istft(Composite& c) {
  ValueId v = c.self();
  const bool is_single = c.ndim(v) == 2;
  if (!is_complex(c.dtype(v)) || (c.ndim(v) != 2 && c.ndim(v) != 3))
    c.fail("expects a complex tensor of two or three dims");
  const DType real = real_of(c.dtype(v));
  const Frames frames(c, real);
  if (is_single) v = c.unsqueeze(v, 0);
  const sym::Expr count = c.size(v, 2), n = c.n(frames.n_fft);
  const sym::Expr length = c.syms.add(n, c.syms.mul(c.n(frames.hop), c.syms.sub(count, c.n(1))));
  const ValueId sums = overlap(c, istft_frames(c, v, frames), length, frames);
  const ValueId window = frames.window.valid() ? frames.window : c.filled({n}, 1, real);
  const ValueId squares = c.expand(c.mul(window, window), {c.n(1), count, n});
  const ValueId weights = overlap(c, squares, length, frames);
  const i64 start = c.flag("center") ? frames.n_fft / 2 : 0;
  sym::Expr end = c.syms.sub(length, c.n(start));
  if (c.has("length")) end = c.n(start + c.fixed("length"));
  const auto part = [&](ValueId of) { return c.slice(of, 1, c.n(start), c.syms.min(end, length)); };
  ValueId out = c.div(part(sums), part(weights));
  const sym::Expr missing = c.syms.max(c.n(0), c.syms.sub(end, length));
  if (!c.is(missing, 0)) out = c.call("constant_pad_nd", {out, Exprs{c.n(0), missing}, c.n(0)});
  return {is_single ? c.squeeze(out, {0}) : out};
}

/// The sum of the windows that unfold made, each where it was.
Values unfold_backward(Composite& c) {
  ValueId grad = c.tensor("grad_in");
  const Exprs shape = c.integers("input_sizes");
  const i64 ndim = static_cast<i64>(shape.size());
  const i64 size = c.fixed("size"), step = c.fixed("step");
  if (ndim == 0) return {c.reshape(grad, {})};
  const i64 dim = c.wrap(c.fixed("dim"), ndim);
  // Windows and places in them stand side by side, then in one dim.
  Dims order;
  for (i64 d = 0; d < ndim; ++d) {
    order.push_back(d);
    if (d == dim) order.push_back(ndim);
  }
  const sym::Expr windows = c.size(grad, dim);
  Exprs broadcast = shape;
  broadcast[static_cast<std::size_t>(dim)] = windows;
  broadcast.push_back(c.n(size));
  grad = c.expand(grad, broadcast);
  Exprs merged = shape;
  merged[static_cast<std::size_t>(dim)] = c.syms.mul(windows, c.n(size));
  const ValueId flat = c.reshape(c.permute(grad, order), merged);
  const auto count = [&](sym::Expr end) {
    return c.call("arange.start_step", {c.n(0), end, c.n(1), DType::i64});
  };
  const ValueId starts = c.unsqueeze(c.mul(count(windows), c.n(step)), 1);
  const ValueId places = c.reshape(c.add(starts, count(c.n(size))), {c.n(-1)});
  return {c.call("index_add", {c.filled(shape, 0, c.dtype(grad)), c.n(dim), places, flat, c.n(1)})};
}

constexpr DecompositionRow kRows[] = {
    {"stft", stft},
    {"stft.center", stft},
    {"istft", istft},
    {"unfold_backward", unfold_backward},
};

}  // namespace

std::span<const DecompositionRow> stft_decompositions() { return kRows; }

}  // namespace coil
