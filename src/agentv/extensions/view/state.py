"""What the pages of one project share: runs that are open, their list, and what runs again."""

from __future__ import annotations

from collections import OrderedDict
from secrets import compare_digest, token_urlsafe

from msgspec import Struct
from starlette.requests import Request

from agentv.app.results.project import DeletedRun, NamedRun, Project, checked_name
from agentv.errors import UsageError
from agentv.extensions.view.runs import OpenRuns, RunList
from agentv.extensions.view.trial import CaseRunner
from agentv.store.files.directory import RUN, RunDirectory, is_being_written
from agentv.store.removal import check_removable, remove_run
from agentv.web.endpoints import PERMISSIONS, TOKEN_HEADER, ProjectContext, Viewer


class ViewOptions(Struct, frozen=True):
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


class RunFiles:
    """Runs whose files are the truth."""

    def __init__(self, opened: OpenRuns) -> None:
        self._opened = opened

    def name(self, run_id: str, name: str, person: str) -> NamedRun:  # noqa: ARG002  # files keep nobody's name
        """See `RunEditor`; the run's `run.json` keeps the name.

        Raises:
            StoreError: the file cannot be written.
        """
        path = self._opened.project.run(run_id)
        given = checked_name(name)
        if is_being_written(path):
            raise UsageError("the run is still being written", "wait until it ends")
        with RunDirectory.open(path) as directory:
            directory.write(RUN, {"name": given})
        return NamedRun(run_id, given)

    def delete(self, run_id: str, person: str) -> DeletedRun:  # noqa: ARG002  # as above
        """See `RunEditor`.

        Raises:
            StoreError: it is not what agentv wrote, or the system refuses.
        """
        path = self._opened.project.run(run_id)
        check_removable(path)
        if is_being_written(path):
            raise UsageError("the run is still being written", "wait until it ends, or stop it")
        self._opened.forget(path)
        return DeletedRun(run_id, list(remove_run(path)))


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
