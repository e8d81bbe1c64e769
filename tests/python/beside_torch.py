"""Whether the torch that is here can do what a test asks of it, without coil. Asked only of what has failed:
a test whose program coil compiles right is never skipped."""

import contextlib
import copy

import pytest
import torch


def outcome(function, args, backend, **options):
    """The leaves of what a call gives, and its arguments afterwards."""
    torch._dynamo.reset()
    mine = copy.deepcopy(args)
    run = torch.compile(function, backend=backend, **options) if backend else function
    return torch.utils._pytree.tree_leaves((run(*mine), mine))


def what_torch_lacks(function, args, **options):
    """Why torch's own tracing does not give what eager gives; "" where it does."""
    try:
        expected = outcome(function, args, None)
    except Exception as problem:
        return f"eager: {first_line(problem)}"
    try:
        found = outcome(function, args, "aot_eager", **options)
    except Exception as problem:
        return f"AOT Autograd: {first_line(problem)}"
    try:
        torch.testing.assert_close(found, expected, equal_nan=True)
    except AssertionError:
        return "AOT Autograd gives other values than its eager"
    return ""


def first_line(problem):
    return f"{type(problem).__name__} {problem}".strip().split("\n")[0]


@contextlib.contextmanager
def skips_what_torch_lacks(function, *args, **options):
    """Around the compiled call of `function` and its check: a failure that torch has without coil is a skip."""
    args = copy.deepcopy(args)
    try:
        yield
    except Exception:
        lack = what_torch_lacks(function, args, **options)
        if lack:
            pytest.skip(f"this torch's {lack}")
        raise
