"""Conversation settings of a case: `turns`, `conversation_id`, `depends_on` (SPEC section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import dropwhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.message import Message
from agentv.model.values.response import TargetResponse
from agentv.model.values.values import Span


class Turn(Struct, frozen=True):
    """One question of a case, and what grades its answer.

    Attributes:
        input: what this turn adds to the transcript before the target is asked.
        assertions: named after the turn: `turn 2: contains: 'x'`.
        expected_output: the reference for this turn's answer.
    """

    input: tuple[Message, ...]
    assertions: tuple[AssertionEntry, ...] = ()
    criteria: str | None = None
    expected_output: tuple[Message, ...] = ()


Aggregation = Literal["mean", "min", "max"]
OnTurnFailure = Literal["continue", "stop"]
OnDependencyFailure = Literal["skip", "fail", "run"]
UserDone = Literal["achieved", "gave_up", "max_turns", "repeated"]
"""How a conversation with a simulated user ended: by its word, at its limit, or since it repeated itself."""


class Flow(Struct, frozen=True):
    """How the turns of a case follow each other, and how their scores make the case's.

    Attributes:
        aggregation: of the scores of the turns, and of the case's own assertions; None: all assertions count alike.
        on_turn_failure: whether the turns after one that fails are asked.
        window_size: a turn's call has the system messages and the last 2 × `window_size` others; None: all.
    """

    aggregation: Aggregation | None = None
    on_turn_failure: OnTurnFailure = "continue"
    window_size: int | None = None

    def shown(self, spoken: Iterable[Message], turn: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages that the target gets for a turn: what was said before, as far as it is shown, and the turn.

        A result of a tool whose call is not shown is left out, since no model takes it alone.
        """
        before = sendable(spoken)
        if self.window_size is None:
            return (*before, *turn)
        others = [one for one in before if one.role != "system"]
        kept = max(0, 2 * self.window_size - len(turn))
        last = others[len(others) - kept :] if kept < len(others) else others
        whole = dropwhile(lambda one: one.role == "tool", last)
        return (*(one for one in before if one.role == "system"), *whole, *turn)


PLAIN = Flow()


class Dependency(Struct, frozen=True):
    """A case that must pass before another one runs, and its position in the file."""

    id: str
    span: Span | None = None


class Link(Struct, frozen=True):
    """Dependencies of one case on others of its suite.

    Attributes:
        depends_on: ids of the cases that must pass first.
        follows: id of the case before it in its conversation.
        story: hash of everything authored for the cases before it, which determine its result.
    """

    depends_on: tuple[str, ...] = ()
    follows: str | None = None
    story: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Every case that must run before this one."""
        return self.depends_on if self.follows is None else (self.follows, *self.depends_on)


def answer_messages(answer: TargetResponse, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages that an answer adds to a transcript, tool calls included.

    A target may report the whole conversation rather than its own part. Where what it reports begins with what it was
    asked, that much is left out: nothing stands in a transcript twice.
    """
    reported = answer.messages
    if not reported:
        return (Message("assistant", answer.said),)
    begins = len(reported) > len(messages) and all(
        one.role == sent.role and (not isinstance(sent.content, str) or one.text == sent.content)
        for one, sent in zip(reported, messages, strict=False)
    )
    return reported[len(messages) :] if begins else reported


def sendable(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A transcript as a target is sent it: files that a target answered with are given by their names."""
    return tuple(
        replace(one, content=one.text) if one.role == "assistant" and isinstance(one.content, tuple) else one
        for one in messages
    )
