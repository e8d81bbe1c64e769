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
    ("more than one element of the written-to tensor",
     "The harness could not fill the inputs in float64; since it can, the decoder layer passes, and one of the attention's "
     "gradients of 27 elements is 2.2 times as far from float64 as eager's."),
    ("missing: testlib::",
     "A custom op that has no decomposition is an error by default, which names it; with fallback=\"allow\" torch runs it."),
]


def explanation(reason, cases):
    text = f"{reason}: {', '.join(cases)}"
    for pattern, why in ROWS:
        if re.search(pattern, text):
            return why
    return "Not explained yet."
