#!/usr/bin/env python3
"""Compile time against the size of the graph: a table, and a plot with --plot FILE.svg.

usage: bench/compile_time.py [--coil build/coil] [--most 10000] [--plot docs/compile_time.svg]

A program is a row of blocks of five nodes, x = x + gelu(linear(layer_norm(x))) * c over f32[64, 256]. Blocks
are equal but for their weights, as layers of a model are, or all differ in the number c, so that each brings
kernels of its own for the C++ compiler. Times are those of `coil bench`: cold is with an empty cache, cached
with the program and objects of the first compile; both are sums of the stages, without the making of the random
weights. `own` is cold without the C++ compiler and the packing of weights.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NODES_OF_BLOCK = 5


def program(nodes, same):
    lines = ["graph blocks(%x0: f32[64, 256]) {"]
    blocks = nodes // NODES_OF_BLOCK
    body = []
    for k in range(blocks):
        lines.append(f"  const %g{k}: f32[256] = seed {3 * k}")
        lines.append(f"  const %w{k}: f32[256, 256] = seed {3 * k + 1}")
        lines.append(f"  const %b{k}: f32[256] = seed {3 * k + 2}")
        scale = 0.5 if same else 0.5 + k / 4096
        body += [f"  %norm{k} = layer_norm(%x{k}, [256], %g{k}, %b{k})", f"  %linear{k} = linear(%norm{k}, %w{k}, %b{k})",
                 f"  %gelu{k} = gelu(%linear{k})", f"  %scaled{k} = mul.Scalar(%gelu{k}, {scale})",
                 f"  %x{k + 1} = add.Tensor(%x{k}, %scaled{k})"]
    return "\n".join(lines + body + [f"  return %x{blocks}", "}", ""])


def measure(coil, text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "blocks.graph"
        path.write_text(text)
        environment = dict(os.environ, COIL_CACHE_DIR=folder)
        result = subprocess.run([coil, "bench", path, "--json"], check=True, capture_output=True, text=True,
                                env=environment)
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coil", default=ROOT / "build" / "coil")
    parser.add_argument("--most", type=int, default=10000, help="nodes of the largest graph of equal blocks")
    parser.add_argument("--plot", type=pathlib.Path)
    arguments = parser.parse_args()
    sizes = [n for n in (100, 300, 1000, 3000, 10000) if n <= arguments.most]
    rows = []
    print("| blocks | nodes | cold, s | own, s | cached, s | own, us a node | different kernels |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for same in (True, False):
        for nodes in sizes if same else sizes[:3]:
            found = measure(arguments.coil, program(nodes, same))
            stages = found["compile_cold_stages_ms"]
            cold, cached = sum(stages.values()) / 1000, sum(found["compile_cached_stages_ms"].values()) / 1000
            own = cold - (stages["compile"] + stages["init"]) / 1000
            name = "equal" if same else "different"
            rows.append((name, nodes, cold, own, cached))
            print(f"| {name} | {nodes} | {cold:.3f} | {own:.4f} | {cached:.4f} | {1e6 * own / nodes:.1f} | "
                  f"{found['unique_kernels']} |", flush=True)
    if arguments.plot:
        plot(rows, arguments.plot)


def plot(rows, path):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.4))
    for name, column, label, style in (("equal", 2, "equal blocks, cold", "o-"), ("equal", 4, "equal blocks, cached", "s-"),
                                       ("equal", 3, "equal blocks, coil's own part", "^--"),
                                       ("different", 2, "different blocks, cold", "o:")):
        points = [r for r in rows if r[0] == name]
        axes.loglog([r[1] for r in points], [r[column] for r in points], style, label=label)
    axes.set_xlabel("nodes of the graph")
    axes.set_ylabel("seconds")
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
