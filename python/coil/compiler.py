"""From an FX graph of AOT Autograd to something that can be called."""

import time

from coil.errors import UnsupportedError
from coil.fx import Document
from coil.session import session


def compile_graph(module, options, report=None):
    """Compiles a functional ATen graph; the result takes its placeholders' values as one list.
    `report` is called with a GraphReport."""
    start = time.perf_counter()
    document = Document(module)
    written = time.perf_counter()
    here = session(options)
    program = here.import_graph(document.text(), document.constants)
    read = time.perf_counter()
    if program.missing:
        raise UnsupportedError(program.missing)
    compiled = here.compile(program, options._table, document.passed)
    compiled._boxed_call = True  # AOT Autograd calls it with one list, which is emptied
    if report is not None:
        from coil.api import GraphReport

        stages = [("write", 1e3 * (written - start)), ("import", 1e3 * (read - written))]
        ops = len(document.graph["nodes"])
        report(GraphReport(ops, program, compiled, stages + compiled.stage_times))
    return compiled
