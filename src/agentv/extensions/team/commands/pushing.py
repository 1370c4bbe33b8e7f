"""The push of a run while it goes on, as people see it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.lazy import Option
from agentv.cli.printing import for_people
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line, shown_from

if TYPE_CHECKING:
    from agentv.app.planning.preparation import Prepared
    from agentv.app.running.evaluate import Opened
    from agentv.extensions.team.push.live import LivePush, LivePushed
    from agentv.extensions.team.push.remote import Remote

    Beside = Callable[[Opened], AbstractContextManager[Opened]]

NO_PUSH = Option(
    ["--no-push"], is_flag=True, help="Do not push this run to the team's server that is configured.", section="Output"
)

EXPOSED = "warning: the address is http://, so the token and the runs are not encrypted on their way"


def pushing(prepared: Prepared, chosen: Mapping[str, Any], *, quiet: bool) -> Beside | None:
    """Push a run while it goes on, and in the end say what was pushed; None: nothing names a server.

    Args:
        prepared: what is to be run.
        chosen: the values of options.
        quiet: say only what went wrong.

    Raises:
        UsageError, LoadError: what names the server is wrong.
    """
    if chosen.get(NO_PUSH.name):
        return None
    from agentv.app.planning.preparation import directory_of
    from agentv.extensions.team.push.choosing import remote_of_run

    settings = prepared.settings
    remote = remote_of_run(directory_of(prepared.suites), settings.process_env, settings.env_file)
    return None if remote is None else partial(_pushing, remote, quiet=quiet)


@contextmanager
def _pushing(remote: Remote, opened: Opened, *, quiet: bool) -> Iterator[Opened]:
    from agentv.extensions.team.push.live import LivePush

    here = str(Path.cwd())
    if remote.is_exposed:
        click.echo(EXPOSED, err=True)
    push = LivePush(remote, os.environ, _print_problem)

    def opened_and_pushed(run_id: str, directory: Path) -> None:
        opened(run_id, directory)
        push.start(directory)

    try:
        yield opened_and_pushed
    finally:
        _finish(push, here, quiet=quiet)


def _finish(push: LivePush, here: str, *, quiet: bool) -> None:
    done = push.finish(_print_waiting)
    if done is None or (quiet and done.problem is None):
        return
    click.echo(live_report(done, _command(done, here)), err=True)


def live_report(pushed: LivePushed, command: str) -> str:
    """What became of a run that was pushed while it went on. `command` pushes the rest."""
    if pushed.problem is None:
        return f"pushed {plural(pushed.rows, 'row')}: {pushed.page}"
    missing, rows = pushed.missing
    of, were = "row" if rows == 1 else "rows", "was" if missing == 1 else "were"
    what = f"{missing:,} of {rows:,} {of} {were} not pushed" if missing else "the end of the run was not pushed"
    return f"warning: {what}: {one_line(pushed.problem)}. Push the rest with:\n  {command}"


def _command(done: LivePushed, here: str) -> str:
    path = done.path.absolute()
    named = path.name if path.parent.name == "results" else shown_from(str(path), here)
    return shlex.join(["agentv", "push", named])


def _print_waiting() -> None:
    if for_people():
        click.echo("pushing the last rows; press Ctrl-C to leave them to 'agentv push'", err=True)


def _print_problem(reason: str) -> None:
    """Called on another thread, while a progress bar may be drawn: its stream scrolls the bar."""
    sys.stderr.write(f"warning: {one_line(reason)}\n")
