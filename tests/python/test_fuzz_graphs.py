"""Random programs of ATen ops (scripts/fuzz_graphs.py runs many more), and the smallest programs of the
differences that such runs found."""

import types

import fuzz_agree
import fuzz_draw
import fuzz_program
import fuzz_run
import pytest
import torch
from fuzz_program import Program, Ref, Source, Step, overload, results_of, script
from record_ops import record

import coil
from coil.fx import Document
from coil.session import session

aten = torch.ops.aten
NAN, INF = float("nan"), float("inf")


def windowed(*shape):
    """A tensor with gaps between its rows."""
    return torch.randn(*(2 * n for n in shape))[tuple(slice(0, n) for n in shape)]


def view_of_written_input(x):
    return x.zero_(), x.t(), x + 1


def part_of_written_input(x, y):
    x.copy_(y[1:])
    return x[1], x.view(-1)


def write_to_ravel(x):
    y = x.ravel()
    y.add_(1)
    return y.mul(2), x * 1


def next_numbers(x, y):
    return torch.nextafter(x, y), torch.nextafter(x, -y), torch.nextafter(x, x)


def result_and_its_parts(x):
    y = x.cos()
    return y, torch.view_as_real(y)


LIBM = (
    torch.tan, torch.asin, torch.acos, torch.atan, torch.sinh, torch.cosh, torch.tanh, torch.asinh, torch.atanh, torch.erf,
    torch.erfc, torch.exp, torch.exp2, torch.expm1, torch.log, torch.log2, torch.log10, torch.log1p, torch.sin, torch.cos,
    torch.lgamma, torch.digamma, torch.erfinv)


def layout_of_flipped(x, y):
    """Strides of dims of one element count where results of several shapes are laid out."""
    return torch.ops.aten.hardtanh_backward(x, torch.rot90(y, 1, [0, 1]), 7, 0.0)


def functions_of_a_constant(number):
    """Fusion shows the compiler what their operand is."""
    def f(x):
        x.fill_(number)
        return x, *[g(x) for g in LIBM], torch.pow(x, x), torch.atan2(x, x), torch.hypot(x, x)
    return f


FOUND = [
    (view_of_written_input, windowed(3, 5)),
    (view_of_written_input, torch.randn(5, 3).t()),
    (part_of_written_input, torch.randn(3, 4), torch.randn(4, 4)),
    (write_to_ravel, torch.randn(1, 30, 1)[:, ::2]),
    (write_to_ravel, torch.randn(3, 4)),
    (next_numbers, torch.tensor([0.0, 1.0, -1.0, 0.345703125, 1e-40, 3e38], dtype=torch.bfloat16), torch.ones(6, dtype=torch.bfloat16)),
    (lambda x: torch.diagonal_scatter(x, torch.zeros(4)), torch.ones(1, 1).expand(4, 4)),
    (lambda x: (torch.slice_scatter(x, torch.zeros(2, 4), 0, 0, 2), torch.select_scatter(x, torch.zeros(4), 0, 1)), torch.ones(4, 8)[:, ::2]),
    (lambda x, i: (x.roll(1, 1), x.roll(-1, 3), x.roll(5, 1)), torch.randn(2, 5, 3, 4).contiguous(memory_format=torch.channels_last), torch.zeros(1)),
    (lambda x, i: (x.gather(0, i), x.scatter(0, i, 1.0), x.scatter_add(0, i, x[0])), torch.randn(5), torch.tensor(3)),
    (lambda x, w: torch.conv1d(x, w), torch.randn(2, 1, 9), torch.randn(4, 3, 1).transpose(1, 2)),
    # Operands that are converted lose their strides before those decide the result's.
    (lambda x, y: (x + y, y * x, x == y, torch.where(y > 0, x, y)), torch.ones(5, dtype=torch.int64).expand(4, 5), torch.randn(5, 4).t()),
    (lambda x, y: (torch.rsub(x, y), torch.rsub(y, x)), torch.randn(4, 5), torch.randn(5, 4).t()),
    (lambda x: (torch.prod(x, 0, dtype=torch.int16), torch.cumprod(x, 0, dtype=torch.float32)), torch.full((2,), 1.5 + 2j)),
    (lambda x: torch.cumprod(x, 0, dtype=torch.int16), torch.tensor(1.5 + 2j)),
    (result_and_its_parts, torch.randn(3, dtype=torch.complex64)),
    (lambda x: torch.sort(x, -1)[1].as_strided((3, 3), (2, 2), 0), torch.randn(3, 3).t()),
    (layout_of_flipped, torch.ones(1, 2, 1, dtype=torch.int64).as_strided((1, 2, 1), (16, 1, 1)),
     torch.ones(2, dtype=torch.float16).as_strided((1, 2, 1), (1, 1, 16))),
    *[(functions_of_a_constant(number), torch.zeros(3, dtype=dtype))
      for number in (-1.0, 0.3, 0.7) for dtype in (torch.float32, torch.float64)],
]


def one(op, *args, **kwargs):
    """The program of one op."""
    inputs = []

    def placed(x):
        if isinstance(x, torch.Tensor):
            inputs.append(Source.of(x))
            return Ref(~(len(inputs) - 1))
        return [placed(y) for y in x] if isinstance(x, (list, tuple)) else x

    count = len(results_of(overload(op)(*args, **kwargs)))
    step = Step(op, [placed(a) for a in args], {k: placed(v) for k, v in kwargs.items()}, count)
    return Program(inputs, [step], [Ref(i) for i in range(count)])


def atleast_written():
    """A write through a result shows in the argument, which it is a view of."""
    tensors = [Source.of(torch.ones(())), Source.of(torch.ones(3)), Source.of(torch.ones(2, 3, 1, 1))]
    refs = [Ref(~i) for i in range(3)]
    steps = []
    for dims in (1, 2, 3):
        steps.append(Step(f"atleast_{dims}d.Sequence", [refs], {}, 3))
        steps += [Step("add_.Scalar", [Ref(6 * dims - 6 + i), 1], {}, 1) for i in range(3)]
    return Program(tensors, steps, [Ref(i) for i in range(18)])


def randoms(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)


HALF, BOOL = torch.float16, torch.bool
CHANNELS_LAST_3D = randoms(2, 4, 5, 6, 3).permute(0, 4, 1, 2, 3)
POINTS = torch.complex(randoms(6), randoms(7)[1:])
MATRIX, PLACES = POINTS.view(3, 2), torch.tensor([[0, 2], [1, 1]])
ZEROS = torch.tensor([0j, complex(-0.0, 0.0), complex(0.0, -0.0), 1 + 2j])
MEETING = torch.tensor([[0, 1], [0, 1]])
WIDTHS = (torch.float32, torch.float64, HALF, torch.bfloat16, torch.int8, torch.int32, torch.complex64)
IMAGES = randoms(2, 6, 4, 4).contiguous(memory_format=torch.channels_last)
# Before torch 2.11 a power of 2 was multiplied, which may be infinite or 0.
LARGE_POWERS = torch.ldexp(torch.tensor(1e-30), torch.tensor(200)).isfinite()
EVERY_HALF = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
FOUND_OPS = [
    ("rms_norm.default", randoms(17, 2).t(), [17], randoms(17), None),
    ("rms_norm.default", CHANNELS_LAST_3D[:, :, 0], [6], None, None),
    ("_fused_rms_norm.default", CHANNELS_LAST_3D[:, :, 0], [6], None, None),
    # Products of bools without any term.
    ("mm.default", torch.ones(2, 0, dtype=BOOL), torch.ones(0, 2, dtype=BOOL)),
    ("linalg_matmul.default", torch.ones(0, 1, dtype=BOOL), torch.ones(1, dtype=BOOL)),
    ("baddbmm.default", torch.ones(1, 0, 2, dtype=BOOL), torch.ones(1, 0, 3, dtype=BOOL), torch.ones(1, 3, 2, dtype=BOOL)),
    ("rrelu_with_noise_backward.default", randoms(2), randoms(2), randoms(3, 2), 1.0, 0.001, True, True),
    ("rrelu_with_noise_backward.default", randoms(2), randoms(2), randoms(2), 1.0, 0.001, False, False),
    *[("mish_backward.default", randoms(5, dtype=a), randoms(5, dtype=b))
      for a, b in ((torch.float32, HALF), (HALF, torch.float32), (torch.bfloat16, HALF))],
    *[(f"{op}.default", torch.ones(shape).to(dtype)) for op in ("median", "nanmedian") for shape in ((0,), (2, 0))
      for dtype in (torch.float32, HALF, BOOL, torch.uint8, torch.int16, torch.int32, torch.int64)],
    *[(op, torch.tensor(row).view(shape), sizes) for row in ((1, NAN, NAN, 3), (NAN, 2, NAN, 4), (5, 7, 7, -INF), (-INF,) * 4)
      for op, shape, sizes in (
          ("adaptive_max_pool1d.default", (1, 4), [1]), ("adaptive_max_pool2d.default", (1, 2, 2), [1, 1]),
          ("adaptive_max_pool3d.default", (1, 1, 2, 2), [1, 1, 1]), ("max_pool2d_with_indices.default", (1, 2, 2), [2, 2]))],
    ("fractional_max_pool2d.default", torch.tensor([NAN, NAN, 1, 2]).view(1, 1, 2, 2), [2, 2], [1, 1], torch.rand(1, 1, 2)),
    *[(f"{op}.default", CHANNELS_LAST_3D, sizes) for sizes in ([1, 1, 1], [2, 2, 2])
      for op in ("_adaptive_avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d", "max_pool3d_with_indices")],
    ("_adaptive_avg_pool3d_backward.default", torch.ones(2, 3, 2, 2, 2), CHANNELS_LAST_3D),
    ("adaptive_max_pool2d_backward.default", torch.ones(2, 3, 2, 2), CHANNELS_LAST_3D[:, :, 0], torch.zeros(2, 3, 2, 2, dtype=torch.int64)),
    *[("binary_cross_entropy_with_logits.default", randoms(3, 2, dtype=a), torch.rand(3, 2).to(b), randoms(2), None, reduction)
      for a, b in ((torch.float32, HALF), (HALF, torch.float32)) for reduction in (0, 1)],
    *[(f"{op}_backward.default", POINTS, POINTS.flip(0)) for op in ("sigmoid", "tanh")],
    *[(f"{op}.default", ZEROS) for op in ("reciprocal", "rsqrt")],
    ("_upsample_bilinear2d_aa.vec", torch.ones(2).as_strided((1, 2, 1, 1), (5, 1, 0, 0)), [2, 1], False, None),
    ("lift_fresh_copy.default", randoms(4, 3).t()),
    # Elements of complex tensors that are moved, and added up.
    ("gather.default", MATRIX, 0, PLACES),
    ("gather.default", MATRIX[0], 0, torch.tensor(1)),
    ("gather.default", MATRIX[0, 0], 0, torch.tensor([0, 0])),
    ("embedding.default", MATRIX, PLACES),
    ("scatter.src", MATRIX, 0, PLACES[:1], MATRIX + 1),
    *[("scatter.value", MATRIX, 0, PLACES[:1], value) for value in (2.5, 1 + 2j)],
    ("scatter_add.default", MATRIX, 0, PLACES, MATRIX[:2]),
    ("index_add.default", MATRIX, 0, torch.tensor([1, 1]), MATRIX[1:]),
    ("index_copy.default", MATRIX, 0, torch.tensor([2, 0]), MATRIX[1:]),
    *[("index_fill.int_Scalar", MATRIX, 1, torch.tensor([0, 1]), value) for value in (-1, 2 - 1j)],
    ("index_fill.int_Tensor", MATRIX, 1, torch.tensor([1]), MATRIX[0, 0]),
    *[(f"{op}_pad1d.default", MATRIX, [1, 1]) for op in ("reflection", "replication")],
    ("nonzero.default", torch.tensor([[0j, 1j], [2 + 0j, 0j]])),
    ("masked_scatter.default", randoms(2, 1, 1), torch.ones(2, 1, 2, dtype=BOOL).permute(2, 1, 0), randoms(4)),
    ("tanh_backward.default", randoms(2, dtype=torch.bfloat16).as_strided((2, 2, 1), (1, 0, 2)), randoms(2, dtype=torch.float64)),
    *[("cov.default", x) for x in (POINTS.view(2, 3), randoms(1, 3), torch.arange(6).view(2, 3))],
    *[("pow.Tensor_Tensor", torch.zeros(()), torch.tensor(y)) for y in (-0.5 - 2j, 0.5 + 2j, -2 + 0j)],
    ("hardsigmoid_backward.default", randoms(3, dtype=torch.float64), randoms(3, dtype=torch.float64)),
    # Sums of neighbours wrap; x has more dims than y.
    *[(f"{op}.dx", torch.tensor(y, dtype=torch.int16)) for op in ("trapezoid", "cumulative_trapezoid") for y in ([-20618], [30000, 30000, 7])],
    *[(f"{op}.x", torch.tensor([1, -7]), randoms(5, 2)) for op in ("trapezoid", "cumulative_trapezoid")],
    ("trapezoid.dx", torch.zeros(2, 0, dtype=torch.int32)),
    ("addr.default", torch.ones(2, 3, dtype=BOOL), torch.ones(2, dtype=BOOL), randoms(3)),
    ("addr.default", randoms(2, 3, dtype=HALF), torch.ones(2, dtype=BOOL), torch.ones(3, dtype=BOOL)),
    *[(f"{op}.default", randoms(2, dtype=HALF), randoms(3, 2)[0], reduction) for op in ("huber_loss", "soft_margin_loss") for reduction in (0, 1)],
    ("diff.default", randoms(2, 3), 0, -1, None, randoms(2, 3)),
    *[(op, *[torch.tensor([0.0, 1.0, -0.5, 1.5, 0.25])] * (1 + ("back" in op)), eps) for op in ("logit.default", "logit_backward.default")
      for eps in (None, -0.5, 0.0, 0.25)],
    ("max_unpool2d.default", randoms(2, 2, 1, 1).as_strided((2, 2, 1, 1), (2, 1, 2, 2)), torch.zeros(2, 2, 1, 1, dtype=torch.int64), [2, 2]),
    ("embedding_renorm.default", MATRIX, torch.tensor([0, 2]), 0.1, 2.0),
    ("topk.default", torch.tensor(4), 0),
    ("hinge_embedding_loss.default", randoms(2), torch.tensor([True, False])),
    ("native_channel_shuffle.default", torch.arange(4.0).as_strided((1, 2, 1, 2), (9, 1, 4, 2)), 1),
    ("topk.default", torch.tensor(4), 1),
    ("histogram.bins_tensor", randoms(4), torch.tensor([-1.0, 7, 0, 7, 1, 7]).as_strided((3,), (2,))),
    ("embedding_renorm.default", randoms(3, 2), torch.tensor([-3, 1]), 0.5, 2.0),
    *[("lcm.default", torch.tensor([19817, -27, 0], dtype=a), torch.tensor([9, -8, 0], dtype=a)) for a in (torch.int16, torch.int32)],
    ("lcm.default", torch.tensor([100, -99], dtype=torch.int8), torch.tensor([7, 98], dtype=torch.int8)),
    # Sums of integers wrap.
    ("cov.default", torch.tensor([[2**62, 2**62, 3], [5, 2**61, -(2**62)]])),
    # The sum over no points has y's dtype, whatever x is.
    ("trapz.x", torch.empty(0, dtype=torch.int8), torch.tensor([[77]], dtype=torch.int8)),
    ("trapezoid.dx", torch.empty(3, 0, dtype=BOOL)),
    # Bytes seen as another dtype.
    *[("view.dtype", randoms(3, 16, dtype=a), b) for a in WIDTHS for b in WIDTHS if a is not b],
    *[("view.dtype", EVERY_HALF.view(a), b) for a, b in ((HALF, torch.int16), (HALF, torch.int32), (torch.int16, HALF))],
    ("view.dtype", torch.tensor(1 + 2j), torch.float64),
    ("view_copy.dtype", randoms(2, 3, 4), torch.int16),
    # A copy, which needs no strides that allow a view.
    ("view_copy.default", randoms(4, 3).t(), [2, 6]),
    # Numbers beyond 2 stand for the same as 2.
    *[("_fft_r2c.default", randoms(4, 6), [1], scale, True) for scale in (5, -1)],
    ("_fft_c2c.default", randoms(1, 5, dtype=torch.complex64), [], 3, True),
    ("fft_ifftn.default", torch.tensor(3.0)),
    # Elements of any dtype are moved; pivots that are not asked for are not read.
    *[("lu_unpack.default", randoms(3, 4, dtype=a), torch.tensor([2, 3, 3], dtype=torch.int32)) for a in (HALF, BOOL, torch.uint8)],
    ("lu_unpack.default", randoms(2, 2), randoms(2), True, False),
    *[(f"{op}.default", randoms(3, 4), True) for op in ("linalg_matrix_norm", "linalg_norm")],
    *[("cov.default", torch.tensor([[1, 2, 4], [3, 3, 4]], dtype=a)) for a in (torch.int32, torch.uint8)],
    ("tensordot.default", torch.ones(1, 0), torch.ones(1, 0), [1], [1]),
    # A dim of one element stands for all of the other's.
    ("tensordot.default", randoms(2, 1), randoms(3, 4), [1], [0]),
    ("tensordot.default", randoms(5, 3, 2, dtype=HALF), randoms(1, 4, 2, dtype=HALF), [1, 2], [0, 2]),
    ("tensordot.default", torch.tensor([[100, 100]], dtype=torch.int8), torch.tensor([[3]], dtype=torch.int8), [1], [0]),
    ("_trilinear.default", randoms(5, 3), randoms(5, 1), randoms(3), [1], [1], [2, 0], [1, 2]),
    *[(f"{op}.default", randoms(3), torch.tensor([1]), randoms(3), reduction, -100)
      for op in ("nll_loss", "nll_loss_forward") for reduction in (0, 1, 2)],
    ("adaptive_avg_pool3d.default", randoms(2, 3, 4), [1, 1, 1]),
    *[("adaptive_avg_pool2d.default", randoms(*shape), [1, 1]) for shape in ((3, 4), (2, 3, 4, 5, 6))],
    *[(f"scatter{op}", randoms(3, 2), 0, torch.empty(0, dtype=torch.int64), *rest)
      for op, *rest in ((".src", randoms(1)), (".value", 1), ("_add.default", randoms(1)), ("_reduce.two", randoms(1), "mean"))],
    ("gather.default", randoms(3, 2), 0, torch.empty(0, dtype=torch.int64)),
    # Factorisations without elements are of any dtype.
    *[(f"linalg_{op}.default", torch.empty(3, 4, 0, dtype=torch.bfloat16)) for op in ("svdvals", "lu_factor_ex")],
    ("linalg_eigvalsh.default", torch.empty(0, 2, 2, dtype=torch.int64)),
    ("addr.default", torch.ones(2, 3, dtype=BOOL), randoms(2), randoms(3, dtype=torch.float64)),
    # A degree that no recurrence reaches.
    *[(f"special_{shifted}chebyshev_polynomial_{kind}.default", torch.tensor([0.5, -1, 1, 0.25, -0.75, 0, 2], dtype=a)[:, None], torch.tensor([-1.0, 0, 5, 9, 10, 2**20 + 1, 2**55, INF], dtype=a)[:last])
      for shifted in ("", "shifted_") for kind in "tuvw" for a, last in ((torch.float32, 5), (torch.float64, 5))],
    *[(f"special_chebyshev_polynomial_{kind}.n_scalar", torch.tensor([0.5, -1, 1, 0.25, -0.75, 0], dtype=torch.float64), n)
      for kind in "tuvw" for n in (2**12 + 1, 2**12)],
    *[(f"special_chebyshev_polynomial_{kind}.n_scalar", torch.tensor([-1.0, 1.0]), 2**40) for kind in "tuvw"],
    ("special_legendre_polynomial_p.default", torch.tensor([1.0, -1, -1, 1, -1, 0.5], dtype=torch.float64),
     torch.tensor([2.0**41 + 1, 2**41 + 1, 2**41, 2**62, 0, 3], dtype=torch.float64)),
    ("special_laguerre_polynomial_l.default", torch.tensor([0.0, -0.0, 0, 2], dtype=torch.float64), torch.tensor([2.0**41 + 1, 2**41, -1, 3], dtype=torch.float64)),
    *[("fft_rfftfreq.default", n, 0.5) for n in (-1, -2, -3, 0, 1)],
    # Statistics are those of the samples' channels, on average.
    *[("instance_norm.default", randoms(3, 2, *more).transpose(0, 1), randoms(3), None, randoms(3), randoms(3).abs(), True, 0.3, 1e-5, True)
      for more in ((), (5,), (2, 4))],
    ("instance_norm.default", randoms(4, 2, 3, dtype=HALF), None, randoms(2, dtype=HALF), randoms(2), randoms(2).abs(), True, 1.0, 0.5, False),
    ("instance_norm.default", randoms(2, 3, 4), None, None, randoms(3), randoms(3).abs(), False, 0.3, 1e-5, True),
    *[("soft_margin_loss.default", randoms(6, dtype=torch.complex64).view(2, 3), randoms(2, 3, dtype=a), reduction)
      for a in (torch.float64, torch.float32) for reduction in (0, 1, 2)],
    *[("binary_cross_entropy_with_logits.default", randoms(3), randoms(3, dtype=torch.complex64), weight, None, reduction)
      for weight in (None, randoms(3)) for reduction in (0, 1)],
    # A mean of complex numbers divides by one, which leaves no part of an infinity finite.
    *[(op, torch.tensor([[complex(INF, -0.8), 1], [2, complex(0, 3)]]), *dims)
      for op, *dims in (("mean.default",), ("mean.dim", [1]), ("mean.dim", [0, 1], True))],
    ("mean.default", torch.tensor(complex(INF, 1))),
    *[("pad.default", randoms(2, 5), amounts, "circular", None) for amounts in ([-1, 1], [2, -3], [-1, -2], [-2, 3])],
    # The mean of integers is rounded towards 0, and so is its gradient.
    ("avg_pool2d_backward.default", torch.tensor([[[7, -7], [9, -10]]]), torch.ones(1, 4, 4, dtype=torch.int64), [2, 2], [2, 2], [0, 0], False, True, None),
    # Of what has no element, nothing is asked.
    *[(f"{op}.default", torch.empty(3, 0, dtype=a), 0, False) for op in ("_softmax", "_log_softmax") for a in (BOOL, torch.uint8, torch.complex64)],
    *[(f"{op}.int", torch.empty(0, 2, dtype=torch.int64), 1, a) for op in ("softmax", "log_softmax") for a in (None, torch.int16)],
    ("_safe_softmax.default", torch.empty(0, 3, dtype=BOOL), -1, None),
    *[("batch_norm.default", torch.empty(0, 2, 3, dtype=a), weight, bias, None, None, train, 0.1, 1e-5, True)
      for a, weight, bias in ((HALF, randoms(4, 1, 1), None), (HALF, None, randoms(5)), (torch.int32, torch.ones(9, 3, dtype=torch.int32), None))
      for train in (True,)],
    # Rows shorter than a register.
    *[("native_layer_norm.default", randoms(3, n), [n], None, None, 1e-5) for n in range(1, 17)],
    # Of nothing there are no statistics, and those that were stay.
    ("instance_norm.default", torch.empty(1, 3, 0), None, randoms(3), randoms(3), randoms(3), True, 0.0, -0.5, True),
    # Equal numbers have no variance, and without eps are scaled by 0.
    *[("batch_norm.default", torch.tensor([[[1.5, 1.5], [2, 3]], [[1.5, 1.5], [7, 4]]], dtype=a), weight, weight, None, None, True, 0.1, 0.0, False)
      for a, weight in ((torch.float32, None), (torch.float64, torch.tensor([2.0, 0.5], dtype=torch.float64)), (HALF, None))],
    # The norm of a matrix without elements is 0.
    *[("linalg_matrix_norm.default", torch.empty(shape), order, [-2, -1], keeps)
      for shape in ((2, 0, 3), (2, 3, 0)) for order in (2, 1, INF) for keeps in (False, True)],
    # Padding gives a place that is not a number to one end: of an image to the first, of a volume to the last.
    *[("grid_sampler_2d.default", torch.arange(6.0).view(1, 1, 2, 3), torch.tensor([[NAN, 0.0], [INF, 0.0], [0, NAN], [-INF, 0.5]]).view(1, 1, 4, 2), mode, padding, aligned)
      for mode in (0, 1) for padding in (1, 2) for aligned in (False, True)],
    *[("grid_sampler_3d.default", torch.arange(24.0).view(1, 1, 2, 3, 4), torch.tensor([[NAN, 0, 0], [0, NAN, 0], [0, 0, NAN], [INF, 0, 0]]).view(1, 1, 1, 4, 3), mode, padding, aligned)
      for mode in (0, 1) for padding in (1, 2) for aligned in (False, True)],
    ("_adaptive_avg_pool2d.default", torch.empty(2, 0, 3, 4, dtype=torch.uint8), [2, 1]),
    ("adaptive_avg_pool1d.default", torch.empty(0, 16, dtype=BOOL), [3]),
    ("concatenate.default", [torch.empty(0), torch.empty(0, dtype=HALF)], 1),
    ("grid_sampler_2d.default", torch.empty(3, 0, 3, 2), torch.empty(3, 0, 3, 2), -2, -1, False),
    # A zero within bounds stays as it is, whatever the sign of the bound.
    *[(f"{op}.default", torch.tensor([-0.0, 0.0, 1.0], dtype=dtype), *bounds) for dtype in (torch.float32, HALF)
      for op, *bounds in (("relu",), ("relu6",), ("hardtanh", -1, 0), ("clamp", 0, None), ("clamp", -1, -0.0), ("clamp_max", 0))],
    # True is 1, and not -1; 255 is -1 in eight bits.
    *[("cosine_embedding_loss.default", randoms(3, 2), randoms(3, 2) + 1, torch.tensor([1, 0, 255]).to(dtype), 0.0, 0)
      for dtype in (BOOL, torch.uint8, torch.int8, torch.int16)],
    # Lines are pooled as images of one row, which may lie in channels_last.
    *[(f"{op}.default", x, *sizes) for x in (randoms(2, 4, 3).mT, randoms(1, 4, 3).mT, randoms(2, 3, 4), randoms(4, 3).t())
      for op, *sizes in (("adaptive_max_pool1d", [2]), ("adaptive_avg_pool1d", [2]), ("adaptive_avg_pool1d", [1]), ("avg_pool1d", [2]),
                         ("max_pool1d", [2]), ("max_pool1d_with_indices", [2]))],
    *[("_pdist_forward.default", torch.ones(shape).to(dtype), 2.0) for shape in ((1, 3), (0, 2), (3, 0))
      for dtype in (BOOL, torch.int32, torch.float32)],
    # The norm of one number is its size, of any order but 0.
    *[("linalg_vector_norm.default", x, order, [1]) for x in (randoms(4, 1) * 1e25, POINTS[:, None])
      for order in (0.0, 1e-5, 2.0, -2.5)],
    # The layout is that of a new tensor like the first, and what the input suggests.
    *[("fill.Tensor", x, torch.tensor(2.0)) for x in (windowed(3, 5), randoms(3, 4).t(), randoms(1, 4).expand(3, 4))],
    *[(f"pixel_{op}.default", x, r) for x in (IMAGES, IMAGES[:1], IMAGES[:, :, :, :2], IMAGES[:, :4].contiguous())
      for op, r in (("unshuffle", 2), ("unshuffle", 1), ("shuffle", 1))],
    *[("pixel_shuffle.default", x, 2) for x in (IMAGES[:, :4], IMAGES[:, :4].contiguous(), CHANNELS_LAST_3D.repeat(1, 1, 4, 1, 1))],
    ("nonzero_numpy.default", torch.ones(3, 0, 7, 2)),
    # Vectors keep their own dtypes until they are multiplied; integers get one.
    *[("cosine_similarity.default", randoms(5, dtype=HALF), y, 0, 0.5) for y in (randoms(6)[1:], randoms(6)[2], torch.arange(5))],
    # Areas of integers wrap as well.
    *[("cumulative_trapezoid.x", torch.tensor(y), torch.tensor([2**62, -(2**61), 5])) for y in ([2**62, 2**62, -3], [1, 2, 3])],
    ("cumulative_trapezoid.x", torch.tensor([20212, -28597], dtype=torch.int16), torch.tensor([20212, -28597], dtype=torch.int16)),
    # Of one element: itself, however large or small its power.
    *[("linalg_vector_norm.default", torch.tensor([[1e30], [-1e-30], [3.3], [NAN], [-INF], [-0.0]]), p, [1]) for p in (2, 3, 1e-5, -1, 0)],
    # A dim that keeps its size is left as it is, whatever its scale.
    *[(op, x, sizes, False, *scales) for x in (torch.tensor([2.0, INF, -4.0, NAN, 1.0]),)
      for op, x, sizes, scales in (
          ("upsample_linear1d.default", x.view(1, 1, 5), [5], [0.5]), ("upsample_bilinear2d.default", x.view(1, 1, 1, 5), [1, 5], [-0.5, 1e-5]),
          ("upsample_bilinear2d.default", x.view(1, 1, 1, 5), [3, 5], [2.0, 0.5]))],
    ("upsample_bilinear2d_backward.default", torch.ones(1, 1, 3, 5), [3, 5], [1, 1, 1, 5], False, 2.0, 0.5),
    *[("nextafter.default", EVERY_HALF.view(dtype), torch.tensor(y, dtype=dtype)) for dtype in (HALF, torch.bfloat16) for y in (INF, -INF, 0.0, -0.0, 1.0)],
    # Of no classes, where no row counts.
    *[("nll_loss_nd.default", torch.empty(0), torch.tensor(0), weight, reduction, 0) for weight in (None, torch.empty(0)) for reduction in (0, 1)],
    ("nll_loss.default", torch.empty(2, 0), torch.tensor([5, 5]), None, 2, 5),
    # No channels to add up give none.
    *[("convolution.default", torch.ones(n, 0, 5), torch.ones(3, 0, 2), bias, [1], [0], [1], False, [0], 1) for n in (0, 2) for bias in (None, torch.ones(3))],
    ("conv1d.padding", torch.ones(0, 0, 1), torch.ones(1, 0, 1), None, [1], "same"),
    # A weight of 0 does not hide what is not finite.
    ("_upsample_bicubic2d_aa.default", torch.tensor([[1, 2, 3, 4, 5], [INF, NAN, 0, 1, 2]]).view(1, 1, 2, 5), [1, 2], False, 1.0, None),
    *[("linalg_svdvals.default", torch.full((m, n), x, dtype=dtype)) for m, n in ((4, 5), (6, 3), (5, 5))
      for x in (-1.5, 0.1) for dtype in (torch.float32, torch.float64)],
    *[("ldexp.Tensor", randoms(3, dtype=a), torch.tensor([-15, 3, 0], dtype=b)) for a in WIDTHS for b in (torch.int8, torch.int64, torch.float32)],
    *[("ldexp.Tensor", torch.tensor([1.2345, -1e-30, 1e30, 0.0, -INF, NAN, 1.5]).to(a), torch.tensor(n))
      for n in (200, -200, -140, -149, 1000, 2**31 + 3, 2**40) for a in (torch.float32, HALF, torch.bfloat16) if LARGE_POWERS],
    *[("ldexp.Tensor", torch.tensor([1.2345678901234567, 1e-300, -1e300, 5e-324, INF], dtype=torch.float64), torch.tensor(n))
      for n in (1500, -1050, -1074, -2000, 2097, -30000) if LARGE_POWERS],
    # Tensors are put together along a dim, which is then split; a new last dim they get before.
    *[("stack.default", [x] * n, dim) for x in (IMAGES, IMAGES[:1, :2, :1], IMAGES[0], CHANNELS_LAST_3D[0])
      for n in (1, 2) for dim in range(x.ndim + 1)],
    # What is copied around is contiguous.
    *[("pad.default", x, sides, "circular", None) for x, sides in (
        (torch.ones(1).expand(2, 1), [0, 0]), (IMAGES, [0, 0, 0, 0]), (IMAGES, [1, 0, 2, 1]), (randoms(4, 3).t(), [0, 1]))],
    # A condition that is converted loses its strides.
    ("where.self", torch.ones(1, dtype=torch.uint8).expand(1, 2, 2, 1), randoms(1, 2, 1, 1).as_strided((1, 2, 1, 1), (6, 1, 3, 3)), randoms(1)),
]
BITS = torch.tensor([[True, False], [False, True]])
COUNTS, PORTIONS = torch.tensor([1, 2, 1]), torch.tensor([0.5, 1, 2])
FOUND_WITH_NAMES = [
    ("sum.dim_IntList", (torch.tensor([[0.5, 0], [-0.5, 0]]), [0], False), {"dtype": BOOL}),
    ("linalg_lu.default", (torch.empty(0, 2, 3),), {"pivot": False}),
    *[("addr.default", (BITS, BITS[0], BITS[1]), {"beta": beta, "alpha": alpha}) for beta, alpha in ((0, 2), (-2, 0), (1, -1))],
    ("addr.default", (torch.ones(2, 2, dtype=torch.int32), randoms(2), randoms(2)), {"beta": 0.25, "alpha": 0.5}),
    *[("cov.default", (x,), {"correction": correction, **weights})
      for x, correction in ((randoms(2, 3), 1), (randoms(3, dtype=HALF), 0), (torch.tensor([[1, 2, 4]]), 5))
      for weights in ({"fweights": COUNTS}, {"aweights": PORTIONS}, {"fweights": COUNTS, "aweights": PORTIONS})],
    ("cov.default", (MATRIX,), {}),
    # Complex numbers that meet in one place are multiplied; others stay what they are, infinite ones too.
    *[("scatter_reduce.two", (x, dim, MEETING, MATRIX * 2, "prod"), {"include_self": include})
      for x, dim in ((MATRIX, 0), (MATRIX, 1), (MATRIX.t().contiguous().t(), 0)) for include in (True, False)],
    ("scatter_reduce.two", (torch.tensor([INF, 1j, 2]), 0, torch.tensor([1, 1]), POINTS[:3], "prod"), {}),
    ("scatter_reduce.two", (torch.tensor(1 + 2j), 0, torch.tensor(0), torch.tensor(3 - 1j), "prod"), {}),
    ("scatter.reduce", (MATRIX, -1, MEETING, MATRIX), {"reduce": "multiply"}),
    ("scatter.value_reduce", (MATRIX, 0, MEETING, 1.5), {"reduce": "multiply"}),
    ("linalg_pinv.atol_rtol_tensor", (torch.empty(0, 3, 5),), {"hermitian": True}),
    # Between the points of a dim that x lacks lies nothing.
    *[(f"{op}.x", (randoms(*y), randoms(*x)), {"dim": dim}) for op in ("trapezoid", "trapz", "cumulative_trapezoid")
      for y, x, dim in (((3, 2), (), 1), ((2, 4, 3), (4, 3), 0), ((2, 4, 3), (4, 3), 2), ((2, 1), (), -1), ((5, 3), (3,), 1))],
]


def product_of_one():
    """It is the tensor itself."""
    steps = [Step("cartesian_prod.default", [[Ref(~0)]], {}, 1), Step("add_.Scalar", [Ref(0), 1], {}, 1)]
    return Program([Source.of(randoms(3))], steps, [Ref(~0)])


def einsum_of_one(equation, *shape):
    """It is a view where nothing is summed."""
    steps = [Step("einsum.default", [equation, [Ref(~0)]], {}, 1), Step("add_.Scalar", [Ref(0), 1], {}, 1)]
    return Program([Source.of(randoms(*shape))], steps, [Ref(0), Ref(~0)])


def complex_view_of_result():
    """Two results in one memory, as floats and as complex numbers."""
    steps = [Step("neg.default", [Ref(~0)], {}, 1), Step("view_as_complex.default", [Ref(0)], {}, 1)]
    return Program([Source.of(randoms(3, 2))], steps, [Ref(0), Ref(1)])


def chain(source, *steps):
    """Each step on the result of the one before."""
    steps = [Step(op, [Ref(i - 1 if i else ~0), *args], {}, 1) for i, (op, *args) in enumerate(steps)]
    return Program([source], steps, [Ref(i) for i in range(len(steps))])


# The strides of dims of size 1 take part in the choice of the next layout.
LAYOUT_CHAINS = [
    chain(Source(randoms(8), (2, 2, 1, 2), (1, 0, 10, 0)), ("view.default", [2, 2, 1, 2]), ("expm1.default",)),
    *[chain(Source(randoms(400), (1, 2, 2, 2), (1, 1, 264, 33)), step, ("reflection_pad3d.default", [0, -1, 0, 1, 1, 0]))
      for step in (("add.Scalar", 2), ("mul.Scalar", 0.5), ("clamp.default", 0), ("abs.default",), ("pow.Tensor_Scalar", 2))],
    chain(Source(randoms(400), (1, 3, 1, 2), (1, 1, 51, 3)), ("special_chebyshev_polynomial_u.n_scalar", 3),
          ("upsample_bilinear2d.default", [1, 2], False, None, -0.5)),
]


def filled_pool(op):
    """What is written over a result takes its layout, which its rule gives."""
    steps = [Step(f"{op}.default", [Ref(~0), [2]], {}, 1 + ("max_" in op and op != "max_pool1d")), Step("zero_.default", [Ref(0)], {}, 1)]
    return Program([Source.of(randoms(2, 4, 3).mT)], steps, [Ref(0)])


def written_bytes(dtype):
    """A write through a tensor of another dtype shows in the tensor whose bytes it is, and in their other views."""
    source = Source(randoms(40), (3, 8), (12, 1), 2)
    steps = [
        Step("view.dtype", [Ref(~0), dtype], {}, 1), Step("slice.Tensor", [Ref(0), 1, 1, 3], {}, 1), Step("t.default", [Ref(~0)], {}, 1),
        Step("fill_.Scalar", [Ref(1), 5], {}, 1), Step("add.Tensor", [Ref(~0), Ref(~0)], {}, 1), Step("zero_.default", [Ref(0)], {}, 1)]
    return Program([source], steps, [Ref(0), Ref(1), Ref(2), Ref(4)])


def parts_of_nothing():
    """They may begin where the memory ends."""
    steps = [Step("split_with_sizes.default", [Ref(~0), [6, 0], 0], {}, 2)]
    steps += [Step(f"{op}.default", [Ref(1)], {}, 1) for op in ("real", "imag", "view_as_real")]
    return Program([Source.of(POINTS)], steps, [Ref(i) for i in range(5)])


def filled_view_of_nothing():
    nothing = Source(torch.empty(0), (0, 1, 1), (16, 8, 1))
    steps = [Step("unflatten.int", [Ref(~0), 1, [1, 1, 1]], {}, 1), Step("fill_.Scalar", [Ref(0), -1.5], {}, 1)]
    return Program([nothing], steps, [Ref(~0)])


def failures(programs):
    found = fuzz_run.check_batch(programs)
    return "\n".join(
        f"{v.way}: {v.detail}\n{script(p)}" for p, v in zip(programs, found) if v.kind == "different"), found


def test_differences_that_were_found():
    programs = [record(f, inputs) for f, *inputs in FOUND] + [one(*call) for call in FOUND_OPS]
    programs += [einsum_of_one(equation, 2, 3) for equation in ("ij->ji", "b a", "ij->i", "...i->i", "i...->...i", "...")]
    programs += [einsum_of_one(equation, 3, 3) for equation in ("ii->i", "ii", "...ii->...")]
    programs += [einsum_of_one(equation, 3, 2, 3, 3) for equation in ("ijii->ij", "i...i->i...", "i...ii->...i", "...ij->...ji")]
    programs += [one(op, *args, **kwargs) for op, args, kwargs in FOUND_WITH_NAMES]
    programs += LAYOUT_CHAINS + [atleast_written(), product_of_one(), filled_view_of_nothing(), parts_of_nothing(), complex_view_of_result()]
    programs += [written_bytes(dtype) for dtype in (torch.float64, torch.int32, torch.int16)]
    programs += [filled_pool(f"{op}_pool1d{more}") for op, more in (
        ("adaptive_max", ""), ("adaptive_avg", ""), ("avg", ""), ("max", ""), ("max", "_with_indices"))]
    text, verdicts = failures(programs)
    assert not text, text
    refused = [v.detail for v in verdicts if v.kind != "ok"]
    assert not refused, refused


def test_padding_takes_no_part():
    """A weight that is not finite does not show where it meets padding alone, on the interpreter either; in
    eager that depends on the batch size."""
    weight = torch.tensor([INF, 1.0, NAN, 0.5, 2.0, -INF]).view(2, 1, 1, 3)
    for op, *more in (("conv2d.padding", [1, 1], "same"), ("convolution.default", [1, 1], [0, 1], [1, 1], True, [0, 0], 1)):
        program = one(op, randoms(1, 2 if op == "convolution.default" else 1, 2, 1), weight, None, *more)
        (first, _), *others = [fuzz_run.Build([program], way).run()[0] for way in fuzz_run.WAYS]
        assert any(x.isfinite().any() for x in first)
        for found, _ in others:
            assert torch.allclose(first[0], found[0], equal_nan=True)


@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16])
def test_bits_of_halves(dtype):
    """Every one, those of signalling NaNs too."""
    for program, expected in ((one("view.dtype", EVERY_HALF.view(dtype), torch.int16), EVERY_HALF),
                              (one("view.dtype", EVERY_HALF, dtype), EVERY_HALF)):
        for way in fuzz_run.WAYS:
            (found,), _ = fuzz_run.Build([program], way).run()[0]
            assert torch.equal(found.view(torch.int16), expected), way


def loss_of_rounded_ones():
    """Errors lead out of the loss's domain: its operand is at the end of it."""
    steps = [
        Step("special_chebyshev_polynomial_t.n_scalar", [Ref(~0), 0.5], {}, 1), Step("mish.default", [Ref(~1)], {}, 1),
        Step("binary_cross_entropy.default", [Ref(0), Ref(1), None, 1], {}, 1)]
    return Program([Source.of(torch.ones(4)), Source.of(torch.rand(4))], steps, [Ref(1), Ref(2)])


JUDGED = [
    loss_of_rounded_ones(),
    one("special_chebyshev_polynomial_t.default", torch.zeros(6), torch.tensor([9.0, 7, 8, 0, 1, 10])),
    one("linalg_pinv.atol_rtol_float", torch.rand(8, 16, dtype=torch.float64), rtol=0.6),
]


@pytest.mark.parametrize("program", JUDGED)
def test_what_agrees(program):
    """Errors of a few units in the last place of what is computed with are none; larger ones are."""
    judge = fuzz_agree.Judge(program)
    inputs = [s.tensor() for s in program.inputs]
    for units, agrees in ((0, True), (1, True), (-1, True), (1000, False)):
        found = [x + units * torch.finfo(x.dtype).eps * x.abs().max() for x in judge.ran.outputs]
        assert (judge.difference(found, inputs) == "") == agrees, units


def test_a_zero_of_a_polynomial_may_be_rounded():
    """Eager has cos(9 arccos(0)), the recurrence gives 0."""
    steps = [Step("special_chebyshev_polynomial_t.n_scalar", [Ref(~0), 9], {}, 1), Step("logical_not.default", [Ref(0)], {}, 1)]
    judge = fuzz_agree.Judge(Program([Source.of(torch.tensor([0.0, 0.5]))], steps, [Ref(1)]))
    for found, agrees in (([True, False], True), ([False, False], True), ([True, True], False)):
        assert (judge.difference([torch.tensor(found)], [torch.tensor([0.0, 0.5])]) == "") == agrees


@pytest.mark.parametrize("dim", [(), (0,)])
def test_a_product_may_overflow_before_it_meets_a_zero(dim):
    for factors, agrees in (([0.0, 1e30, 1e30], True), ([0.0, 1e10, 1e10], False)):
        x = torch.tensor(factors)
        judge = fuzz_agree.Judge(one("prod.dim_int" if dim else "prod.default", x, *dim))
        assert (judge.difference([torch.tensor(NAN)], [x]) == "") == agrees


UNDRAWN = [
    ("histogram.bins_tensor", torch.ones(3), torch.tensor([0.0, 2.0, 1.0])),
    ("_trilinear.default", torch.ones(0, 1), torch.ones(0, 1), torch.ones(1, 1), [1], [2], [2], [1], 1),
    ("cov.default", torch.tensor([1.0])),
    ("cdist.default", torch.tensor([[INF]]), torch.tensor([[1.0]])),
    ("add.Tensor", torch.ones(1), torch.tensor([complex(INF, 1)])),
    ("addcdiv.default", torch.ones(1) + 1j, torch.ones(1), torch.tensor([INF])),
    ("max_pool2d_with_indices.default", torch.ones(1, 2, 1), [1, 2], [1, 1], [0, 1], [1, 2]),
]


@pytest.mark.parametrize("op, args", [(op, args) for op, *args in UNDRAWN])
def test_what_eager_leaves_open_is_not_drawn(op, args):
    assert not fuzz_draw.is_defined(op, (args, {}))


@pytest.mark.parametrize("way", ["interp", "fused"])
def test_sizes_from_data_are_taken_for_equal(way):
    """Eager has one value here, which it takes for as many as are wanted."""
    steps = [Step("_unique.default", [Ref(~0), True, False], {}, 2), Step("add.Tensor", [Ref(0), Ref(~1)], {}, 1)]
    program = Program([Source.of(torch.zeros(9)), Source.of(torch.arange(4.0))], steps, [Ref(2)])
    verdict = fuzz_run.check_alone(program, way)
    assert verdict.kind == "refused" and "must agree" in verdict.detail


@pytest.mark.parametrize("op, count", [("mm", 2), ("addmm", 3), ("bmm", 2), ("mv", 2), ("dot", 2)])
def test_bools_have_no_product(op, count):
    shapes = {"bmm": [(1, 2, 2)] * 2, "mv": [(2, 2), (2,)], "dot": [(2,)] * 2}.get(op, [(2, 2)] * count)
    call = Step(f"{op}.default", [Ref(~i) for i in range(count)], {}, 1)
    program = Program([Source.of(torch.ones(s)) for s in shapes], [call], [Ref(0)])
    graph = fuzz_program.Merged([program]).graph
    for node in graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = node.meta["val"].bool()
    with pytest.raises(coil.CompileError, match="of bool have no product"):
        document = Document(types.SimpleNamespace(graph=graph))
        session(coil.Options()).import_graph(document.text(), document.constants)


@pytest.mark.parametrize("way", ["interp", "fused"])
def test_index_out_of_range(way):
    for index in (3, -1):
        x, i = torch.arange(6.0).view(2, 3), torch.tensor([[index]])
        call = Step("take_along_dim.default", [Ref(~0), Ref(~1), 1], {}, 1)
        program = Program([Source.of(x), Source.of(torch.zeros_like(i))], [call], [Ref(0)])
        build = fuzz_run.Build([program], way)
        with pytest.raises(coil.RunError, match="out of range|is outside"):
            build.compiled([x, i])


# The C standard leaves open the sign of some zeros and infinities of these.
OPEN_SIGNS = ("exp", "sinh", "cosh", "sin", "cos")
COMPLEX_FUNCTIONS = OPEN_SIGNS + (
    "expm1", "log", "sqrt", "rsqrt", "tanh", "tan", "asin", "acos", "atan", "asinh", "acosh", "atanh", "reciprocal", "sigmoid")


def test_complex_functions_of_what_is_not_finite():
    values = torch.tensor([0.0, -0.0, 1.0, -2.5, INF, -INF, NAN])
    x = torch.complex(*torch.meshgrid(values, values, indexing="ij")).flatten()
    programs = [one(f"{name}.default", x) for name in COMPLEX_FUNCTIONS]
    for name, program, (found, _) in zip(COMPLEX_FUNCTIONS, programs, fuzz_run.Build(programs, "interp").run()):
        e, f = torch.view_as_real(fuzz_program.replay(program).outputs[0]), torch.view_as_real(found[0])
        wrong = ~torch.isclose(e.abs(), f.abs(), equal_nan=True)
        if name not in OPEN_SIGNS:
            wrong |= (e.signbit() != f.signbit()) & ~e.isnan()
        assert not wrong.any(), f"{name} of {x[wrong.any(1)].tolist()}"


def test_random_programs():
    text, verdicts = failures([fuzz_draw.draw(f"test.{n}") for n in range(100)])
    assert not text, text
    assert sum(v.kind == "ok" for v in verdicts) >= 80, [v.detail for v in verdicts if v.kind == "refused"]
