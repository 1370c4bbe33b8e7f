"""A run context whose ports are given one by one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from agentv.engine.calls.call_throttle import CallThrottle
from doubles.stores import MemoryStore


class FixedClock:
    def monotonic(self) -> float:
        return 0.0

    def utc(self) -> datetime:
        return datetime(2026, 11, 21, 14, 3, 22, tzinfo=UTC)


def _nothing(*_: Any) -> None:
    """Stand in for a missing judge, runtime or check."""


@dataclass
class FakeRunContext:
    """An `agentv.engine.trial.RunContext` with the given target, or a function from specs to targets."""

    target: Callable[[Any], Any]
    store: Any = field(default_factory=MemoryStore)
    clock: Any = field(default_factory=FixedClock)
    throttle: CallThrottle = field(default_factory=CallThrottle)
    judge: Callable[..., Any] = _nothing
    executor: Any = None
    javascript: Callable[..., Any] = _nothing
    embedder: Callable[..., Any] = _nothing
    unanswered: Any = None
    kept_works: Any = None
    check: Callable[..., Any] = _nothing
    workspaces: Any = None
    gateway: Any = None
    answers: Any = field(default_factory=lambda: SimpleNamespace(exchanges=None))

    @property
    def works(self) -> Any:
        """The services of trials other than calls, made from the given ports."""
        from agentv.extensions.agents.trial.works import RunWorks

        works = RunWorks(cast("Any", self))
        vars(works).update(workspaces=self.workspaces, gateway=self.gateway)
        return works
