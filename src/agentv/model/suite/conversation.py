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
    """One turn of a case: the messages to send, and the assertions that grade the answer.

    Attributes:
        input: messages that this turn adds to the transcript before the target is called.
        assertions: their names begin with the turn: `turn 2: contains: 'x'`.
        expected_output: reference for this turn's answer.
    """

    input: tuple[Message, ...]
    assertions: tuple[AssertionEntry, ...] = ()
    criteria: str | None = None
    expected_output: tuple[Message, ...] = ()


Aggregation = Literal["mean", "min", "max"]
OnTurnFailure = Literal["continue", "stop"]
OnDependencyFailure = Literal["skip", "fail", "run"]
UserDone = Literal["achieved", "gave_up", "max_turns", "repeated"]
"""How a conversation with a simulated user ended: it said so, reached its turn limit, or repeated itself."""


class Flow(Struct, frozen=True):
    """How the turns of a case run, and how their scores are combined into the case's score.

    Attributes:
        aggregation: how the scores of the turns and of the case's own assertions are combined; None if all assertions
            count equally, whichever turn they belong to.
        on_turn_failure: whether to continue after a turn that fails.
        window_size: if set, a call sends the system messages and only the last 2 × `window_size` other messages.
    """

    aggregation: Aggregation | None = None
    on_turn_failure: OnTurnFailure = "continue"
    window_size: int | None = None

    def messages_for(self, earlier: Iterable[Message], turn: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages to send for a turn: the earlier messages inside the window, then those of the turn.

        Tool results at the start of the window are left out, because models reject a result without its call.
        """
        before = sendable(earlier)
        if self.window_size is None:
            return (*before, *turn)
        others = [one for one in before if one.role != "system"]
        kept = max(0, 2 * self.window_size - len(turn))
        last = others[len(others) - kept :] if kept < len(others) else others
        whole = dropwhile(lambda one: one.role == "tool", last)
        return (*(one for one in before if one.role == "system"), *whole, *turn)


PLAIN = Flow()


class Dependency(Struct, frozen=True):
    """The id of a case that must pass before another one runs, and the position where it is named."""

    id: str
    span: Span | None = None


class Link(Struct, frozen=True):
    """Dependencies of a case on other cases of its suite.

    Attributes:
        depends_on: ids of the cases that must pass first.
        follows: id of the previous case of its conversation.
        predecessors_sha256: hash of everything authored for the cases before it, since they determine its result.
    """

    depends_on: tuple[str, ...] = ()
    follows: str | None = None
    predecessors_sha256: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """The ids of all cases that must run before this one."""
        return self.depends_on if self.follows is None else (self.follows, *self.depends_on)


def answer_messages(answer: TargetResponse, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages that an answer adds to a transcript, including tool calls.

    A target may report the whole conversation instead of only its own messages. If the reported messages begin with the
    messages that it was sent, these are dropped, so that no message is in the transcript twice.
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
    """Return a transcript as it is sent to a target: files in earlier answers are replaced by their names."""
    return tuple(
        replace(one, content=one.text) if one.role == "assistant" and isinstance(one.content, tuple) else one
        for one in messages
    )
