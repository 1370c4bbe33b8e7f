"""State that the pages of one project share: open runs, the list of runs, and the rerun in progress."""

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
    """Permissions given on the command line.

    Attributes:
        edit: whether runs may be named and deleted.
        label: whether answers may be labelled.
        run: whether cases may be run again.
        person: name for labels of the person who started it.
    """

    edit: bool = False
    label: bool = False
    run: bool = False
    person: str = ""


class RunFileEditor:
    """A `RunEditor` that changes the files of runs."""

    def __init__(self, opened: OpenRuns) -> None:
        self._opened = opened

    def name(self, run_id: str, name: str, person: str) -> NamedRun:  # noqa: ARG002  # run files do not record who changed them
        """See `RunEditor`. The name is stored in the run's `run.json`.

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

    def delete(self, run_id: str, person: str) -> DeletedRun:  # noqa: ARG002  # run files do not record it
        """See `RunEditor`.

        Raises:
            StoreError: the directory was not written by agentv, or the system refuses to delete it.
        """
        path = self._opened.project.run(run_id)
        check_removable(path)
        if is_being_written(path):
            raise UsageError("the run is still being written", "wait until it ends, or stop it")
        self._opened.forget(path)
        return DeletedRun(run_id, list(remove_run(path)))


class ProjectView:
    """Shared state of one project's pages.

    Attributes:
        opened: open runs.
        runs: list of runs.
        answers: encoded responses that are slow to compute, by path and ETag.
        runner: runs cases again.
        editor: names and deletes runs.
    """

    def __init__(self, context: ProjectContext) -> None:
        self.opened = OpenRuns(context.project)
        self.runs = RunList(self.opened)
        self.answers: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self.runner = CaseRunner(context.project)
        self.editor = context.editor or RunFileEditor(self.opened)

    def close(self) -> None:
        """Close all runs and end the rerun in progress."""
        self.runner.close()
        self.opened.close()


def view_of(context: ProjectContext) -> ProjectView:
    """The shared state of a project's pages."""
    return context.shared(ProjectView)


def local_context(project: Project, options: ViewOptions) -> ProjectContext:
    """The context of `agentv view`. Pages with the token get the permissions given on the command line."""
    allowed = frozenset(one for one in PERMISSIONS if getattr(options, one))
    token, own = token_urlsafe(32) if allowed else "", Viewer(options.person, allowed)

    def viewer(request: Request) -> Viewer:
        given = request.headers.get(TOKEN_HEADER, "").encode()
        return own if compare_digest(given, token.encode()) else Viewer("")

    return ProjectContext(project, viewer, token)
