"""The backend of torch.compile, found by torch under the entry point "coil"."""

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from coil.compiler import compile_graph
from coil.options import from_torch


def coil(gm, example_inputs, *, mode=None, options=None, name=None):
    """Compiles a graph of Dynamo's, forward and backward."""
    chosen = from_torch(mode, options)

    def compiler(module, _inputs):
        return compile_graph(module, chosen)

    compile_both = aot_autograd(
        fw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    return compile_both(gm, example_inputs)
