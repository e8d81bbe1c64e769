#!/usr/bin/env python3
"""One peer in a process of its own: prepares a row, then times it when asked. bench/compare.py talks to it.

usage: peers.py PEER NAME.pt2 --threads N      (PEER: eager, inductor, tuned, onnxruntime, openvino)

It answers in lines of JSON on stdout. First, when the row can be called: how long preparing took and how far the
outputs are from NAME.eager.npz. Then for each line on stdin, which is a number of seconds: the times of calls
(at least 10 of them and that many seconds, at most 1000), in milliseconds.
"""

import argparse
import json
import os
import pathlib
import sys
import time
import warnings

import numpy

MIN_CALLS, MAX_CALLS = 10, 1000


def arrays_of(path, prefix):
    """The arrays in0, in1, ... of an .npz, in order."""
    with numpy.load(path) as arrays:
        return [arrays[f"{prefix}{i}"] for i in range(len(arrays.files))]


def error(found, expected):
    """The largest rms error of an output, relative to the output's rms; infinity for another shape or a NaN."""
    worst = 0.0
    if len(found) != len(expected):
        return float("inf")
    for ours, theirs in zip(found, expected):
        if ours.shape != theirs.shape:
            return float("inf")
        theirs = theirs.astype(numpy.float64)
        size = numpy.sqrt(numpy.mean(theirs**2)) or 1.0
        ratio = numpy.sqrt(numpy.mean((ours.astype(numpy.float64) - theirs) ** 2)) / size
        worst = max(worst, float(ratio) if numpy.isfinite(ratio) else float("inf"))
    return worst


class Torch:
    """The exported program in torch: as it is, or compiled."""

    def __init__(self, model, threads, compiled):
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch, self.times = torch, {}
        self.function = torch.export.load(model).module()
        self.inputs = [torch.from_numpy(a) for a in arrays_of(model.with_suffix(".inputs.npz"), "in")]
        if compiled:
            self.compile()

    def compile(self):
        """The first call compiles; what torch sets up once for a process is done before."""
        from torch._dynamo.utils import compile_times

        def inner():
            times = dict(zip(*compile_times(repr="csv", aggregate=True)))
            return sum(float(t) for name, t in times.items() if name.split(".")[-1] == "compile_fx_inner")

        self.torch.compile(lambda x: x + 1)(self.torch.ones(64))
        before, start = inner(), time.perf_counter()
        self.function = self.torch.compile(self.function)
        self.call()
        self.times = {"compile_s": time.perf_counter() - start, "compile_fx_inner_s": inner() - before}

    def call(self):
        self.result = self.function(*self.inputs)

    def outputs(self):
        return [t.numpy() for t in self.torch.utils._pytree.tree_leaves(self.result)]  # pylint: disable=protected-access


def eager(model, threads):
    return Torch(model, threads, compiled=False)


def inductor(model, threads):
    from torch._inductor import config

    config.force_disable_caches = True
    return Torch(model, threads, compiled=True)


def tuned(model, threads):
    from torch._inductor import config

    config.freezing = True
    config.max_autotune = True
    return inductor(model, threads)


def onnx_of(model):
    """NAME.onnx beside the .pt2: made once by torch.onnx, in a process that then ends."""
    path = model.with_suffix(".onnx")
    if not path.is_file() or path.stat().st_mtime < model.stat().st_mtime:
        import multiprocessing

        child = multiprocessing.get_context("spawn").Process(target=write_onnx, args=(model, path))
        child.start()
        child.join()
        if child.exitcode != 0:
            raise RuntimeError("torch.onnx could not export it")
    return path


def write_onnx(model, path):
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = torch.onnx.export(torch.export.load(model), dynamo=True, verbose=False)
        made.save(str(path) + ".part", external_data=False)
    os.replace(str(path) + ".part", path)


class OnnxRuntime:
    def __init__(self, model, threads):
        path = onnx_of(model)
        import onnxruntime

        start = time.perf_counter()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.times = {"compile_s": time.perf_counter() - start}
        self.arrays = arrays_of(model.with_suffix(".inputs.npz"), "in")  # bound, not copied: they stay alive here
        self.binding = self.session.io_binding()
        for slot, array in zip(self.session.get_inputs(), self.arrays):
            self.binding.bind_ortvalue_input(slot.name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        names = [slot.name for slot in self.session.get_outputs()]
        for name, array in zip(names, self.session.run(names, {s.name: a for s, a in
                                                               zip(self.session.get_inputs(), self.arrays)})):
            self.binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))

    def call(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return self.binding.copy_outputs_to_cpu()


class OpenVino:
    def __init__(self, model, threads):
        path = onnx_of(model)
        import openvino

        start = time.perf_counter()
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(path), "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32"})
        self.times = {"compile_s": time.perf_counter() - start}
        self.arrays = arrays_of(model.with_suffix(".inputs.npz"), "in")
        self.request = compiled.create_infer_request()
        for i, array in enumerate(self.arrays):
            self.request.set_input_tensor(i, openvino.Tensor(array, shared_memory=True))
        self.count = len(compiled.outputs)

    def call(self):
        self.request.infer()

    def outputs(self):
        return [self.request.get_output_tensor(i).data for i in range(self.count)]


PEERS = {"eager": eager, "inductor": inductor, "tuned": tuned, "onnxruntime": OnnxRuntime, "openvino": OpenVino}


def times_of(peer, seconds):
    peer.call()
    times, start = [], time.perf_counter()
    while len(times) < MAX_CALLS and (len(times) < MIN_CALLS or time.perf_counter() - start < seconds):
        one = time.perf_counter()
        peer.call()
        times.append(1000 * (time.perf_counter() - one))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    # Libraries may print what they like: answers have the real stdout to themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    peer = PEERS[arguments.peer](arguments.model, arguments.threads)
    peer.call()
    wrong = error(peer.outputs(), arrays_of(arguments.model.with_suffix(".eager.npz"), "out"))
    print(json.dumps({"error": wrong, **peer.times}), file=answers)
    for line in sys.stdin:
        print(json.dumps(times_of(peer, float(line))), file=answers)


if __name__ == "__main__":
    main()
