#!/usr/bin/env python3
"""Writes tests/unit/data/decompose_facts.txt: composite ops and the result types that torch gives them.

One line a case: a graph of one op in coil's text form, then `->` and the types of its results
(shape, dtype, strides) as eager lays them out. passes_facts_test.cpp decomposes the graphs and
compares. Run it with the Python that has torch:  python scripts/make_decompose_facts.py
"""

import pathlib

import torch
import transformers.integrations.moe  # noqa: F401  its ops

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests/unit/data/decompose_facts.txt"
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
         torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8", torch.bool: "bool",
         torch.complex64: "c64", torch.complex128: "c128"}


def f(*shape, order=None, dtype=torch.float32):
    """A float tensor; `order`: its dims from the outermost stride to the innermost."""
    t = torch.rand(*shape, dtype=torch.float32)
    if order is not None:
        back = [order.index(d) for d in range(len(shape))]
        t = torch.rand(*(shape[d] for d in order)).permute(back)
    return t.to(dtype)


def i(*shape, high=3):
    return torch.randint(0, high, shape)


def b(*shape):
    return torch.rand(*shape) > 0.5


def ends(*rows):
    return torch.tensor(rows, dtype=torch.int32)


def spd(*shape):
    """Positive-definite matrices."""
    a = torch.rand(*shape, shape[-1])
    return a @ a.mT + torch.eye(shape[-1])
def z(*shape, dtype=torch.complex64):
    return torch.rand(*shape, dtype=dtype)


CL = (0, 2, 3, 1)  # channels_last
half = torch.bfloat16
inf = float("inf")
s22, s11 = [2, 2], [1, 1]

CASES = [
    # gradients
    ("convolution_backward", f(2, 4, 5, 4), f(2, 3, 9, 8), f(4, 3, 3, 4), [4], s22, s11, s11, False, [0, 0], 1, [True] * 3),
    ("convolution_backward", f(2, 4, 7, 4), f(2, 6, 9, 8), f(4, 3, 3, 3), [4], [1, 2], [0, 1], s11, False, [0, 0], 2, [True] * 3),
    ("convolution_backward", f(2, 6, 8), f(2, 4, 4), f(4, 3, 3), [6], [2], [1], [1], True, [1], 2, [True] * 3),
    ("max_pool2d_with_indices_backward", f(2, 3, 4, 4), f(2, 3, 9, 8), [3, 3], s22, [0, 1], s11, False, i(2, 3, 4, 4, high=72)),
    ("max_pool3d_with_indices_backward", f(2, 2, 3, 3), f(2, 4, 6, 6), [2] * 3, [2] * 3, [0] * 3, [1] * 3, False, i(2, 2, 3, 3, high=144)),
    ("_scaled_dot_product_flash_attention_for_cpu_backward", f(2, 4, 5, 8), f(2, 4, 5, 8), f(2, 4, 6, 8), f(2, 4, 6, 8), f(2, 4, 5, 8), f(2, 4, 5), 0.0, False),
    # matrix
    ("linear", f(3, 4), f(5, 4), f(5)), ("linear", f(3, 4), f(5, 4)), ("linear", f(2, 3, 4), f(5, 4), f(5)),
    ("linear", f(2, 3, 4), f(5, 4)), ("linear", f(4), f(5, 4), f(5)), ("linear", f(4), f(5, 4)),
    ("linear", f(2, 3, 4, order=(1, 0, 2)), f(5, 4), f(5)), ("linear", f(2, 3, 2, 4), f(5, 4), f(5)),
    ("linear", f(3, 4, dtype=half), f(5, 4, dtype=half), f(5, dtype=half)),
    ("matmul", f(4), f(4)), ("matmul", f(3, 4), f(4)), ("matmul", f(4), f(4, 5)), ("matmul", f(3, 4), f(4, 5)),
    ("matmul", f(2, 3, 4), f(4, 5)), ("matmul", f(2, 3, 4), f(4)), ("matmul", f(4), f(2, 4, 5)),
    ("matmul", f(3, 4), f(2, 4, 5)), ("matmul", f(2, 3, 4), f(2, 4, 5)), ("matmul", f(2, 1, 3, 4), f(6, 4, 5)),
    ("matmul", f(2, 6, 3, 4), f(2, 6, 4, 5)), ("matmul", f(2, 6, 3, 4, order=(0, 2, 1, 3)), f(2, 6, 5, 4, order=(0, 2, 1, 3)).transpose(-1, -2)),
    ("matmul", f(2, 3, 4, order=(1, 0, 2)), f(4, 5)), ("matmul", f(2, 6, 3, 4), f(4)),
    ("mv", f(3, 4), f(4)), ("dot", f(4), f(4)), ("vdot", f(4), f(4)), ("addmv", f(3), f(3, 4), f(4), 2, 0.5),
    ("addmv", f(3), f(3, 4), f(4)), ("outer", f(3), f(4)), ("ger", f(3), f(4)), ("addr", f(3, 4), f(3), f(4), 2, 3),
    ("addbmm", f(3, 5), f(2, 3, 4), f(2, 4, 5)), ("inner", f(2, 3, 4), f(5, 4)), ("inner", f(4), f(4)),
    ("tensordot", f(3, 4, 5), f(4, 3, 2), [1, 0], [0, 1]), ("kron", f(2, 3), f(4, 5)), ("kron", f(3), f(2, 2)),
    ("linalg_multi_dot", [f(2, 3), f(3, 4), f(4, 5)]), ("bilinear", f(2, 6, 3), f(2, 6, 4), f(5, 3, 4), f(5)),
    ("einsum", "ij,jk->ik", [f(3, 4), f(4, 5)]), ("einsum", "bij,bjk->bik", [f(2, 3, 4), f(2, 4, 5)]),
    ("einsum", "bhid,bhjd->bhij", [f(2, 6, 3, 4), f(2, 6, 5, 4)]), ("einsum", "bhid,bhjd->bijh", [f(2, 6, 3, 4), f(2, 6, 5, 4)]),
    ("einsum", "ij->ji", [f(3, 4)]), ("einsum", "ij->j", [f(3, 4)]), ("einsum", "ii->i", [f(3, 3)]), ("einsum", "ii", [f(3, 3)]),
    ("einsum", "i,j->ij", [f(3), f(4)]), ("einsum", "...ij,...jk->...ik", [f(2, 3, 4), f(4, 5)]),
    ("einsum", "ij,jk,kl->il", [f(2, 3), f(3, 4), f(4, 5)]), ("einsum", "bij,bj->i", [f(2, 3, 4), f(2, 4)]),
    ("einsum", "i,i->", [f(3), f(3)]), ("einsum", "bnd,hd->bhn", [f(2, 3, 4), f(5, 4)]), ("einsum", "b i , b j", [f(2, 3), f(2, 4)]),
    # convolution
    ("conv1d", f(2, 3, 9), f(4, 3, 3), f(4)), ("conv1d", f(3, 9), f(4, 3, 3)), ("conv2d", f(2, 3, 9, 8), f(4, 3, 3, 3), f(4), 2, 1),
    ("conv2d", f(3, 9, 8), f(4, 3, 3, 3)), ("conv2d", f(2, 3, 9, 8, order=CL), f(4, 3, 3, 3, order=CL), f(4)),
    ("conv2d", f(2, 4, 9, 8), f(8, 1, 3, 3), None, [1, 1], [1, 1], [1, 1], 4), ("conv3d", f(1, 2, 5, 6, 7), f(3, 2, 2, 2, 2)),
    ("conv1d.padding", f(2, 3, 9), f(4, 3, 4), None, 1, "same"), ("conv2d.padding", f(2, 3, 9, 8), f(4, 3, 3, 2), f(4), 1, "same"),
    ("conv2d.padding", f(2, 3, 9, 8), f(4, 3, 3, 3), f(4), 2, "valid"), ("conv_transpose1d", f(2, 3, 9), f(3, 4, 3)),
    ("conv_transpose2d.input", f(2, 3, 9, 8), f(3, 4, 3, 3), f(4), 2, 1, 1), ("conv_transpose3d.input", f(1, 2, 3, 4, 5), f(2, 3, 2, 2, 2)),
    # normalisation
    ("batch_norm", f(2, 3, 4, 5), f(3), f(3), f(3), f(3), False, 0.1, 1e-5, True),
    ("batch_norm", f(2, 3, 4, 5, order=CL), f(3), f(3), f(3), f(3), False, 0.1, 1e-5, True),
    ("batch_norm", f(2, 3), None, None, f(3), f(3), False, 0.1, 1e-5, True),
    ("batch_norm", f(2, 3, 4), f(3), f(3), None, None, True, 0.1, 1e-5, True),
    ("layer_norm", f(2, 3, 4), [4], f(4), f(4)), ("layer_norm", f(2, 3, 4), [3, 4]), ("layer_norm", f(2, 3, 4, order=(1, 0, 2)), [4], f(4)),
    ("group_norm", f(2, 6, 4, 5), 3, f(6), f(6)), ("group_norm", f(2, 6, 4, 5, order=CL), 3, f(6), f(6)), ("group_norm", f(2, 6), 2),
    ("instance_norm", f(2, 3, 4, 5), f(3), f(3), None, None, True, 0.1, 1e-5, True),
    ("rms_norm", f(2, 3, 4), [4], f(4), 1e-6), ("rms_norm", f(2, 3, 4, dtype=half), [4], f(4, dtype=half)), ("rms_norm", f(2, 3, 4), [3, 4]),
    ("softmax.int", f(2, 3, 4), -1), ("softmax.int", f(2, 3, dtype=half), 1, torch.float32), ("softmax.int", f(2, 3, 4, order=(1, 0, 2)), 1),
    ("log_softmax.int", f(2, 3), 1), ("special_softmax", f(2, 3), 1), ("_safe_softmax", f(2, 3), 1), ("_weight_norm", f(4, 3, 2), f(4, 1, 1), 0),
    # views
    ("t", f(2, 3)), ("t", f(3)), ("mT", f(2, 3, 4)), ("numpy_T", f(2, 3, 4)), ("adjoint", f(2, 3, 4)), ("transpose.int", f(2, 3, 4), 0, -1),
    ("swapaxes", f(2, 3, 4), 0, 2), ("swapdims", f(2, 3, 4), 0, 2), ("movedim.int", f(2, 3, 4), 0, 2), ("movedim.intlist", f(2, 3, 4), [0, 2], [1, 0]),
    ("moveaxis.int", f(2, 3, 4), 2, 0), ("reshape", f(2, 3, 4), [6, 4]), ("reshape", f(2, 3, 4), [3, -1]), ("reshape", f(2, 3, 4, order=(1, 0, 2)), [6, 4]),
    ("reshape", f(2, 3, 4, order=(1, 0, 2)), [2, 3, 2, 2]), ("reshape_as", f(2, 6), f(3, 4)), ("view_as", f(2, 6), f(3, 4)), ("ravel", f(2, 3)),
    ("ravel", f(2, 3, order=(1, 0))), ("flatten.using_ints", f(2, 3, 4), 1), ("flatten.using_ints", f(2, 3, 4, order=(1, 0, 2)), 0, 1),
    ("flatten.using_ints", torch.rand(())), ("unflatten.int", f(2, 12), 1, [3, -1]), ("expand_as", f(3, 1), f(2, 3, 4)),
    ("broadcast_to", f(3, 1), [2, 3, 4]), ("broadcast_tensors", [f(3, 1), f(4)]), ("meshgrid", [f(3), f(4)]), ("meshgrid.indexing", [f(3), f(4)], "xy"),
    ("meshgrid.indexing", [f(3), f(4), f(2)], "ij"), ("squeeze", f(1, 3, 1)), ("squeeze.dim", f(1, 3, 1), 0), ("squeeze.dim", f(1, 3, 1), 1), ("narrow", f(5, 4), 0, 1, 3),
    ("contiguous", f(2, 3, order=(1, 0))), ("contiguous", f(2, 3)), ("atleast_1d", torch.rand(())), ("atleast_2d", f(3)), ("atleast_3d", f(3)), ("atleast_3d", f(2, 3)),
    ("tile", f(2, 3), [2, 2]), ("tile", f(2, 3), [2]), ("repeat_interleave.self_int", f(2, 3), 2, 1), ("repeat_interleave.self_int", f(2, 3), 2),
    ("pixel_shuffle", f(2, 8, 3, 4), 2), ("pixel_shuffle", f(8, 3, 4), 2), ("pixel_unshuffle", f(2, 2, 6, 4), 2), ("channel_shuffle", f(2, 6, 3, 4), 3),
    ("rot90", f(2, 3, 4)), ("rot90", f(2, 3, 4), 2), ("rot90", f(2, 3, 4), 3, [1, 2]), ("rot90", f(2, 3), 0), ("fliplr", f(2, 3)), ("flipud", f(2, 3)),
    ("alias", f(2, 3)), ("detach", f(2, 3, order=(1, 0))), ("linalg_diagonal", f(3, 4)), ("expand_copy", f(3, 1), [3, 4]), ("transpose_copy.int", f(2, 3), 0, 1),
    # parts
    ("split.Tensor", f(5, 4), 2), ("split.Tensor", f(5, 4), 3, 1), ("split.sizes", f(5, 4), [2, 3]), ("chunk", f(5, 4), 2), ("chunk", f(5, 4), 3, 1), ("unsafe_chunk", f(6, 4), 3),
    ("tensor_split.sections", f(5, 4), 3), ("tensor_split.indices", f(5, 4), [1, 3]), ("hsplit.int", f(4, 6), 3), ("vsplit.int", f(4, 6), 2), ("dsplit.int", f(2, 2, 4), 2),
    ("stack", [f(2, 3), f(2, 3)]), ("stack", [f(2, 3), f(2, 3)], -1), ("concat", [f(2, 3), f(4, 3)]), ("hstack", [f(2, 3), f(2, 4)]), ("hstack", [f(2), f(3)]), ("vstack", [f(3), f(3)]),
    ("dstack", [f(2, 3), f(2, 3)]), ("column_stack", [f(2), f(2, 3)]), ("block_diag", [f(2, 3), f(4)]), ("cartesian_prod", [f(2), f(3)]),
    # creation
    ("zeros", [2, 3]), ("ones", [2, 3], torch.int64), ("new_zeros", f(2), [3, 4]), ("new_ones", i(2), [3]), ("zeros_like", f(2, 3, order=(1, 0))), ("ones_like", f(2, 3), torch.bool),
    ("new_full", f(2), [3], 1.5), ("fill.Scalar", f(2, 3), 2.0), ("fill.Tensor", f(2, 3), torch.rand(())), ("arange", 5), ("arange.start", 1, 6), ("arange", 5.0), ("arange", 5, torch.float32),
    ("logspace", 0, 2, 5), ("lift_fresh_copy", f(2, 3)), ("tril_indices", 3, 4), ("triu_indices", 3, 4, 1),
    # pointwise
    ("multiply.Tensor", f(2, 3), f(3)), ("subtract.Tensor", f(2, 3), f(3), 2), ("divide.Tensor", i(2, 3), i(3)), ("divide.Tensor_mode", i(3), i(3) + 1, "floor"), ("true_divide.Scalar", i(3), 2),
    ("greater.Tensor", f(3), f(3)), ("less_equal.Scalar", f(3), 1), ("not_equal.Tensor", f(3), f(3)), ("__and__.Tensor", b(3), b(3)), ("__or__.Scalar", i(3), 1), ("__xor__.Tensor", i(3), i(3)),
    ("__lshift__.Scalar", i(3), 1), ("__rshift__.Tensor", i(3), i(3)), ("clip", f(3), 0.1, 0.5), ("clip.Tensor", f(3), f(3)), ("max.other", f(2, 3), f(3)), ("min.other", f(3), f(3)),
    ("absolute", f(3)), ("negative", f(3)), ("fix", f(3)), ("arcsin", f(3)), ("arctan2", f(3), f(3)), ("special_expit", f(3)), ("special_xlogy", f(3), f(3)), ("special_ndtr", f(3)),
    ("to.dtype", f(2, 3), torch.float16), ("to.dtype", f(2, 3, order=(1, 0)), torch.float64), ("type_as", f(2, 3), i(1)), ("to.other", f(3), i(1)), ("positive", f(3)), ("dropout", f(3), 0.5, False),
    ("feature_dropout", f(2, 3), 0.5, False), ("native_dropout", f(3), 0.5, False), ("rrelu", f(3)), ("prelu", f(2, 3, 4), f(3)), ("prelu", f(2, 3), f(1)), ("glu", f(2, 6)), ("glu", f(2, 6, 3), 1),
    ("isclose", f(3), f(3)), ("alpha_dropout", f(3), 0.5, False), ("feature_alpha_dropout", f(2, 3), 0.5, False), ("isreal", f(3)), ("float_power.Tensor_Scalar", f(3), 2), ("float_power.Scalar", 2, f(3)), ("ldexp.Tensor", f(3), i(3)), ("diff", f(3, 4)), ("diff", i(5), 2), ("diff", f(3, 4), 1, 0, f(1, 4)),
    ("diff", b(5)), ("trapezoid.x", f(2, 5), f(5)), ("trapezoid.dx", f(2, 5)), ("cumulative_trapezoid.dx", f(2, 5)), ("cumulative_trapezoid.x", f(2, 5), f(2, 5)),
    # reductions
    ("var", f(2, 3)), ("var.dim", f(2, 3), [1], True, True), ("std", f(2, 3)), ("std.dim", f(2, 3), [0]), ("var_mean", f(2, 3)), ("std_mean.dim", f(2, 3), [1], False),
    ("norm.Scalar", f(2, 3)), ("norm.ScalarOpt_dim", f(2, 3), 2, [1]), ("norm.ScalarOpt_dim", f(2, 3), None, [1], True), ("norm.ScalarOpt_dtype", f(2, 3), 1, torch.float64), ("frobenius_norm.dim", f(2, 3, 4), [1, 2]),
    ("linalg_norm", f(2, 3)), ("linalg_norm", f(2, 3), 1, [1]), ("linalg_norm", f(2, 3), inf), ("linalg_norm.ord_str", f(2, 3), "fro"), ("linalg_matrix_norm", f(2, 3, 4), 1), ("linalg_matrix_norm", f(2, 3, 4), inf, [0, 1], True),
    ("linalg_matrix_norm.str_ord", f(2, 3, 4)), ("count_nonzero", f(2, 3)), ("count_nonzero.dim_IntList", f(2, 3), [0]), ("nansum", f(2, 3), [1]), ("nansum", f(2, 3)), ("nanmean", f(2, 3), [0], True), ("nanmean", f(2, 3)),
    ("aminmax", f(2, 3)), ("aminmax", f(2, 3), 1), ("argsort", f(2, 3)), ("argsort.stable", f(2, 3), True, 0), ("special_logsumexp", f(2, 3), [1]), ("trace", f(3, 3)), ("dist", f(3), f(3)), ("kthvalue", f(2, 5), 2),
    ("kthvalue", f(2, 5), 2, 0, True), ("median", f(2, 5)), ("median.dim", f(2, 5), 1), ("nanmedian", f(5)), ("nanmedian.dim", f(2, 5), 0, True), ("cov", f(3, 5)), ("cov", f(5)), ("linalg_vecdot", f(2, 3), f(2, 3)),
    # indexing
    ("masked_scatter", f(2, 3), b(2, 3), f(6)), ("take", f(2, 3), i(4)), ("take_along_dim", f(2, 3), i(2, 2), 1), ("take_along_dim", f(2, 3), i(1, 2), 1), ("take_along_dim", f(2, 3), i(4)), ("slice_scatter", f(5, 3), f(2, 3), 0, 1, 3), ("select_scatter", f(5, 3), f(3), 0, 2),
    ("diagonal_scatter", f(3, 3), f(3)), ("as_strided_scatter", f(3, 3), f(2, 2), s22, [3, 1], 1), ("diag_embed", f(2, 3)), ("diag_embed", f(2, 3), 1, 0, 2), ("diag", f(3)), ("diag", f(3, 4), 1), ("diagflat", f(2, 2)),
    ("one_hot", i(2, 3), 4), ("isin.Tensor_Tensor", i(2, 3), i(4)), ("isin.Tensor_Scalar", i(3), 1), ("bucketize.Tensor", f(2, 3), f(4)), ("searchsorted.Tensor", f(2, 4), f(2, 3)), ("searchsorted.Tensor", f(4), f(2, 3), True),
    ("cross", f(2, 3), f(2, 3)), ("linalg_cross", f(3, 2), f(3, 2), 0), ("_unsafe_index.Tensor", f(4, 5), [None, i(3)]), ("index_put", f(4, 5), [b(4, 5)], torch.rand(())),
    # pooling and padding
    ("max_pool1d", f(2, 3, 9), 3, 2, 1), ("max_pool1d", f(2, 3, 9), 3), ("max_pool2d", f(2, 3, 9, 8), 3, 2, 1), ("max_pool2d", f(2, 3, 9, 8, order=CL), 2), ("max_pool2d", f(3, 9, 8), 3, 2, 0, 1, True), ("max_pool3d", f(1, 2, 5, 6, 7), 2),
    ("max_pool1d_with_indices", f(2, 3, 9), 3), ("adaptive_avg_pool1d", f(2, 3, 9), [4]), ("adaptive_avg_pool1d", f(2, 3, 9), [1]), ("adaptive_avg_pool2d", f(2, 3, 9, 8), s11), ("adaptive_avg_pool2d", f(2, 3, 9, 8, order=CL), s11),
    ("adaptive_avg_pool2d", f(2, 3, 9, 8), [3, 2]), ("adaptive_avg_pool2d", f(2, 3, 9, 8, order=CL), [3, 2]), ("adaptive_avg_pool3d", f(1, 2, 5, 6, 7), [1, 1, 1]), ("adaptive_avg_pool3d", f(1, 2, 5, 6, 7), [2, 2, 2]),
    ("adaptive_max_pool1d", f(2, 3, 9), [4]), ("pad", f(2, 3, 4), [1, 2]), ("pad", f(2, 3, 4), [1, 2], "constant", 2.0), ("pad", f(2, 3, 4), [1, 2], "reflect"), ("pad", f(2, 3, 4, 5), [1, 2, 1, 0], "replicate"), ("pad", f(2, 3, 4), [1, 2], "circular"),
    ("grid_sampler", f(2, 3, 4, 5), f(2, 6, 7, 2), 0, 0, False), ("affine_grid_generator", f(2, 2, 3), [2, 3, 4, 5], False), ("im2col", f(2, 3, 8, 9), [3, 2], [1, 2], [1, 0], [2, 1]), ("im2col", f(3, 8, 9), s22, s11, [0, 0], s11),
    # losses
    *[("mse_loss", f(2, 3), f(2, 3), r) for r in (0, 1, 2)], ("l1_loss", f(2, 3), f(2, 3)), ("smooth_l1_loss", f(2, 3), f(2, 3), 0, 0.5), ("huber_loss", f(2, 3), f(2, 3), 0), ("kl_div", f(2, 3), f(2, 3), 2), ("kl_div", f(2, 3), f(2, 3), 0, True),
    ("binary_cross_entropy", f(2, 3), f(2, 3), f(3)), ("binary_cross_entropy_with_logits", f(2, 3), f(2, 3), None, f(3), 0), ("nll_loss", f(4, 3), i(4)), ("nll_loss_nd", f(4, 3), i(4), f(3), 0), ("nll_loss_nd", f(4, 3, 5), i(4, 5)), ("nll_loss2d", f(2, 3, 4, 5), i(2, 4, 5), None, 0),
    ("nll_loss_forward", f(4, 3), i(4), None, 1, -100), ("cross_entropy_loss", f(4, 3), i(4)), ("cross_entropy_loss", f(4, 3), i(4), f(3), 1, -100, 0.1), ("cross_entropy_loss", f(4, 3), f(4, 3), f(3), 0, -100, 0.1),
    ("cross_entropy_loss", f(3), torch.tensor(1)), ("cross_entropy_loss", f(2, 3, 5), i(2, 5), None, 0), ("cosine_similarity", f(2, 3), f(2, 3)), ("cosine_similarity", f(2, 3, 4), f(1, 3, 4), -1), ("pairwise_distance", f(2, 3), f(2, 3)),
    ("pairwise_distance", f(2, 3), f(2, 3), 1.0, 1e-6, True), ("triplet_margin_loss", f(2, 3), f(2, 3), f(2, 3)), ("triplet_margin_loss", f(2, 3), f(2, 3), f(2, 3), 1.0, 2.0, 1e-6, True, 0), ("margin_ranking_loss", f(3), f(3), f(3), 0.5, 0),
    ("hinge_embedding_loss", f(3), f(3)), ("soft_margin_loss", f(3), f(3)), ("cosine_embedding_loss", f(2, 3), f(2, 3), f(2), 0.0, 0), ("poisson_nll_loss", f(3), f(3), True, False, 1e-8, 0), ("poisson_nll_loss", f(3), f(3), False, True, 1e-8, 0),
    # the same under other names
    *[(op + ".Scalar", f(3), 2.0) for op in ("multiply", "subtract", "divide", "greater", "greater_equal", "less", "not_equal")],
    *[(op + ".Tensor", f(3), f(3)) for op in ("less", "less_equal", "greater_equal", "true_divide")], ("divide.Scalar_mode", f(3), 2.0, "trunc"),
    *[(op + ".Scalar", i(3), 1) for op in ("__and__", "__xor__", "__rshift__")], ("__or__.Tensor", i(3), i(3)), ("__lshift__.Tensor", i(3), i(3)),
    *[(op, f(3)) for op in ("arccos", "arccosh", "arcsinh", "arctan", "arctanh", "special_digamma", "special_erf", "special_erfc", "special_erfinv", "special_exp2", "special_expm1",
                            "special_gammaln", "special_log1p", "special_logit", "special_psi", "special_sinc", "resolve_conj", "resolve_neg", "lift_fresh", "lift", "std_mean")],
    ("special_round", f(3)), ("special_log_softmax", f(2, 3), 1), ("special_xlogy.other_scalar", f(3), 2.0), ("special_xlogy.self_scalar", 2.0, f(3)),
    ("float_power.Tensor_Tensor", f(3), i(3)), ("trapz.x", f(2, 5), f(2, 5)), ("trapz.dx", f(2, 5)), ("var_mean.dim", f(2, 3), [1]), ("norm.ScalarOpt_dim_dtype", f(2, 3), 2, [1], False, torch.float64),
    ("linalg_matmul", f(3, 4), f(4, 5)), ("_convolution", f(2, 3, 9), f(4, 3, 3), None, [1], [0], [1], False, [0], 1, False, False, False, False), ("conv3d.padding", f(1, 2, 5, 6, 7), f(3, 2, 3, 3, 3), None, 1, "same"),
    ("conv_tbc", f(9, 2, 3), f(3, 3, 4), f(4)), ("native_batch_norm", f(2, 3, 4), f(3), f(3), f(3), f(3), True, 0.1, 1e-5), ("_weight_norm_interface", f(4, 3), f(4, 1)),
    ("_native_batch_norm_legit.no_stats", f(2, 3, 4), f(3), f(3), True, 0.1, 1e-5), ("mH", f(2, 3, 4)), ("matrix_H", f(2, 3)), ("moveaxis.intlist", f(2, 3, 4), [0], [2]),
    ("_unsafe_view", f(2, 6), [3, 4]), ("_reshape_alias", f(2, 6), [3, 4], [4, 1]), *[(f"atleast_{n}d.Sequence", [f(3), torch.rand(())]) for n in (1, 2, 3)],
    ("native_channel_shuffle", f(2, 6, 3, 4), 2), ("row_stack", [f(3), f(3)]), ("concatenate", [f(2, 3), f(4, 3)]), ("hsplit.array", f(4, 6), [1, 3]), ("vsplit.array", f(4, 6), [1]), ("dsplit.array", f(2, 2, 4), [3]),
    ("unsafe_split.Tensor", f(5, 4), 2), ("unsafe_split_with_sizes", f(5, 4), [2, 3]), ("to.device", f(3), "cpu", torch.float64), ("to.dtype_layout", f(3), torch.float64), ("zero", f(2, 3)), ("_unsafe_index_put", f(4, 5), [i(3)], f(3, 5)),
    ("view_copy", f(2, 6), [3, 4]), ("permute_copy", f(2, 3, 4), [2, 0, 1]), ("t_copy", f(2, 3)), ("select_copy.int", f(2, 3), 1, 0), ("slice_copy.Tensor", f(5, 3), 0, 1, 4), ("squeeze_copy", f(1, 3)), ("squeeze_copy.dim", f(1, 3), 0),
    ("squeeze_copy.dims", f(1, 3), [0]), ("unsqueeze_copy", f(2, 3), 1), ("diagonal_copy", f(3, 3)), ("unfold_copy", f(2, 5), 1, 3, 1), ("alias_copy", f(2, 3)), ("detach_copy", f(2, 3)), ("nll_loss2d_forward", f(2, 3, 4, 5), i(2, 4, 5), None, 1, -100),
    ("_cdist_forward", f(5, 3), f(4, 3), 2.0, None),
    # attention and cells
    ("_scaled_dot_product_flash_attention_for_cpu", f(2, 4, 5, 8), f(2, 4, 6, 8), f(2, 4, 6, 8)), ("lstm_cell", f(2, 3), [f(2, 4), f(2, 4)], f(16, 3), f(16, 4), f(16), f(16)), ("gru_cell", f(2, 3), f(2, 4), f(12, 3), f(12, 4)),
    ("rnn_tanh_cell", f(2, 3), f(2, 4), f(4, 3), f(4, 4), f(4), f(4)), ("rnn_relu_cell", f(2, 3), f(2, 4), f(4, 3), f(4, 4)), ("cdist", f(5, 3), f(4, 3)), ("cdist", f(2, 5, 3), f(2, 4, 3), 1.0),
    # linear algebra
    *(("linalg_inv_ex", x) for x in (f(4, 4), f(2, 3, 4, 4), f(1, 1), f(0, 0))), ("linalg_inv", spd(4)),
    *((op, a, b) for op in ("_linalg_solve_ex", "linalg_solve") for a in (spd(4), spd(2, 4)) for b in (f(4), f(4, 2), f(3, 2, 4, 2))),
    ("_linalg_solve_ex", f(2, 4, 4), f(2, 4)), ("_linalg_solve_ex", f(2, 4, 4), f(3, 4), False),
    *((op, x) for op in ("_linalg_det", "_linalg_slogdet") for x in (f(3, 3), f(2, 3, 3, 3), f(2, 3, 3).mT, f(0, 0))),
    *(("linalg_lu", x) for x in (f(3, 3), f(2, 5, 3), f(2, 3, 5), f(0, 3))),
    *(("cholesky_solve", f(3, 2), a, up) for a in (spd(3), spd(2, 3)) for up in (False, True)),
    ("cholesky_inverse", spd(3)), ("cholesky_inverse", spd(2, 3), True), ("linalg_cholesky", spd(2, 3)),
    *(("triangular_solve", f(4, 2), a, True, t) for a in (f(4, 4), f(2, 4, 4)) for t in (False, True)),
    *(("linalg_qr", x, mode) for x in (f(5, 3), f(2, 3, 5), f(3, 3), f(1, 4), f(4, 1)) for mode in ("reduced", "complete", "r")),
    ("ormqr", f(5, 3), f(3), f(5, 2)), ("ormqr", f(2, 5, 3), f(2, 3), f(2, 4, 5), False, True), ("ormqr", f(3, 3), f(3), f(3, 2)),
    ("linalg_matrix_sqrth", spd(2, 3)), ("linalg_polar", f(2, 5, 3)), ("linalg_matrix_norm.str_ord", f(2, 4, 3), "nuc"),
    *(("linalg_matrix_norm", f(2, 4, 3), p, [0, 2], keep) for p in (2, -2) for keep in (False, True)),
    *(("linalg_pinv.atol_rtol_tensor", x) for x in (f(5, 3), f(2, 3, 5), f(0, 3))),
    ("linalg_pinv.atol_rtol_tensor", spd(2, 3), f(2), None, True), ("linalg_pinv.atol_rtol_tensor", f(2, 3, 4), f(2), f(2)),
    ("linalg_svd", f(2, 3, 5)), ("linalg_svdvals", f(2, 3, 5)), ("linalg_eigh", spd(3)), ("linalg_eigvalsh", spd(2, 3)),
    ("linalg_det", f(3, 3)), ("linalg_slogdet", f(2, 3, 3)), ("linalg_lu_factor", f(2, 3, 3)), ("linalg_ldl_factor", spd(3)),
    ("matrix_exp", f(2, 3, 3)),
    # copies of views: every op X_copy is X and a copy
    ("as_strided_copy", f(2, 3), [2, 2], [1, 2]), ("narrow_copy", f(2, 3), 1, 0, 2), ("unbind_copy.int", f(2, 3, order=(1, 0)), 1), ("split_copy.Tensor", f(2, 3), 2, 1),
    ("split_with_sizes_copy", f(2, 3), [1, 2], 1), ("view_copy.dtype", f(2, 3), torch.int32), ("_reshape_alias_copy", f(2, 3), [3, 2], [2, 1]), ("_reshape_copy", f(2, 3, order=(1, 0)), [3, -1]),
    ("view_as_real_copy", torch.rand(2, 3, dtype=torch.complex64)), ("view_as_complex_copy", f(2, 3, 2)),
    # places from data
    ("index_reduce", f(3, 4), 0, i(2), f(2, 4), "mean"), ("index_reduce", f(3, 4), 1, i(5), f(3, 5), "amax", False), ("index_reduce", torch.rand(()), 0, i(1, high=1), torch.rand(()), "prod"),
    ("put", f(3, 4), i(2, 2, high=12), f(4)), ("put", f(3, 4, order=(1, 0)), i(2, high=12), f(2), True), ("masked_scatter_backward", f(3, 4), b(3, 4), [2, 7]),
    ("segment_reduce", f(6, 2), "mean", torch.tensor([2, 1, 0, 3])), ("segment_reduce", f(2, 6, 3), "max", None, None, torch.tensor([[0, 2, 6], [0, 0, 6]]), 1),
    ("_segment_reduce_backward", f(4, 2), f(4, 2), f(6, 2), "prod", torch.tensor([2, 1, 0, 3])), ("_segment_reduce_backward", f(4, 2), f(4, 2), f(6, 2), "min", torch.tensor([2, 1, 0, 3])),
    ("mode", i(3, 5).float()), ("mode", i(3, 5), 0, True), ("mode", torch.rand(())), ("repeat_interleave.Tensor", torch.tensor([1, 0, 2]), 3), ("repeat_interleave.self_Tensor", f(3, 2), torch.tensor([1, 0, 2]), 0, 3),
    ("_embedding_bag", f(9, 4), i(6, high=9), torch.tensor([0, 2, 2]), False, 1), ("_embedding_bag", f(9, 4), i(6, high=9), torch.tensor([0, 2, 6]), False, 2, False, None, True),
    ("_embedding_bag_forward_only", f(9, 4), i(6, high=9), torch.tensor([0, 2]), False, 0, False, f(6)), ("_embedding_bag_forward_only", f(9, 4), i(6, high=9), torch.tensor([0, 2]), False, 0, False, None, False, 3),
    ("_embedding_bag_dense_backward", f(2, 4), i(6, high=9), i(6, high=2), torch.tensor([3, 3]), torch.tensor([3, 3]), 9, True, 1, None),
    ("_embedding_bag_backward", f(2, 4), i(6, high=9), torch.tensor([0, 3]), torch.zeros(0, dtype=torch.int64), torch.tensor([3, 3]), torch.tensor([3, 3]), 9, False, 0, False, None),
    ("_embedding_bag_dense_backward", f(2, 4), i(6, high=9), i(6, high=2), torch.tensor([3, 3]), i(2, 4, high=9), 9, False, 2, None),
    ("_embedding_bag_per_sample_weights_backward", f(2, 4), f(9, 4), i(6, high=9), torch.tensor([0, 2]), i(6, high=2), 0),
    # distances, counting, products of three, statistics of batches
    ("adaptive_max_pool2d_backward", f(2, 3, 4, 3), f(2, 3, 9, 8), i(2, 3, 4, 3, high=72)), ("max_unpool2d", f(2, 3, 4, 4), torch.arange(16).view(4, 4).expand(2, 3, 4, 4).contiguous(), [8, 8]),
    ("_cdist_backward", f(5, 3), f(5, 4), f(3, 4), 2.0, f(5, 3)), ("_pdist_backward", f(10), f(5, 4), 2.0, f(10)), ("_pdist_forward", f(5, 4), 1.0),
    ("histc", f(7), 5), ("histc", f(2, 3, dtype=half), 4, 0, 1), ("histogram.bin_ct", f(7), 5), ("histogram.bins_tensor", f(7), f(4).sort()[0]),
    ("_histogramdd_from_bin_cts", f(7, 2), [3, 4]), ("_histogramdd_bin_edges", f(7, 2), [3, 4]),
    ("_trilinear", f(2, 3), f(5, 3, 4), f(2, 4), [1, 3], [0], [1, 2], [2, 3]), ("_trilinear", i(2, 3), i(2, 3), i(3), [], [], [0], [1]), ("addbmm", i(3, 5), i(2, 3, 4), i(2, 4, 5)),
    ("addbmm", i(3, 5), i(2, 3, 4), i(2, 4, 5), 0.6, 2.7), ("addmv", i(3), i(3, 4), i(4), 1.5, 0.2), ("logspace", 0, 3.7, 9, 2.5, torch.int64),
    *((f"{op}.{kind}", a, b, 5) for op in ("linspace", "logspace") for kind, a, b in (
        ("Tensor_Tensor", torch.tensor(0.5), torch.tensor(2)), ("Tensor_Scalar", torch.tensor(0.5), 2), ("Scalar_Tensor", 1, torch.tensor(2.5)))),
    ("bucketize.Scalar", 2, f(4)), ("searchsorted.Scalar", f(4), 0.5, True), ("embedding_renorm", f(5, 4), i(2, 3), 0.5, 2.0), ("linalg_matrix_exp", f(2, 3, 3, dtype=half)),
    ("_batch_norm_with_update_functional", f(2, 3, 4), f(3), f(3), f(3), f(3), 0.1, 1e-5), ("native_batch_norm", f(2, 3, 4, dtype=half), None, None, None, None, True, 0.1, 1e-5),
    ("native_batch_norm", f(2, 3, 4, dtype=half), f(3), f(3), f(3), f(3), True, 0.1, 1e-5),
    ("matrix_exp", f(2, 3, 3)), ("det", f(3, 3)), ("slogdet", f(3, 3)), ("inverse", f(3, 3)), ("linalg_eigvals", f(2, 3, 3)),
    ("linalg_solve_ex", f(2, 4, 4), f(2, 4, 2)),
    # gradients of random ops
    ("rrelu_with_noise_backward", f(2, 3), f(2, 3), f(2, 3), 0.1, 0.3, True, False), ("rrelu_with_noise_backward", f(2, 3), f(2, 3), f(2, 3), 0.1, 0.3, False, False),
    ("adaptive_max_pool3d_backward", f(1, 2, 2, 2, 2), f(1, 2, 4, 4, 4), i(1, 2, 2, 2, 2, high=64)), ("max_unpool3d", f(1, 2, 2, 2, 2), torch.arange(8).view(2, 2, 2).expand(1, 2, 2, 2, 2).contiguous(), [4, 4, 4], [2, 2, 2], [0, 0, 0]),
    ("fractional_max_pool2d_backward", f(2, 3, 2, 2), f(2, 3, 5, 5), [2, 2], [2, 2], i(2, 3, 2, 2, high=25)), ("fractional_max_pool3d_backward", f(1, 2, 2, 2, 2), f(1, 2, 5, 5, 5), [2, 2, 2], [2, 2, 2], i(1, 2, 2, 2, 2, high=125)),
    ("_histogramdd_from_bin_tensors", f(7, 2), [f(4).sort()[0], f(3).sort()[0]]), ("special_i0", f(3)), ("special_polygamma", 1, f(3)), ("special_gammainc", f(3), f(3)), ("special_gammaincc", f(3), f(3)),
    # Fourier transforms
    ("fft_fft", z(3, 8)), ("fft_fft", f(3, 8), 5), ("fft_fft", i(3, 8), 11, 0, "ortho"), ("fft_ifft", z(3, 8), None, 0, "forward"),
    ("fft_ifft", f(3, 8)), ("fft_rfft", f(3, 8)), ("fft_rfft", f(2, 7, 4, order=(1, 0, 2)), None, 1), ("fft_ihfft", f(3, 8), 6),
    ("fft_irfft", z(3, 5)), ("fft_irfft", z(3, 5), 7), ("fft_irfft", f(3, 5), 12, 0), ("fft_hfft", z(3, 5)), ("fft_hfft", b(3, 5), 9),
    ("fft_fft2", z(2, 4, 6)), ("fft_fft2", f(2, 4, 6), [3, 8]), ("fft_ifft2", z(2, 4, 6), None, [0, 2], "ortho"),
    ("fft_fftn", z(2, 4, 6)), ("fft_fftn", f(2, 4, 6), [5, -1]), ("fft_ifftn", z(2, 4, 6), None, [2, 0]),
    ("fft_rfft2", f(2, 4, 6)), ("fft_rfftn", f(2, 4, 6), [3, 3], [2, 1]), ("fft_ihfft2", f(2, 4, 6)), ("fft_ihfftn", f(2, 4, 6)),
    ("fft_ihfftn", f(2, 4, 6), None, [1]), ("fft_irfft2", z(2, 4, 4)), ("fft_irfftn", z(2, 4, 4), [4, 5], [0, 1]),
    ("fft_hfft2", z(2, 4, 4)), ("fft_hfftn", z(2, 4, 4)), ("fft_hfftn", z(2, 4, 4), None, [1]),
    ("fft_fftshift", f(3, 4)), ("fft_ifftshift", f(3, 5), [1]), ("fft_fftfreq", 7, 0.5), ("fft_rfftfreq", 8),
    ("stft", f(2, 40), 8, 3, 6, f(6), False, True, True), ("stft.center", f(40), 8, 2, None, None, True, "reflect", True, None, False),
    ("stft.center", z(2, 40), 8, 4, 8, f(8), False, "reflect", False, None, True), ("istft", z(2, 5, 9), 8, 4, 8, f(8)),
    ("istft", z(8, 9), 8, 2, None, None, False, False, False, 30, True), ("unfold_backward", f(2, 5, 3, 4), [2, 12, 3], 1, 4, 2),
    ("_grouped_mm", f(16, 24), f(4, 24, 8), ends(3, 3, 11, 16)), ("_grouped_mm", f(4, 8, 24), f(24, 16), ends(3, 3, 11, 16)), ("_grouped_mm", f(8, 16), f(16, 16), ends(3, 3, 11, 16)), ("_grouped_mm", f(4, 16, 24), f(4, 24, 8)),
    ("transformers::grouped_mm_fallback", f(16, 24), f(4, 24, 8), ends(3, 3, 11, 16)), ("transformers::grouped_mm_fallback_backward", f(16, 24), f(4, 24, 8), ends(3, 3, 11, 16), f(16, 8)),
    # factorisations without elements, of any dtype
    *((f"linalg_{op}_ex", f(2, 0, 0, dtype=half)) for op in ("cholesky", "lu_factor", "ldl_factor")), ("_linalg_eigh", f(2, 0, 0, dtype=half)),
    ("_linalg_svd", f(2, 0, 0, dtype=half)), ("addr", f(3, 4).bool(), f(3), f(4).double()), ("cov", i(2, 3).int()), ("trapz.x", i(3, 0), i(0)),
    ("view_copy", f(4, 3).t(), [2, 6]), ("adaptive_avg_pool3d", f(2, 3, 4), [1, 1, 1]), ("nll_loss", f(3), i(1)), ("tensordot", f(1, 0), f(1, 0), [1], [1]),
]

# Ops that draw: in coil's text they have a key.
p = f(2, 3)
RANDOM_CASES = [
    ("rand", [2, 3]), ("rand", [4], torch.float64), ("rand", [4], half), ("randn", [2, 3]), ("randn", [4], torch.float16), ("rand_like", p), ("rand_like", f(2, 3, 4, order=(2, 0, 1))),
    ("randn_like", f(2, 3, 4, 5, order=CL)), ("randn_like", f(2, 3, 4, 5), torch.float64), ("randint", 9, [2, 3]), ("randint", 9, [4], torch.int32), ("randint.low", -3, 9, [4]), ("randint.low", 0, 2**40, [4]),
    ("randint.low", 0, 9, [4], torch.float32), ("randint_like", i(2, 3), 9), ("randint_like.low_dtype", f(2, 3, order=(1, 0)), -3, 9), ("randperm", 7), ("randperm", 7, torch.int32),
    ("uniform", p), ("uniform", f(2, 3, dtype=half), -1.0, 4.0), ("normal_functional", p, 1.0, 2.0), ("normal.float_float", 1.0, 2.0, [4]), ("normal.Tensor_Tensor", f(2, 1), f(3)), ("normal.Tensor_float", f(2, 3, order=(1, 0))),
    ("normal.float_Tensor", 1.0, p), ("log_normal", p), ("exponential", p, 2.0), ("exponential", f(3, dtype=torch.float64)), ("geometric", p, 0.3), ("geometric", i(4), 0.3), ("cauchy", p), ("random", i(4)), ("random", p), ("random.from", i(4), 2, 9),
    ("random.to", i(4).to(torch.uint8), 9), ("bernoulli", p), ("bernoulli", f(2, 3, order=(1, 0))), ("bernoulli.p", f(2, 3, order=(1, 0)), 0.3), ("bernoulli.p", i(4), 0.3), ("bernoulli.Tensor", f(2, 3, order=(1, 0)), f(3)), ("multinomial", p, 2), ("multinomial", f(4), 6, True),
    ("native_dropout", f(2, 3, 4, 5, order=CL), 0.5, True), ("dropout", p, 0.5, True), ("dropout", p, 1.0, True), ("feature_dropout", f(2, 3, 4), 0.5, True), ("alpha_dropout", p, 0.5, True), ("feature_alpha_dropout", f(2, 3, 4), 0.5, True),
    ("rrelu", p, 0.1, 0.3, True), ("rrelu_with_noise_functional", p, p, 0.1, 0.3, True), ("rrelu_with_noise_functional", p, p, 0.1, 0.3, False),
    ("scaled_dot_product_attention", f(2, 4, 5, 8), f(2, 4, 6, 8), f(2, 4, 6, 8), None, 0.5), ("scaled_dot_product_attention", f(2, 4, 5, 8), f(2, 2, 5, 8), f(2, 2, 5, 8), None, 0.5, True, None, True),
]


def type_text(t):
    """As coil prints a type; strides of dims of size 1 (or of empty tensors) are contiguous ones."""
    text = f"{NAMES[t.dtype]}[{', '.join(map(str, t.shape))}]"
    if t.is_contiguous():
        return text
    return f"{text} strides [{', '.join(map(str, t.stride()))}]"


class Text:
    """Arguments as text; tensors become inputs."""

    def __init__(self):
        self.inputs = []

    def of(self, value):
        if isinstance(value, torch.Tensor):
            self.inputs.append(f"%a{len(self.inputs)}: {type_text(value)}")
            return f"%a{len(self.inputs) - 1}"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self.of(v) for v in value)}]"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return f'"{value}"'
        if isinstance(value, torch.dtype):
            return NAMES[value]
        return repr(value)


def split_args(schema, args):
    """(positional, keyword) arguments of a case."""
    positional, keywords = [], {}
    for value, spec in zip(args, schema.arguments):
        if type(value) is int and spec.N is not None:  # one number for an int[N]
            value = [value] * spec.N
        if spec.kwarg_only:
            keywords[spec.name] = value
        else:
            positional.append(value)
    return positional, keywords


def case_line(number, op, args, draws):
    name, _, overload = op.partition(".")
    namespace, _, name = name.rpartition("::")
    target = getattr(getattr(getattr(torch.ops, namespace or "aten"), name), overload or "default")
    positional, keywords = split_args(target._schema, args)
    result = target(*positional, **keywords)
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    text = Text()
    words = [text.of(v) for v in positional] + [f"{k}={text.of(v)}" for k, v in keywords.items()]
    if draws:
        text.inputs.append("%key: i64[2]")
        words.append("random_key=%key")
    outs = ", ".join(f"%r{i}" for i in range(len(results)))
    graph = f"graph g{number}({', '.join(text.inputs)}) {{ {outs} = {op}({', '.join(words)}) return {outs} }}"
    return f"{graph} -> {'; '.join(type_text(r) for r in results)}"


def main():
    torch.manual_seed(0)
    lines, failures = [], []
    for n, case in enumerate([*CASES, *RANDOM_CASES]):
        try:
            lines.append(case_line(n, case[0], case[1:], n >= len(CASES)))
        except Exception as e:  # all wrong cases are listed at once
            failures.append(f"{case[0]}: {str(e).splitlines()[0]}")
    if failures:
        raise SystemExit("\n".join(failures))
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} cases")


if __name__ == "__main__":
    main()
