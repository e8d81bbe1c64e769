"""Programs through coil: on the interpreter, and compiled with and without fusion, many in one compile."""

import dataclasses
import re

import torch
from fuzz_agree import Judge, same_bits
from fuzz_program import Merged

import coil
from coil.fx import Document
from coil.session import session

WAYS = {
    "interp": {"target": "interp", "verify": True},
    "fused": {"verify": True},
    "unfused": {"fuse": False, "verify": True},
}
MAX_BATCH = 64
# Sizes that meet are taken for equal where data gives one of them, as torch.export takes them; that this is
# so is checked in the call. In eager one of them may be 1.
TAKEN_FOR_EQUAL = re.compile(r"sizes .*\bu\d+\b.* must agree")


@dataclasses.dataclass
class Verdict:
    kind: str  # "ok", "refused": coil says that it cannot, or "different"
    detail: str = ""
    way: str = ""


class Refused(Exception):
    """coil does not take the program, and says so."""


def imported(merged, options):
    try:
        document = Document(merged.module)
        program = session(options).import_graph(document.text(), document.constants)
    except coil.CompileError as problem:
        raise Refused(str(problem)) from None
    if program.missing:
        raise Refused("missing: " + ", ".join(op for op, _, _ in program.missing))
    return program


def refusal(program):
    """What coil says if it does not take the program, else None."""
    try:
        imported(Merged([program]), coil.Options())
    except Refused as problem:
        return problem
    return None


class Build:
    """Programs compiled in one way."""

    def __init__(self, programs, way, threads=1):
        self.programs, self.way = programs, way
        self.options = coil.Options(WAYS[way], threads=threads)
        program = imported(Merged(programs), self.options)
        try:
            self.compiled = session(self.options).compile(program, self.options._table)
        except coil.CompileError as problem:
            raise Refused(str(problem)) from None

    def run(self):
        """(results, inputs afterwards) of each program."""
        inputs = [[s.tensor() for s in p.inputs] for p in self.programs]
        found = self.compiled([x for row in inputs for x in row])
        out, at = [], 0
        for program, row in zip(self.programs, inputs):
            out.append((found[at : at + len(program.outputs)], row))
            at += len(program.outputs)
        return out


def check_alone(program, way, judge=None):
    """The Verdict on one program in one way."""
    judge = judge or Judge(program)
    try:
        build = Build([program], way)
    except Refused as problem:
        return Verdict("refused", str(problem), way)
    except Exception as problem:
        return Verdict("different", f"internal: {problem}", way)
    try:
        (outputs, inputs), = build.run()
    except coil.RunError as problem:
        kind = "refused" if TAKEN_FOR_EQUAL.search(str(problem)) else "different"
        return Verdict(kind, f"the call fails: {problem}", way)
    except Exception as problem:
        return Verdict("different", f"internal: {problem}", way)
    detail = judge.difference(outputs, inputs, way != "interp")
    return Verdict("different", detail, way) if detail else Verdict("ok")


def check_fusion(program):
    """Fused and unfused give the same bits."""
    runs = []
    for way in ("fused", "unfused"):
        try:
            runs += Build([program], way).run()
        except Exception:
            return Verdict("ok")
    return same_runs(*runs)


def same_runs(a, b):
    for i, (x, y) in enumerate(zip([*a[0], *a[1]], [*b[0], *b[1]])):
        if isinstance(x, torch.Tensor) and not same_bits(x, y):
            return Verdict("different", f"result {i}: fused and unfused differ", "fusion")
    return Verdict("ok")


def check_all_alone(program):
    """The first Verdict that is not ok."""
    judge = Judge(program)
    for way in WAYS:
        verdict = check_alone(program, way, judge)
        if verdict.kind != "ok":
            return verdict
    return check_fusion(program)


def check_batch(programs, compiles=True):
    """A Verdict for each program. Those that the interpreter agrees on are compiled together."""
    verdicts = []
    judges = []
    for i, program in enumerate(programs):
        judges.append(Judge(program))
        verdicts.append(check_alone(program, "interp", judges[i]))
    good = [i for i, v in enumerate(verdicts) if v.kind == "ok" and compiles]
    for start in range(0, len(good), MAX_BATCH):
        check_compiled(programs, judges, verdicts, good[start : start + MAX_BATCH])
    return verdicts


def check_compiled(programs, judges, verdicts, chosen):
    """Compiles these together; where that fails, the halves."""
    if not chosen:
        return
    runs = []
    try:
        for way in ("fused", "unfused"):
            runs.append(Build([programs[i] for i in chosen], way).run())
    except Exception as problem:
        if len(chosen) == 1:
            verdicts[chosen[0]] = check_all_alone(programs[chosen[0]])
        else:
            half = len(chosen) // 2
            check_compiled(programs, judges, verdicts, chosen[:half])
            check_compiled(programs, judges, verdicts, chosen[half:])
        if all(verdicts[i].kind == "ok" for i in chosen):
            text = f"with the {len(chosen) - 1} programs after it, not alone: {problem}"
            verdicts[chosen[0]] = Verdict("different", text, "together")
        return
    for k, i in enumerate(chosen):
        for way, run in zip(("fused", "unfused"), runs):
            detail = judges[i].difference(*run[k])
            if detail:
                verdicts[i] = Verdict("different", detail, way)
                break
        else:
            verdicts[i] = same_runs(runs[0][k], runs[1][k])
