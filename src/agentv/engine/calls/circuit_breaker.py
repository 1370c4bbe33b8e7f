"""Targets that no call can get an answer of: a refused key, an unknown model. What needs them is not run."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Final

from msgspec import Struct

from agentv.model.run.trial import Trial
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import CallFailure, Failure

STOPPED = "target-stopped"
INTERRUPTED = Failure("interrupted", "the run was interrupted while a call waited")
UNAFFORDABLE: Final = "budget-spent"


class TargetStop(Struct):
    """Whether a target is stopped, and why. Shared by all that reach the same system with the same key."""

    failure: CallFailure | None = None

    def note(self, failure: Failure) -> bool:
        """Whether the target is stopped from now on, by this failure: it was not before."""
        if self.failure is not None or not isinstance(failure, CallFailure) or not failure.stops:
            return False
        self.failure = failure
        return True

    def failure_for(self, name: str) -> Failure | None:
        """Failure of every later call; None as long as the target is not stopped."""
        return None if self.failure is None else Failure(STOPPED, f"'{name}' is stopped: {self.failure.message}")


class CircuitBreaker:
    """The stopped targets of a run."""

    def __init__(self) -> None:
        self._all: dict[Hashable, TargetStop] = {}
        self._kept: list[TargetSpec] = []  # alive, so that their ids stay their own

    def of(self, spec: TargetSpec) -> TargetStop:
        """Of one target; two specs that say the same are one."""
        return self._all.setdefault(self.key_of(spec), TargetStop())

    def key_of(self, spec: TargetSpec) -> Hashable:
        """The same for two specs that say the same."""
        if not spec.fingerprint:
            self._kept.append(spec)
        return (spec.name, spec.provider, spec.fingerprint or id(spec), spec.secrets)

    def why_not(self, trial: Trial) -> Failure | None:
        """Why a trial need not begin: its target, or a judge that it needs, is stopped."""
        if all(stop.failure is None for stop in self._all.values()):
            return None
        found = (self.of(spec).failure_for(spec.name) for spec in (trial.target, *judges_of(trial)))
        return next((failure for failure in found if failure is not None), None)


def is_stopped(failure: Failure | None) -> bool:
    """Whether a trial has no verdict since its target, or its judge, was stopped before."""
    return _is(failure, STOPPED)


def is_interrupted(failure: Failure | None) -> bool:
    """Whether a trial has no verdict since the run was interrupted."""
    return _is(failure, INTERRUPTED.code)


def is_unaffordable(failure: Failure | None) -> bool:
    """Whether a trial has no verdict since a call of it does not fit into the budget."""
    return _is(failure, UNAFFORDABLE)


def _is(failure: Failure | None, code: str) -> bool:
    return failure is not None and re.sub(r"^(judge|embedder|user)-", "", failure.code) == code


def judges_of(trial: Trial) -> Iterator[TargetSpec]:
    """The judges that a trial's assertions ask, and the model that plays its user."""
    if trial.user_model is not None:
        yield trial.user_model
    for entry in trial.case.all_assertions():
        if getattr(entry.assertion, "needs_judge", False):
            spec = trial.judge_called(getattr(entry.assertion, "judge", None))
            if spec is not None:
                yield spec
