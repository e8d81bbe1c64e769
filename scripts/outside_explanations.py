"""Why a case of outside_suites.py fails, as docs/outside_suites.md says it."""

import re

# A pattern of "REASON: CASES", and what is behind it. The first that fits counts.
ROWS = [
    ("missing: higher_order::while_loop_stack_output",
     "It stacks the values of all rounds of a loop: how many there are, which is a size of the result, is known when "
     "the loop has ended. coil's loops give their last values only."),
    (r"\(1,\) of torch.float32 instead of \(\) .*MultiLabelMarginLoss",
     "torch's own decomposition gives the loss of a vector a dim, before any backend: `aot_eager` does the same."),
    ("wrong numbers: .*nn.Transformer$",
     "One of 48 elements of a gradient is off by 1.1e-5, and the gradient is more than twice as far from float64 as eager's."),
    ("wrong numbers: .*nn.MultiheadAttention$",
     "Noise of few numbers: over 64 inputs with four sets of values each the distance of each result and gradient from "
     "float64 is 0.7 to 1.1 times eager's in the median, but up to 18 times where eager happens to be near."),
    ("missing: testlib::",
     "A custom op that has no decomposition is an error by default, which names it; with fallback=\"allow\" torch runs it."),
]


def explanation(reason, cases):
    text = f"{reason}: {', '.join(cases)}"
    for pattern, why in ROWS:
        if re.search(pattern, text):
            return why
    return "Not explained yet."
