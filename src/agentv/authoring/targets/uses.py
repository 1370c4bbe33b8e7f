"""What is wrong with a target, said where it is used; and of a target that nothing uses, as a warning."""

from __future__ import annotations

from dataclasses import replace

from agentv.authoring.source.files import shown
from agentv.authoring.source.nodes import NOWHERE, Node, span_of
from agentv.errors import Diagnostic

_OF_THE_MACHINE = frozenset({"unset-environment", "no-api-key", "missing-extra"})
"""What a target lacks on this machine. Of one that nothing uses it says nothing."""


def at_use(found: Diagnostic, name: str, at: Node | None) -> Diagnostic:
    """What keeps a target from being used, at the place that names it; a second line says where it is written.

    What has no place that names it, such as a target of the command line, stands where the target is written.
    """
    if found.severity != "error" or at is None or at.at is NOWHERE:
        return found
    notes = found.notes
    if found.span is not None:
        place = found.span
        notes = (f"at {shown(place.file)}:{place.line}:{place.column}", *notes)
    message = f"target '{name}' cannot be used: {found.message}"
    return replace(found, span=span_of(at.at), message=message, notes=notes)


def as_unused(found: Diagnostic) -> Diagnostic | None:
    """The same of a target that no case uses: a warning at most. None: not worth a word."""
    if found.code in _OF_THE_MACHINE:
        return None
    if found.severity != "error":
        return found
    return replace(found, severity="hint" if found.code == "not-yet" else "warning")
