"""agentv tells whether AI prompts, models and agents are good enough, with evidence.

The public names are loaded when they are first used, so that `import agentv` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from agentv.assertions.authoring import define_assertion, define_script_grader
    from agentv.model.context import AssertionContext
    from agentv.model.response import TargetResponse, TokenUsage
    from agentv.model.scored import AssertionScore

_PLACES = {
    "AssertionContext": "agentv.model.context",
    "AssertionScore": "agentv.model.scored",
    "TargetResponse": "agentv.model.response",
    "TokenUsage": "agentv.model.response",
    "define_assertion": "agentv.assertions.authoring",
    "define_script_grader": "agentv.assertions.authoring",
}

__all__ = [
    "AssertionContext",
    "AssertionScore",
    "TargetResponse",
    "TokenUsage",
    "__version__",
    "define_assertion",
    "define_script_grader",
]


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'agentv' has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
