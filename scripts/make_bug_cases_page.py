#!/usr/bin/env python3
"""Writes docs/bug_cases.md from the registry of tests/python/bug_rows*.py. `--check`: whether it is current."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "python"
PAGE = ROOT / "docs" / "bug_cases.md"
sys.path.insert(0, str(TESTS))


def number(report):
    return re.match(r"\S+#\d+", report).group()


def of_process_tests():
    text = (TESTS / "test_bug_cases_process.py").read_text()
    return {n for mark in re.findall(r"@reported\(([^)]*)\)", text) for n in re.findall(r'"([^"]+)"', mark)}


def page():
    import bug_rows
    import bug_rows_layers
    import bug_rows_memory
    import bug_rows_numbers
    import bug_rows_waiting

    assert bug_rows_layers and bug_rows_memory and bug_rows_numbers and bug_rows_waiting
    programs = {number(r.report) for r in bug_rows.ROWS if not r.refusal}
    open_ = {number(r.report): f"coil says so: {r.refusal}" for r in bug_rows.ROWS if r.refusal}
    refusals = {number(r.report) for r in bug_rows.REFUSALS}
    process = of_process_tests()
    waiting = {**dict(bug_rows.WAITING), **{k: v for k, v in open_.items() if k not in programs}}
    tested = programs | refusals | process
    lines = [
        "# Reported defects as tests",
        "",
        "Public reports about tensor compilers, each made the smallest program that shows what went wrong there.",
        "`tests/python/test_bug_cases.py` runs a program in eager PyTorch, on the interpreter, and as kernels fused,",
        "unfused, and fused with all intermediate results returned; at the size of the report and at 1, 15, 16 and",
        "17; with transposed, cut out and expanded inputs; with 1, 2 and 5 threads; and through `torch.compile` with",
        "symbolic sizes. `test_bug_cases_process.py` has those about memory, caches, threads and the environment.",
        "Written by `scripts/make_bug_cases_page.py`.",
        "",
        f"{len(tested | waiting.keys())} reports: {len(tested)} have a test, {len(waiting)} wait. Of the tested,",
        f"{len(programs)} are programs, {len(refusals - programs)} are programs that must be refused, as eager refuses",
        f"them, and {len(process - programs - refusals)} are about the process.",
        "",
        "## Waiting",
        "",
        "| report | reason |",
        "| --- | --- |",
    ]
    lines += [f"| {report} | {why} |" for report, why in sorted(waiting.items())]
    lines += ["", "## Tested", ""]
    line = ""
    for report in sorted(tested):
        if len(line) + len(report) > 108:
            lines.append(line.rstrip())
            line = ""
        line += report + (", " if report != max(tested) else "")
    return "\n".join(lines + [line]) + "\n"


def main():
    text = page()
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == text else "docs/bug_cases.md is not current: run scripts/make_bug_cases_page.py"
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
