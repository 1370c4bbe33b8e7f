"""`agentv push`, `agentv pull`, and `agentv eval` with a push of the run in progress."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.lazy import Commands, Option
from agentv.cli.printing import is_interactive, print_error
from agentv.cli.values import runs
from agentv.errors import AgentvError, ExitStatus, UsageError
from agentv.model.values.formatting import plural
from agentv.reports.text import listed, one_line, shown_from

if TYPE_CHECKING:
    from agentv.app.planning.preparation import Prepared
    from agentv.app.running.evaluate import Opened
    from agentv.extensions.team.connection import Connection
    from agentv.extensions.team.live import LivePushed
    from agentv.extensions.team.pushing import Pushed
    from agentv.extensions.team.remote import Remote
    from agentv.model.redaction import Redactor


_SHOWN = 3
"""Most paths that are listed."""

_REMOTE = click.option(
    "--remote",
    metavar="URL",
    help="Project on the server, such as https://HOST/projects/NAME (default: $AGENTV_REMOTE, else `results.remote` of "
    ".agentv/config.yaml).",
)


@click.command("push", epilog="Example: agentv push last --remote https://evals.example.org/projects/support")
@click.argument("run", metavar="[RUN]...", nargs=-1, shell_complete=runs)
@_REMOTE
@click.option("--all", "every", is_flag=True, help="Push every run of this project.")
def command(run: tuple[str, ...], remote: str | None, *, every: bool) -> int:
    """Push runs (default: the last) to a team's server. Sends only what the server lacks.

    A push that was interrupted continues where it stopped. The token comes from $AGENTV_TOKEN, else from
    `results.token` of .agentv/config.yaml.

    Sends run.json, rows, summary.json, artifacts and the project's labels. The journal stays on this machine, so a run
    is resumed here.
    """
    if run and every:
        raise UsageError("RUN and --all conflict", "use one of them")
    from agentv.app.results.place import RESULTS, project_with
    from agentv.extensions.team.connection import Connection
    from agentv.extensions.team.pushing import push_labels, redactor_of
    from agentv.extensions.team.remote import chosen_remote, chosen_runs, is_exposed
    from agentv.store.labels import labels_directory

    paths = chosen_runs(run, every=every)
    found = chosen_remote(remote, os.environ)
    if is_exposed(found.address):
        click.echo(EXPOSED, err=True)
    try:
        with Connection(found, sleep=wait_for_server) as connection:
            redactor = redactor_of(os.environ, found.token)
            status = _push_runs(paths, connection, redactor)
            if labels_directory(project_with(RESULTS)).is_dir():
                added = push_labels(project_with(RESULTS), connection, redactor)
                if added:
                    click.echo(f"{plural(added, 'label')} pushed", err=True)
    except KeyboardInterrupt:
        click.echo("\ninterrupted; the server keeps what was sent, and the same command sends the rest", err=True)
        return ExitStatus.INTERRUPTED
    return status


def _push_runs(paths: Sequence[Path], connection: Connection, redactor: Redactor) -> int:
    """Push runs and report each; continue with the others if a run cannot be pushed."""
    from rich.console import Console
    from rich.progress import Progress

    from agentv.extensions.team.connection import RemoteError
    from agentv.extensions.team.pushing import RunPush

    failed = unchanged = 0
    with Progress(console=Console(stderr=True), transient=True, disable=not is_interactive()) as progress:
        for path in paths:
            task = progress.add_task(f"pushing {path.name}", total=None)
            shown = partial(progress.update, task)
            try:
                pushed = RunPush(path, connection, redactor, shown).push()
            except AgentvError as error:
                if len(paths) == 1 or isinstance(error, RemoteError):  # which would stop every run
                    raise
                failed += 1
                print_error(error)
                continue
            finally:
                progress.remove_task(task)
            if pushed.changed or pushed.skipped or len(paths) == 1:
                click.echo(_report(pushed), err=True)
            unchanged += not pushed.changed
    if len(paths) > 1 and unchanged:
        click.echo(f"the server already has {plural(unchanged, 'run')}", err=True)
    if failed:
        click.echo(f"{failed} of {len(paths)} runs were not pushed", err=True)
    return ExitStatus.ERRORED if failed else ExitStatus.PASSED


def _report(pushed: Pushed) -> str:
    """Return one line, and another if artifacts were too large."""
    sent = ((pushed.rows, "row"), (pushed.artifacts, "artifact"))
    what = ", ".join(plural(count, noun) for count, noun in sent if count) or "no new rows"
    line = f"{pushed.run_id}: {what} pushed" if pushed.changed else f"{pushed.run_id}: the server has all of it"
    return f"{line}\nwarning: too large to push: {listed(pushed.skipped, _SHOWN)}" if pushed.skipped else line


def wait_for_server(seconds: float) -> None:
    """Tell the user about the next attempt, and wait for it."""
    click.echo(f"the server does not answer; trying again in {seconds:g} s (Ctrl-C to stop)", err=True)
    time.sleep(seconds)


@click.group("pull", cls=Commands, epilog="Example: agentv pull labels")
def group() -> None:
    """Download labels from a team's server."""


@group.command("labels", epilog="Example: agentv pull labels --remote https://evals.example.org/projects/support")
@_REMOTE
def labels(remote: str | None) -> int:
    """Add the server's labels to yours.

    They are appended to .agentv/labels; existing labels are kept. `agentv push` sends labels.

    The token comes from $AGENTV_TOKEN, else from `results.token` of .agentv/config.yaml. It needs the scope `read`.
    """
    from agentv.app.results.place import RESULTS, project_with
    from agentv.extensions.team.connection import Connection
    from agentv.extensions.team.pushing import pull_labels
    from agentv.extensions.team.remote import chosen_remote, is_exposed

    found = chosen_remote(remote, os.environ)
    if is_exposed(found.address):
        click.echo(EXPOSED, err=True)
    with Connection(found, sleep=wait_for_server) as connection:
        added, files = pull_labels(project_with(RESULTS), connection)
    named = ", ".join(shown_from(str(path.absolute()), str(Path.cwd())) for path in files)
    click.echo(f"{plural(added, 'new label')}: {named}" if added else "no new labels", err=True)
    return ExitStatus.PASSED


NO_PUSH = Option(
    ["--no-push"], is_flag=True, help="Do not push this run to the team's server that is configured.", section="Output"
)

EXPOSED = "warning: the address is http://, so the token and the runs are not encrypted on their way"


def pushing(
    prepared: Prepared, chosen: Mapping[str, Any], *, quiet: bool
) -> Callable[[Opened], AbstractContextManager[Opened]] | None:
    """Return a context that pushes a run in progress and reports the result, or None if no server is configured.

    Args:
        prepared: the prepared run.
        chosen: the values of options.
        quiet: report only problems.

    Raises:
        UsageError, LoadError: the configuration of the server is invalid.
    """
    if chosen.get(NO_PUSH.name):
        return None
    from agentv.app.planning.preparation import directory_of
    from agentv.extensions.team.remote import remote_of

    settings = prepared.settings
    remote = remote_of(directory_of(prepared.suites), settings.process_env, settings.env_file)
    return None if remote is None else partial(_push_in_background, remote, quiet=quiet)


@contextmanager
def _push_in_background(remote: Remote, opened: Opened, *, quiet: bool) -> Iterator[Opened]:
    from agentv.extensions.team.live import LivePush
    from agentv.extensions.team.remote import is_exposed

    here = str(Path.cwd())
    if is_exposed(remote.address):
        click.echo(EXPOSED, err=True)
    # called on another thread while a progress bar may be shown; `sys.stderr` then prints above the bar
    push = LivePush(remote, os.environ, lambda reason: sys.stderr.write(f"warning: {one_line(reason)}\n"))

    def opened_and_pushed(run_id: str, directory: Path) -> None:
        opened(run_id, directory)
        push.start(directory)

    try:
        yield opened_and_pushed
    finally:
        done = push.finish(_print_waiting)
        if done is not None and not (quiet and done.problem is None):
            path = done.path.absolute()
            named = path.name if path.parent.name == "results" else shown_from(str(path), here)
            click.echo(live_report(done, shlex.join(["agentv", "push", named])), err=True)


def live_report(pushed: LivePushed, command: str) -> str:
    """Return the report on a run that was pushed while in progress. `command` pushes the rest."""
    if pushed.problem is None:
        return f"pushed {plural(pushed.rows, 'row')}: {pushed.page}"
    return f"warning: not all of the run was pushed: {one_line(pushed.problem)}. Push the rest with:\n  {command}"


def _print_waiting() -> None:
    if is_interactive():
        click.echo("pushing the last rows; press Ctrl-C to leave them to 'agentv push'", err=True)
