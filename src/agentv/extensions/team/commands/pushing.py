"""The push of a run while it goes on, as people see it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.app.planning.preparation import Prepared, directory_of
from agentv.cli.printing import for_people
from agentv.reports.text.escaping import one_line
from agentv.reports.text.paths import shown_from

if TYPE_CHECKING:
    from agentv.extensions.team.push.live import LivePush
    from agentv.extensions.team.push.pushed import LivePushed
    from agentv.extensions.team.push.remote import Remote

Opened = Callable[[str, Path], None]
EXPOSED = "warning: the address is http://, so the token and the runs are not encrypted on their way"


def remote_of(prepared: Prepared) -> Remote | None:
    """The server that the run is pushed to; None: nothing names one.

    Raises:
        UsageError, LoadError: what names it is wrong.
    """
    from agentv.extensions.team.push.choosing import remote_of_run

    settings = prepared.settings
    return remote_of_run(directory_of(prepared.suites), settings.process_env, settings.env_file)


@contextmanager
def pushing(remote: Remote | None, opened: Opened, *, quiet: bool) -> Iterator[Opened]:
    """Push the run of the body while it goes on; in the end say what was pushed.

    Args:
        remote: None: nothing is pushed.
        opened: called when the run's directory is open.
        quiet: say only what went wrong.
    """
    if remote is None:
        yield opened
        return
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
    from agentv.extensions.team.push.report import render_live_pushed

    click.echo(render_live_pushed(done, _command(done, here)), err=True)


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
