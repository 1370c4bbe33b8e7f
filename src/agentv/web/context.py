"""What the endpoints of one project share, and who asks them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Literal, TypeVar, get_args

from anyio import CapacityLimiter
from msgspec import Struct
from starlette.requests import Request

from agentv.app.results.project import Project, RunEditor

TOKEN_HEADER = "X-Agentv-Token"  # noqa: S105  # the name of a header

Permission = Literal["edit", "label", "run"]
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)

SCOPE_OF: dict[Permission, Literal["admin", "label"]] = {"edit": "admin", "label": "label"}
"""Permission → the scope that gives it on a team's server, where nobody runs cases."""

_Shared = TypeVar("_Shared")


class Viewer(Struct, frozen=True):
    """Who asks, and what they may do beyond reading.

    Attributes:
        person: their name, in labels and in the audit log.
        permissions: what they may change.
        token: what a change from their page must carry, and what its document contains; empty: the document has none.
        team: the project is one of several, on a server where people sign in.
    """

    person: str
    permissions: frozenset[Permission] = frozenset()
    token: str = ""
    team: bool = False


@dataclass(eq=False)
class ProjectContext:
    """The state of one project's application.

    Attributes:
        project: whose runs are shown.
        viewer: who sends a request. Called in a thread; raises RefusedError if they may not read the project.
        token: what requests that change something must carry; another one at each start. No page contains it: only the
            address does that was printed, so that other users of this machine can read, but change nothing. Empty on a
            server, and where nothing may be changed.
        editor: names and deletes runs; None: in their files.
        labels_of: where the labels of a person are kept; None: in the files of the project.
        writers: threads that change something; None: any.
    """

    project: Project
    viewer: Callable[[Request], Viewer]
    token: str = ""
    editor: RunEditor | None = None
    labels_of: Callable[[str], Any] | None = None
    writers: CapacityLimiter | None = None
    _shared: dict[Callable[[ProjectContext], Any], Any] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    def locks(self, viewer: Viewer) -> bool:
        """Whether changes are allowed to pages with the token, and this one has none."""
        return bool(self.token) and not viewer.permissions

    def shared(self, make: Callable[[ProjectContext], _Shared]) -> _Shared:
        """What all endpoints share that ask for it: made once, and closed with the project if it can be."""
        with self._lock:
            if make not in self._shared:
                self._shared[make] = make(self)
            found: _Shared = self._shared[make]
            return found

    def close(self) -> None:
        """Close what is shared."""
        for one in self._shared.values():
            if hasattr(one, "close"):
                one.close()
