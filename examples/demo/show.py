#!/usr/bin/env python3
"""Shows the demo's digits and what coil says they are. Needs no packages.

usage: show.py DIGITS.npz LABELS.txt OUT.npz BENCH.json
"""

import ast
import json
import math
import os
import struct
import sys
import zipfile

COLUMNS = 10  # digits in a row; each takes 9 of at most 100 columns
DIM, RED, GREEN, PLAIN = "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"


def read_floats(path, name):
    """(shape, flat values) of one f32 array of an .npz, which numpy describes in numpy.lib.format."""
    with zipfile.ZipFile(path) as archive:
        data = archive.read(f"{name}.npy")
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    if header["descr"] != "<f4" or header["fortran_order"]:
        sys.exit(f"{path}: {name} is not an array of float32 in row-major order")
    return header["shape"], struct.unpack(f"<{math.prod(header['shape'])}f", data[10 + size:])


def half_blocks(pixels):
    """Eight rows of eight pixels as four lines of text: each character shows two pixels."""
    blocks = " \u2584\u2580\u2588"  # neither, lower, upper, both
    ink = [p > 0.4 for p in pixels]
    return ["".join(blocks[2 * ink[16 * y + x] + ink[16 * y + 8 + x]] for x in range(8)) for y in range(4)]


class Screen:
    def __init__(self):
        self.colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        sys.stdout.reconfigure(encoding="utf-8")

    def paint(self, code, text):
        return f"{code}{text}{PLAIN}" if self.colours else text


def show(screen, pictures, said, truth):
    for start in range(0, len(pictures), COLUMNS):
        row = range(start, min(start + COLUMNS, len(pictures)))
        for line in zip(*(pictures[i] for i in row)):
            print("  " + " ".join(line).rstrip())
        labels = []
        for i in row:
            right = said[i] == truth[i]
            text = f"{said[i]}" if right else f"{said[i]}, not {truth[i]}"
            labels.append(screen.paint(GREEN if right else RED, f"{text:^8}"))
        print("  " + " ".join(labels).rstrip() + "\n")


def main():
    digits, labels, out, bench = sys.argv[1:]
    _, pixels = read_floats(digits, "in0")
    (count, classes), scores = read_floats(out, "out0")
    with open(labels) as file:
        truth = [int(letter) for letter in file.read().strip()]
    rows = [scores[i * classes:(i + 1) * classes] for i in range(count)]
    said = [row.index(max(row)) for row in rows]
    screen = Screen()
    print("\nHandwritten digits that the network has not seen, and below each what coil reads:\n")
    show(screen, [half_blocks(pixels[i * 64:(i + 1) * 64]) for i in range(count)], said, truth)

    right = sum(a == b for a, b in zip(said, truth))
    with open(bench) as file:
        b = json.load(file)
    print(f"  {right} of {count} right ({right / count:.1%})")
    print(f"  compiled in {b['compile_cold_ms'] / 1e3:.2f} s ({b['compile_cached_ms']:.0f} ms the second time): "
          f"{b['kernels']} kernels, {b['calls']} library calls")
    print(f"  one run takes {b['run_ms']['median']:.3f} ms\n")
    # A demo that reads digits wrongly is broken.
    return 0 if right >= 0.9 * count else 1


if __name__ == "__main__":
    sys.exit(main())
