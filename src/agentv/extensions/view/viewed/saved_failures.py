"""Failures by cause, kept in an index: without them each failed row would be read again."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from agentv.reports.run.failures import FailedTrial, FailureGroup, FailureStatus
from agentv.reports.run.trial_view import TrialView


class _SavedTrial(Struct, array_like=True):
    suite: str
    suite_path: str
    test_id: str
    prompt_id: str | None
    target: str
    variant: str | None
    sample: int
    line: int
    number: int | None


class _SavedGroup(Struct, array_like=True):
    status: FailureStatus
    code: str
    cause: str
    cases: int
    trials: int
    suites: tuple[str, ...]
    targets: tuple[str, ...]
    members: list[_SavedTrial]
    numbers: list[int]


_NO_VIEW = TrialView("noted", "", "", "", ("", 0), 1, 1, "failed", None, 0.0, None, ())
"""Stands for the view of a group's first trial, which no page shows."""

_decode = msgspec.json.Decoder(list[_SavedGroup]).decode


def written_groups(groups: Iterable[FailureGroup]) -> bytes:
    """Groups as JSON, without the view of their first trial."""
    return msgspec.json.encode([_saved(group) for group in groups])


def read_groups(saved: bytes) -> list[FailureGroup]:
    """Groups that were written."""
    return [
        FailureGroup(
            one.status,
            one.code,
            one.cause,
            one.cases,
            one.trials,
            one.suites,
            one.targets,
            tuple(FailedTrial(*msgspec.structs.astuple(member)) for member in one.members),
            _NO_VIEW,
            one.numbers,
        )
        for one in _decode(saved)
    ]


def _saved(group: FailureGroup) -> _SavedGroup:
    members = [
        _SavedTrial(
            one.suite,
            one.suite_path,
            one.test_id,
            one.prompt_id,
            one.target,
            one.variant,
            one.sample,
            one.line,
            one.number,
        )
        for one in group.members
    ]
    names = (group.status, group.code, group.cause, group.cases, group.trials, group.suites, group.targets)
    return _SavedGroup(*names, members, list(group.numbers))
