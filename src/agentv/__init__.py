"""agentv tests whether AI prompts, models and agents are good enough, with evidence.

Public names are imported on first use, so that `import agentv` is fast.
"""

from __future__ import annotations

from agentv.version import __version__

TYPE_CHECKING = False  # type checkers know the name; importing `typing` would dominate the start of a command
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

_NAMES = {
    "agentv.assertions.user_code.authoring": ("define_assertion", "define_script_grader"),
    "agentv.errors": ("AgentvError", "Diagnostic", "ExitStatus", "LoadError", "StoreError", "UsageError"),
    "agentv.model.run.context": ("AssertionContext",),
    "agentv.model.run.grade": ("AssertionScore", "Check", "Grade"),
    "agentv.model.run.summary": ("Summary",),
    "agentv.model.run.trial": ("TrialResult",),
    "agentv.model.values.message": ("Message",),
    "agentv.model.values.response": ("TargetResponse",),
    "agentv.model.values.retrieved": ("RetrievedText",),
    "agentv.model.values.usage": ("TokenUsage",),
    "agentv.sdk": ("Case", "Evaluation", "Suite", "Turn", "evaluate", "evaluate_async"),
}

__all__ = ["AgentvError", "AssertionContext", "AssertionScore", "Case", "Check", "Diagnostic", "Evaluation"]
__all__ += ["ExitStatus", "Grade", "LoadError", "Message", "RetrievedText", "StoreError", "Suite", "Summary"]
__all__ += ["TargetResponse", "TokenUsage", "TrialResult", "Turn", "UsageError", "__version__"]
__all__ += ["define_assertion", "define_script_grader", "evaluate", "evaluate_async"]


def __getattr__(name: str) -> object:
    place = next((module for module, names in _NAMES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"module 'agentv' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
