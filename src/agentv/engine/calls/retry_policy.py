"""What becomes of a call that failed (SPEC sections 10 and 12): it is made again, and when, or its target is stopped.

Backoff is exponential with full jitter: a random share of initial × factor^n, so that calls that failed together do not
come back together (Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015). A server that says when to
come back is not asked sooner. What needs a target that no call can get an answer of, as with a refused key or an
unknown model, is not run.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Final

from msgspec import Struct

from agentv.model.run.trial import Trial
from agentv.model.suite.suite import Retry, TargetSpec
from agentv.model.values.response import CallFailure, Failure

LIMITED = frozenset({429, 529})
"""Statuses by which a server says that it gets too many requests: 429 of HTTP, and 529, "overloaded", of Anthropic."""

TRUSTED = 3
"""How often in a row a server is taken at its word when it says how long to wait; then backoff comes on top."""

PROBE_S = 30.0
"""Seconds after which a server is asked once more that wants a longer wait than a call has: one reply may be wrong."""

SHORTEST_PATIENCE_S = 120.0
"""Seconds that a call has beyond its first attempt, however short attempts may be: rate limits are by the minute."""


class Tries(Struct, frozen=True):
    """Attempts of one call so far: failed ones, and those at which the server was at capacity."""

    failed: int = 0
    limited: int = 0

    @property
    def total(self) -> int:
        """Number of attempts."""
        return self.failed + self.limited


class Again(Struct, frozen=True):
    """Retry the call after this many seconds."""

    after_s: float


class GiveUp(Struct, frozen=True):
    """Make no further call. `why` ends the message of the failure; empty where the failure says it all."""

    why: str = ""


def is_limited(failure: Failure) -> bool:
    """Whether the server gets too many requests: it says so, or it is unavailable and says until when."""
    if not isinstance(failure, CallFailure):
        return False
    return failure.status in LIMITED or (failure.status == 503 and failure.retry_after_s is not None)


def decide(failure: Failure, tries: Tries, retry: Retry, left_s: float, chance: float) -> Again | GiveUp:
    """Decide what to do after an attempt without an answer.

    An attempt at a server without capacity slows the call down but uses no retry; only time limits it.

    Args:
        failure: of the last attempt.
        tries: all attempts so far, including the last one.
        retry: the target's settings; `max_retries: 0` means a single attempt.
        left_s: seconds until the call's deadline.
        chance: a random number, 0..1.
    """
    if not failure.retryable or retry.max_retries == 0:
        return GiveUp()
    limited = is_limited(failure)
    if not limited and tries.failed > retry.max_retries:
        return GiveUp(f"gave up after {tries.total} attempts")
    retry_after_s = failure.retry_after_s if isinstance(failure, CallFailure) else None
    number = tries.limited if limited else tries.failed
    if retry_after_s is None:
        wait_s = chance * backoff_s(number, retry)
    elif number <= TRUSTED:
        wait_s = retry_after_s
    else:
        wait_s = max(retry_after_s, chance * backoff_s(number - TRUSTED, retry))
    if wait_s < left_s:
        return Again(wait_s)
    after = f"gave up after {tries.total} attempt{'s' if tries.total > 1 else ''}"
    if retry_after_s is not None and retry_after_s >= left_s:
        return GiveUp(
            f"{after}: the server asks to wait {retry_after_s:g} s, but the call has {max(left_s, 0):.3g} s left"
        )
    return GiveUp(f"{after}: no time left for the call")


def backoff_s(number: int, retry: Retry) -> float:
    """The longest wait after the attempt of this number, from 1: min(max, initial × factor^(number − 1)) seconds."""
    longest_s, factor = retry.max_delay_ms / 1000, retry.backoff_factor
    delay_s = retry.initial_delay_ms / 1000
    for _ in range(number - 1):
        if delay_s >= longest_s or factor <= 1:
            break
        delay_s *= factor
    return min(delay_s, longest_s)


def patience_s(timeout_s: float) -> float:
    """Seconds from the begin of a call's first attempt to the end of its last.

    Twice what one may take, and at least two minutes more than that.
    """
    return timeout_s + max(timeout_s, SHORTEST_PATIENCE_S)


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


class CircuitBreaker(Struct):
    """The stopped targets of a run."""

    _all: dict[Hashable, TargetStop] = {}
    _kept: list[TargetSpec] = []  # alive, so that their ids stay their own

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
