"""Higher-order ops that are written in terms of ATen's before coil sees them.

Control flow (cond, while_loop, scan, map) stays whole: coil has it. What stands here is traced once
more, with fake tensors, and takes the node's place.
"""

import operator

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

from coil.decompositions import decompositions


def expand(module, names=None):
    """Replaces the nodes of `module` and of its sub-graphs that have an expansion, or those with one of `names`."""
    names = EXPANSIONS if names is None else names
    for child in module.children():
        if isinstance(child, GraphModule):
            expand(child, names)
    changed = False
    for node in list(module.graph.nodes):
        if node.op == "call_function" and str(node.target) in names:
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                expand_node(module, node)
                changed = True
    if changed:
        module.graph.eliminate_dead_code()
        module.recompile()


def expand_node(module, node):
    """Puts what the node's expansion does with its arguments in its place."""
    function = EXPANSIONS[str(node.target)]
    traced, inputs, structure = trace(module, node, function)
    own_attributes(module, traced, node.name)
    places = dict(zip(traced.graph.find_nodes(op="placeholder"), inputs, strict=True))
    with module.graph.inserting_before(node):
        results = module.graph.graph_copy(traced.graph, places)
    results = results if isinstance(results, (tuple, list)) else (results,)
    hand_over(node, _pytree.tree_unflatten(list(results), structure))
    module.graph.erase_node(node)


def trace(module, node, function):
    """The graph of a call, the nodes that it takes, and how its results are arranged."""
    leaves, spec = _pytree.tree_flatten((node.args, node.kwargs))
    # What is neither a value nor a graph (an option of a wrapper's) is no matter of the computation.
    nodes = [n for n in leaves if isinstance(n, Node) and (n.op == "get_attr" or "val" in n.meta)]
    inputs = [n for n in dict.fromkeys(nodes) if not is_graph(module, n)]
    values = [value_of(module, n) for n in inputs]
    structure = None

    def call(*values):
        nonlocal structure
        by_node = dict(zip(inputs, values))  # leaves may be of any kind that can be hashed
        filled = [
            by_node[x] if x in by_node else value_of(module, x) if x in nodes else x
            for x in leaves
        ]
        args, kwargs = _pytree.tree_unflatten(filled, spec)
        flat, structure = _pytree.tree_flatten(function(*args, **kwargs))
        return flat

    mode = torch._guards.detect_fake_mode(values)
    with torch.no_grad(), mode if mode is not None else torch.no_grad():
        traced = make_fx(call, decomposition_table=decompositions())(*values)
    traced.graph.eliminate_dead_code()
    return traced, inputs, structure


def value_of(module, node):
    if node.op == "get_attr" and "val" not in node.meta:
        return torch.fx.graph_module._get_attr(module, node.target)
    return node.meta["val"]


def is_graph(module, node):
    return node.op == "get_attr" and isinstance(value_of(module, node), GraphModule)


def own_attributes(module, traced, prefix):
    """Constants and graphs of `traced` become `module`'s."""
    for node in traced.graph.find_nodes(op="get_attr"):
        name = f"_{prefix}_{node.target.replace('.', '_')}"
        if not hasattr(module, name):
            setattr(module, name, torch.fx.graph_module._get_attr(traced, node.target))
        node.target = name


def hand_over(node, result):
    """Users of the node, and of its parts, turn to the new nodes."""
    if isinstance(result, Node):
        node.replace_all_uses_with(result)
    else:
        for user in list(node.users):
            if user.target is not operator.getitem:
                raise AssertionError(f"{user} takes all results of {node}")
            hand_over(user, result[user.args[1]])
            node.graph.erase_node(user)


# ---- the expansions ----


def flex_attention(*args):
    """Dense: all scores, each changed by the user's function, masked, softmax, times the values."""
    from torch._higher_order_ops.flex_attention import sdpa_dense

    return sdpa_dense(*args)


def flex_attention_backward(*args):
    from torch._higher_order_ops.flex_attention import sdpa_dense_backward

    return sdpa_dense_backward(*args)


def associative_scan(combine, xs, additional):
    """Of a fixed length: neighbours in pairs, recursively, log2(n) rounds of work on whole tensors.
    Of a length that varies: one step after the other."""
    from torch._higher_order_ops.associative_scan import generic_associative_scan
    from torch._higher_order_ops.scan import scan_op

    def on_lists(*operands):
        return list(combine(*operands))

    if isinstance(xs[0].shape[0], int):
        # `combine` takes slices: here it is applied to all places at once.
        in_dims = (0,) * (2 * len(xs)) + (None,) * len(additional)
        batched = torch.vmap(on_lists, in_dims=in_dims)
        return generic_associative_scan(batched, list(xs), 0, tuple(additional))

    def step(*operands):
        results = on_lists(*operands)
        return [*results, *(r.clone() for r in results)]

    first = [x[0].clone() for x in xs]
    rest = scan_op(step, first, [x[1:] for x in xs], tuple(additional))[len(xs):]
    return [torch.cat([x[:1], r]) for x, r in zip(xs, rest)]


def out_dtype(op, dtype, *args):
    wide = [a.to(dtype) if isinstance(a, torch.Tensor) else a for a in args]
    return op(*wide)


def switch(index, branches, operands):
    """A chain of conds; an index outside takes the nearest branch."""
    from torch._higher_order_ops.cond import cond_op

    def from_branch(i):
        def run(index, *xs):
            if i == len(branches) - 1:
                return branches[i](*xs)
            here = lambda index, *xs: branches[i](*xs)  # noqa: E731
            return cond_op(index <= i, here, from_branch(i + 1), (index, *xs))

        return run

    return from_branch(0)(index, *operands)


def inlined(graph, *args, **kwargs):
    return graph(*args)


EXPANSIONS = {
    "flex_attention": flex_attention,
    "flex_attention_backward": flex_attention_backward,
    "associative_scan": associative_scan,
    "out_dtype": out_dtype,
    "switch": switch,
    "invoke_subgraph": lambda graph, identifier, *operands: graph(*operands),
    "wrap": inlined,
    "tag_activation_checkpoint": inlined,
    "wrap_activation_checkpoint": inlined,
    "invoke_quant": inlined,
    "invoke_quant_packed": inlined,
    "strict_mode": lambda graph, operands: graph(*operands),
    "hints_wrapper": lambda graph, args, kwargs, hints: graph(*args, **kwargs),
    "run_const_graph": lambda graph, operands: graph(*operands),
    "flex_gemm": lambda op, graph, operands, settings, options: graph(*operands),
}

# The partitioner may neither keep their results nor compute them again.
BEFORE_PARTITION = {"invoke_quant", "invoke_quant_packed"}
