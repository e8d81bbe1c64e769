"""Why a case of outside_suites.py fails, as docs/outside_suites.md says it."""

import re

# A pattern of "REASON: CASES", and what is behind it. The first that fits counts.
ROWS = []


def explanation(reason, cases):
    text = f"{reason}: {', '.join(cases)}"
    for pattern, why in ROWS:
        if re.search(pattern, text):
            return why
    return "Not explained yet."
