"""FX graphs in the JSON schema of torch.export's files, which coil's importer reads.

Only this file knows what nodes look like after AOT Autograd. It has no table of ops: a node's target
goes over by name, and its arguments by their Python types.
"""

import json
import operator
import types

import sympy
import torch
from torch.fx import GraphModule, Node

from coil.bounds import unbounded_symbols
from coil.errors import CompileError
from coil.randomness import keyed

# The schema's numbers of dtypes, memory formats and layouts.
DTYPES = {
    torch.uint8: 1,
    torch.int8: 2,
    torch.int16: 3,
    torch.int32: 4,
    torch.int64: 5,
    torch.float16: 6,
    torch.float32: 7,
    torch.float64: 8,
    torch.complex32: 9,
    torch.complex64: 10,
    torch.complex128: 11,
    torch.bool: 12,
    torch.bfloat16: 13,
    torch.uint16: 28,
    torch.float8_e4m3fn: 29,
    torch.float8_e5m2: 30,
    torch.uint32: 34,
    torch.uint64: 35,
}
MEMORY_FORMATS = {
    torch.contiguous_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
    torch.preserve_format: 4,
}
# What counts in the memory of the base, and where its size is; stride and storage_offset follow.
RESTRIDING = {
    torch.ops.aten.as_strided.default: 1,
    torch.ops.aten.as_strided_copy.default: 1,
    torch.ops.aten.as_strided_scatter.default: 2,
}
STRIDED = 7
OTHER_LAYOUT = 1


class Document:
    """One graph as JSON, with the tensors that it holds: its constants, and the `frozen` ones, by
    the name of the placeholder whose place they take."""

    def __init__(self, module, frozen=None):
        self.constants = []  # tensors
        self.names = []  # of them
        self.frozen = frozen or {}
        self.ranges = {}
        self.exprs = {}  # SymPy expression to JSON
        self.bound = bound_symbols(module)
        self.unbounded = unbounded_symbols(module)
        self.memories = {k: v for k, v in memories(module).items() if k not in self.frozen}
        writer = GraphWriter(self, module, self.frozen, self.memories)
        self.graph = writer.write()
        self.passed = writer.passed
        here = {n.name for n in module.graph.find_nodes(op="placeholder")}
        self.frozen = {name: t for name, t in self.frozen.items() if name in here}

    def text(self):
        names = [*self.names, *self.frozen]
        memories = {name: list(reach) for name, reach in self.memories.items()}
        return json.dumps({
            "graph": self.graph,
            "range_constraints": self.ranges,
            "constants": names,
            "memories": memories,
        })

    def number(self, value):
        """A SymInt, SymFloat, SymBool or plain number."""
        if isinstance(value, bool):
            return {"as_bool": value}
        if isinstance(value, int):
            return {"as_int": value}
        if isinstance(value, float):
            return {"as_float": real(value)}
        expr = value.node.expr
        known = self.exprs.get(expr)
        if known is None:
            known = self.exprs[expr] = self.expression(expr, value.node)
        return known

    def expression(self, expr, node):
        if isinstance(expr, (sympy.Integer, int)):
            return {"as_int": int(expr)}
        content = {"expr_str": sympy.srepr(expr.xreplace(self.bound))}
        if isinstance(expr, sympy.Symbol) and isinstance(node.hint, int):
            content["hint"] = {"as_int": node.hint}
        for symbol in expr.free_symbols:
            self.add_range(symbol, node.shape_env)
        return {"as_expr": content}

    def add_range(self, symbol, shape_env):
        name = str(self.bound.get(symbol, symbol))
        if name in self.ranges:
            return
        bounds = shape_env.var_to_range.get(symbol)
        low = high = None
        if bounds is not None and bounds.is_int:
            low, high = (int(b) if b.is_Integer else None for b in (bounds.lower, bounds.upper))
        # What torch says of a size from another graph's data may be false as well.
        if symbol in self.unbounded or symbol in self.bound:
            high = None
        self.ranges[name] = {"min_val": low, "max_val": high}

    def tensor_meta(self, tensor):
        if tensor.dtype not in DTYPES:
            raise CompileError(f"coil has no {tensor.dtype}")
        if tensor.device.type != "cpu":
            raise CompileError(f"coil runs on the CPU; a tensor is on {tensor.device}")
        is_strided = tensor.layout is torch.strided
        return {
            "dtype": DTYPES[tensor.dtype],
            "sizes": [self.number(s) for s in tensor.shape],
            "strides": [self.number(s) for s in tensor.stride()] if is_strided else [],
            "layout": STRIDED if is_strided else OTHER_LAYOUT,
        }


def bound_symbols(module):
    """Sizes that came from data before this graph, and that its inputs have: in it, they are sizes
    like any other, whose names begin with s."""
    values = [n.meta.get("val") for n in module.graph.find_nodes(op="placeholder")]
    sizes = [s for v in values for s in (v.shape if isinstance(v, torch.Tensor) else [v])]
    symbols = {x for s in sizes if isinstance(s, torch.SymInt) for x in s.node.expr.free_symbols}
    return {x: sympy.Symbol(f"s_{x}", integer=True) for x in symbols if str(x).startswith("u")}


class GraphWriter:
    """One GraphModule; sub-graphs of control flow have a writer of their own."""

    def __init__(self, document, module, frozen=(), memories=types.MappingProxyType({})):
        self.document, self.module = document, module
        self.frozen = frozen  # names of placeholders that are no inputs
        self.memories = memories  # of placeholders
        self.tensors, self.ints, self.floats, self.bools = {}, {}, {}, {}
        self.names = {}  # Node to the name of its value: a getitem's is its tuple's part
        self.inputs, self.nodes = [], []
        self.passed = []  # by output: the input that it is, or -1

    def write(self):
        outputs = []
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self.add_input(node)
            elif node.op == "get_attr":
                self.add_attribute(node)
            elif node.op == "call_function":
                self.add_call(node)
            elif node.op == "output":
                outputs = self.outputs(node)
            else:
                raise CompileError(f"the graph holds a node of the kind '{node.op}': {node}")
        return {
            "inputs": self.inputs,
            "outputs": outputs,
            "nodes": self.nodes,
            "tensor_values": self.tensors,
            "sym_int_values": self.ints,
            "sym_float_values": self.floats,
            "sym_bool_values": self.bools,
        }

    def define(self, name, value):
        """Notes the type of a value; the argument that refers to it."""
        if isinstance(value, torch.Tensor):
            self.tensors[name] = self.document.tensor_meta(value)
            return {"as_tensor": {"name": name}}
        for types, table, arm in (
            ((bool, torch.SymBool), self.bools, "as_sym_bool"),
            ((int, torch.SymInt), self.ints, "as_sym_int"),
            ((float, torch.SymFloat), self.floats, "as_sym_float"),
        ):
            if isinstance(value, types):
                table[name] = self.document.number(value)
                return {arm: {"as_name": name}}
        if value is None:
            return {"as_none": True}
        raise CompileError(f"'{name}' is of the type {type(value).__name__}, which coil has not")

    def add_input(self, node):
        self.names[node] = node.name
        argument = self.define(node.name, node.meta.get("val"))
        if node.name not in self.frozen:
            self.inputs.append(argument)

    def attribute(self, node):
        value = self.module
        for part in node.target.split("."):
            value = getattr(value, part)
        return value

    def add_attribute(self, node):
        value = self.attribute(node)
        if not isinstance(value, torch.Tensor):
            return  # a sub-graph; whoever uses the node writes it
        # Names of constants are the document's: two sub-graphs may have one of the same name.
        self.names[node] = node.name
        self.define(node.name, value)
        self.document.constants.append(value)
        self.document.names.append(node.name)

    def add_call(self, node):
        if node.target is operator.getitem and self.take_part(node):
            return
        value, args = node.meta.get("val"), node.args
        self.names[node] = node.name
        if node.target in RESTRIDING:
            args = (*args[: RESTRIDING[node.target] + 2], self.offset_in_base(node))
        if isinstance(value, (tuple, list)):
            parts = part_names(node, len(value))
            outputs = [self.define(name, part) for name, part in zip(parts, value)]
        else:
            outputs = [] if value is None else [self.define(node.name, value)]
        named = dict(node.kwargs)
        if node.target is keyed:
            _, named["random_key"], named["random_op"], *args = args
        written = {
            "name": node.name,
            "target": target_name(node),
            "inputs": [{"name": "", "arg": self.argument(a)} for a in args]
            + [{"name": k, "arg": self.argument(v)} for k, v in named.items()],
            "outputs": outputs,
            "metadata": metadata(node),
        }
        self.nodes.append(written)

    def offset_in_base(self, node):
        """Where an as_strided begins, from the first element that coil has of the input or result that
        it views. torch counts from the start of the memory, which a graph does not know."""
        base, offset = base_of(node), offset_from(node)
        first, rest = in_elements(node, self.memories.get(base.name, (0, 0))[0])
        if rest:
            raise CompileError(f"'{node}' (as_strided) begins between two elements of '{base}'")
        if not isinstance(offset, int):
            if first == 0:
                return offset
            raise CompileError(f"'{node}' (as_strided) begins where a size says, in memory before '{base}'")
        offset -= first
        if offset < 0:
            raise CompileError(f"'{node}' (as_strided) begins before the first element of '{base}'")
        return offset

    def take_part(self, node):
        """x[i] of a node with several results: a name for the part, and no node."""
        of, index = node.args
        value = of.meta.get("val") if isinstance(of, Node) else None
        if not isinstance(value, (tuple, list)):
            return False
        self.names[node] = part_names(of, len(value))[index]
        return True

    def argument(self, value):
        if isinstance(value, Node):
            return self.reference(value)
        if isinstance(value, (tuple, list)):
            return self.list_argument(value)
        if value is None:
            return {"as_none": True}
        if isinstance(value, (bool, int, float)):
            return self.document.number(value)
        if isinstance(value, complex):
            return {"as_complex": {"real": real(value.real), "imag": real(value.imag)}}
        if isinstance(value, str):
            return {"as_string": value}
        if isinstance(value, torch.dtype):
            if value not in DTYPES:
                raise CompileError(f"coil has no {value}")
            return {"as_scalar_type": DTYPES[value]}
        if isinstance(value, torch.device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, torch.memory_format):
            return {"as_memory_format": MEMORY_FORMATS[value]}
        if isinstance(value, torch.layout):
            return {"as_layout": STRIDED if value is torch.strided else OTHER_LAYOUT}
        # An op with such an argument is none of coil's; that it is missing is said by its name.
        return {"as_string": repr(value)}

    def reference(self, node):
        if node.op == "get_attr":
            value = self.attribute(node)
            if isinstance(value, GraphModule):
                graph = GraphWriter(self.document, value).write()
                return {"as_graph": {"name": node.name, "graph": graph}}
        name, value = self.names[node], node.meta.get("val")
        if isinstance(value, (bool, torch.SymBool)):
            return {"as_sym_bool": {"as_name": name}}
        if isinstance(value, (int, torch.SymInt)):
            return {"as_sym_int": {"as_name": name}}
        if isinstance(value, (float, torch.SymFloat)):
            return {"as_sym_float": {"as_name": name}}
        return {"as_tensor": {"name": name}}

    def list_argument(self, values):
        def each(kind):
            return all(isinstance(v, kind) for v in values)

        is_symbolic = [isinstance(v, Node) and is_number(v.meta.get("val")) for v in values]
        if not values:
            return {"as_ints": []}
        if each(bool):
            return {"as_bools": list(values)}
        if each(int):
            return {"as_ints": list(values)}
        if each((int, float)):
            return {"as_floats": [real(float(v)) for v in values]}
        if all(is_symbolic[i] or isinstance(v, int) for i, v in enumerate(values)):
            return {
                "as_sym_ints": [
                    {"as_name": self.names[v]} if isinstance(v, Node) else {"as_int": v}
                    for v in values
                ]
            }
        if each(Node):
            return {"as_tensors": [{"name": self.names[v]} for v in values]}
        if all(v is None or isinstance(v, Node) for v in values):
            return {
                "as_optional_tensors": [
                    {"as_none": True} if v is None else {"as_tensor": {"name": self.names[v]}}
                    for v in values
                ]
            }
        return {"as_string": repr(values)}

    def outputs(self, node):
        taken = self.module.graph.find_nodes(op="placeholder")
        taken = [n for n in taken if n.name not in self.frozen]
        places = {n: i for i, n in enumerate(taken)}
        results = node.args[0]
        results = results if isinstance(results, (tuple, list)) else (results,)
        self.passed = [places.get(written_to(r), -1) for r in results]
        return [self.argument(r) for r in results]


def base_of(node):
    """The input or result of which an as_strided, through other views, sees the memory."""
    base = node.args[0]
    while (seen := viewed_by(base)) is not None:
        base = seen
    return base


def viewed_by(node):
    """The tensor that a call's result is a view of. Schemas do not say this of unsafe_chunk and others."""
    if node.op != "call_function":
        return None
    call = node.args[0] if node.target is operator.getitem else node
    given = (n for n in call.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor))
    return next((n for n in given if memory_of(n) == memory_of(node)), None)


def offset_from(node):
    """Where an as_strided begins, from the first element of its base, in elements of its own."""
    at = RESTRIDING[node.target] + 2
    base, given = base_of(node), node.args[at] if len(node.args) > at else None
    start, rest = in_elements(node, base.meta["val"].storage_offset())
    if rest:
        raise CompileError(f"'{node}' (as_strided) is of elements between which '{base}' begins")
    if isinstance(given, Node):
        if isinstance(start, int) and start == 0:
            return given
        given = given.meta["val"]
    offset = (node.args[0].meta["val"].storage_offset() if given is None else given) - start
    if not isinstance(offset, int):
        raise CompileError(f"'{node}' (as_strided) begins where a size says, in '{base}', which does not begin at 0")
    return offset


def item_sizes(node):
    """Bytes of an element of an as_strided, and of its base."""
    return node.args[0].meta["val"].dtype.itemsize, base_of(node).meta["val"].dtype.itemsize


def in_elements(node, count):
    """A number of the base's elements as one of an as_strided's, and the bytes that are left."""
    own, of_base = item_sizes(node)
    return (count, 0) if own == of_base else divmod(count * of_base, own)


def memories(module):
    """The inputs that as_strided sees where they have no element, or where places are not elements in
    order: name to (first, elements), the part of their memory that the graph is given in their place,
    from their first element."""
    reaches = {}
    for node in module.graph.nodes:
        if node.target not in RESTRIDING or base_of(node).op != "placeholder":
            continue
        at = RESTRIDING[node.target]
        sizes, strides = (concrete(x) for x in node.args[at : at + 2])
        start = offset_from(node)
        if sizes is not None and strides is not None and isinstance(start, int) and 0 not in sizes:
            own, of_base = item_sizes(node)
            end = -(-(start + span_of(sizes, strides)) * own // of_base)
            reaches.setdefault(base_of(node), []).append((start * own // of_base, end))
    out = {}
    for base, seen in reaches.items():
        value = base.meta["val"]
        sizes, strides = concrete(value.shape), concrete(value.stride())
        if sizes is None or strides is None or value.is_conj() or value.is_neg():
            continue
        own = 0 if 0 in sizes else span_of(sizes, strides)
        first, end = min(0, *(a for a, _ in seen)), max(own, *(b for _, b in seen))
        if first < 0 or end > own or not is_dense(sizes, strides):
            out[base.name] = (first, end - first)
    return out


def concrete(values):
    """Numbers that are known, or None."""
    values = [v.meta["val"] if isinstance(v, Node) else v for v in values]
    return values if all(isinstance(v, int) for v in values) else None


def span_of(sizes, strides):
    return 1 + sum((n - 1) * s for n, s in zip(sizes, strides))


def is_dense(sizes, strides):
    """Whether each place from the first to the last is one element."""
    filled = 1
    for stride, size in sorted((s, n) for n, s in zip(sizes, strides) if n != 1):
        if stride != filled:
            return False
        filled *= size
    return True


def memory_of(node):
    return node.meta["val"].untyped_storage()._cdata


def written_to(value):
    """The tensor that a value is: a write to a tensor gives that tensor."""
    while isinstance(value, Node) and value.target is torch.ops.aten.copy_.default:
        value = value.args[0]
    return value if isinstance(value, Node) else None


def is_number(value):
    return isinstance(value, (int, float, torch.SymInt, torch.SymFloat, torch.SymBool))


def real(value):
    """JSON has no infinities."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def part_names(node, count):
    """Names of the results of a node with several: those of the first getitem of each."""
    names = [f"{node.name}_part{i}" for i in range(count)]
    for user in reversed(list(node.users)):
        if user.target is operator.getitem and isinstance(user.args[1], int):
            names[user.args[1]] = user.name
    return names


def target_name(node):
    """The op of a node as torch.export writes it. A node that only stands around an op, to give it
    a key or to take its writes out, has that op's name."""
    target = node.target
    if target is keyed or str(target) in ("auto_functionalized", "auto_functionalized_v2"):
        target = node.args[0]
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"torch.ops.higher_order.{target}"
    return f"{target.__module__}.{target.__name__}"


def metadata(node):
    """Where in the user's code the node comes from."""
    out = {}
    trace = node.meta.get("stack_trace")
    if trace:
        out["stack_trace"] = trace
    modules = node.meta.get("nn_module_stack")
    if modules:
        key, row = next(reversed(modules.items()))
        out["nn_module_stack"] = f"{key},{row[0]},"
    return out
