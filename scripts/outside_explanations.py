"""Why a case of outside_suites.py fails, as docs/outside_suites.md says it."""

import re

# A pattern of "REASON: CASES", and what is behind it. The first that fits counts.
ROWS = [
    ("missing: higher_order::while_loop_stack_output",
     "It stacks the values of all rounds of a loop: how many there are, which is a size of the result, is known when "
     "the loop has ended. coil's loops give their last values only."),
    ("missing: testlib::",
     "A custom op that has no decomposition is an error by default, which names it; with fallback=\"allow\" torch runs it."),
]


def explanation(reason, cases):
    text = f"{reason}: {', '.join(cases)}"
    for pattern, why in ROWS:
        if re.search(pattern, text):
            return why
    return "Not explained yet."
