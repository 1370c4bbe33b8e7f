"""Trials as agents' sessions tell them apart."""

from __future__ import annotations

from typing import TypeAlias

from agentv.ports import TargetRequest

TrialKey: TypeAlias = tuple[str | int | None, ...]


def trial_key(request: TargetRequest) -> TrialKey:
    """What the requests of one trial have in common."""
    if request.workspace_path is not None:
        return (request.workspace_path,)
    return (request.suite, request.case_id, request.prompt_id, request.variant, request.sample)
