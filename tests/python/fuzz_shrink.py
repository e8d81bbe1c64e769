"""A smaller program that still fails in the same way."""

import dataclasses

import torch
from fuzz_agree import Judge
from fuzz_program import Program, Ref, Source, Step, map_refs, only, replay
from fuzz_run import check_all_alone, check_alone, check_fusion


def kind_of(verdict):
    """What must stay: the way, and the words of the detail without its numbers."""
    detail = verdict.detail
    for head in ("the call fails", "internal", "results"):
        if detail.startswith(head):
            return verdict.kind, head
    words = "instead" if "instead of" in detail else detail.split(":")[0]
    return verdict.kind, "strides" if "strides" in detail else words


def fails_alike(verdict):
    wanted = kind_of(verdict)

    def test(program):
        try:
            if verdict.way == "fusion":
                found = check_fusion(program)
            elif verdict.way:
                found = check_alone(program, verdict.way)
            else:
                found = check_all_alone(program)
        except Exception:
            return False
        return found.kind == verdict.kind and kind_of(found) == wanted

    return test


def runs(program):
    try:
        Judge(program)
        return True
    except Exception:
        return False


def shrink(program, verdict, budget=150):
    """Steps, outputs and inputs are dropped, results become inputs, sizes and values get simpler."""
    fails = fails_alike(verdict)
    tests = 0
    changed = True
    while changed and tests < budget:
        changed = False
        for candidate in candidates(program):
            if candidate is None or not runs(candidate):
                continue
            tests += 1
            if tests > budget:
                break
            if fails(candidate):
                program, changed = candidate, True
                break
    return program


def candidates(program):
    yield from fewer_outputs(program)
    yield from fewer_steps(program)
    yield from cut(program)
    yield from smaller_sizes(program)
    yield from simpler_layouts(program)
    yield from simpler_values(program)


def all_steps(program):
    return set(range(len(program.steps)))


def fewer_outputs(program):
    if len(program.outputs) > 1:
        for r in program.outputs:
            yield dataclasses.replace(program, outputs=[r])
        for r in program.outputs:
            yield dataclasses.replace(program, outputs=[o for o in program.outputs if o != r])


def fewer_steps(program):
    for i in reversed(range(len(program.steps))):
        yield only(program, all_steps(program) - {i})
    # A step's result may be replaced by an argument of it.
    at = 0
    for i, step in enumerate(program.steps):
        if step.results == 1:
            for r in step.refs():
                yield only(replaced(program, Ref(at), r, i), all_steps(program) - {i})
        at += step.results


def replaced(program, old, new, after):
    change = lambda r: new if r == old else r  # noqa: E731
    steps = [
        Step(s.op, *map_refs((s.args, s.kwargs), change), s.results) if i > after else s
        for i, s in enumerate(program.steps)]
    return Program(program.inputs, steps, [change(r) for r in program.outputs])


def cut(program):
    """A step's result as an input."""
    seen = []

    def call(step, args, kwargs):
        made = step.overload(*args, **kwargs)
        seen.append([made] if isinstance(made, torch.Tensor) else list(made))
        return made

    # Values as they are when made.
    kept = []

    def noting(step, args, kwargs):
        made = call(step, args, kwargs)
        kept.append([Source.of(m) for m in seen[-1]])
        return made

    replay(program, call=noting)
    at = len(kept) and sum(len(k) for k in kept)
    for i in reversed(range(len(program.steps))):
        at -= len(kept[i])
        if i + 1 == len(program.steps):
            continue
        out = Program(program.inputs + kept[i], program.steps, program.outputs)
        for j in range(len(kept[i])):
            out = replaced(out, Ref(at + j), Ref(~(len(program.inputs) + j)), i)
        yield only(out, all_steps(program) - {i})


def smaller_sizes(program):
    sizes = sorted({n for s in program.inputs for n in s.shape if n > 1}, reverse=True)
    for n in sizes:
        for m in (1, 2, n // 2, n - 1):
            if 0 < m < n:
                yield resized(program, n, m)
    for k, source in enumerate(program.inputs):
        for d, n in enumerate(source.shape):
            for m in (1, n // 2, n - 1):
                if 0 < m < n:
                    shape = (*source.shape[:d], m, *source.shape[d + 1 :])
                    yield with_input(program, k, dataclasses.replace(source, shape=shape))


def resized(program, n, m):
    def number(x):
        if isinstance(x, Ref) or isinstance(x, bool):
            return x
        if isinstance(x, (list, tuple)):
            return type(x)(number(y) for y in x)
        return m if isinstance(x, int) and x == n else x

    inputs = [dataclasses.replace(s, shape=tuple(m if k == n else k for k in s.shape)) for s in program.inputs]
    steps = [Step(s.op, number(s.args), {k: number(v) for k, v in s.kwargs.items()}, s.results) for s in program.steps]
    return Program(inputs, steps, program.outputs)


def with_input(program, k, source):
    inputs = list(program.inputs)
    inputs[k] = source
    return dataclasses.replace(program, inputs=inputs)


def simpler_layouts(program):
    for k, source in enumerate(program.inputs):
        plain = Source.of(source.tensor().contiguous())
        if tuple(plain.strides) != tuple(source.strides) or source.offset:
            yield with_input(program, k, plain)
        elif plain.memory.numel() < source.memory.numel():
            yield with_input(program, k, plain)


def simpler_values(program):
    for k, source in enumerate(program.inputs):
        memory = source.memory
        if memory.is_complex():
            continue
        if memory.dtype is torch.bool:
            simpler = [torch.ones_like(memory)]
        elif memory.dtype.is_floating_point:
            simpler = [torch.ones_like(memory), torch.arange(len(memory)).to(memory.dtype), (memory * 4).round() / 4]
        else:
            simpler = [torch.zeros_like(memory), torch.arange(len(memory)).to(memory.dtype)]
        for values in simpler:
            if not torch.equal(values, memory):
                if values.unique().numel() < memory.unique().numel():
                    yield with_input(program, k, dataclasses.replace(source, memory=values))
