"""The `mock` target, which returns answers from the eval file, and `echo`, which returns the prompt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Struct

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.values import Json
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Between, Doc, Issue, NoSecrets, Text, Verbatim
from agentv.registry.types import Calls, ProviderSettings
from agentv.targets.http.answers import from_text


class Echo(ProviderSettings, Struct, frozen=True):
    """Returns the prompt."""

    calls: ClassVar[Calls] = "nothing"
    short: ClassVar[str | None] = None
    free: ClassVar[bool] = True
    returns_context: ClassVar[bool] = False

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return the target. It needs neither settings nor executor."""
        del spec, executor
        return _Echo()


class _Echo:
    def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        return from_text(request.prompt)

    async def close(self) -> None:
        """Do nothing: the target holds no resources."""


DEFAULT = "default"
"""The key in `responses` for cases without a response of their own."""


class Mock(ProviderSettings, Struct, frozen=True):
    """Returns fixed text from the file."""

    calls: ClassVar[Calls] = "nothing"
    example: ClassVar[str | None] = "any text"
    short: ClassVar[str | None] = "response"
    free: ClassVar[bool] = True
    returns_context: ClassVar[bool] = False

    response: Annotated[
        Json, Verbatim(), NoSecrets(), Doc("the answer to every case; an object or a list is returned as JSON")
    ] = None
    responses: Annotated[
        Mapping[str, Json] | None,
        Verbatim(),
        NoSecrets(),
        Doc(
            "answers by case id; `default` is used for all other cases; for a case with `turns`, a list with "
            "one answer per turn"
        ),
    ] = None
    delay_ms: Annotated[float, Between(0), Doc("delay of every answer, in milliseconds")] = 0.0
    error: Annotated[Text | None, Verbatim(), NoSecrets(), Doc("fail every call with this message")] = None

    def validate(self) -> Iterable[Issue]:
        """Report a mock that does not have exactly one source of answers."""
        given = [name for name in ("response", "responses", "error") if getattr(self, name) is not None]
        if not given:
            yield Issue((), "a mock needs 'response', 'responses' or 'error'", "missing-key")
        for name in given[1:]:
            yield Issue((name,), f"a mock with '{given[0]}' cannot have '{name}'")
        if self.responses is not None and not self.responses:
            yield Issue(("responses",), "'responses' is empty", "missing-value")

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target with its answers already parsed."""
        del spec, executor
        if self.error is not None:
            return _Mock({}, Failure("mock-error", self.error), self.delay_ms / 1000)
        responses = {DEFAULT: self.response} if self.responses is None else self.responses
        answers = {case: _parsed_response(value) for case, value in responses.items()}
        by_turn = {
            case: [_parsed_response(one) for one in value]
            for case, value in responses.items()
            if isinstance(value, list)
        }
        return _Mock(answers, answers.get(DEFAULT), self.delay_ms / 1000, by_turn)


def _parsed_response(value: Json) -> TargetResponse | Failure:
    if value is None:
        return TargetResponse(None)
    return from_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


class _Mock(Struct):
    answers: Mapping[str, TargetResponse | Failure]
    default: TargetResponse | Failure | None
    delay_s: float
    by_turn: Mapping[str, Sequence[TargetResponse | Failure]] = {}

    def answer(self, request: TargetRequest) -> TargetResponse | Failure | Awaitable[TargetResponse | Failure]:
        found = self.answers.get(request.case_id, self.default)
        if request.turn is not None and self.by_turn:
            found = self._in_turn(request.case_id, request.turn, found)
        if found is None:
            found = Failure("no-response", f"no response for '{request.case_id}', and no '{DEFAULT}'")
        return asyncio.sleep(self.delay_s, found) if self.delay_s else found

    def _in_turn(self, case: str, turn: int, other: TargetResponse | Failure | None) -> TargetResponse | Failure | None:
        """Return the answer to a turn, or `other` if the case's response is not a list."""
        listed = self.by_turn.get(case if case in self.answers else DEFAULT)
        if listed is None:
            return other
        if turn > len(listed):
            return Failure("no-response", f"no response for turn {turn} of '{case}': only {len(listed)} given")
        return listed[turn - 1]

    async def close(self) -> None:
        """Do nothing: the target holds no resources."""
