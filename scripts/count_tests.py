#!/usr/bin/env python3
"""count_tests.py LOGS [SUITE...]: sums the results in the logs that `make test` leaves, of all suites or of some.

Prints one line a suite and, last, `N passed, N failed, N skipped`. A suite that left no result counts
as one failure, so that a test run that broke off cannot look well.
"""

import pathlib
import re
import sys


def count_ctest(text):
    """ctest lists tests that did not pass; its summary says `N tests failed out of M`."""
    total = re.search(r"(\d+) tests? failed out of (\d+)", text)
    if not total:
        return None
    bad, count = int(total.group(1)), int(total.group(2))
    skipped = len(re.findall(r"^\s*\d+ - .* \((?:Skipped|Disabled|Not Run \(Disabled\))\)$", text, re.M))
    return count - bad - skipped, bad, skipped


def count_cases(text):
    lines = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M)
    return tuple(map(int, lines[-1])) if lines else None


def count_lint(text):
    """Each of the checkers is one test."""
    lines = re.findall(r"^(?:lint|isa): \d+ \w+, (\d+) breaches$", text, re.M)
    if not lines:
        return None
    bad = sum(int(n) > 0 for n in lines)
    return len(lines) - bad, bad, 0


def count_pytest(text):
    if re.search(r"^\[test-torch\] no suites$|^no tests ran", text, re.M):
        return 0, 0, 0
    lines = re.findall(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s", text, re.M)
    if not lines:
        return None
    words = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", lines[-1])}
    bad = words.get("failed", 0) + words.get("errors", 0) + words.get("error", 0)
    good = words.get("passed", 0) + words.get("xfailed", 0)
    return good, bad + words.get("xpassed", 0), words.get("skipped", 0)


SUITES = {"lint": count_lint, "ctest": count_ctest, "cases": count_cases, "pytest": count_pytest}


def main():
    logs = pathlib.Path(sys.argv[1])
    total = [0, 0, 0]
    for suite in sys.argv[2:] or SUITES:
        path = logs / f"{suite}.log"
        result = SUITES[suite](path.read_text(errors="replace")) if path.is_file() else None
        note = ""
        if result is None:
            result, note = (0, 1, 0), " (left no result)"
        print(f"{suite}: {result[0]} passed, {result[1]} failed, {result[2]} skipped{note}")
        total = [a + b for a, b in zip(total, result)]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
