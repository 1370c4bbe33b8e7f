"""Trials that start on demand, such as for a test runner that runs one test after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentv.engine.dependency_order import DependencyScheduler
from agentv.engine.plan import Plan
from agentv.model.run.trial import Trial


class OnDemandScheduler(DependencyScheduler):
    """Hands out the requested trials, each when it may start. Used from one event loop.

    Workers wait for more until `end`. A request for a trial includes everything that it depends on, and its group.

    Args:
        plan: contains all trials that may be requested.
        firsts: the requested trials that may start: if samples end early, the others follow them.
    """

    def __init__(self, plan: Plan, firsts: Callable[[Iterable[Trial]], Iterable[Trial]] = iter) -> None:
        super().__init__(plan, ())
        self._firsts = firsts
        self._asked: dict[tuple[int, str], tuple[object, ...]] = {}
        self._over = False

    def ask(self, trials: Iterable[Trial]) -> None:
        """Request trials that were not requested before. Compared ones are consecutive, as in the plan."""
        new = [trial for trial in trials if _identity(trial) not in self._asked]
        for trial in new:
            case = trial.case
            identity = (id(trial.suite), case.id, case.prompt_id, trial.target.name, trial.variant_name)
            self._asked[_identity(trial)] = identity
        for trial in self._firsts(new):
            self._consider(trial)
        self.noticed()  # some of them may be skipped at once, while every worker waits
        self._changed.set()

    def end(self) -> None:
        """No more requests follow: the run ends when the requested trials have ended."""
        self._over = True
        self._changed.set()

    @property
    def counts(self) -> tuple[int, int]:
        """Number of requested distinct cases, and of requested trials."""
        return len({identity[:2] for identity in self._asked.values()}), len(self._asked)

    async def take(self) -> Trial | None:
        """The next requested trial that may start, once there is one; None at the end."""
        while not self._closed:
            if self._ready:
                self._running += 1
                return self._ready.popleft()
            if self._over and not self._running:
                self._give_up()
                break
            self._changed.clear()
            await self._changed.wait()
        return None

    def comparison_group(self, number: int) -> list[Trial]:
        """The trials that were requested together with the one that was just taken."""
        found = [self._ready.popleft() for _ in range(min(number, len(self._ready)))]
        self._running += len(found)
        return found


def _identity(trial: Trial) -> tuple[int, str]:
    """Which trial it is: two files may hold the same case, and then two trials have one key."""
    return id(trial.suite), trial.key
