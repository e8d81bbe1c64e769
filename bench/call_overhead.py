#!/usr/bin/env python3
"""What one call through torch.compile(backend="coil") costs beside the work itself.

Adds N tensors of 4 elements, so that the kernel takes next to nothing. Microseconds of the thread's own
time, the best of several runs; `empty_strided` is one allocation by torch, the yardstick of the machine.

    python bench/call_overhead.py             arguments through DLPack's exchange table (torch 2.10)
    python bench/call_overhead.py --capsules  the way of torch 2.9
"""

import argparse
import sys
import time

import torch

CALLS, REPEATS = 5000, 9


def best_us(function):
    best = float("inf")
    for _ in range(REPEATS):
        start = time.thread_time()
        for _ in range(CALLS):
            function()
        best = min(best, (time.thread_time() - start) / CALLS)
    return 1e6 * best


def compiled_of(function, tensors, dynamic):
    """(the function that torch.compile makes, coil's own callable inside of it)."""
    import coil.backend
    from coil import compiler

    seen = []

    def keeping(*args):
        seen.append(compiler.compile_graph(*args))
        return seen[-1]

    coil.backend.compile_graph = keeping
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="coil", dynamic=dynamic)
    compiled(*tensors)
    coil.backend.compile_graph = compiler.compile_graph
    return compiled, seen[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capsules", action="store_true")
    if parser.parse_args().capsules:
        del torch.Tensor.__dlpack_c_exchange_api__
    torch.set_num_threads(1)

    def add_all(*tensors):
        total = tensors[0]
        for t in tensors[1:]:
            total = total + t
        return total

    print(f"{'':24}{'coil alone':>12}{'whole call':>12}{'empty_strided':>15}   us")
    for count in (3, 10, 30):
        for dynamic in (False, True):
            tensors = [torch.randn(4) for _ in range(count)]
            compiled, alone = compiled_of(add_all, tensors, dynamic)
            given = [4, *tensors] if dynamic else tensors
            name = f"{count} arguments, {'dynamic' if dynamic else 'static'}"
            own = best_us(lambda: alone(list(given)))
            whole = best_us(lambda: compiled(*tensors))
            yardstick = best_us(lambda: torch.empty_strided((4,), (1,), dtype=torch.float32))
            print(f"{name:24}{own:12.2f}{whole:12.2f}{yardstick:15.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
