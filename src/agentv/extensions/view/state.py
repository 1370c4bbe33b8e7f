"""What the pages of one project share: runs that are open, their list, and what runs again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from secrets import compare_digest, token_urlsafe

from starlette.requests import Request

from agentv.app.results.project import Project
from agentv.extensions.view.viewed.editing import RunFiles
from agentv.extensions.view.viewed.opened import OpenRuns
from agentv.extensions.view.viewed.rerunning import CaseRunner
from agentv.extensions.view.viewed.runs import RunList
from agentv.web.context import PERMISSIONS, TOKEN_HEADER, ProjectContext, Viewer


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


class ProjectView:
    """Of one project.

    Attributes:
        opened: runs that are open.
        runs: the list of runs.
        answers: encoded answers that take long to make, by path and ETag.
        runner: runs cases again.
        editor: names and deletes runs.
    """

    def __init__(self, context: ProjectContext) -> None:
        self.opened = OpenRuns(context.project)
        self.runs = RunList(self.opened)
        self.answers: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self.runner = CaseRunner(context.project)
        self.editor = context.editor or RunFiles(self.opened)

    def close(self) -> None:
        """Close all runs, and end what runs again."""
        self.runner.close()
        self.opened.close()


def view_of(context: ProjectContext) -> ProjectView:
    """What the pages of a project share."""
    return context.shared(ProjectView)


def own_project(project: Project, options: ViewOptions) -> ProjectContext:
    """The project of whoever started `agentv view`: pages that have the token may do what the command allowed."""
    allowed = frozenset(one for one in PERMISSIONS if getattr(options, one))
    token, own = token_urlsafe(32) if allowed else "", Viewer(options.person, allowed)

    def viewer(request: Request) -> Viewer:
        given = request.headers.get(TOKEN_HEADER, "").encode()
        return own if compare_digest(given, token.encode()) else Viewer("")

    return ProjectContext(project, viewer, token)
