"""Naming and deleting runs."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from agentv.errors import UsageError
from agentv.model.run.runs import LONGEST_NAME
from agentv.reports.text.escaping import safe


class DeletedRun(Struct, frozen=True):
    """A run that is gone.

    Attributes:
        left: files in its directory that are no part of the run, so that the directory stays.
    """

    run_id: str
    left: list[str]


class NamedRun(Struct, frozen=True):
    """A run and its name; empty: none."""

    run_id: str
    name: str


class RunEditor(Protocol):
    """Names and deletes the runs of a project."""

    def name(self, run_id: str, name: str, person: str) -> NamedRun:
        """Give a run a name.

        Raises:
            NoSuchRunError: no run has this id.
            UsageError: it cannot have the name, or not now.
        """
        ...

    def delete(self, run_id: str, person: str) -> DeletedRun:
        """Delete a run.

        Raises:
            NoSuchRunError: no run has this id.
            UsageError: it is being written.
        """
        ...


def checked_name(name: str) -> str:
    """A name on one line.

    Raises:
        UsageError: it is too long, or has control characters.
    """
    given = " ".join(name.split())
    if len(given) > LONGEST_NAME:
        raise UsageError(f"a name may have {LONGEST_NAME} characters at most")
    if safe(given) != given:
        raise UsageError("a name may have no control characters")
    return given
