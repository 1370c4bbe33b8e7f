"""agentv tests whether AI prompts, models and agents are good enough, with evidence.

Public names are loaded when first used, so `import agentv` is fast.
"""

from __future__ import annotations

from agentv.version import __version__

TYPE_CHECKING = False  # as `typing` has it, which takes longer to load than all that a command begins with
if TYPE_CHECKING:
    from agentv.assertions.user_code.authoring import define_assertion, define_script_grader
    from agentv.errors import AgentvError, Diagnostic, ExitStatus, LoadError, StoreError, UsageError
    from agentv.model.run.context import AssertionContext
    from agentv.model.run.grade import AssertionScore, Check, Grade
    from agentv.model.run.summary import Summary
    from agentv.model.run.trial import TrialResult
    from agentv.model.values.message import Message
    from agentv.model.values.response import TargetResponse
    from agentv.model.values.retrieved import RetrievedText
    from agentv.model.values.usage import TokenUsage
    from agentv.sdk import Case, Evaluation, Suite, Turn, evaluate, evaluate_async

_PLACES = {
    "AgentvError": "agentv.errors",
    "AssertionContext": "agentv.model.run.context",
    "AssertionScore": "agentv.model.run.grade",
    "Case": "agentv.sdk",
    "Check": "agentv.model.run.grade",
    "Diagnostic": "agentv.errors",
    "Evaluation": "agentv.sdk",
    "ExitStatus": "agentv.errors",
    "Grade": "agentv.model.run.grade",
    "LoadError": "agentv.errors",
    "Message": "agentv.model.values.message",
    "RetrievedText": "agentv.model.values.retrieved",
    "StoreError": "agentv.errors",
    "Suite": "agentv.sdk",
    "Summary": "agentv.model.run.summary",
    "TargetResponse": "agentv.model.values.response",
    "TokenUsage": "agentv.model.values.response",
    "TrialResult": "agentv.model.run.trial",
    "Turn": "agentv.sdk",
    "UsageError": "agentv.errors",
    "define_assertion": "agentv.assertions.user_code.authoring",
    "define_script_grader": "agentv.assertions.user_code.authoring",
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
    "RetrievedText",
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
    from importlib import import_module

    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
