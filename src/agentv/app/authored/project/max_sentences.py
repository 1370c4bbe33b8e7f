"""`type: max-sentences`: the answer has at most so many sentences."""

import re

from agentv import AssertionContext, define_assertion


@define_assertion
def max_sentences(ctx: AssertionContext, *, maximum: int = 3) -> bool:
    """Count the sentences. A bool, a number or an AssertionScore can be returned."""
    return len(re.findall(r"[.!?](?:\s|$)", ctx.output or "")) <= maximum
