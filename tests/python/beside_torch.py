"""Whether the torch that is here can do what a test asks of it, without coil. Asked only of what has failed, and a skip
only where torch fails in the same way: a test whose program coil compiles right is never skipped, nor one where coil
has a fault of its own beside torch's."""

import contextlib
import copy
import re

import pytest
import torch


def outcome(function, args, backend, **options):
    """The leaves of what a call gives, and its arguments afterwards."""
    torch._dynamo.reset()
    mine = copy.deepcopy(args)
    run = torch.compile(function, backend=backend, **options) if backend else function
    return torch.utils._pytree.tree_leaves((run(*mine), mine))


def cause(problem):
    """What was said first, by whom and not of where: torch wraps it in an error that names the backend."""
    problem = getattr(problem, "inner_exception", None) or problem
    text = f"{type(problem).__name__} {problem}".split("from user code")[0].strip()
    return re.sub("(maximum recursion depth exceeded).*", r"\1", text)  # in what, is chance


def differ(found, expected):
    try:
        torch.testing.assert_close(found, expected, equal_nan=True)
    except AssertionError:
        return True
    return False


def what_torch_lacks(problem, function, args, **options):
    """Why torch's own tracing fails as the same call through coil did, with `problem`; "" where it does not."""
    ways = [("eager", None, {}), ("AOT Autograd", "aot_eager", options)]
    found = []
    for name, backend, more in ways:
        try:
            found.append(outcome(function, args, backend, **more))
        except Exception as other:
            return f"{name}: {cause(other)}".split("\n")[0] if cause(other) == cause(problem) else ""
    if isinstance(problem, AssertionError) and differ(*found):
        if not differ(outcome(function, args, "coil", **options), found[1]):
            return "AOT Autograd gives other values than its eager"
    return ""


@contextlib.contextmanager
def skips_what_torch_lacks(function, *args, **options):
    """Around the compiled call of `function` and its check: a failure that torch has without coil is a skip."""
    args = copy.deepcopy(args)
    try:
        yield
    except Exception as problem:
        lack = what_torch_lacks(problem, function, args, **options)
        if lack:
            pytest.skip(f"this torch's {lack}")
        raise
