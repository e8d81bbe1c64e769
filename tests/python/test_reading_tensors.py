"""How the extension module reads torch's tensors: by DLPack's exchange table, its capsules, or attributes. A torch
without one of them goes the next way, so each is tried on any torch."""

import pytest

torch = pytest.importorskip("torch")
coil = pytest.importorskip("coil")

from coil import session  # noqa: E402

WITHOUT = {
    "table": [],
    "capsules": [(torch.Tensor, "__dlpack_c_exchange_api__")],
    "attributes": [(torch.Tensor, "__dlpack_c_exchange_api__"), (torch, "to_dlpack")],
    "all by name": [
        (torch.Tensor, "__dlpack_c_exchange_api__"), (torch, "to_dlpack"), (torch._C._dynamo.guards, "_empty_strided_cpu"),
    ],
}  # fmt: skip


@pytest.fixture(params=WITHOUT)
def way(request, monkeypatch):
    torch._dynamo.reset()
    for place, name in WITHOUT[request.param]:
        monkeypatch.delattr(place, name, raising=False)
    session._session.cache_clear()  # a session asks torch once
    yield request.param
    session._session.cache_clear()


def same(found, expected):
    assert (found.shape, found.dtype, found.stride()) == (expected.shape, expected.dtype, expected.stride())
    torch.testing.assert_close(found, expected)


LAYOUTS = [
    torch.zeros(()), torch.zeros(0, 4), torch.rand(3, 4).t(), torch.rand(4, 6)[1::2, 2:], torch.rand(7, 3, 9)[:1, :, :1],
    torch.rand(5, 1).expand(5, 3), torch.rand(2, 1, 2, 1, 2, 1, 2),
]  # fmt: skip
DTYPES = """uint8 int8 int16 int32 int64 uint16 uint32 uint64 bool float16 bfloat16 float32 float64 float8_e4m3fn
    float8_e5m2 complex64 complex128""".split()


def test_layouts(way):
    run = torch.compile(lambda *tensors: [-t for t in tensors], backend="coil", fullgraph=True)
    for found, t in zip(run(*LAYOUTS), LAYOUTS, strict=True):
        same(found, -t)


def test_dtypes(way):
    tensors = [torch.arange(3).to(getattr(torch, name)) for name in DTYPES]
    run = torch.compile(lambda *tensors: [t[1:].clone() for t in tensors], backend="coil", fullgraph=True)
    for found, t in zip(run(*tensors), tensors, strict=True):
        same(found.view(torch.uint8), t[1:].view(torch.uint8))
        assert found.dtype == t.dtype


def test_gradients_writes_and_views(way):
    def step(x, weight, kept):
        kept.add_(1)
        return (x * weight).sum(), kept[1:], kept.view(torch.int32)

    def run(function):
        x, kept = torch.arange(3.0), torch.arange(3.0)
        weight = torch.nn.Parameter(torch.ones(3))
        loss, rest, bits = function(x, weight, kept)
        loss.backward()
        assert rest.data_ptr() == kept.data_ptr() + 4 and bits.data_ptr() == kept.data_ptr()
        return loss.detach(), rest, bits, weight.grad, kept

    for found, expected in zip(run(torch.compile(step, backend="coil")), run(step), strict=True):
        same(found, expected)


class AddOne(torch.nn.Module):
    def forward(self, x):
        return x + 1


def test_what_is_refused(way):
    """Of an exported program, where no guard of torch's is asked first."""
    run = coil.compile(torch.export.export(AddOne(), (torch.zeros(3),)))
    torch.testing.assert_close(run(torch.ones(3)), torch.full((3,), 2.0))
    for bad, words in (
        (torch.ones(3, device="meta"), "another device"),
        (torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), "coil has no torch.qint8"),
        (torch.ones(3).to_sparse(), "sparse|layout|strides|storage"),
        (torch.ones(3, dtype=torch.float64), "f64"),
    ):
        with pytest.raises(Exception, match=words):
            run(bad)
