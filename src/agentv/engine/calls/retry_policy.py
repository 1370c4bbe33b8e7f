"""Decide whether and when a failed call is retried, or that its target is stopped (SPEC sections 10 and 12).

Backoff is exponential with full jitter: a random share of initial × factor^n, so that calls that failed together do not
retry together (Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015). A server that says when to
retry is not called sooner. A target that cannot answer any call, because of a refused key or an unknown model, is
stopped: trials that need it are not run.
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
"""HTTP statuses of a server that gets too many requests: 429, and Anthropic's 529 ("overloaded")."""

TRUSTED_WAITS = 3
"""Number of attempts up to which the wait that a server asks for is used as it is; later ones wait for the longer of it
and the backoff."""

PROBE_S = 30.0
"""Seconds after which a call is retried once if the server asks for a longer wait than the call has left, since one
reply may be wrong."""

SHORTEST_PATIENCE_S = 120.0
"""Minimum time of a call beyond its first attempt, in seconds, because rate limits are per minute."""


class Tries(Struct, frozen=True):
    """Numbers of attempts of one call so far: failed ones, and those refused because the server was at capacity."""

    failed: int = 0
    limited: int = 0

    @property
    def total(self) -> int:
        """Number of attempts."""
        return self.failed + self.limited


class RetryAfter(Struct, frozen=True):
    """Retry the call after this many seconds."""

    after_s: float


class GiveUp(Struct, frozen=True):
    """Make no further attempt. `why` is appended to the failure's message, unless it is empty."""

    why: str = ""


def is_limited(failure: Failure) -> bool:
    """Return whether the server gets too many requests: it says so, or it is unavailable and says for how long."""
    if not isinstance(failure, CallFailure):
        return False
    return failure.status in LIMITED or (failure.status == 503 and failure.retry_after_s is not None)


def decide(failure: Failure, tries: Tries, retry: Retry, left_s: float, chance: float) -> RetryAfter | GiveUp:
    """Decide what to do after an attempt without an answer.

    An attempt refused by a server at capacity uses up no retry; only the deadline limits such attempts.

    Args:
        failure: failure of the last attempt.
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
    elif number <= TRUSTED_WAITS:
        wait_s = retry_after_s
    else:
        wait_s = max(retry_after_s, chance * backoff_s(number - TRUSTED_WAITS, retry))
    if wait_s < left_s:
        return RetryAfter(wait_s)
    after = f"gave up after {tries.total} attempt{'s' if tries.total > 1 else ''}"
    if retry_after_s is not None and retry_after_s >= left_s:
        return GiveUp(
            f"{after}: the server asks to wait {retry_after_s:g} s, but the call has {max(left_s, 0):.3g} s left"
        )
    return GiveUp(f"{after}: no time left for the call")


def backoff_s(number: int, retry: Retry) -> float:
    """Return the longest wait after attempt `number`, from 1: min(max, initial × factor^(number − 1)) seconds."""
    longest_s, factor = retry.max_delay_ms / 1000, retry.backoff_factor
    delay_s = retry.initial_delay_ms / 1000
    for _ in range(number - 1):
        if delay_s >= longest_s or factor <= 1:
            break
        delay_s *= factor
    return min(delay_s, longest_s)


def patience_s(timeout_s: float) -> float:
    """Return the seconds from the start of a call's first attempt to the end of its last.

    Twice the timeout of one attempt, and at least two minutes more than that timeout.
    """
    return timeout_s + max(timeout_s, SHORTEST_PATIENCE_S)


STOPPED = "target-stopped"
INTERRUPTED = Failure("interrupted", "the run was interrupted while a call waited")
UNAFFORDABLE: Final = "budget-spent"


class TargetStop(Struct):
    """Whether a target is stopped, and why. Shared by all specs of the same system and key."""

    failure: CallFailure | None = None

    def note(self, failure: Failure) -> bool:
        """Stop the target if the failure requires it; return whether it was stopped just now."""
        if self.failure is not None or not isinstance(failure, CallFailure) or not failure.stops:
            return False
        self.failure = failure
        return True

    def failure_for(self, name: str) -> Failure | None:
        """Return the failure of every later call, or None if the target is not stopped."""
        return None if self.failure is None else Failure(STOPPED, f"'{name}' is stopped: {self.failure.message}")


class CircuitBreaker(Struct):
    """The stopped targets of a run."""

    _all: dict[Hashable, TargetStop] = {}
    _kept: list[TargetSpec] = []  # kept alive, so that their ids are not reused

    def of(self, spec: TargetSpec) -> TargetStop:
        """Return the state of a target; equal specs share it."""
        return self._all.setdefault(self.key_of(spec), TargetStop())

    def key_of(self, spec: TargetSpec) -> Hashable:
        """Return the key that equal specs share."""
        if not spec.fingerprint:
            self._kept.append(spec)
        return (spec.name, spec.provider, spec.fingerprint or id(spec), spec.secrets)

    def failure_for_trial(self, trial: Trial) -> Failure | None:
        """Return a Failure if a trial need not begin, because its target or a judge that it needs is stopped."""
        if all(stop.failure is None for stop in self._all.values()):
            return None
        found = (self.of(spec).failure_for(spec.name) for spec in (trial.target, *judges_of(trial)))
        return next((failure for failure in found if failure is not None), None)


def is_stopped(failure: Failure | None) -> bool:
    """Return whether a trial has no verdict because its target or judge was already stopped."""
    return _has_code(failure, STOPPED)


def is_interrupted(failure: Failure | None) -> bool:
    """Return whether a trial has no verdict because the run was interrupted."""
    return _has_code(failure, INTERRUPTED.code)


def is_unaffordable(failure: Failure | None) -> bool:
    """Return whether a trial has no verdict because one of its calls did not fit into the budget."""
    return _has_code(failure, UNAFFORDABLE)


def _has_code(failure: Failure | None, code: str) -> bool:
    return failure is not None and re.sub(r"^(judge|embedder|user)-", "", failure.code) == code


def judges_of(trial: Trial) -> Iterator[TargetSpec]:
    """Yield the judges that a trial's assertions call, and the model that plays its user."""
    if trial.user_model is not None:
        yield trial.user_model
    for entry in trial.case.all_assertions():
        if getattr(entry.assertion, "needs_judge", False):
            spec = trial.judge_called(getattr(entry.assertion, "judge", None))
            if spec is not None:
                yield spec
