"""What a run has paid for so far, by the answers in its journal."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from agentv.model.budget import Amount
from agentv.model.response import TokenUsage
from agentv.store.answers import anew_in, seal_in, unsealed
from agentv.store.lines import read_lines


class _Answer(Struct, gc=False):
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    earlier: bool = False


_answer = msgspec.json.Decoder(_Answer)


def spent_in(journal: Path) -> Amount:
    """The sum over all answers that a run was given, those that it asked for anew later among them.

    Answers of other runs cost nothing here. A damaged line counts as none.

    Raises:
        StoreError: the file cannot be read.
    """
    usd, tokens = 0.0, 0
    for _, line in read_lines(journal):
        body = unsealed(line.rstrip(b"\n"))
        if body is None or seal_in(line) is not None or anew_in(line) is not None:
            continue
        answer = _answer.decode(body)
        if not answer.earlier:
            usage = answer.token_usage
            usd += answer.cost_usd or 0.0
            tokens += (usage.total or (usage.input or 0) + (usage.output or 0)) if usage else 0
    return Amount(usd, tokens)
