"""Users' Python functions, called with what they ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from agentv.model.values.response import Failure
from agentv.user_code.functions.guard import ForeignError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallPlan:
    """Which offered value goes where in a call. Made once for a function, used for every call of it.

    Attributes:
        positional: names of the offered values that go in front, in order.
        named: parameter → name of the offered value.
    """

    positional: tuple[str, ...]
    named: Mapping[str, str]

    @property
    def used(self) -> frozenset[str]:
        """The names of the offered values that are used."""
        return frozenset((*self.positional, *self.named.values()))

    def bind(self, function: Callable[..., T], offered: Mapping[str, Any]) -> Callable[[], T]:
        """The call, ready to be made, with these values."""
        positional = [offered[name] for name in self.positional]
        return partial(function, *positional, **{parameter: offered[name] for parameter, name in self.named.items()})


def plan_call(function: Callable[..., Any], offered: Collection[str], single: str) -> CallPlan:
    """How to call a function that asks by the names of its parameters for what is offered.

    A single required parameter of another name gets the value named `single`; so does the first parameter of a
    function that requires none and asks for nothing. One with `**kwargs` gets everything.

    Raises:
        ForeignError: it requires a parameter that is not offered; the failure's code is `bad-signature`.
    """
    parameters = _parameters(function)
    plain = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    named = {one.name: one.name for one in plain if one.name in offered}
    unknown = _unknown_parameter(plain, named, single)
    if unknown is not None:
        named[unknown] = single
    missing = [one.name for one in plain if one.default is one.empty and one.name not in named]
    if missing:
        message = f"{_name(function)} has the parameters {', '.join(missing)}; available: {', '.join(offered)}"
        raise ForeignError(Failure("bad-signature", message))
    front = _front(plain, named)
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        named = {name: name for name in offered if name not in front} | named
    elif not plain and parameters:  # nothing but *args
        front = {single: single}
    return CallPlan(tuple(front.values()), {name: value for name, value in named.items() if name not in front})


def arguments_for(function: Callable[..., Any], offered: Mapping[str, Any], single: str) -> dict[str, Any]:
    """The keyword arguments that a function asks for by name, out of what is offered, as `plan_call` has it.

    Raises:
        ForeignError: it requires a parameter that is not offered, or cannot be called with keywords alone.
    """
    plan = plan_call(function, offered, single)
    if plan.positional:
        raise ForeignError(Failure("bad-signature", f"{_name(function)} has positional-only parameters"))
    return {parameter: offered[name] for parameter, name in plan.named.items()}


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:  # some functions written in C have none
        raise ForeignError(
            Failure("bad-signature", f"cannot inspect the parameters of {function!r}: {error}")
        ) from None


def _unknown_parameter(plain: Sequence[inspect.Parameter], named: Mapping[str, str], single: str) -> str | None:
    """The parameter of a name of its own that gets the lone value; None where that is clear to be nobody."""
    required = [one.name for one in plain if one.default is one.empty]
    if single in named:
        return None
    if len(required) == 1 and required[0] not in named:
        return required[0]
    return plain[0].name if plain and not required and not named else None


def _front(plain: Iterable[inspect.Parameter], named: Mapping[str, str]) -> dict[str, str]:
    """What goes by position, up to the first parameter that is left to its default."""
    by_position = takewhile(lambda one: one.kind is one.POSITIONAL_ONLY and one.name in named, plain)
    return {one.name: named[one.name] for one in by_position}


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", function))
