"""Cases that are run again, which needs the permission `run`."""

from __future__ import annotations

from agentv.errors import UsageError
from agentv.extensions.view.state import view_of
from agentv.extensions.view.viewed.rerun_check import check_rerun
from agentv.extensions.view.viewed.rerunning import Rerun
from agentv.extensions.view.viewed.trial import rerun_command, rerun_failed_command
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint


def _start(context: ProjectContext, call: Call) -> Rerun:
    run_id, trial = call.names["id"], call.names["trial"]
    run = view_of(context).opened.run(run_id)
    command = rerun_command(run, trial)
    check_rerun(command, run.root, context.project.root)
    return view_of(context).runner.start(command.words, Rerun("running", run_id, trial, command.shown))


def _start_failed(context: ProjectContext, call: Call) -> Rerun:
    run_id = call.names["id"]
    run = view_of(context).opened.run(run_id)
    command = rerun_failed_command(run)
    if next(iter(context.project.runs()), "") != run_id:  # --last-failed would run what failed since then
        raise UsageError("there is a newer run: open that one, or run the cases of this one by cause")
    check_rerun(command, run.root, context.project.root)
    return view_of(context).runner.start(command.words, Rerun("running", run_id, "", command.shown))


def _status(context: ProjectContext, call: Call) -> Rerun:  # noqa: ARG001  # every handler has this signature
    return view_of(context).runner.status()


def _cancel(context: ProjectContext, call: Call) -> Rerun:  # noqa: ARG001  # as above
    return view_of(context).runner.cancel()


ENDPOINTS = (
    Endpoint("/api/runs/{id}/trials/{trial}/run", "Run a case again.", Rerun, _start, method="POST", needs="run"),
    Endpoint("/api/runs/{id}/run", "Run the failed cases again.", Rerun, _start_failed, method="POST", needs="run"),
    Endpoint("/api/rerun", "The case that runs again.", Rerun, _status, needs="run"),
    Endpoint("/api/rerun", "Cancel the case that runs again.", Rerun, _cancel, method="DELETE", needs="run"),
)
