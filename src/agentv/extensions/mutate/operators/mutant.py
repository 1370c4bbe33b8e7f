"""What an operator gets, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from zlib import crc32

from agentv.extensions.mutate.operators.named import NOTHING_NAMED, NamedWords
from agentv.model.values.message import Message
from agentv.model.values.trace import Trace
from agentv.model.values.values import Json

MOST = 3
"""Mutants that one operator makes of one answer, at most."""

SHOWN = 60
"""Characters of an answer that a message quotes, at most."""

Line = Mapping[str, Json]
"""An assertion as an eval file has it, such as `{"contains": "30 days"}`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A passing answer.

    Attributes:
        case: the id of its case; with the operator it decides what is drawn.
        output: its text.
        messages: its transcript, if the target reports one.
        trace: what an agent did; None: it reports no trace.
        others: answers to other cases of the suite.
        named: what its checks name.
        phrases: texts that they name as a whole.
    """

    case: str
    output: str
    messages: tuple[Message, ...] = ()
    trace: Trace | None = None
    others: tuple[str, ...] = ()
    named: NamedWords = NOTHING_NAMED
    phrases: tuple[str, ...] = ()

    def drawn(self, what: str, count: int) -> int:
        """A number below `count` that is the same in every run."""
        return crc32(f"{self.case}\0{what}".encode(errors="surrogatepass")) % count


@dataclass(frozen=True, slots=True)
class Mutant:
    """An answer made worse in one way.

    Attributes:
        change: what was done, as it follows `no check noticed that`.
        counts: it touches what the checks name, so that a check has to notice it.
        output: its text; None: as it was.
        messages, trace: what the agent did, where that changed; None: as it was.
        lines: assertions that may notice it, the best first; none is tried yet.
    """

    change: str
    counts: bool
    output: str | None = None
    messages: tuple[Message, ...] | None = None
    trace: Trace | None = None
    lines: tuple[Line, ...] = ()

    def is_change_of(self, answer: Answer) -> bool:
        """Whether it differs from the answer that it was made of."""
        if answer.trace is not None and self.messages is not None:
            return self.trace != answer.trace
        if self.messages is not None:
            return self.messages != answer.messages
        return self.output != answer.output


Make = Callable[[Answer], Iterable[Mutant]]


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to make an answer worse.

    Attributes:
        description: what it does, for `--help` and the documentation.
        make: the mutants of an answer, those that count first; none if it does not fit.
    """

    name: str
    description: str
    make: Make


def quoted(text: str) -> str:
    """A text in quotation marks, on one line and shortened, for a message."""
    line = " ".join(text.split())
    return f'"{line if len(line) <= SHOWN else line[: SHOWN - 1].rstrip() + "…"}"'
