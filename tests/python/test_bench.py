"""The parts of bench/ that read what others print, on texts of the forms that Inductor writes. Needs no torch."""

import argparse
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import compare  # noqa: E402
import counts  # noqa: E402
import peers  # noqa: E402

LOOP = "for(int64_t x{0}=static_cast<int64_t>(0L); x{0}<static_cast<int64_t>(64L); x{0}+=static_cast<int64_t>(8L))"

THREADED = f"""
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0)
{{
    std::atomic<int> inductor_cpu_integer_div_error{{0}};
    #pragma omp parallel
    {{
        int tid = omp_get_thread_num();
        {{
            #pragma omp for collapse(2)
            {LOOP.format(0)}
            {{
                {LOOP.format(1)}
                {{
                    for (long x1_inner = 0; x1_inner < 8; x1_inner++) {{ }}
                }}
                {LOOP.format(1)}
                {{
                }}
            }}
        }}
        #pragma omp single
        {{
            {{
                {LOOP.format(0)}
                {{
                }}
            }}
        }}
        {{
            #pragma omp for
            {LOOP.format(0)}
            {{
                out_ptr0[x0] = 1;
            }}
        }}
        #pragma omp single
        {{
            out_ptr0[0] = 2;
        }}
    }}
}}
"""

SMALL = f"""
extern "C"  void  kernel(float* in_out_ptr0)
{{
    {{
        {LOOP.format(0)}
        {{
            in_out_ptr0[x0] = 1;
        }}
    }}
}}
"""

WRAPPER = f"""
cpp_fused_add_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''{THREADED}''')

cpp_fused_1 = async_compile.cpp_pybinding(['float*'], r'''{SMALL}''')

class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg0_1, (8, 8), (8, 1), 'input')
        buf0 = empty_strided_cpu((8, 8), (8, 1), torch.float32)
        cpp_fused_add_0(arg0_1, buf0)
        # Topologically Sorted Source Nodes: [conv2d], Original ATen: [aten.convolution(x)]
        buf1 = extern_kernels.convolution(buf0, arg1_1, stride=(1, 1))
        assert_size_stride(buf1, (8, 8), (8, 1), 'torch.ops.aten.convolution.default')
        extern_kernels.addmm(arg1_1, reinterpret_tensor(buf0, (8, 8), (8, 1), 0), alpha=1, out=buf1)
        buf2 = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(buf0, buf1, buf1)
        buf3 = buf2[0]
        cpp_fused_1(buf3)
        cpp_fused_1(buf1)
        return (buf3, )

runner = Runner(partitions=[])

def get_args():
    arg0_1 = rand_strided((8, 8), (8, 1), device='cpu', dtype=torch.float32)
"""


def test_loop_nests():
    assert counts.loop_nests(THREADED) == (2, 1)
    assert counts.loop_nests(SMALL) == (1, 0)


def test_wrapper_counts():
    kernels, libraries = counts.wrapper_counts(WRAPPER)
    assert kernels == [("cpp_fused_add_0", 2, 1), ("cpp_fused_1", 1, 0), ("cpp_fused_1", 1, 0)]
    assert libraries == ["extern_kernels.convolution", "extern_kernels.addmm",
                         "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default"]


@pytest.mark.parametrize("kernels, moved, expected", [
    (3, 100, "yes"), (4, 100, "more kernels"), (3, 101, "more bytes"), (4, 101, "more of both")])
def test_verdict(kernels, moved, expected):
    row = {"inductor": {"kernels": 2, "serial": 5, "calls": 2, "bytes": 100},
           "coil": {"kernels": kernels, "calls": 1, "bytes": moved}}
    assert counts.verdict(row) == expected


def test_error():
    ones = np.ones((2, 2), np.float32)
    assert peers.error([ones], [ones]) == 0
    assert peers.error([1.5 * ones], [ones]) == 0.5
    for wrong in ([ones[0]], [ones, ones], [ones * np.nan]):
        assert peers.error(wrong, [ones]) == float("inf")


def test_ratio_leaves_out_wrong_results():
    def peer(median, least, error):
        return {"median": median, "min": least, "error": error}

    found = {"coil": peer(3.0, 2.0, 0), "eager": peer(6.0, 8.0, 0), "tuned": peer(1.0, 1.0, 0.1), "gone": {"reason": "x"}}
    assert compare.ratio(found, ["eager", "tuned", "gone"]) == "0.50 (0.25)"
    assert compare.ratio(found, ["tuned"]) == compare.ratio(found, ["gone"]) == "-"


@pytest.mark.parametrize("body, reason", [
    ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by signal 11"),
    ("import time; time.sleep(60)", "more than 2 s"),
])
def test_a_peer_that_fails_is_a_reason(tmp_path, monkeypatch, body, reason):
    (tmp_path / "peers.py").write_text(body)
    monkeypatch.setattr(compare, "HERE", tmp_path)
    options = argparse.Namespace(peers=["eager"], threads=1, limit=2, rounds=1, seconds=0.1)
    found = compare.measure("row", tmp_path / "row.pt2", options, tmp_path)
    assert found["peers"] == {"eager": {"reason": reason}}
    assert f"row, eager: {reason}" in compare.report("machine", [found], ["eager"])
