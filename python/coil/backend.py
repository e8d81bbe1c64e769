"""The backend of torch.compile, found by torch under the entry point "coil"."""

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from coil.compiler import Dtypes, compile_graph
from coil.decompositions import decompositions
from coil.options import from_torch


def coil(gm, example_inputs, *, mode=None, options=None, name=None):
    """Compiles a graph of Dynamo's, forward and backward."""
    return compile_both(gm, example_inputs, from_torch(mode, options))


def compile_both(gm, example_inputs, options, report=None):
    """AOT Autograd resolves what autograd and tensor subclasses are; coil gets plain graphs, with
    writes to inputs as the last nodes, and decomposes them itself."""

    dtypes = Dtypes()

    def compiler(module, _inputs):
        return compile_graph(module, options, report, dtypes)

    backend = aot_autograd(
        fw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decompositions,
        keep_inference_input_mutations=True,
    )
    return backend(gm, example_inputs)
