"""Draws random programs. Ops come from coil's own tables with torch's schemas: arguments are drawn by
type and name, the op is run, and what eager PyTorch refuses is drawn again. No op is listed by name to
be drawn; the sets below name those whose result torch leaves open."""

import functools
import math
import random

import torch
from fuzz_agree import EPS, SPREADING, copied, is_inexact, same_bits
from fuzz_program import Program, Ref, Source, Step, map_refs, overload, replay, results_of

from coil import _coil

MAX_ELEMENTS = 3000
TRIES = 12
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16)
DTYPES = FLOATS + INTEGERS + (torch.bool, torch.complex64)
DTYPE_WEIGHTS = (40, 8, 8, 8, 10, 5, 4, 3, 3, 8, 3)
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33)
SIZE_WEIGHTS = (1, 9, 8, 8, 6, 5, 3, 3, 3, 4, 4, 2)
SCALARS = (0, 1, 2, -1, 3, -2, 7, 0.5, -1.5, 2.5, 1e-3, 0.0, -0.0, 1.0, True)
FLOAT_ARGS = (0.5, 1.0, 0.0, 1e-5, 0.1, 2.0, -0.5, 3.0)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-40, -1e-40, 65504.0, 1e30, math.inf, -math.inf, math.nan)
WORDS = {
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"),
    "approximate": ("none", "tanh"),
    "rounding_mode": (None, "floor", "trunc"),
    "padding_mode": ("zeros", "border", "reflection"),
    "indexing": ("ij", "xy"),
    "mode": ("constant", "reflect", "replicate", "circular", "mean", "nearest"),
    "ord": ("fro", "nuc"),
    "equation": ("ij,jk->ik", "ij,ij->", "bij,bjk->bik", "i,j->ij", "ii->i", "ij->ji"),
    "padding": ("same", "valid"),
    "side": ("left", "right"),
}

# Which of several equal elements' index comes out is open.
TIES = {"sort", "argsort", "topk", "msort", "kthvalue", "median", "nanmedian", "mode"}
# What two writes to one element leave is open.
WRITES = {"scatter", "index_put", "_index_put_impl", "index_copy", "put", "slice_scatter_of_duplicates"}
# What a factorisation makes of numbers that are not finite is LAPACK's own affair.
FACTORS = (
    "linalg_svd", "linalg_qr", "linalg_eig", "linalg_lstsq", "linalg_pinv", "linalg_matrix_rank", "linalg_cond",
    "linalg_lu", "linalg_ldl", "linalg_inv", "linalg_solve", "linalg_det", "linalg_slogdet", "linalg_cholesky",
    "linalg_matrix_exp", "linalg_tensorinv", "linalg_tensorsolve", "linalg_householder", "linalg_matrix_norm",
    "linalg_norm", "linalg_matrix_power", "det", "logdet", "slogdet", "inverse", "cholesky", "svd", "qr", "geqrf",
    "orgqr", "ormqr", "lu_", "triangular_solve", "pinverse", "nuclear_norm", "matrix_exp", "matrix_power")
# Of these, the ones that divide by pivots: whether rounding leaves a 0 of a matrix without full rank is open.
PIVOTS = ("linalg_lu_factor", "linalg_inv", "linalg_solve", "linalg_slogdet", "linalg_tensorinv", "linalg_tensorsolve",
          "inverse", "slogdet", "logdet")
# Of operands of two dtypes torch's graphs have none of these.
PRODUCTS = ("bmm", "baddbmm", "addbmm", "matmul", "linalg_matmul", "linear", "einsum", "mv", "addmv", "linalg_multi_dot")
# Memory that nothing has written, the process's own numbers, or lazily conjugated results.
OPEN = ("empty", "new_empty", "resize", "set_", "_conj", "conj", "_neg_view", "conj_physical_", "resolve",
        "rand", "_fw_primal", "record_stream", "data", "_debug", "from_file", "_cdist", "_make_dual",
        "normal", "_standard_gamma", "_sobol", "native_dropout", "is_", "_is_", "result_type", "_thnn",
        "mkldnn", "_mkldnn", "quantize", "_pin", "pin_", "to_", "_to_cpu", "sparse", "_sparse", "_test",
        "_assert", "sym_", "retain_grad", "requires_grad", "_version", "output_nr", "_backward", "cudnn",
        # Eager's vector loop and its tail differ for NaN.
        "hardshrink_backward", "softshrink_backward",
        # Strides that torch records for a graph are not those of the eager kernel.
        "pow.Scalar", "float_power.Scalar", "log_sigmoid", "isin",
        # Eager's own numbers in float64 are short of digits.
        "special_bessel", "special_airy", "special_zeta", "polygamma", "special_polygamma", "igamma", "special_gammainc",
        # What these do with boundaries that are not sorted is nobody's promise.
        "bucketize", "searchsorted",
        # As many results, or as large ones, as the data says, though no tag does.
        "where.default", "nonzero_numpy",
        # Vectors that are right with either sign.
        "linalg_svd.", "svd.", "linalg_eigh.", "linalg_eig.", "_linalg_svd", "_linalg_eigh",
        # Eigenvalues that are right in any order.
        "linalg_eigvals.", "_linalg_eigvals.")


# Internal ops that trust their callers: wrong arguments write where they should not.
UNCHECKED = ("_native_batch_norm", "_batch_norm", "native_batch_norm", "native_group_norm", "_reshape_alias", "_weight_norm",
             "_scaled_dot_product", "_unsafe_index", "_fused_rms_norm", "_prelu_kernel", "max_pool2d_with_indices_b",
             "max_pool3d_with_indices_b", "_adaptive_avg_pool2d_b", "_adaptive_avg_pool3d_b", "convolution_backward", "_convolution", "unfold_backward",
             "fractional_max_pool2d_b", "fractional_max_pool3d_b", "adaptive_max_pool2d_b", "adaptive_max_pool3d_b",
             "_pdist_backward", "_segment_reduce_backward", "_embedding_bag_dense_backward")


@functools.lru_cache(maxsize=None)
def is_drawn(name):
    op = overload(name)
    schema = op._schema
    if torch.Tag.nondeterministic_seeded in op.tags or torch.Tag.dynamic_output_shape in op.tags:
        return False
    if torch.Tag.data_dependent_output in op.tags or any(a.is_out for a in schema.arguments):
        return False
    if any("Generator" in str(a.type) for a in schema.arguments):
        return False
    returns = [str(r.type) for r in schema.returns]
    if not returns or any(r not in ("Tensor", "List[Tensor]") for r in returns):
        return False
    return not name.startswith(OPEN + UNCHECKED) and schema.name.count("::") == 1


@functools.lru_cache(maxsize=None)
def all_ops():
    """(kind, packet) to the overloads that coil takes."""
    table = {"pointwise": {}, "view": {}, "write": {}, "other": {}}
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::"):
            continue
        packet, which = schema.name[6:], schema.overload_name
        full = f"{packet}.{which}" if which else packet
        name = f"{packet}.{which or 'default'}"
        if not hasattr(torch.ops.aten, packet) or not _coil.has_op(full):
            continue
        try:
            if is_drawn(name):
                table[kind_of(name)].setdefault(packet, []).append(name)
        except AttributeError:
            continue
    return {kind: [sorted(v) for _, v in sorted(rows.items())] for kind, rows in table.items()}


def kind_of(name):
    op = overload(name)
    infos = [a.alias_info for a in op._schema.arguments if a.alias_info is not None]
    if any(i.is_write for i in infos):
        return "write"
    if infos:
        return "view"
    return "pointwise" if torch.Tag.pointwise in op.tags else "other"


class Draw:
    """One program, a function of the seed and of coil's and torch's tables."""

    def __init__(self, seed, kinds=None):
        self.random = random.Random(seed)
        self.torch_random = torch.Generator().manual_seed(self.random.getrandbits(40))
        self.inputs, self.input_values = [], []  # Sources, and the tensors of one eager run
        self.steps, self.results = [], []
        self.kinds = kinds or {"pointwise": 34, "view": 22, "write": 16, "other": 28}

    # Inputs.

    def choice(self, options, weights=None):
        return self.random.choices(options, weights)[0] if weights else self.random.choice(options)

    def chance(self, p):
        return self.random.random() < p

    def shape(self):
        ndim = self.choice((0, 1, 2, 3, 4, 5), (4, 22, 36, 22, 14, 2))
        shape = [self.choice(SIZES, SIZE_WEIGHTS) for _ in range(ndim)]
        while math.prod(shape) > MAX_ELEMENTS:
            shape[self.random.randrange(ndim)] = self.choice((1, 2, 3))
        return tuple(shape)

    def fill(self, count, dtype):
        random_numbers = self.torch_random
        if dtype is torch.bool:
            return torch.rand(count, generator=random_numbers) < 0.5
        if not dtype.is_floating_point and not dtype.is_complex:
            info = torch.iinfo(dtype)
            low, high = self.choice(((0, 10), (-9, 10), (0, 3), (info.min, info.max)), (5, 5, 2, 2))
            low = max(low, info.min)
            return torch.randint(low, high, (count,), generator=random_numbers, dtype=dtype)
        kind = self.choice(("normal", "unit", "integers", "wide", "special"), (55, 15, 15, 8, 7))
        if dtype.is_complex:
            kind = "normal"
        if kind == "normal":
            drawn = torch.randn(count, generator=random_numbers, dtype=torch.float64)
            if dtype.is_complex:
                drawn = torch.complex(drawn, torch.randn(count, generator=random_numbers, dtype=torch.float64))
        elif kind == "unit":
            drawn = torch.rand(count, generator=random_numbers, dtype=torch.float64)
        elif kind == "integers":
            drawn = torch.randint(-4, 5, (count,), generator=random_numbers).double()
        elif kind == "wide":
            drawn = torch.randn(count, generator=random_numbers, dtype=torch.float64) * self.choice((50, 1e4, 1e-4))
        else:
            table = torch.tensor(SPECIAL, dtype=torch.float64)
            drawn = table[torch.randint(0, len(SPECIAL), (count,), generator=random_numbers)]
        return drawn.to(dtype)

    def source(self, shape, dtype):
        """An input of this shape in some layout."""
        layout = self.choice(
            ("contiguous", "permuted", "window", "stepped", "expanded", "overlapping", "last"),
            (46, 18, 10, 8, 9, 4, 5))
        ndim = len(shape)
        order = list(range(ndim))
        if layout == "permuted":
            self.random.shuffle(order)
        if layout == "last" and ndim in (4, 5):
            order = [0, *range(2, ndim), 1]
        sizes = [shape[d] for d in order]
        offset, steps = 0, [1] * ndim
        if layout == "window":
            offset = self.random.randrange(1, 4)
            sizes = [n + (self.random.randrange(3) if i else 0) for i, n in enumerate(sizes)]
        if layout == "stepped":
            steps = [self.choice((1, 2, 3)) for _ in order]
            sizes = [n * k for n, k in zip(sizes, steps)]
        strides, at = [0] * ndim, 1
        for d, n, k in reversed(list(zip(order, sizes, steps))):
            strides[d] = at * k
            at *= max(n, 1)
        if layout == "expanded":
            strides = [0 if self.chance(0.5) else s for s in strides]
        if layout == "overlapping" and ndim:
            strides = [self.choice((1, 1, 2, s)) for s in strides]
        span = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if math.prod(shape) else 0
        return Source(self.fill(offset + span, dtype), tuple(shape), tuple(strides), offset)

    def new_input(self, shape=None, dtype=None, values=None):
        if values is not None:
            source = Source.of(values)
        else:
            dtype = dtype or self.choice(DTYPES, DTYPE_WEIGHTS)
            source = self.source(self.shape() if shape is None else tuple(shape), dtype)
        self.inputs.append(source)
        self.input_values.append(source.tensor())
        return Ref(~(len(self.inputs) - 1))

    # Arguments.

    def value(self, ref):
        return ref.of(self.input_values, self.results)

    def old(self):
        """A tensor of the program; later ones more often."""
        count = len(self.inputs) + len(self.results)
        at = int(count * math.sqrt(self.random.random())) - len(self.inputs)
        return Ref(min(at, len(self.results) - 1)) if self.results else Ref(~self.random.randrange(len(self.inputs)))

    def tensor(self, name, first):
        if first is None:
            return self.old() if self.chance(0.93) else self.new_input()
        x = self.value(first)
        if name in ("index", "indices", "indices_tensor") or (name == "target" and self.chance(0.7)):
            return self.index(x)
        if name in ("mask", "condition"):
            return self.like(x, torch.bool)
        if name in ("mat1", "mat2", "batch1", "batch2", "vec", "vec1", "vec2", "tensor", "end") or self.chance(0.12):
            if x.ndim and self.chance(0.6):
                other = self.choice((1, 2, 3, 5, 16))
                shape = (*x.shape[:-2], x.shape[-1], other) if self.chance(0.7) else (x.shape[-1],)
                return self.new_input(shape, x.dtype)
        if name in ("weight", "bias", "running_mean", "running_var", "mean", "invstd", "save_mean", "save_invstd"):
            return self.parameter(name, x)
        if self.chance(0.5):
            for _ in range(4):
                ref = self.old()
                if broadcasts(self.value(ref).shape, x.shape):
                    return ref
        return self.like(x, x.dtype if self.chance(0.75) else None)

    def like(self, x, dtype):
        shape = list(x.shape)
        if self.chance(0.35):
            shape = [1 if self.chance(0.4) else n for n in shape]
            if self.chance(0.3):
                shape = shape[self.random.randrange(len(shape) + 1):]
        return self.new_input(shape, dtype)

    def index(self, x):
        sizes = [n for n in x.shape if n] or [1]
        high = min(sizes) if self.chance(0.7) else self.choice(sizes)
        shape = self.choice((
            x.shape, tuple(self.random.randint(min(n, 1), n) for n in x.shape), (self.choice((1, 2, 3, 5)),), (), (2, 3)))
        values = torch.randint(0, high, shape, generator=self.torch_random)
        if self.chance(0.2):
            values = values - high  # from the end
        if self.chance(0.5) and 0 < values.numel() <= high:
            values = torch.randperm(high, generator=self.torch_random)[: values.numel()].view(shape)
        return self.new_input(values=values.to(torch.int64 if self.chance(0.9) else torch.int32))

    def parameter(self, name, x):
        channels = x.shape[1] if x.ndim > 1 else x.shape[0] if x.ndim else 1
        options = [(channels,), x.shape[-1:], (self.choice((1, 2, 4)),)]
        if name == "weight" and x.ndim > 2:
            kernel = [self.choice((1, 2, 3)) for _ in x.shape[2:]]
            options += 3 * [(self.choice((1, 2, 4)), channels, *kernel), (channels, 1, *kernel)]
        if name == "weight":
            options += [(self.choice((2, 3, 5)), x.shape[-1] if x.ndim else 1), (9, 3)]
        return self.new_input(self.choice(options), x.dtype)

    def ints(self, name, first):
        x = self.value(first) if first is not None else None
        ndim = x.ndim if x is not None else 2
        if name in ("dim", "dims", "dim0", "source", "destination") and x is not None:
            dims = list(range(ndim))
            self.random.shuffle(dims)
            if not self.chance(0.4):
                dims = dims[: self.random.randrange(ndim + 1)]
            return [d - ndim if self.chance(0.3) else d for d in dims]
        if name in ("size", "shape") and x is not None:
            return self.sizes(x)
        if name in ("pad", "padding") and self.chance(0.7):
            return [self.choice((0, 1, 2, -1), (5, 5, 2, 1)) for _ in range(2 * self.random.randint(1, max(1, ndim - 1)))]
        if name in ("normalized_shape",) and x is not None and ndim:
            return list(x.shape[self.random.randrange(ndim):])
        if name in ("split_sizes",) and x is not None and ndim:
            n = self.choice(x.shape)
            cut = self.random.randint(0, n)
            return [cut, n - cut]
        spatial = max(1, ndim - 2)
        count = self.choice((1, spatial, spatial, ndim, 2))
        low = 0 if name in ("padding", "output_padding") else 1
        return [self.random.randint(low, low + self.choice((0, 1, 2))) for _ in range(count)]

    def sizes(self, x):
        kind = self.random.random()
        if kind < 0.55:  # a view: factors of the number of elements
            left, out = x.numel(), []
            while left > 1 and len(out) < 4:
                factors = [f for f in range(2, left + 1) if left % f == 0][:6] + [left]
                out.append(self.choice(factors))
                left //= out[-1]
            self.random.shuffle(out)
            if math.prod(out) != x.numel():
                out = [-1]
            if self.chance(0.2):
                out.insert(self.random.randrange(len(out) + 1), 1)
            if self.chance(0.3) and out and x.numel():
                out[self.random.randrange(len(out))] = -1
            return out
        if kind < 0.85:  # an expansion
            shape = [self.choice((2, 3, 5)) if n == 1 and self.chance(0.7) else n for n in x.shape]
            return [self.choice((1, 2, 3))] * (1 if self.chance(0.3) else 0) + shape
        return [self.random.randint(1, 5) for _ in range(self.random.randint(0, 3))]

    def int(self, name, first):
        x = self.value(first) if first is not None else None
        if name in ("dim", "dim0", "dim1", "dim2", "axis", "start_dim", "end_dim", "axis0", "axis1") and x is not None:
            return self.random.randint(-max(x.ndim, 1), max(x.ndim, 1) - 1)
        if name == "groups":
            return self.choice((1, 1, 1, 2, 3))
        return self.choice((0, 1, 2, 3, 4, 5, -1, -2, 7, 16), (6, 8, 8, 5, 3, 2, 4, 3, 1, 1))

    def argument(self, arg, first):
        kind, name = str(arg.type), arg.name
        if name in ("assume_unique", "reduction", "sorted") or (arg.has_default_value() and self.chance(0.45)):
            return arg.default_value  # or what the caller must know to be true
        if kind.startswith("Optional["):
            if self.chance(0.35):
                return None
            kind = kind[len("Optional["):-1]
        if kind == "Tensor":
            return self.tensor(name, first)
        if kind in ("List[Tensor]", "List[Optional[Tensor]]"):
            return self.tensor_list(kind, name, first)
        if kind in ("int", "SymInt"):
            if str(arg.real_type).endswith("ScalarType") or name in ("dtype", "output_dtype"):
                return self.choice(DTYPES, DTYPE_WEIGHTS)
            return None if name in ("layout", "memory_format", "device") else self.int(name, first)
        if kind in ("List[int]", "List[SymInt]"):
            return self.ints(name, first)
        if kind == "number":
            return self.choice(SCALARS)
        if kind == "float":
            return self.choice(FLOAT_ARGS)
        if kind == "List[float]":
            return [self.choice((1.0, 2.0, 0.5, 1.5)) for _ in range(self.choice((1, 2)))]
        if kind == "bool":
            return self.chance(0.5)
        if kind == "str":
            return self.choice(WORDS.get(name, ("none", "sum")))
        if kind == "List[bool]":
            return [True] * 3
        return None

    def tensor_list(self, kind, name, first):
        if name == "indices" and first is not None:
            x = self.value(first)
            out = [None if self.chance(0.3) else self.index(x) for _ in range(self.random.randint(1, max(1, x.ndim)))]
            return out if any(o is not None for o in out) else [self.index(x)]
        one = self.old()
        out = [one]
        for _ in range(self.random.randint(0, 2)):
            x = self.value(one)
            out.append(self.like(x, x.dtype if self.chance(0.8) else None) if self.chance(0.5) else self.tensor(name, one))
        self.random.shuffle(out)
        return out

    def arguments(self, op):
        args, kwargs, first = [], {}, None
        for arg in op._schema.arguments:
            value = self.argument(arg, first)
            if arg.name in ("dtype", "output_dtype") and "ScalarType" in str(arg.real_type):
                value = None if self.chance(0.6) else self.choice(DTYPES, DTYPE_WEIGHTS)
            if first is None and str(arg.type) == "Tensor":
                first = value
            if not arg.kwarg_only:
                args.append(value)
            elif value is not None and value != arg.default_value:
                kwargs[arg.name] = value
        return args, kwargs

    # Steps.

    def step(self):
        table = all_ops()
        kinds = [k for k in self.kinds if table[k]]
        kind = self.choice(kinds, [self.kinds[k] for k in kinds])
        name = self.choice(self.choice(table[kind]))
        for _ in range(TRIES):
            if self.try_step(name):
                return

    def try_step(self, name):
        kept = len(self.inputs)
        op = overload(name)
        try:
            args, kwargs = self.arguments(op)
            given = map_refs((args, kwargs), self.value)
            is_known = is_defined(name, given) and not changes_operands(name, given)
            results = results_of(op(*given[0], **given[1])) if is_known else []
        except Exception:
            results = []
        if not results or not all(is_ordinary(r) for r in results) or has_failed(name, results):
            del self.inputs[kept:], self.input_values[kept:]
            return False
        self.steps.append(Step(name, args, kwargs, len(results)))
        self.results += results
        return True

    def program(self):
        for _ in range(self.random.randint(1, 2)):
            self.new_input()
        wanted = self.random.randint(2, 9)
        for _ in range(3 * wanted):
            if len(self.steps) < wanted:
                self.step()
        used = {r for s in self.steps for r in s.refs()}
        results = [Ref(i) for i in range(len(self.results))]
        outputs = [r for r in results if r not in used or self.chance(0.25)]
        return Program(self.inputs, self.steps, outputs or results[-1:])


def broadcasts(a, b):
    try:
        torch.broadcast_shapes(a, b)
    except RuntimeError:
        return False
    return True


def is_ordinary(x):
    return (
        x.layout is torch.strided and not x.is_conj() and not x.is_neg() and x.numel() <= 4 * MAX_ELEMENTS
        and x.dtype in DTYPES + (torch.complex128,) and x.device.type == "cpu" and not x.is_quantized)


def has_failed(name, results):
    """Whether a factorisation says that it stopped: what it leaves is LAPACK's own affair."""
    return name.partition(".")[0].endswith("_ex") and bool(results[-1].any())


def matrix_of(packet, args):
    """What an op of PIVOTS takes apart."""
    x = args[0]
    if packet == "linalg_tensorinv":
        return x.reshape(math.prod(x.shape[: args[1]]), -1)
    return x.reshape(args[1].numel(), -1) if packet == "linalg_tensorsolve" else x


def is_singular(x):
    """Whether one of the matrices has no full rank in the precision of its dtype."""
    if x.numel() == 0:
        return False
    wide = x.to(torch.complex128 if x.is_complex() else torch.float64)
    values = torch.linalg.svdvals(wide)
    error = 4 * max(x.shape[-2:]) * EPS.get(x.dtype, EPS[torch.float32])
    return bool((values[..., -1] <= error * values[..., 0]).any())


def is_defined(name, given):
    """Whether eager PyTorch says what comes out."""
    packet = name.partition(".")[0].rstrip("_")
    tensors = results_of(given[0])
    if kind_of(name) == "write" and any(overlaps(x.shape, x.stride()) for x in written(name, given)):
        return False
    if packet == "as_strided_scatter" and overlaps(given[0][2], given[0][3]):
        return False
    if packet.endswith("_scatter") and overlaps(tensors[0].shape, tensors[0].stride()):  # the copy that it writes to does too
        return False
    if packet.startswith("as_strided") and leaves_base(tensors[0], *given[0][-3:]):
        return False
    if packet in (*PRODUCTS, "cdist") and len({x.dtype for x in tensors}) > 1:  # only kernels that find nothing to do take two
        return False
    if "grid_sampler" in packet:  # the kernels write nothing for a mode that they do not know
        modes = 2 if packet.endswith("3d") else 3
        return given[0][2] in range(modes) and given[0][3] in range(3)
    if name == "copy.default" and overlaps(tensors[0].shape, tensors[0].stride()):  # it writes to a clone that overlaps as well
        return False
    if packet.lstrip("_").startswith(FACTORS) and not all(bool(torch.isfinite(x).all()) for x in tensors):
        return False
    if packet.lstrip("_").startswith(PIVOTS) and is_singular(matrix_of(packet, given[0])):
        return False
    if packet in ("div", "divide", "true_divide"):  # of a complex number by 0 the vector loop and its tail differ
        by = given[0][1]
        is_complex = any(x.is_complex() for x in tensors)
        return not is_complex or bool((by != 0).all() if isinstance(by, torch.Tensor) else by != 0)
    if packet.startswith(("histogram", "_histogramdd")):  # what it does with edges that are not sorted is nobody's promise
        if name == "_histogramdd_bin_edges.default" and not tensors[0].is_floating_point():  # edges rounded to integers
            return False
        return all(bool((x[1:] >= x[:-1]).all()) for x in results_of(given[0][1]))
    if packet == "cov":  # of too few observations: rounding decides between 0 / 0 and more
        return all(bool(torch.isfinite(x).all()) for x in results_of(overload(name)(*copied(given[0]), **given[1])))
    if packet == "linalg_solve_triangular":  # documented for one dtype, and not checked
        return tensors[0].dtype == tensors[1].dtype
    if name == "pad.default" and given[0][2] == "circular":  # where a cut leaves less than is repeated, memory shows that nothing wrote
        return all(n + min(l, 0) + min(r, 0) >= max(l, r, 0) for n, l, r in zip(
            reversed(tensors[0].shape), given[0][1][::2], given[0][1][1::2]))
    if packet in ("cross", "linalg_cross") and all(x.dtype.is_floating_point for x in tensors):
        # A fused multiply-add has no product that overflows, and so infinities where else NaN is.
        sizes = [x[torch.isfinite(x)].double().abs().amax() for x in tensors if torch.isfinite(x).any()]
        return bool(math.prod(sizes) <= min(torch.finfo(x.dtype).max for x in tensors))
    if packet == "baddbmm" and given[1].get("alpha", 1) == 0:  # the sizes decide whether such a product is left out
        return all(bool(torch.isfinite(x).all()) for x in tensors)
    if packet == "cholesky_inverse" and tensors[0].is_complex():  # the diagonal of such a factor is real
        return bool((tensors[0].diagonal(0, -2, -1).imag == 0).all())
    if packet == "arange" and given[1].get("dtype") is torch.int64:  # before torch 2.15 without the fractions
        return all(int(n) == n for n in given[0])
    if packet == "cdist":  # how many points there are decides whether distances come from a product
        return all(bool(torch.isfinite(x).all()) for x in tensors)
    if packet in ("add", "sub", "subtract", "rsub", "addcmul", "addr") and any(x.is_complex() for x in tensors):
        return all(bool(torch.isfinite(x).all()) for x in tensors)  # alpha is multiplied as a complex number
    if packet.endswith(("layer_norm", "group_norm", "instance_norm")):  # if squares overflow, blocks of a row decide what is NaN
        x = tensors[0].double()
        return bool((x[torch.isfinite(x)].abs() < torch.finfo(torch.float32).max ** 0.5 / 2).all())
    if packet == "addcdiv" and any(x.is_complex() for x in tensors):
        return bool(((tensors[2] != 0) & torch.isfinite(tensors[2])).all())
    if packet in ("max_pool2d_with_indices", "max_pool3d_with_indices"):  # the place of nothing, where padding is dilated over
        made, places = overload(name)(*given[0], **given[1])
        dims = 2 if "2d" in packet else 3
        image, places = tensors[0].flatten(-dims), places.flatten(-dims)
        return bool((places < image.shape[-1]).all()) and bool((image.gather(-1, places) == made.flatten(-dims)).all())
    if packet == "lu_unpack":  # rows that are not there are swapped unasked
        factors, pivots = given[0][:2]  # and in batches that are not there
        if factors.ndim < 2 or pivots.shape != (*factors.shape[:-2], min(factors.shape[-2:])):
            return False
        return pivots.numel() == 0 or bool(pivots.min() >= 1 and pivots.max() <= factors.shape[-2])
    if packet == "take_along_dim":  # torch has wrapped such an index since 2.15, and refused it before
        row, index, dim = tensors[0], tensors[1], given[0][2]
        return index.numel() == 0 or bool(index.min() >= 0 and index.max() < (row.numel() if dim is None else row.shape[dim]))
    if name in ("view.dtype", "view_copy.dtype", "signbit.default", "copysign.Tensor"):  # the bits of a NaN are open
        return not tensors[-1].isnan().any()
    if name == "copy_.default" and meet_partly(*tensors):
        return False
    if packet == "ldexp" and is_inexact(given[0][1]):  # it has the strides of pow.Scalar
        x, n = given[0]  # and of a half float without dims its dtype, which torch's graph does not have
        is_same = n.ndim > 0 or n.dtype.itemsize > 2 or x.dtype.is_floating_point or x.is_complex()
        return is_same and n.is_contiguous()
    if packet.startswith("_fft_"):  # torch's kernels end the process for what they take on trust
        dims = given[0][1]  # one from the end is read before the first
        if min(dims, default=0) < 0 or len(set(dims)) < len(dims) or given[0][2] not in (0, 1, 2):
            return False
        if tensors[0].dtype in (torch.float16, torch.bfloat16):
            return False
    if packet.startswith(SPREADING) and not all(bool(torch.isfinite(x).all()) for x in tensors):
        return False
    if packet in ("clamp", "clip", "clamp_min", "clamp_max", "hardtanh") and leaves_integers(*given[0]):
        return False  # such a bound wraps before torch 2.15
    if packet in ("sgn", "sign") and tensors[0].is_complex():  # the two also differ in whether inf / inf is taken
        return bool(torch.isfinite(tensors[0]).all())
    if packet == "logit_backward" and bool(((tensors[1] == 0) & torch.signbit(tensors[1])).any()):
        return False  # its reciprocal has one sign in eager's vector loop, the other in the tail
    if packet in ("hardtanh_backward", "hardswish_backward", "logit_backward", "elu_backward"):  # eager's vector loop and its tail differ for NaN
        return not tensors[1].isnan().any()
    if packet in ("fmod", "remainder"):  # eager's vector loop makes NaN of a quotient that overflows
        return not overflows(*given[0])
    if "embedding_bag" in packet:  # modes and bags are taken on trust, as is all that gradients are given
        indices, offsets, mode, has_end = (given[0][i] for i in (1, 2, 4, 7))
        if "backward" in packet or mode not in range(3) or not indices.ndim == offsets.ndim == 1:
            return False
        if offsets.dtype.itemsize < indices.dtype.itemsize or (has_end and packet != "_embedding_bag"):
            return False  # torch's graph has other dtypes and shapes than the kernel
        return offsets.numel() > has_end and bool((offsets[1:] >= offsets[:-1]).all())
    if packet.startswith(("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")) and "backward" not in packet:
        height, width = overload(name)(*given[0], **given[1]).shape[-2:]
        return width > 1 or height == 1  # eager takes rows of one pixel for columns: each is the first one
    if "_polynomial_" in packet:  # the loop over degrees ends at a NaN, at times before it has written anything
        degrees = given[0][1]
        is_small = not isinstance(degrees, torch.Tensor) or bool((degrees.double().abs() < 10000).all())  # or it takes hours
        return is_small and not any(x.isnan().any() for x in tensors)
    if packet in ("batch_norm", "instance_norm") and given[0][5]:  # training writes to the statistics
        return not any(overlaps(x.shape, x.stride()) for x in given[0][3:5] if x is not None)
    if packet == "gelu_backward":  # oneDNN's kernel, which the layouts choose, fails for operands of two shapes
        return tensors[0].shape == tensors[1].shape
    if packet == "angle" and tensors[0].is_complex():  # the kernel's result is contiguous, that of torch's graph is not
        return tensors[0].is_contiguous()
    if packet.startswith(("unique", "_unique")):  # each NaN is a value of its own; sorting leaves their order open
        return int(tensors[0].isnan().sum()) <= 1
    if packet == "reflection_pad3d" and not given[0][1]:  # some versions of torch read the first amount and end the process
        return False
    if packet == "_pdist_backward":  # reads as many distances as there are pairs of rows, whatever is given
        count = tensors[1].shape[0] if tensors[1].ndim == 2 else 0
        return tensors[1].ndim == 2 and tensors[0].shape == tensors[2].shape == (count * (count - 1) // 2,)
    if packet == "_pdist_forward":  # takes the first two of more dims for a matrix
        return tensors[0].ndim == 2
    if packet == "_trilinear":
        new = [[d % (x.ndim + len(dims)) for d in dims] for x, dims in zip(given[0], given[0][3:6])]
        if any(x.numel() == 0 for x in tensors):  # a size is that of the last operand with the dim: 1 where 0 meets 1
            return False
        if set(new[0]) & set(new[1]) & set(new[2]):  # its result where no operand has a dim is left as zeros
            return False
        dims = tensors[0].ndim + len(new[0])  # the sizes of all but one operand are taken on trust
        return all(len({n for x, at in zip(tensors, new) for n in size_at(x, at, d)}) == 1 for d in range(dims))
    if packet in ("pixel_unshuffle", "pixel_shuffle"):  # of nothing torch's kernel has another shape than its graph
        return tensors[0].numel() > 0
    if packet not in TIES and packet not in WRITES:
        return True
    try:
        if packet in TIES:
            x = tensors[0]
            return x.unique().numel() == x.numel() and not x.isnan().any()
        return writes_once(packet, given)
    except Exception:
        return False


def size_at(x, new_dims, d):
    """The size of dim d of a tensor that gets dims of size 1, if it has one of its own there."""
    return [] if d in new_dims else [x.shape[d - sum(n < d for n in new_dims)]]


def changes_operands(name, given):
    """Whether the op writes to what its schema says that it reads (cov does so to a single observation)."""
    if kind_of(name) != "other":
        return False
    copies = copied(given[0]), {k: copied(v) for k, v in given[1].items()}
    overload(name)(*copies[0], **copies[1])
    before, after = (results_of([*args, *kwargs.values()]) for args, kwargs in (given, copies))
    return not all(same_bits(a, b) for a, b in zip(before, after))


def meet_partly(a, b):
    """Whether the tensors lie in one memory, but not element on element: what a copy leaves is open."""
    if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    return (a.data_ptr(), a.shape, a.stride()) != (b.data_ptr(), b.shape, b.stride())


def leaves_integers(x, *bounds):
    """Whether a bound is a number that the integers of x's dtype end before."""
    if x.dtype.is_floating_point or x.dtype.is_complex or x.dtype is torch.bool:
        return False
    info = torch.iinfo(x.dtype)
    return any(isinstance(b, (int, float)) and not info.min <= b <= info.max for b in bounds)


def overflows(x, y):
    """Whether the quotient of two finite numbers is beyond those of the dtype that it is computed in."""
    x, y = (torch.as_tensor(n) for n in (x, y))
    dtype = torch.promote_types(torch.result_type(x, y), torch.float32)
    x, y = x.to(dtype), y.to(dtype)
    return bool((torch.isfinite(x) & (y != 0) & torch.isinf(x / y)).any())


def leaves_base(x, size, strides, offset):
    """Whether such a view shows memory that no tensor of the program has: a kernel's scratch, behind its result."""
    base = x._base if x._is_view() else x
    if math.prod(size) == 0 or base.numel() == 0:
        return False
    first = x.storage_offset() if offset is None else offset
    last = first + sum((n - 1) * stride for n, stride in zip(size, strides))
    return last > base.storage_offset() + sum((n - 1) * stride for n, stride in zip(base.shape, base.stride()))


def written(name, given):
    schema = overload(name)._schema.arguments
    return [x for a, x in zip(schema, given[0]) if a.alias_info is not None and a.alias_info.is_write
            and isinstance(x, torch.Tensor)]


def overlaps(shape, strides):
    """Whether two elements of such a tensor lie in one place."""
    places = torch.zeros((), dtype=torch.int64)
    for n, stride in zip(shape, strides):
        places = places[..., None] + torch.arange(n) * stride
    return places.unique().numel() < places.numel()


def writes_once(packet, given):
    args, kwargs = list(given[0]), dict(given[1])
    x = args[0]
    marks = torch.zeros(x.shape)
    if packet in ("index_put", "_index_put_impl"):
        chosen = x[tuple(slice(None) if i is None else i for i in args[1])]
        found = torch.ops.aten.index_put(marks, args[1], torch.ones(()))
        return int(found.sum()) == chosen.numel()
    if packet == "put":
        return args[1].unique().numel() == args[1].numel() and bool((args[1] >= 0).all())
    if packet == "index_copy":
        return args[2].unique().numel() == args[2].numel()
    found = torch.ops.aten.scatter(marks, args[1], args[2], 1.0)
    return int(found.sum()) == args[2].numel()


def draw(seed, kinds=None):
    """The program of a seed; its eager run has been tried."""
    at = 0
    while True:
        program = Draw(f"{seed}.{at}", kinds).program()
        at += 1
        if not program.steps:
            continue
        try:
            replay(program)
        except Exception:
            continue
        return program
