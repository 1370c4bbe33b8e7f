"""`agentv push` and `agentv pull`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.cli.lazy import Commands
from agentv.cli.printing import for_people, print_error
from agentv.cli.values import runs
from agentv.errors import AgentvError, ExitStatus, UsageError
from agentv.extensions.team.commands.pushing import EXPOSED
from agentv.model.values.formatting import plural
from agentv.reports.text.escaping import one_line

if TYPE_CHECKING:
    from agentv.extensions.team.push.connection import Connection
    from agentv.extensions.team.push.pushing import Pushed
    from agentv.model.redaction import Redactor

_SHOWN = 3
"""Paths that are named."""

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
    from agentv.app.results.place import RESULTS, place_holding
    from agentv.extensions.team.push.choosing import chosen_remote, chosen_runs
    from agentv.extensions.team.push.connection import Connection
    from agentv.extensions.team.push.labels import push_labels
    from agentv.extensions.team.push.pushing import redactor_of
    from agentv.store.labels.label_files import labels_directory

    paths = chosen_runs(run, every=every)
    found = chosen_remote(remote, os.environ)
    if found.is_exposed:
        click.echo(EXPOSED, err=True)
    try:
        with Connection(found, sleep=wait_for_server) as connection:
            redactor = redactor_of(os.environ, found.token)
            status = _pushed(paths, connection, redactor)
            if labels_directory(place_holding(RESULTS)).is_dir():
                added = push_labels(place_holding(RESULTS), connection, redactor)
                if added:
                    click.echo(f"{plural(added, 'label')} pushed", err=True)
    except KeyboardInterrupt:
        click.echo("\ninterrupted; the server keeps what was sent, and the same command sends the rest", err=True)
        return ExitStatus.INTERRUPTED
    return status


def _pushed(paths: Sequence[Path], connection: Connection, redactor: Redactor) -> int:
    """Push runs and say what was done; a run that cannot be pushed does not keep others from it."""
    from agentv.extensions.team.push.connection import RemoteError
    from agentv.extensions.team.push.pushing import RunPush

    failed = unchanged = 0
    for path in paths:
        shown = PushProgress(path)
        try:
            pushed = RunPush(path, connection, redactor, shown.update).push()
        except AgentvError as error:
            shown.clear()
            if len(paths) == 1 or isinstance(error, RemoteError):  # which refuses all of them
                raise
            failed += 1
            print_error(error)
            continue
        shown.clear()
        if pushed.changed or pushed.skipped or len(paths) == 1:
            click.echo(_report(pushed), err=True)
        unchanged += not pushed.changed
    if len(paths) > 1 and unchanged:
        click.echo(f"the server already has {plural(unchanged, 'run')}", err=True)
    if failed:
        click.echo(f"{failed} of {len(paths)} runs were not pushed", err=True)
    return ExitStatus.ERRORED if failed else ExitStatus.PASSED


def _report(pushed: Pushed) -> str:
    """One line, and one more where artifacts were too large."""
    sent = [plural(pushed.rows, "row")] if pushed.rows else []
    if pushed.artifacts:
        sent.append(plural(pushed.artifacts, "artifact"))
    what = ", ".join(sent) or "no new rows"
    lines = [f"{pushed.run_id}: {what} pushed" if pushed.changed else f"{pushed.run_id}: the server has all of it"]
    if pushed.skipped:
        named = ", ".join(map(one_line, pushed.skipped[:_SHOWN]))
        more = f" and {len(pushed.skipped) - _SHOWN} more" if len(pushed.skipped) > _SHOWN else ""
        lines.append(f"warning: too large to push: {named}{more}")
    return "\n".join(lines)


class PushProgress:
    """One line on a terminal that says how far a run is, several times a second at most.

    Args:
        path: the run's directory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shown = for_people()
        self._next = time.monotonic() + 0.3
        self._width = 0

    def update(self, size: int, rows: int) -> None:
        """Show that the server has so many bytes, and that so many rows were sent."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + 0.1
        of = max(size, (self._path / "index.jsonl").stat().st_size)
        text = f"pushing {self._path.name}: {plural(rows, 'row')}, {size / 1e6:,.1f} of {of / 1e6:,.1f} MB"
        sys.stderr.write(f"\r{text:<{self._width}}")
        sys.stderr.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Remove the line."""
        if self._width:
            sys.stderr.write(f"\r{'':<{self._width}}\r")
            sys.stderr.flush()
            self._width = 0


def wait_for_server(seconds: float) -> None:
    """Wait until the server is tried again, and say so."""
    click.echo(f"the server does not answer; trying again in {seconds:g} s (Ctrl-C to stop)", err=True)
    time.sleep(seconds)


@click.group("pull", cls=Commands, epilog="Example: agentv pull labels")
def group() -> None:
    """Download labels from a team's server."""


@group.command("labels", epilog="Example: agentv pull labels --remote https://evals.example.org/projects/support")
@_REMOTE
def labels(remote: str | None) -> int:
    """Add the server's labels to yours.

    They are appended to .agentv/labels; labels that are there stay. `agentv push` sends labels.

    The token comes from $AGENTV_TOKEN, else from `results.token` of .agentv/config.yaml. It needs the scope `read`.
    """
    from agentv.app.results.place import RESULTS, place_holding
    from agentv.extensions.team.push.choosing import chosen_remote
    from agentv.extensions.team.push.connection import Connection
    from agentv.extensions.team.push.labels import pull_labels
    from agentv.reports.text.escaping import shown_from

    found = chosen_remote(remote, os.environ)
    if found.is_exposed:
        click.echo(EXPOSED, err=True)
    with Connection(found, sleep=wait_for_server) as connection:
        added, files = pull_labels(place_holding(RESULTS), connection)
    here = str(Path.cwd())
    named = ", ".join(shown_from(str(path.absolute()), here) for path in files)
    click.echo(f"{plural(added, 'new label')}: {named}" if added else "no new labels", err=True)
    return ExitStatus.PASSED
