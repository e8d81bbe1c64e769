"""From an FX graph of AOT Autograd to something that can be called."""

from coil.errors import UnsupportedError
from coil.fx import Document
from coil.session import session

def compile_graph(module, options):
    """Compiles a functional ATen graph; the result takes its placeholders' values as one list."""
    document = Document(module)
    here = session(options)
    program = here.import_graph(document.text(), document.constants)
    if program.missing:
        raise UnsupportedError(program.missing)
    compiled = here.compile(program, options._table, document.passed)
    compiled._boxed_call = True  # AOT Autograd calls it with one list, which is emptied
    return compiled
