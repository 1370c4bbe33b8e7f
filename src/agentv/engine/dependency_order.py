"""Start order of trials: cases wait for the cases that they depend on (SPEC section 4).

A trial that must wait is put aside and takes no worker, so other trials can start. It starts, or is skipped,
as soon as the last of its dependencies has ended. Trials of suites without dependencies are handed out at once,
and no state is kept for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentv.engine.conversation import transcript_of
from agentv.engine.plan import Plan
from agentv.engine.trial import DEPENDENCY_NOT_PASSED
from agentv.model.run.cases import Sample, sample_of
from agentv.model.run.trial import Status, Trial, TrialResult
from agentv.model.suite.conversation import Link
from agentv.model.suite.suite import Suite
from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.stats.samples.deciding import rule_of, stopped_by, verdict_over

_ANSWERED = ("passed", "failed", "shown")
WHOLE = 0
"""Sample number that stands for all samples of a case."""


class TrialKey(NamedTuple):
    """Key of a dependency: one sample of a case on a target with a prompt, or the verdict over all samples (`WHOLE`).

    Suites are distinguished by identity, because two suites may have the same name.
    """

    suite: int
    target: str
    prompt: str | None
    case: str
    sample: int
    variant: str | None = None


class DependencyScheduler:
    """A `TrialQueue` that hands out each trial when its dependencies have ended. Used from one event loop.

    Attributes:
        skipped: trials that will not run, with the reason; workers remove and report them.
        on_skipped: reports the skipped trials while all workers are waiting.
    """

    batch = 1

    def __init__(self, plan: Plan, trials: Iterable[Trial]) -> None:
        self.skipped: deque[tuple[Trial, Failure]] = deque()
        self.on_skipped: Callable[[], None] = lambda: None
        self._trials = iter(trials)
        self._linked = {id(suite): _Linked.of(suite, plan) for suite in plan.suites if suite.links}
        self._ready: deque[Trial] = deque()
        self._waiting: dict[TrialKey, list[_Waiting]] = {}
        self._statuses: dict[TrialKey, Status] = {}
        self._samples: dict[TrialKey, list[Sample]] = {}
        self._transcripts: dict[TrialKey, tuple[Message, ...]] = {}
        self._ended: deque[_Ended] = deque()
        self._running = 0
        self._changed = asyncio.Event()
        self._all_requested = True
        self._closed = False

    async def take(self) -> Trial | None:
        """Wait for a trial that may start and return it, or None at the end."""
        while not self._closed:
            while not self._ready and (trial := next(self._trials, None)) is not None:
                self._consider(trial)
            if self._ready:
                self._running += 1
                return self._ready.popleft()
            if self._all_requested and not self._running:
                self._skip_stuck()
                break
            self._changed.clear()
            await self._changed.wait()
        return None

    def comparison_group(self, number: int) -> list[Trial]:
        """Return the next trials, which are compared with the one just taken; they are not made to wait."""
        found = list(islice(self._trials, number))
        self._running += len(found)
        return found

    def add_running(self) -> None:
        """Count one more running sample of a case that `take` did not hand out."""
        self._running += 1

    def finish(self, result: TrialResult) -> None:
        """Record that a running trial has ended."""
        self._running -= 1
        self._end(_Ended(result.trial, sample_of(result), result.turns))
        self._changed.set()

    def restore(self, result: TrialResult) -> None:
        """Record a trial that ended before the run was resumed. Cases of a conversation must come in its order."""
        self._end(_Ended(self._continued(result.trial), sample_of(result), result.turns))

    def close(self) -> None:
        """Hand out no more trials."""
        self._closed = True
        self._changed.set()

    def _consider(self, trial: Trial) -> None:
        """Mark a trial as ready, put it aside, or skip it."""
        linked = self._linked.get(id(trial.suite))
        waiting = _Waiting(trial)
        for key in () if linked is None else linked.needed_by(trial):
            status = self._statuses.get(key)
            if status is None:
                waiting.missing += 1
                self._waiting.setdefault(key, []).append(waiting)
            elif not _allows_dependents(trial, key, status):
                self._skip(waiting, key, status)
                return
        if not waiting.missing:
            self._ready.append(self._continued(trial))

    def _continued(self, trial: Trial) -> Trial:
        """Return the trial with the transcript that it continues, if any."""
        link = trial.suite.links.get(trial.case.id)
        if link is None or link.follows is None:
            return trial
        return replace(trial, history=self._transcripts.pop(_sample_key(trial, link.follows), ()))

    def _end(self, ended: _Ended) -> None:
        """Process an ended trial and all trials skipped because of it, without recursion, since chains may be long."""
        self._ended.append(ended)
        if len(self._ended) > 1:
            return  # the outer call's loop will process it
        while self._ended:
            self._process(self._ended[0])
            self._ended.popleft()

    def _process(self, ended: _Ended) -> None:
        trial, status = ended.trial, ended.sample.status
        linked = self._linked.get(id(trial.suite))
        if linked is None:
            return
        key = _sample_key(trial, trial.case.id)
        if key.case in linked.followed:
            if status in _ANSWERED:
                self._transcripts[key] = transcript_of(trial, ended.answers)
            self._settle(key, status)
        if key.case in linked.depended_on:
            key = key._replace(sample=WHOLE)
            samples = self._samples.setdefault(key, [])
            samples.append(ended.sample)
            rule = rule_of(trial)
            if len(samples) >= trial.repeat or stopped_by(samples, rule) is not None:
                del self._samples[key]
                self._settle(key, verdict_over(samples, rule))

    def _settle(self, key: TrialKey, status: Status) -> None:
        self._statuses[key] = status
        for waiting in self._waiting.pop(key, ()):
            waiting.missing -= 1
            if waiting.skipped:
                continue
            if not _allows_dependents(waiting.trial, key, status):
                self._skip(waiting, key, status)
            elif not waiting.missing:
                self._ready.append(self._continued(waiting.trial))

    def _skip(self, waiting: _Waiting, key: TrialKey, status: Status) -> None:
        waiting.skipped = True
        case = waiting.trial.case
        what = "was not run" if status == "skipped" else status
        if key.sample == WHOLE:
            why = Failure(DEPENDENCY_NOT_PASSED, f"'{key.case}', which it depends on, {what}")
        else:
            before = f"before it in the conversation '{case.conversation_id}'"
            why = Failure("broken-conversation", f"'{key.case}', {before}, {what}")
        self.skipped.append((waiting.trial, why))
        fails = key.sample == WHOLE and case.on_dependency_failure == "fail"
        self._end(_Ended(waiting.trial, Sample("errored" if fails else "skipped", None)))

    def _skip_stuck(self) -> None:
        """Skip the trials whose dependencies will never run, because a file was changed during the run."""
        while self._waiting:
            self._settle(next(iter(self._waiting)), "skipped")


def split_completed(plan: Plan, rows: Container[str], most: int) -> tuple[list[str], list[Trial] | None]:
    """Split the planned trials into the keys of completed ones and the trials still to run, in one pass.

    A trial is complete only if its dependencies are: run again, a dependency may fail, and a conversation may continue
    differently. Trials whose answers are compared are complete only together.

    Args:
        plan: the run's plan; iterating over it may read long files again.
        rows: keys of the trials that an earlier run completed.
        most: maximum number of trials to return; with more of them, or with dependent cases, None is returned instead.
    """
    linked = any(suite.links for suite in plan.suites)
    reopened = _reopened(plan, rows) if linked else frozenset()
    done: list[str] = []
    others: list[Trial] | None = None if linked else []
    for trial in plan:
        if trial.key not in reopened and _has_row(trial, rows):
            done.append(trial.key)
        elif others is not None and len(others) < most:
            others.append(trial)
        else:
            others = None
    return done, others


def _has_row(trial: Trial, rows: Container[str]) -> bool:
    return trial.key in rows and all(key in rows for key in trial.comparison_group)


def _reopened(plan: Plan, rows: Container[str]) -> Container[str]:
    """Return the keys of trials without a row and of all their dependents, in suites with dependencies."""
    linked = {id(suite): _Linked.of(suite, plan) for suite in plan.suites if suite.links}
    dependents: dict[TrialKey | str, list[Trial]] = {}
    to_do: list[Trial] = []
    for trial in plan:
        if (links := linked.get(id(trial.suite))) is None:
            continue
        needed: list[TrialKey | str] = [*links.needed_by(trial), *trial.comparison_group]
        for one in needed:
            dependents.setdefault(one, []).append(trial)
        if not _has_row(trial, rows):
            to_do.append(trial)
    found = {trial.key for trial in to_do}
    while to_do:
        ended = to_do.pop()
        key = _sample_key(ended, ended.case.id)
        ended_keys: list[TrialKey | str] = [key, key._replace(sample=WHOLE), ended.key]
        for trial in (trial for one in ended_keys for trial in dependents.pop(one, ())):
            if trial.key not in found:
                found.add(trial.key)
                to_do.append(trial)
    return found


class _Waiting(Struct):
    """A trial that was put aside. `missing`: number of dependencies yet to end; `skipped`: whether it was skipped."""

    trial: Trial
    missing: int = 0
    skipped: bool = False


class _Ended(Struct, frozen=True):
    """A trial that ran or was skipped. `answers`: answers to its turns."""

    trial: Trial
    sample: Sample
    answers: tuple[TargetResponse, ...] = ()


class _Linked(Struct, frozen=True):
    """Dependencies between the cases of one suite.

    Attributes:
        targets: names of the suite's targets.
        own: case → name of the only target that it runs on.
        followed: cases that another case of their conversation continues.
        depended_on: cases that other cases depend on.
    """

    links: Mapping[str, Link]
    targets: tuple[str, ...]
    own: Mapping[str, str]
    followed: frozenset[str]
    depended_on: frozenset[str]

    @classmethod
    def of(cls, suite: Suite, plan: Plan) -> _Linked:
        links = suite.links.values()
        depended_on = frozenset(case for link in links for case in link.depends_on)
        own: dict[str, str] = {}
        if depended_on and not plan.settings.flagged_targets:
            cases = (case for case in suite.cases if case.id in depended_on)
            own = {case.id: case.target.name for case in cases if case.target is not None}
        followed = frozenset(link.follows for link in links if link.follows is not None)
        return cls(suite.links, tuple(target.name for target in suite.targets), own, followed, depended_on)

    def needed_by(self, trial: Trial) -> Iterator[TrialKey]:
        """Yield the keys of the dependencies that must have ended before a trial may start."""
        link = self.links.get(trial.case.id)
        if link is None:
            return
        if link.follows is not None:
            yield _sample_key(trial, link.follows)
        same = trial.target.name
        for case in link.depends_on:
            own = self.own.get(case)
            if own is not None:
                places: tuple[str, ...] = (own,)
            else:  # the same target if the dependency runs there, else all targets
                places = (same,) if same in self.targets else self.targets
            for target in places:
                yield TrialKey(id(trial.suite), target, trial.case.prompt_id, case, WHOLE, trial.variant_name)


def _sample_key(trial: Trial, case: str) -> TrialKey:
    """Return the key of the sample of `case` that corresponds to a trial."""
    place = (id(trial.suite), trial.target.name, trial.case.prompt_id)
    return TrialKey(*place, case, trial.sample, trial.variant_name)


def _allows_dependents(trial: Trial, key: TrialKey, status: Status) -> bool:
    """Return whether a trial may run after a dependency ended with a status.

    A dependency must pass, unless `on_dependency_failure` is `run`. A conversation continues from any answer.
    """
    if key.sample == WHOLE:
        return status == "passed" or trial.case.on_dependency_failure == "run"
    return status in _ANSWERED


class OnDemandScheduler(DependencyScheduler):
    """A scheduler that hands out only requested trials, each when its dependencies have ended.

    Workers wait for more requests until `end`. A trial is requested together with its dependencies and the trials that
    it is compared with.

    Args:
        plan: contains all trials that may be requested.
        firsts: selects the requested trials that may start at once, such as the first of a case's sequential samples.
    """

    def __init__(self, plan: Plan, firsts: Callable[[Iterable[Trial]], Iterable[Trial]] = iter) -> None:
        super().__init__(plan, ())
        self._firsts = firsts
        self._asked: dict[tuple[int, str], tuple[object, ...]] = {}
        self._all_requested = False

    def ask(self, trials: Iterable[Trial]) -> None:
        """Request trials; repeated requests are ignored. Compared trials must be consecutive, as in the plan."""
        new = [trial for trial in trials if _identity(trial) not in self._asked]
        for trial in new:
            case = trial.case
            identity = (id(trial.suite), case.id, case.prompt_id, trial.target.name, trial.variant_name)
            self._asked[_identity(trial)] = identity
        for trial in self._firsts(new):
            self._consider(trial)
        self.on_skipped()  # some of them may be skipped at once, while every worker waits
        self._changed.set()

    def end(self) -> None:
        """Accept no more requests: the run ends when the requested trials have ended."""
        self._all_requested = True
        self._changed.set()

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of distinct cases and of trials that were requested."""
        return len({identity[:2] for identity in self._asked.values()}), len(self._asked)

    def comparison_group(self, number: int) -> list[Trial]:
        """Return the trials that were requested together with the one just taken."""
        found = [self._ready.popleft() for _ in range(min(number, len(self._ready)))]
        self._running += len(found)
        return found


def _identity(trial: Trial) -> tuple[int, str]:
    """Return the identity of a trial. Its key alone is ambiguous if two files hold the same case."""
    return id(trial.suite), trial.key
