"""Parameters of a request that a judge asks for and can do without: what an API refuses is left out."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

from agentv.model.values.response import CallFailure, Failure, TargetResponse

Call: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[TargetResponse | Failure]]
"""Makes one call with these optional parameters."""


class OptionalParameters:
    """The optional parameters of one target, and which of them its model refuses.

    Args:
        patterns: parameter → how a refusal (400) names it.
        refused: parameters that are known to be refused.
    """

    def __init__(self, patterns: Mapping[str, re.Pattern[str]], refused: Iterable[str] = ()) -> None:
        self._patterns = patterns
        self._refused = set(refused)

    async def answer(self, wanted: Mapping[str, Any], call: Call) -> TargetResponse | Failure:
        """The answer, with the wanted parameters as far as the model takes them.

        A refused one is left out at once, and of all later calls.
        """
        while True:
            sent = {name: value for name, value in wanted.items() if name not in self._refused}
            answer = await call(sent)
            refused = self._refused_in(answer, sent)
            if not refused:
                return answer
            self._refused |= refused

    def _refused_in(self, answer: TargetResponse | Failure, sent: Iterable[str]) -> set[str]:
        if not isinstance(answer, CallFailure) or answer.status != HTTPStatus.BAD_REQUEST:
            return set()
        return {name for name in sent if self._patterns[name].search(answer.message)}
