"""Agents that work on trials: their progress, and the interruption that ends them early."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from threading import get_ident

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.run.events import AgentProgress
from agentv.model.run.trial import Trial
from agentv.model.values.trace import AgentActivity
from agentv.ports import TargetRequest

Seen = Callable[[AgentActivity], AgentActivity]

TICK_S = 10.0
"""Seconds after which working agents are reported again, even without new activity."""


class RunningAgents(Struct):
    """The agents of one run. Used from one event loop; an agent may report from another thread.

    Attributes:
        on_news: called when there is news; None: progress is not reported, and no news is kept.
    """

    on_news: Callable[[], None] | None = None
    _working: dict[str, AgentProgress] = {}
    _news: dict[str, AgentProgress] = {}
    _seen: dict[str, Seen] = {}
    _timer: asyncio.TimerHandle | None = None
    _interruption: asyncio.Future[None] | None = None
    _is_interrupted: bool = False

    def begin(self, trial: Trial, request: TargetRequest, seen: Seen | None = None) -> TargetRequest:
        """Register a call of an agent; return the request with its activity callback and its interruption.

        Args:
            trial: the agent's trial.
            request: the request to the agent.
            seen: adds what we observe of its work to what it reports.
        """
        if self._interruption is None:
            self._interruption = asyncio.get_running_loop().create_future()
            if self._is_interrupted:
                self._interruption.set_result(None)
        request = replace(request, interruption=self._interruption)
        if self.on_news is None:
            return request
        case = trial.case
        names = (case.id, trial.target.name, case.prompt_id, trial.variant_name)
        first = AgentProgress(_key(trial), *names, trial.sample, trial.repeat, AgentActivity())
        self._working[first.key] = first
        if seen is not None:
            self._seen[first.key] = seen
        self._report(first)
        self._start_timer()
        return replace(request, on_activity=self._reporter(first))

    def end(self, trial: Trial) -> None:
        """Record that the call of a trial's agent has ended."""
        last = self._working.pop(_key(trial), None)
        if last is not None:
            self._seen.pop(last.key, None)
            self._report(replace(last, activity=None))
        if not self._working and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def news(self) -> Iterator[AgentProgress]:
        """Yield the latest progress of each agent that changed since the last call."""
        news, self._news = self._news, {}
        for progress in news.values():
            seen, activity = self._seen.get(progress.key), progress.activity
            yield progress if seen is None or activity is None else replace(progress, activity=seen(activity))

    def interrupt(self) -> None:
        """Have all agents end their work, and those that begin later."""
        self._is_interrupted = True
        if self._interruption is not None and not self._interruption.done():
            self._interruption.set_result(None)

    def _reporter(self, first: AgentProgress) -> Callable[[AgentActivity], None]:
        loop, thread = asyncio.get_running_loop(), get_ident()

        def take(activity: AgentActivity) -> None:
            if first.key in self._working:  # it may still report after its end
                self._working[first.key] = latest = replace(first, activity=activity)
                self._report(latest)

        def report(activity: AgentActivity) -> None:
            if get_ident() == thread:
                take(activity)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(take, activity)

        return report

    def _report(self, progress: AgentProgress) -> None:
        if self.on_news is not None:
            self._news[progress.key] = progress
            self.on_news()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        for progress in self._working.values():
            self._report(progress)
        if self._working:
            self._start_timer()


def _key(trial: Trial) -> str:
    return f"{trial.suite.path}\0{trial.key}"
