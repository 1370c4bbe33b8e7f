"""Cost of a run so far, from the answers in its journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from agentv.model.values.usage import UNKNOWN, Amount, Ceiling, TokenUsage
from agentv.store.files.lines import read_lines
from agentv.store.journal.answers import discarded_in, is_summary_checksum, row_checksum_in, verified


class _AnswerCost(Struct, gc=False):
    token_usage: TokenUsage | None = None
    cost_usd: float | None = None
    earlier: bool = False
    metered: bool = False
    target: str = ""
    spent: str = ""


@dataclass(frozen=True, slots=True)
class JournalSpending:
    """The cost and tokens of the answers of a journal.

    Attributes:
        total: all together.
        largest: name of a target → the most that one of its answers took, of those that report it; lines without a
            target are under an empty name.
    """

    total: Amount
    largest: Mapping[str, Ceiling]


_answer_cost = msgspec.json.Decoder(_AnswerCost)


def spent_in(journal: Path) -> JournalSpending:
    """Over all answers that a run was given, those that it asked for again later among them.

    Answers of other runs cost nothing here. A damaged line counts as none.

    Raises:
        StoreError: the file cannot be read.
    """
    total = Amount()
    largest: dict[str, Ceiling] = {}
    for _, line in read_lines(journal):
        body = verified(line.rstrip(b"\n"))
        try:
            if body is None or is_summary_checksum(line):
                continue
            if row_checksum_in(line) is not None or discarded_in(line) is not None:
                continue
            answer = _answer_cost.decode(body)
        except (ValueError, msgspec.DecodeError):  # it has a checksum, but agentv did not write it
            continue
        if not answer.earlier and not answer.metered:
            target = answer.target or answer.spent
            usage = answer.token_usage
            tokens = None if usage is None else usage.total or (usage.input or 0) + (usage.output or 0)
            total += Amount(answer.cost_usd or 0.0, tokens or 0)
            largest[target] = largest.get(target, UNKNOWN).at_least(answer.cost_usd, tokens)
    return JournalSpending(total, largest)
