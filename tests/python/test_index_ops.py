"""Ops on places from data, runs of equal elements and segments through torch.compile(backend="coil"),
beside eager: values, dtypes, and gradients."""

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from beside_torch import skips_what_torch_lacks  # noqa: E402

NAN = float("nan")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):  # what fullgraph implies, but not in 2.9
        yield


def flat(result):
    return [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]


def check(function, *args, dynamic=None):
    torch._dynamo.reset()
    with skips_what_torch_lacks(function, *args, fullgraph=True, dynamic=dynamic):
        compiled = torch.compile(function, backend="coil", fullgraph=True, dynamic=dynamic)
        expected, found = flat(function(*args)), flat(compiled(*args))
        assert len(expected) == len(found)
        for e, f in zip(expected, found):
            assert (e.shape, e.dtype) == (f.shape, f.dtype)
            torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-6, equal_nan=True)


def check_gradients(function, *args):
    """Of all inputs that are floats."""

    def run(f):
        mine = [a.clone().requires_grad_(a.is_floating_point()) for a in args]
        out = flat(f(*mine))[0]
        out.backward(torch.linspace(-1, 1, out.numel()).reshape(out.shape))
        return [out.detach()] + [a.grad for a in mine if a.is_floating_point()]

    torch._dynamo.reset()
    for e, f in zip(run(function), run(torch.compile(function, backend="coil"))):
        torch.testing.assert_close(f, e, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bool])
def test_an_index_without_elements_may_be_of_any_dtype(dtype):
    x, nothing = torch.randn(3, 4), torch.empty(0, 4).to(dtype)
    check(lambda x, i: torch.gather(x, 0, i), x, nothing)
    check(lambda x, i: torch.scatter(x, 0, i, x), x, nothing)
    check(lambda x, i: torch.scatter_add(x, 0, i, x), x, nothing)
    check(lambda x, i: torch.scatter_reduce(x, 0, i, x, "mean", include_self=False), x, nothing)


def test_a_mask_larger_than_what_it_selects_from():
    for sizes, mask in (([10], [10, 10]), ([4, 1], [3, 1, 9]), ([10, 1, 10], [10, 10]), ([], []), ([3], [])):
        args = torch.randn(sizes), torch.rand(mask) > 0.2
        check(torch.masked_select, *args)
        check_gradients(torch.masked_select, *args)


def test_positions_in_a_number():
    for value in (0.0, 3.0):
        check(torch.argwhere, torch.tensor(value))
        check(torch.nonzero, torch.tensor(value))


@pytest.mark.parametrize("number", [2, 2.0, 9, True])
def test_the_place_of_a_number(number):
    for row in (torch.tensor([1.0, 2, 3, 4.5]), torch.tensor([-1, 2, 2, 7]), torch.tensor([1.0, 2]).half()):
        check(lambda r: (torch.searchsorted(r, number), torch.searchsorted(r, number, side="right")), row)
    check(lambda r, s: torch.searchsorted(r, number, sorter=s), torch.tensor([3.0, 2, 1]), torch.tensor([2, 1, 0]))


@pytest.mark.parametrize("number", [2, 2.0, 9, True])
def test_the_bucket_of_a_number(number):
    for row in (torch.tensor([1.0, 2, 3, 4.5]), torch.tensor([-1, 2, 2, 7]), torch.tensor([1.0, 2]).half()):
        check(lambda r: torch.bucketize(number, r, out_int32=True, right=True), row)


@pytest.mark.parametrize("norm", [0.5, 1.0, 2.0, float("inf")])
def test_an_embedding_shortens_the_rows_that_it_reads(norm):
    indices = torch.tensor([[1, 3], [1, 0]])
    functions = [
        lambda w: torch.nn.functional.embedding(indices, w, max_norm=0.7, norm_type=norm),
        lambda w: torch.nn.functional.embedding_bag(indices, w, max_norm=0.7, norm_type=norm),
    ]
    for function in functions:
        for dtype in (torch.float32, torch.float64):
            expected, found = (torch.linspace(-2, 1, 20, dtype=dtype).view(5, 4) for _ in range(2))
            torch._dynamo.reset()
            compiled = torch.compile(function, backend="coil", fullgraph=True)
            torch.testing.assert_close(compiled(found), function(expected))
            torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_repeats_of_any_whole_numbers(dtype):
    repeats = torch.tensor([1, 3, 0, 2], dtype=dtype)
    check(torch.repeat_interleave, repeats)
    check(torch.repeat_interleave, torch.rand(4), repeats)
    check(torch.repeat_interleave, torch.rand(4), repeats[1])


REPEATED = torch.tensor([[1.0, 3, 1], [2, 1, 3], [1, 1, 2]])


@pytest.mark.parametrize("tensor", [
    REPEATED, REPEATED.to(torch.int32), REPEATED > 1, torch.tensor([NAN, 1, NAN, -0.0, 0, 2]),
    torch.zeros(1), torch.zeros(0, 3),
], ids=["f32", "i32", "bool", "nan", "one", "none"])  # fmt: skip
def test_unique(tensor):
    for inverse in (False, True):
        for counts in (False, True):
            check(lambda t: torch.unique(t, return_inverse=inverse, return_counts=counts), tensor)
            check(
                lambda t: torch.unique_consecutive(
                    t, return_inverse=inverse, return_counts=counts
                ),
                tensor,
            )


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices(dim):
    rows = torch.tensor([[2, 1, 2, 1], [0, 3, 0, 3], [2, 1, 2, 1]])
    for tensor in (rows, rows.double(), rows > 1, torch.randint(0, 2, (6, 5, 3))):
        check(lambda t: torch.unique(t, dim=dim, return_inverse=True, return_counts=True), tensor)
        check(
            lambda t: torch.unique_consecutive(
                t, dim=dim, return_inverse=True, return_counts=True
            ),
            tensor,
        )


def test_unique_of_a_size_that_varies():
    compiled = torch.compile(torch.unique, backend="coil", dynamic=True)
    for size in (5, 8, 1):
        t = torch.randint(0, 3, (size,))
        assert torch.equal(compiled(t), torch.unique(t))


def test_running_extremes_keep_the_last_index():
    ties = torch.tensor([[1, 1, 0, NAN, 3, NAN], [2, 2, 1, 1, 2, 0]])
    for dim in (0, 1):
        for tensor in (ties, ties.nan_to_num().long(), ties > 1, ties.bfloat16()):
            check(lambda t: torch.cummax(t, dim), tensor)
            check(lambda t: torch.cummin(t, dim), tensor)
    check_gradients(lambda t: torch.cummax(t, 1).values, torch.rand(3, 5))


def test_mode_takes_the_smallest_and_its_last_place():
    for dim, keepdim in ((0, False), (1, True), (-1, False)):
        check(lambda t: torch.mode(t, dim, keepdim), torch.randint(0, 3, (4, 7)))
    check(lambda t: torch.mode(t), torch.tensor([0.5, 2, -1, 2, 0.5]))
    check(lambda t: torch.mode(t), torch.tensor([True, False, True]))
    check_gradients(lambda t: torch.mode(t, 1).values, torch.randint(0, 3, (4, 7)).float())


@pytest.mark.parametrize("reduce", ["amax", "amin", "mean", "prod"])
def test_index_reduce(reduce):
    index = torch.tensor([0, 2, 0, 2])
    for include_self in (False, True):
        for dim, source in ((0, torch.rand(4, 5)), (1, torch.rand(3, 4))):
            base = torch.rand(3, 5)

            def run(b, s):
                return b.index_reduce(dim, index, s, reduce, include_self=include_self)

            check(run, base, source)
            check(run, (base * 9).int(), (source * 9).int())
            check_gradients(run, base, source)


def test_put():
    index, source = torch.tensor([[0, -1], [3, 0]]), torch.tensor([[1.0, 2], [3, 4]])
    for base in (torch.rand(2, 3), torch.rand(3, 2).t(), torch.rand(4)):
        check(lambda b, s: b.put(index[:, 1], s[:, 1]), base, source)
        check(lambda b, s: b.put(index, s, accumulate=True), base, source)
        check_gradients(lambda b, s: b.put(index, s, accumulate=True), base, source)
    check_gradients(lambda b: torch.take(b, index), torch.rand(2, 3))
    compiled = torch.compile(lambda b: b.put(torch.tensor([9]), torch.zeros(1)), backend="coil")
    with pytest.raises(Exception, match="index|range"):
        compiled(torch.rand(3, 2).t())


def test_nonzero_of_a_fixed_size():
    for size in (0, 2, 9):
        check(lambda t: torch.nonzero_static(t, size=size, fill_value=-3), REPEATED - 1)


def test_combinations():
    check(lambda t: torch.combinations(t, 2, True), torch.arange(5))


def test_masked_scatter():
    mask = torch.rand(3, 4) > 0.5
    check_gradients(lambda b, s: b.masked_scatter(mask, s), torch.rand(3, 4), torch.rand(5, 3))


def test_repeat_interleave():
    repeats = torch.tensor([2, 0, 3])
    check(torch.repeat_interleave, repeats)
    check(torch.repeat_interleave, repeats.int())
    check(lambda t, r: torch.repeat_interleave(t, r, 1), torch.rand(2, 3), repeats)
    check(lambda t, r: torch.repeat_interleave(t, r, 0, output_size=5), torch.rand(3, 2), repeats)
    check(lambda r: torch.repeat_interleave(r), torch.zeros(2, dtype=torch.long))


SEGMENT_LENGTHS = torch.tensor([2, 0, 1, 3])


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 2])
def test_segment_reduce(reduce, initial):
    data = torch.randint(-2, 3, (6, 2)).float()  # with zeros and ties
    offsets = torch.nn.functional.pad(SEGMENT_LENGTHS.cumsum(0), (1, 0))

    def by_lengths(t):
        return torch.segment_reduce(t, reduce, lengths=SEGMENT_LENGTHS, axis=0, initial=initial)

    def by_offsets(t):
        return torch.segment_reduce(t, reduce, offsets=offsets, axis=0, initial=initial)

    for t in (data, data.bfloat16()):
        check(by_lengths, t)
        check(by_offsets, t)
    check_gradients(by_lengths, data)
    check_gradients(by_offsets, data)
    lengths = torch.tensor([[2, 4], [6, 0]])
    check_gradients(
        lambda t: torch.segment_reduce(t, reduce, lengths=lengths, axis=1, initial=initial),
        torch.rand(2, 6, 3),
    )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("has_end", [False, True])
def test_embedding_bag(mode, padding, has_end):
    indices = torch.tensor([1, 3, 1, 4, 0, 3])
    offsets = torch.tensor([0, 2, 2, 5, 6] if has_end else [0, 2, 2, 5])

    def run(weight):
        return torch.nn.functional.embedding_bag(
            indices, weight, offsets, mode=mode, padding_idx=padding, include_last_offset=has_end
        )

    check(run, torch.rand(5, 3))
    check(run, torch.rand(5, 3).double())
    check_gradients(run, torch.rand(5, 3))


def test_embedding_bag_of_weighted_rows():
    indices, offsets = torch.tensor([1, 3, 1, 4]), torch.tensor([0, 3])

    def run(weight, factors):
        return torch.nn.functional.embedding_bag(
            indices, weight, offsets, mode="sum", per_sample_weights=factors
        )

    check_gradients(run, torch.rand(5, 3), torch.rand(4))


def test_gradient_of_rows_by_how_often_they_are_read():
    """By its definition: the first releases of torch with this gradient divide by the wrong counts."""
    indices, offsets, bags, lengths = (torch.tensor(x) for x in ([1, 3, 1, 4], [0, 3], [0, 0, 0, 1], [3, 1]))

    def run(weight):
        return torch.nn.functional.embedding_bag(indices, weight, offsets, mode="mean", scale_grad_by_freq=True)

    weight, grad = torch.rand(5, 3, requires_grad=True), torch.linspace(-1, 1, 6).view(2, 3)
    out = torch.compile(run, backend="coil")(weight)
    out.backward(grad)
    each = grad[bags] / lengths[bags, None] / indices.bincount()[indices, None]
    torch.testing.assert_close(out, run(weight))
    torch.testing.assert_close(weight.grad, torch.zeros(5, 3).index_add(0, indices, each))


def test_hash_tensor():
    for t in (REPEATED, REPEATED.half(), REPEATED.int() - 2, REPEATED > 1):
        check(lambda t: torch.hash_tensor(t), t)
        check(lambda t: torch.hash_tensor(t, 1, keepdim=True), t)


def test_copies_of_views():
    t = torch.rand(3, 4).t()
    aten = torch.ops.aten
    check(lambda t: (torch.as_strided_copy(t, (2, 2), (1, 3), 1), t.narrow_copy(0, 1, 2)), t + 1)
    check(lambda t: (aten.unbind_copy(t), aten.split_copy(t, 3), aten.unfold_copy(t, 0, 2, 1)), t)
    check(lambda t: (aten.permute_copy(t, [1, 0]), aten.view_copy.dtype(t, torch.int32)), t)
    check(lambda t: t.unfold(0, 1, 1), torch.tensor(2.0))


def test_result_that_is_a_replaced_input():
    """AOT Autograd returns the write itself: the result lies in the input's memory."""

    def run(scale, tracker, found_inf):
        return torch._amp_update_scale_(scale, tracker, found_inf, 2.0, 0.5, 5)

    args = torch.tensor(8.0), torch.tensor(4, dtype=torch.int32), torch.tensor(0.0)
    result = torch.compile(run, backend="coil")(*args)
    assert result.data_ptr() == args[0].data_ptr()
    assert result.item() == 16 and args[1].item() == 0


def test_assertions_on_data():
    def run(x):
        torch._assert_async(x.sum() > 0, "the sum is positive")
        return x + 1

    for _ in range(2):  # the second time from the program cache
        torch._dynamo.reset()
        compiled = torch.compile(run, backend="coil", fullgraph=True)
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
        with pytest.raises(Exception, match="the sum is positive"):
            compiled(-torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_eight_bit_floats_are_storage(dtype):
    x = torch.tensor([1.3, -500.0, 1e-3, NAN])

    def run(x):
        y = x.to(dtype)
        return y.float() * 2, y.view(2, 2).t().contiguous().to(torch.bfloat16)

    check(run, x)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_ends_of_eight_bit_floats(dtype, source):
    """Bit for bit what this torch does: the largest value, or NaN."""
    ends = torch.tensor([448.1, 464, 465, 57344, 61439, 61440, 1e9, float("inf"), NAN])
    x = torch.cat([ends, -ends]).to(source)

    def run(x):
        plane = x.view(1, 3, 2, 3).to(dtype, memory_format=torch.channels_last)
        return x.to(dtype), torch.zeros(18, dtype=dtype).copy_(x), plane

    for found, expected in zip(torch.compile(run, backend="coil", fullgraph=True)(x), run(x), strict=True):
        assert found.stride() == expected.stride()
        assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


@pytest.mark.parametrize("function", [
    lambda x: torch.kthvalue(x.flatten(), 2).values.as_strided([], []),
    lambda x: torch.kthvalue(x, 2, dim=0).values.as_strided([2, 2], [2, 1]),
    lambda x: torch.median(x, 1).values.as_strided([3], [1]),
], ids=["number", "row", "median"])
def test_addresses_count_in_what_an_op_made(function):
    check(function, torch.randn(4, 6))
