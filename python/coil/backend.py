"""The backend of torch.compile, found by torch under the entry point "coil"."""

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from coil import hops
from coil.compiler import Dtypes, compile_graph
from coil.decompositions import decompositions
from coil.freezing import compile_frozen
from coil.options import from_torch
from coil.randomness import give_keys, hide_drawless, show_drawless
from coil.whole_ops import kept_whole


def coil(gm, example_inputs, *, mode=None, options=None, name=None):
    """Compiles a graph of Dynamo's, forward and backward."""
    return compile_both(gm, example_inputs, from_torch(mode, options))


class Watch:
    """Who is told of each compiled graph, and the clock that measures coil's part."""

    def __init__(self, report=None, clock=None):
        self.report, self.clock = report, clock

    def timed(self, name, function):
        return function if self.clock is None else self.clock.timed(name, function)


def compile_both(gm, example_inputs, options, watch=None):
    """AOT Autograd resolves what autograd and tensor subclasses are; coil gets plain graphs, with
    writes to inputs as the last nodes, and decomposes them itself."""
    watch = watch or Watch()
    report = watch.report

    dtypes = Dtypes()

    def compiler(module, _inputs):
        return watch.timed("coil", compile_graph)(module, options, report, dtypes)

    def inference(module, _inputs):
        return watch.timed("coil", compile_frozen)(module, options, report)

    def partition(joint, inputs, **more):
        hops.expand(joint, hops.BEFORE_PARTITION)
        # What a forward pass draws, its backward pass must draw again.
        if not options.flag("fallback_random"):
            give_keys(joint)
        hide_drawless(joint)
        graphs = min_cut_rematerialization_partition(joint, inputs, **more)
        for graph in graphs:
            show_drawless(graph)
        return graphs

    backend = aot_autograd(
        fw_compiler=compiler,
        inference_compiler=inference if options.flag("freezing") else compiler,
        partition_fn=partition,
        decompositions=decompositions,
        keep_inference_input_mutations=True,
    )
    with kept_whole():
        return backend(gm, example_inputs)
