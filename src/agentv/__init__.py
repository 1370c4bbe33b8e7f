"""agentv tells whether AI prompts, models and agents are good enough, with evidence.

The public names are loaded when they are first used, so that `import agentv` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from agentv.version import __version__

if TYPE_CHECKING:
    from agentv.assertions.authoring import define_assertion, define_script_grader
    from agentv.errors import AgentvError, Diagnostic, ExitStatus, LoadError, StoreError, UsageError
    from agentv.model.context import AssertionContext
    from agentv.model.grade import Check, Grade
    from agentv.model.message import Message
    from agentv.model.response import TargetResponse, TokenUsage
    from agentv.model.scored import AssertionScore
    from agentv.model.summary import Summary
    from agentv.model.trial import TrialResult
    from agentv.sdk import Case, Evaluation, Suite, Turn, evaluate, evaluate_async

_PLACES = {
    "AgentvError": "agentv.errors",
    "AssertionContext": "agentv.model.context",
    "AssertionScore": "agentv.model.scored",
    "Case": "agentv.sdk",
    "Check": "agentv.model.grade",
    "Diagnostic": "agentv.errors",
    "Evaluation": "agentv.sdk",
    "ExitStatus": "agentv.errors",
    "Grade": "agentv.model.grade",
    "LoadError": "agentv.errors",
    "Message": "agentv.model.message",
    "StoreError": "agentv.errors",
    "Suite": "agentv.sdk",
    "Summary": "agentv.model.summary",
    "TargetResponse": "agentv.model.response",
    "TokenUsage": "agentv.model.response",
    "TrialResult": "agentv.model.trial",
    "Turn": "agentv.sdk",
    "UsageError": "agentv.errors",
    "define_assertion": "agentv.assertions.authoring",
    "define_script_grader": "agentv.assertions.authoring",
    "evaluate": "agentv.sdk",
    "evaluate_async": "agentv.sdk",
}

__all__ = [
    "AgentvError",
    "AssertionContext",
    "AssertionScore",
    "Case",
    "Check",
    "Diagnostic",
    "Evaluation",
    "ExitStatus",
    "Grade",
    "LoadError",
    "Message",
    "StoreError",
    "Suite",
    "Summary",
    "TargetResponse",
    "TokenUsage",
    "TrialResult",
    "Turn",
    "UsageError",
    "__version__",
    "define_assertion",
    "define_script_grader",
    "evaluate",
    "evaluate_async",
]


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'agentv' has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
