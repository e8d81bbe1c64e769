"""Whether results are as right as eager PyTorch's. Integers and bools are exact. A float may differ from
eager's where the program is inexact: by a few times what eager's own results move when each inexact op
is off by an ulp or two, or when all is computed in float64. Where that moves an integer, nothing is said
of it."""

import torch
from fuzz_program import replay, results_of

SLACK = 8  # times the movement of eager's results
RUNS = 4  # with errors put in
SURE_RUNS = 40  # before something is called a difference

# Ops that have one right result for their operands, correctly rounded: no error is put in. Not sqrt, which
# torch leaves to a vector library that is off by an ulp for some numbers.
EXACT = {
    "add", "sub", "rsub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "neg", "negative",
    "abs", "absolute", "sign", "sgn", "positive", "reciprocal", "square", "floor", "ceil", "trunc",
    "fix", "frac", "round", "floor_divide", "fmod", "remainder", "copysign", "signbit", "nextafter", "where", "maximum",
    "minimum", "fmax", "fmin", "max", "min", "amax", "amin", "aminmax", "clamp", "clamp_min", "clamp_max",
    "clip", "relu", "relu6", "hardtanh", "threshold", "masked_fill", "nan_to_num", "heaviside", "cat",
    "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "clone", "copy", "fill", "zero", "zeros_like",
    "ones_like", "full", "full_like", "zeros", "ones", "new_zeros", "new_ones", "new_full", "gather", "index",
    "index_select", "index_fill", "index_copy", "index_put", "scatter", "slice_scatter", "select_scatter",
    "diagonal_scatter", "as_strided_scatter", "masked_scatter", "take", "take_along_dim", "embedding", "flip",
    "fliplr", "flipud", "roll", "rot90", "repeat", "tile", "repeat_interleave", "tril", "triu", "constant_pad_nd",
    "pad", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
    "replication_pad3d", "sort", "topk", "_to_copy", "to", "type_as", "max_pool2d", "max_pool1d", "max_pool3d",
    "max_pool2d_with_indices", "max_pool3d_with_indices", "threshold_backward", "pixel_shuffle",
    "pixel_unshuffle", "channel_shuffle", "im2col", "unfold", "diag", "diag_embed", "diagflat", "block_diag",
    "fft_fftshift", "fft_ifftshift", "leaky_relu", "hardshrink", "prelu", "_prelu_kernel", "lift_fresh_copy", "contiguous", "diff", "argmax",
    "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
}
# Of these, the ones that are not correctly rounded of complex numbers.
ROUNDED_PARTS = {"mul", "multiply", "div", "divide", "true_divide", "reciprocal", "square", "abs", "absolute", "sign", "sgn"}
# Ops whose algorithm decides which results an operand that is not finite makes infinite, and which NaN.
SPREADING = ("fft_", "_fft_", "stft", "istft")
# Those that say so in the same way, but give no sums.
SPREADING_EACH = ("grid_sampler",)
# Differences of products, whose rounding may vanish or be all that is left.
CANCELLING = ("cross", "linalg_cross")
# Ops that take a matrix apart as a whole.
FACTORED = ("linalg_svd", "linalg_pinv", "pinverse", "linalg_lstsq", "linalg_qr", "qr", "geqrf", "linalg_cond",
            "linalg_eig", "linalg_matrix_norm", "nuclear_norm")
# Whether a weight that is not finite is multiplied by the zeros of padding changes with the batch size.
PADDING = ("conv1d", "conv2d", "conv3d", "convolution")
# Whether a zero among operands or results is negative: eager's loop of whole vectors and the one of the rest
# disagree.
SIGNED_ZEROS = ("logit_backward", "softshrink")
# Whether a result is NaN is a matter of the order of the elements: where a product overflows before it meets
# a 0, or where a mean that is updated element by element is infinite before the last one.
ORDERED = ("prod", "var_mean", "std_mean")
EPS = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-22, torch.float64: 2.0**-51}
TINY = {torch.float16: 2.0**-24, torch.bfloat16: 2.0**-133, torch.float32: 2.0**-148, torch.float64: 5e-324}


def real(x):
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def moved(x, random_numbers):
    """The tensor with each element off by up to an ulp or two, or by the half of that."""
    if x.is_complex():
        return torch.view_as_complex(moved(torch.view_as_real(x).contiguous(), random_numbers))
    off = torch.randint(-2, 3, x.shape, generator=random_numbers).to(x.dtype)
    out = x + x.abs() * off * (EPS[x.dtype] / 2) + off.sign() * TINY[x.dtype]
    return torch.where(torch.isfinite(x) & (x != 0), out, x).to(x.dtype)


def is_inexact(x):
    return isinstance(x, torch.Tensor) and (x.dtype in EPS or x.is_complex())


def is_exact(name, args):
    return name in EXACT and not (name in ROUNDED_PARTS and any(x.is_complex() for x in results_of(args)))


def redrawn(tree, seed, other_seed):
    """The tensors with random numbers: of one seed for what is finite, of the other for what is not."""
    if isinstance(tree, torch.Tensor) and is_inexact(tree):
        finite, other = (torch.rand(tree.shape, generator=torch.Generator().manual_seed(s)) for s in (seed, other_seed))
        return torch.where(torch.isfinite(tree), finite, other).to(tree.dtype)
    if isinstance(tree, (list, tuple)):
        return type(tree)(redrawn(x, seed, other_seed) for x in tree)
    return tree


def opened(made, where, random_numbers):
    """The tensor with anything at some places."""
    out = real(made)
    table = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0], dtype=out.dtype)
    anything = table[torch.randint(0, len(table), out.shape, generator=random_numbers)]
    out = torch.where(where[..., None] if made.is_complex() else where, anything, out)
    return torch.view_as_complex(out) if made.is_complex() else out


def spread(step, args, kwargs, random_numbers):
    """The op's result, where each number that depends on an operand that is not finite may be anything."""
    made = step.overload(*args, **kwargs)
    if all(bool(torch.isfinite(x).all()) for x in results_of(args)):
        return made
    one, other = (step.overload(*redrawn(args, 0, seed), **kwargs) for seed in (1, 2))
    return opened(made, one != other, random_numbers)


def padded(step, args, kwargs, random_numbers):
    """The convolution's result, where each number for which such a weight meets padding may be anything."""
    made = step.overload(*args, **kwargs)
    image, weight = args[:2]
    odd = (~torch.isfinite(weight)).float()
    if not odd.any():
        return made
    met = step.overload(torch.ones(image.shape), odd, None, *args[3:], **kwargs)
    of_channel = odd.flatten(1).sum(1).view(-1, *[1] * (weight.ndim - 2))
    return opened(made, met < of_channel, random_numbers)


def size_of(x):
    """The largest finite magnitude of a tensor's parts."""
    finite = real(x)[torch.isfinite(real(x))]
    return finite.abs().max() if finite.numel() else 0


def as_sums(x, random_numbers, size=None):
    """The tensor with errors that sums of terms of a size (its own) may have: what cancels is 0, of any sign, or
    not quite."""
    parts = real(x)
    size = size_of(x) if size is None else size
    off = torch.randint(0, 2, parts.shape, generator=random_numbers) * 2 - 1
    error = size * EPS[parts.dtype] * (1 + torch.rand(parts.shape, generator=random_numbers)) / 2
    cancels = (parts.abs() <= 2 * error) & (torch.randint(0, 2, parts.shape, generator=random_numbers) == 0)
    parts = torch.where(torch.isfinite(parts), parts + (off * error).to(parts.dtype), parts)
    parts = torch.where(cancels, 0, parts)
    parts = torch.where(parts == 0, torch.copysign(parts, off), parts).to(parts.dtype)
    return torch.view_as_complex(parts) if x.is_complex() else parts


def with_any_zeros(tree, random_numbers):
    """The tensors, where a zero has any sign."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(with_any_zeros(x, random_numbers) for x in tree)
    if not isinstance(tree, torch.Tensor) or not is_inexact(tree):
        return tree
    sign = torch.randint(0, 2, tree.shape, generator=random_numbers) * 2.0 - 1
    return torch.where(tree == 0, torch.copysign(tree, sign), tree)


def as_factored(tree, random_numbers):
    """The matrices with errors of the size of their largest element: it is for such a matrix that a
    factorisation is right (Higham, "Accuracy and Stability of Numerical Algorithms")."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(as_factored(x, random_numbers) for x in tree)
    if not isinstance(tree, torch.Tensor) or not is_inexact(tree) or tree.ndim < 2 or not tree.numel():
        return tree
    size = tree.abs().amax((-2, -1), keepdim=True)
    off = torch.randint(0, 2, tree.shape, generator=random_numbers) * 2 - 1
    return tree + off * size * EPS[size.dtype]


def as_gelu(made, args, random_numbers):
    """gelu, or its gradient, in whose formula 1 + tanh or 1 + erf cancels, and 1 - tanh^2: the error is that of
    numbers near 1, times what multiplies them."""
    x, factor = args[-1].abs(), args[0].abs()  # gelu(x), gelu_backward(grad, x)
    size = factor * (1 + x + x**3 / 10) if len(args) > 1 else factor
    size = torch.where((x < 10) & torch.isfinite(made), size, 0)  # beyond, tanh and erf are 1
    off = torch.rand(made.shape, generator=random_numbers) - 0.5
    return (made + off * size * EPS[torch.promote_types(made.dtype, torch.float32)] / 2).to(made.dtype)


def as_scaled(made, args, random_numbers):
    """group_norm, which eager computes as x times a scale plus a shift: what cancels in the sum is that large."""
    x, groups, weight, _, eps = (*args, *[None, None, 1e-5][len(args) - 2:])[:5]
    groups_of_x = x.double().reshape(x.shape[0] * groups, -1)
    scale = (groups_of_x.var(1, correction=0) + eps) ** -0.5
    size = size_of(groups_of_x * scale[:, None]) * (1 if weight is None else size_of(weight.double()))
    of_sum = EPS[torch.promote_types(made.dtype, torch.float32)] / EPS[made.dtype]
    return as_sums(made, random_numbers, size * of_sum)


def in_other_order(x, args, random_numbers):
    """The elements of the dims that an op reduces, or all, in another order."""
    dims = args[0] if args and type(args[0]) is not bool else None
    if dims is None or dims in ([], ()):
        return x.flatten()[torch.randperm(x.numel(), generator=random_numbers)].view(x.shape)
    for dim in dims if isinstance(dims, (list, tuple)) else [dims]:
        x = x.index_select(dim, torch.randperm(x.shape[dim] if x.ndim else 1, generator=random_numbers))
    return x


def as_cosines(made, args, random_numbers):
    """Values of polynomials between -1 and 1, which eager computes as cos(n arccos(x)) for some n: the
    angle has an error, so that what is 0 may be something, and the other way round."""
    error = torch.as_tensor(args[1]).double().abs().clamp(1, 100) * EPS[made.dtype]
    off = torch.rand(made.shape, generator=random_numbers) * 2 - 1
    inside = torch.as_tensor(args[0]).double().abs() < 1
    vanishes = inside & (made.abs() <= error) & (off < 0)
    return torch.where(vanishes, 0, torch.where(inside, made + off * error, made)).to(made.dtype)


def own_results(program):
    """What each step makes in eager's own run."""
    made = []

    def call(step, args, kwargs):
        result = step.overload(*args, **kwargs)
        made.append(copied(result))
        return result

    replay(program, call=call)
    return made


def copied(tree):
    if isinstance(tree, (list, tuple)):
        return type(tree)(copied(x) for x in tree)
    return tree.clone() if isinstance(tree, torch.Tensor) else tree


def with_errors(program, seed, own):
    """A run in which every inexact op gets operands and gives results that are a little off. Where errors lead
    out of an op's domain, it gives what it gives in eager's `own` run."""
    random_numbers = torch.Generator().manual_seed(seed)
    own = iter(own)

    def shaken(tree):
        if isinstance(tree, torch.Tensor):
            return moved(tree, random_numbers) if is_inexact(tree) else tree
        if isinstance(tree, (list, tuple)):
            return type(tree)(shaken(x) for x in tree)
        return tree

    def call(step, args, kwargs):
        mine = next(own)
        try:
            return made_with_errors(step, args, kwargs)
        except RuntimeError:
            if any(a.alias_info is not None for a in step.overload._schema.arguments):
                raise
            return shaken(copied(mine))

    def made_with_errors(step, args, kwargs):
        schema = step.overload._schema
        name = schema.name[6:].rstrip("_")
        alpha = kwargs.get("alpha", 1) if kwargs else next(iter(args[2:]), 1)
        is_scaled = name in ("add", "sub", "rsub", "subtract") and alpha != 1  # perhaps a fused multiply-add
        if is_exact(name, args) and not is_scaled:
            return step.overload(*args, **kwargs)
        if kwargs.get("dtype") in EPS and args and is_inexact(args[0]):  # it computes in that
            args = (args[0].to(kwargs["dtype"]), *args[1:])
        infos = [a.alias_info for a in schema.arguments]
        if any(i is not None for i in infos):
            made = step.overload(*args, **kwargs)
            for info, arg in zip(infos, args):
                if info is not None and info.is_write and is_inexact(arg):
                    arg.copy_(moved(arg, random_numbers))
            return made
        made = step.overload(*args, **kwargs)
        memories = {a.untyped_storage().data_ptr() for a in results_of(args)}
        if any(m.untyped_storage().data_ptr() in memories for m in results_of(made)):
            return made
        if name.startswith(SPREADING) and is_inexact(made):
            return as_sums(spread(step, shaken(args), kwargs, random_numbers), random_numbers)
        if name in CANCELLING:
            made = step.overload(*shaken(args), **kwargs)
            return as_sums(made, random_numbers, size_of(args[0]) * size_of(args[1])) if is_inexact(made) else made
        if name.startswith(SPREADING_EACH):
            return shaken(spread(step, shaken(args), kwargs, random_numbers))
        if name in SIGNED_ZEROS:
            made = step.overload(*with_any_zeros(shaken(args), random_numbers), **kwargs)
            return with_any_zeros(shaken(made), random_numbers)
        if name in ("gelu", "gelu_backward") and is_inexact(made):
            return shaken(as_gelu(step.overload(*shaken(args), **kwargs), args, random_numbers))
        if name == "group_norm":
            return shaken(as_scaled(step.overload(*shaken(args), **kwargs), args, random_numbers))
        if name in ORDERED:
            other = in_other_order(args[0], args[1:], random_numbers)
            return shaken(step.overload(shaken(other), *args[1:], **kwargs))
        if name.startswith(FACTORED):
            return shaken(step.overload(*as_factored(args, random_numbers), **kwargs))
        if "_polynomial_" in name:  # of a whole degree
            made = step.overload(shaken(args[0]), args[1])
            return shaken(as_cosines(made, args, random_numbers) if "chebyshev" in name else made)
        if name in PADDING and not (name == "convolution" and args[6]):  # a transposed one has no padding
            return shaken(padded(step, shaken(args), kwargs, random_numbers))
        return shaken(step.overload(*shaken(args), **shaken(kwargs)))

    return replay(program, call=call)


def in_double(step, args, kwargs):
    """The op, where integers that it takes for real numbers are so in double precision."""
    made = step.overload(*args, **kwargs)
    if torch.Tag.pointwise not in step.overload.tags or not is_inexact(made) or any(is_inexact(x) for x in results_of(args)):
        return made

    def real_numbers(tree):
        if isinstance(tree, (list, tuple)):
            return type(tree)(real_numbers(x) for x in tree)
        return tree.double() if isinstance(tree, torch.Tensor) else tree

    return step.overload(*real_numbers(args), **kwargs)


def same_bits(a, b):
    """Equal, a NaN equal to any NaN."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    a, b = real(a), real(b)
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    nan = a.isnan() & b.isnan()
    size = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return bool((nan | (a.contiguous().view(size) == b.contiguous().view(size))).all())


def strides_of(x):
    """Those that mean something."""
    if x.numel() == 0:
        return ()
    return tuple(s for n, s in zip(x.shape, x.stride()) if n > 1)


def shares(tensors):
    """Pairs of tensors that lie in one memory."""
    places = [t.untyped_storage().data_ptr() if t.numel() else None for t in tensors]
    return {(i, j) for i in range(len(places)) for j in range(i) if places[i] and places[i] == places[j]}


class Judge:
    """What eager PyTorch says of a program."""

    def __init__(self, program):
        self.program = program
        self.ran = replay(program)
        self.expected = self.ran.outputs + self.ran.inputs
        self.shaken = None
        self.wide = None

    @property
    def is_inexact(self):
        """Whether an op is a matter of rounding: then double precision counts, even where small errors
        change nothing (an infinity)."""
        return any(s.overload._schema.name[6:].rstrip("_") not in EXACT for s in self.program.steps)

    def runs(self, count):
        if self.shaken is None:
            self.shaken, self.own = [], own_results(self.program)
            try:
                wide = replay(self.program, wide=True, call=in_double)
                self.wide = wide.outputs + wide.inputs
            except Exception:
                self.wide = None
        while len(self.shaken) < count:
            try:
                run = with_errors(self.program, len(self.shaken), self.own)
                self.shaken.append(run.outputs + run.inputs)
            except Exception:
                self.shaken.append(None)
        return [s for s in self.shaken[:count] if s is not None]

    def difference(self, outputs, inputs, is_memory_shared=True):
        """What is wrong with these results, in words, or ""."""
        found = list(outputs) + list(inputs)
        count = len(self.ran.outputs)
        if len(found) != len(self.expected):
            return f"{len(outputs)} results instead of {count}"
        for i, (e, f) in enumerate(zip(self.expected, found)):
            name = f"output {i}" if i < count else f"input {i - count} afterwards"
            if self.has_open_shape(i, e, f):
                continue
            if not isinstance(f, torch.Tensor) or (e.shape, e.dtype) != (f.shape, f.dtype):
                return f"{name}: {described(f)} instead of {described(e)}"
            if strides_of(e) != strides_of(f):
                return f"{name}: strides {f.stride()} instead of {e.stride()} of {tuple(e.shape)}"
            if not same_bits(e, f) and self.is_wrong(i, e, f):
                return f"{name}: {first_wrong(e, f)}"
        if is_memory_shared:
            more = shares(found) - shares(self.expected)
            if more:
                return f"results {sorted(more)} lie in one memory, in eager they do not"
        return ""

    def has_open_shape(self, i, expected, found):
        """Whether the shapes differ where errors move eager's as well: how many unique elements there are."""
        if not isinstance(found, torch.Tensor) or found.dtype != expected.dtype or found.shape == expected.shape:
            return False
        return any(r[i].shape != expected.shape for r in self.runs(SURE_RUNS))

    def is_wrong(self, i, expected, found):
        return all(self.bad(i, expected, found, runs).any() for runs in (RUNS, SURE_RUNS))

    def bad(self, i, expected, found, count):
        """Elements that are further from eager's than eager's own errors explain."""
        runs = [r[i] for r in self.runs(count)]
        runs = [r for r in runs if r.shape == expected.shape]
        is_shaken = any(not same_bits(r, expected) for r in runs)
        if (is_shaken or self.is_inexact) and self.wide is not None and self.wide[i].shape == expected.shape:
            runs.append(self.wide[i])
        if not is_inexact(expected):
            open_ = torch.zeros(expected.shape, dtype=torch.bool)
            for r in runs:
                open_ |= r != expected
            return (expected != found) & ~open_
        e, f = real(expected).double(), real(found).double()
        movement, is_open = torch.zeros_like(e), torch.zeros(e.shape, dtype=torch.bool)
        for r in runs:
            r = real(r).double()
            odd = ~torch.isfinite(r) | ~torch.isfinite(e)
            is_open |= odd & ~((r == e) | (r.isnan() & e.isnan()))
            movement = torch.maximum(movement, torch.where(odd, 0, (r - e).abs()))
        dtype = real(expected).dtype
        ulp = e.abs() * EPS[dtype] + TINY[dtype]
        # Elements of one tensor are errors of one kind: the typical movement holds for all.
        finite = movement[torch.isfinite(movement)]
        typical = finite.square().mean().sqrt() if finite.numel() else 0.0
        near = (e - f).abs() <= SLACK * torch.maximum(movement, torch.as_tensor(typical)) + 2 * ulp * is_shaken
        return ~(near | (e == f) & (torch.signbit(e) == torch.signbit(f)) | (e.isnan() & f.isnan()) | is_open)


def described(x):
    return f"{x.dtype} {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)


def first_wrong(expected, found):
    e, f = real(expected), real(found)
    wrong = ~((e == f) | ((e != e) & (f != f)))
    if e.dtype.is_floating_point:
        wrong |= (e == 0) & (f == 0) & (torch.signbit(e) != torch.signbit(f))
    where = wrong.nonzero()
    if not len(where):
        return "other bits"
    at = tuple(where[0].tolist())
    return (f"{f[at].item()!r} instead of {e[at].item()!r} at {list(at)} and "
            f"{len(where) - 1} of {e.numel()} more ({expected.dtype} {tuple(expected.shape)})")
