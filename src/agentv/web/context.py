"""What the endpoints of one project share, and who asks them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from secrets import compare_digest, token_urlsafe
from typing import Literal, get_args

from anyio import CapacityLimiter
from msgspec import Struct
from starlette.requests import Request

from agentv.app.labels.keeping import LabelFiles, LabelStore
from agentv.app.results.project import Project
from agentv.extensions.view.viewed.editing import RunEditor, RunFiles
from agentv.extensions.view.viewed.judges import CheckedJudges
from agentv.extensions.view.viewed.labelling import LabelQueues
from agentv.extensions.view.viewed.opened import OpenRuns
from agentv.extensions.view.viewed.rerunning import CaseRunner
from agentv.extensions.view.viewed.runs import RunList

TOKEN_HEADER = "X-Agentv-Token"  # noqa: S105  # the name of a header

Permission = Literal["edit", "label", "run"]
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """What the command allowed.

    Attributes:
        edit: runs may be named and deleted.
        label: answers may be labelled.
        run: cases may be run again.
        person: who started it, in labels.
    """

    edit: bool = False
    label: bool = False
    run: bool = False
    person: str = ""


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


class ViewContext:
    """The state of one project's application.

    Attributes:
        opened: runs that are open.
        runs: the list of runs.
        queues: answers of runs to label.
        judges: how well the judges of runs agree with people.
        labels_of: where the labels of a person are kept.
        answers: encoded answers that take long to make, by path and ETag.
        token: what requests that change something must carry; another one at each start. No page contains it: only the
            address does that was printed, so that other users of this machine can read, but change nothing. Empty on a
            server, and where nothing may be changed.
        writers: threads that change something; None: any. See `TeamState.writers`.
        viewer: who sends a request. Called in a thread; raises RefusedError if they may not read the project.
        runner: runs cases again.
        editor: names and deletes runs.
    """

    def __init__(
        self,
        project: Project,
        options: ViewOptions,
        viewer: Callable[[Request], Viewer] | None = None,
        editor: RunEditor | None = None,
    ) -> None:
        self.project = project
        self.opened = OpenRuns(project)
        self.runs = RunList(self.opened)
        self.queues = LabelQueues(project)
        self.judges = CheckedJudges(project)
        self.labels_of: Callable[[str], LabelStore] = lambda _: LabelFiles(project.root)
        self.answers: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        allowed = frozenset(one for one in PERMISSIONS if getattr(options, one))
        self.token = token_urlsafe(32) if allowed else ""
        self._own = Viewer(options.person, allowed)
        self.viewer = viewer or self._viewer_of
        self.writers: CapacityLimiter | None = None
        self.runner = CaseRunner(project)
        self.editor = editor or RunFiles(self.opened)

    def locks(self, viewer: Viewer) -> bool:
        """Whether changes are allowed to pages with the token, and this one has none."""
        return bool(self.token) and not viewer.permissions

    def _viewer_of(self, request: Request) -> Viewer:
        given = request.headers.get(TOKEN_HEADER, "").encode()
        return self._own if compare_digest(given, self.token.encode()) else Viewer("")

    def close(self) -> None:
        """Close all runs, and end what runs again."""
        self.runner.close()
        self.opened.close()
