"""Fake targets in virtual time, and their specs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentv.model.suite.suite import TargetSpec
from agentv.ports import TargetRequest
from doubles.virtual_time import now


@dataclass(frozen=True)
class Settings:
    place: str | None

    def endpoint(self) -> str | None:
        return self.place


def spec(name: str = "t", place: str | None = "x http://x", **given: Any) -> TargetSpec:
    return TargetSpec(name, "x", Settings(place), **given)


@dataclass
class Server:
    """A target with given answers, each after a delay; the last one repeats."""

    given: Sequence[Any]
    takes_s: float = 0.0
    asked_at: list[float] = field(default_factory=list)
    requests: list[TargetRequest] = field(default_factory=list)
    most_at_once: int = 0
    at_once: int = 0

    async def answer(self, request: TargetRequest) -> Any:
        self.asked_at.append(now() - 1000)
        self.requests.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        number = len(self.requests)
        try:
            await asyncio.sleep(self.takes_s)
        finally:
            self.at_once -= 1
        given = self.given[min(number, len(self.given)) - 1]
        if isinstance(given, BaseException):
            raise given
        return given

    async def close(self) -> None:
        return

    @property
    def asked(self) -> list[str]:
        """The cases that it was called for."""
        return [one.case_id for one in self.requests]
