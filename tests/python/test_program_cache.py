"""The program cache between processes: the command run twice gives the same bits and messages, the second time
without a pass of the compiler."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COIL = os.environ.get("COIL", str(ROOT / "build-ci" / "coil"))
FIXTURES = ROOT / "tests" / "fixtures" / "2.15.0"
MESSAGE = """graph lookup(%{name}: f32[10, 4], %index: i64[3]) {{
  %{name}_rows = index_select(%{name}, 0, %index) @ {place}
  return %{name}_rows
}}
"""


def coil(cache, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COIL_")}
    return subprocess.run([COIL, *map(str, arguments)], capture_output=True, text=True,
                          env=dict(environment, COIL_CACHE_DIR=str(cache)))


def programs(cache):
    return sorted((cache / "programs").glob("*.plan"))


@pytest.mark.parametrize("name", ["branch", "causal_attention", "convnet", "counter", "mlp_dynamic", "rnn"])
def test_the_second_process_gives_the_same_bits(name, tmp_path):
    cache, outputs = tmp_path / "cache", []
    for k in range(3):
        out = tmp_path / f"out{k}.npz"
        done = coil(cache, "run", FIXTURES / f"{name}.pt2", "--inputs", FIXTURES / f"{name}.npz", "--outputs", out,
                    "-O", "threads=2", "-O", "cache=" + ("on" if k < 2 else "off"))
        assert done.returncode == 0, done.stderr
        outputs.append(out.read_bytes())
        assert len(programs(cache)) == 1
    assert outputs[0] == outputs[1] == outputs[2]


def test_bench_shows_a_hit(tmp_path):
    found = json.loads(coil(tmp_path, "bench", FIXTURES / "mlp.pt2", "--json").stdout)
    assert list(found["compile_cached_stages_ms"]) == ["program_cache", "init"]
    assert "decompose" in found["compile_cold_stages_ms"]
    assert found["unique_kernels"] > 0


def test_a_message_names_the_line_of_the_present_graph(tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.savez(tmp_path / "in.npz", in0=numpy.zeros((10, 4), numpy.float32), in1=numpy.array([1, 77, 2]))
    cache = tmp_path / "cache"
    for name, place in (("table", "first.py:3"), ("words", "second.py:5"), ("words", "second.py:5")):
        graph = tmp_path / "lookup.graph"
        graph.write_text(MESSAGE.format(name=name, place=place))
        messages = [coil(cache, "run", graph, "--inputs", tmp_path / "in.npz", "-O", f"cache={how}").stderr
                    for how in ("on", "off")]
        assert messages[0] == messages[1]
        assert place in messages[0] and f"{name}_rows" in messages[0] and "77" in messages[0]
        assert len(programs(cache)) == 1


def test_damaged_entries_are_compiled_again(tmp_path):
    arguments = ("run", FIXTURES / "mlp.pt2", "--seed", "1")
    expected = coil(tmp_path, *arguments)
    assert expected.returncode == 0, expected.stderr
    (entry,) = programs(tmp_path)
    whole = entry.read_bytes()
    for damaged in (b"", whole[:100], whole[:50] + b"x" + whole[51:], whole[:-1], whole + b"x"):
        entry.write_bytes(damaged)
        assert coil(tmp_path, "cache", "verify").returncode == 1
        done = coil(tmp_path, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, expected.stderr)
        assert entry.read_bytes() == whole
    assert "1 programs, " in coil(tmp_path, "cache", "stats").stdout
    assert " and 1 programs " in coil(tmp_path, "cache", "clear").stdout
    assert not programs(tmp_path)
