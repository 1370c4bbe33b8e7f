"""Scripted replies as a function from calls to steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from agentv.testing.calls import ModelCall
from agentv.testing.steps import STEPS, Answer, Status, Step
from agentv.user_code.functions.guard import ForeignError, foreign_code

Script: TypeAlias = "str | Step | Sequence[str | Step] | Callable[[ModelCall], str | Step]"


def script_of(script: Script) -> Callable[[ModelCall], Step]:
    """The function to ask for each call, one call at a time.

    Raises:
        ValueError: a sequence holds nothing.
        TypeError: something is neither a text nor a step.
    """
    if not isinstance(script, str):
        if callable(script):
            return lambda call: _prompt_text(script, call)
        if isinstance(script, Sequence):
            return _InOrder(script).next
    step = step_of(script)
    return lambda _call: step


def step_of(step: str | Step) -> Step:
    """The step; a text is an answer.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(step, str):
        return Answer(step)
    if isinstance(step, STEPS):
        return step
    raise TypeError(f"a reply must be a text or a step such as Answer(…) or Status(429), found {step!r}")


def _prompt_text(function: Callable[[ModelCall], str | Step], call: ModelCall) -> Step:
    try:
        with foreign_code("target-raised", "the reply function"):
            return step_of(function(call))
    except ForeignError as raised:
        return Status(500, raised.failure.message)


class _InOrder:
    """Each call gets the next step; when they are used up, the last."""

    def __init__(self, steps: Sequence[str | Step]) -> None:
        if not steps:
            raise ValueError("a ModelServer needs at least one step to reply with")
        self._steps = tuple(map(step_of, steps))
        self._next = 0

    def next(self, _call: ModelCall) -> Step:
        step = self._steps[min(self._next, len(self._steps) - 1)]
        self._next += 1
        return step
