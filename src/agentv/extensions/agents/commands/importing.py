"""`agentv import`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.options.expected import Choice
from agentv.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from agentv.extensions.agents.stored_traces.importing import ImportedSession
    from agentv.extensions.agents.stored_traces.sessions import SessionFilter

PROGRAMS = ("claude", "codex", "copilot", "gemini", "pi")
FORMATS = ("acp", "otlp", "atif", *PROGRAMS)


@click.command("import", epilog="Example: agentv import claude --session latest --test-id refund -o recorded.jsonl")
@click.argument("form", type=Choice(FORMATS), metavar="FORMAT")
@click.argument("files", nargs=-1, metavar="FILE…")
@click.option("--test-id", metavar="ID", help="Case that the session is of. Default: named by its file or its id.")
@click.option("--session", "--session-id", metavar="ID", help="Session of the program, or 'latest'.")
@click.option("--list", "listed", is_flag=True, help="List the sessions of the program, newest first.")
@click.option("--project-path", type=click.Path(path_type=Path), metavar="DIR", help="Only sessions in this directory.")
@click.option(
    "--date", "day", type=click.DateTime(["%Y-%m-%d"]), metavar="YYYY-MM-DD", help="Only sessions of this day."
)
@click.option(
    "--sessions-dir",
    "--projects-dir",
    "--session-state-dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Where the sessions lie. Default: where the program keeps them.",
)
@click.option(
    "-o", "--out", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Output file. Default: stdout."
)
def command(
    form: str,
    files: tuple[str, ...],
    *,
    session: str | None,
    listed: bool,
    out: Path | None,
    **given: Any,
) -> int:
    """Turn recorded sessions of agents into rows that the `replay` target grades without running anything.

    FORMAT is claude, codex, copilot, gemini or pi (the session files of Claude Code, Codex, Copilot CLI, Gemini CLI
    and pi), acp (a stream of the Agent Client Protocol, one JSON-RPC message a line), otlp (OpenTelemetry spans for
    generative AI, in JSON or protobuf) or atif (a trajectory of Harbor).

    Writes one row of JSON a session: its final answer, what it used, and its trace. A session that can be read only in
    part is marked as partial, and gives no verdict about its tool calls.

    Exit status 2 if a file has no session of that format.
    """
    from agentv.extensions.agents.stored_traces.importing import import_files
    from agentv.store.files.whole_file import check_place

    test_id: str | None = given["test_id"]
    chosen = _filter(form, given["project_path"], given["day"], given["sessions_dir"])
    if listed + (session is not None) + bool(files) != 1:
        ways = "FILE…, --session ID or --list" if form in PROGRAMS else "FILE…"
        raise UsageError(f"agentv import {form} takes {ways}")
    if form not in PROGRAMS and not files:
        raise UsageError(f"{form} has no directory of sessions", f"agentv import {form} FILE…")
    if listed:
        return _list(form, chosen)
    if out is not None:
        check_place(out)
    found = [_chosen(form, session, chosen, test_id)] if session is not None else import_files(form, files, test_id)
    return _write(found, out)


def _filter(form: str, project: Path | None, day: datetime | None, directory: Path | None) -> SessionFilter:
    from agentv.extensions.agents.stored_traces.sessions import SessionFilter

    if form not in PROGRAMS and (project, day, directory) != (None, None, None):
        raise UsageError(f"--project-path, --date and --sessions-dir do not apply to {form}")
    return SessionFilter(project, None if day is None else day.date(), directory)


def _list(program: str, chosen: SessionFilter) -> int:
    from itertools import islice

    from agentv.authoring.source.masking import mask_keys_in
    from agentv.cli.printing import width_and_color
    from agentv.extensions.agents.reports.sessions import SessionLine, render_sessions
    from agentv.extensions.agents.stored_traces.sessions import MOST_LISTED, PROGRAMS, list_sessions
    from agentv.model.values.response import Failure
    from agentv.reports.text.escaping import one_line

    found = list(islice(list_sessions(program, chosen), MOST_LISTED + 1))
    if not found:
        click.echo(f"no sessions of {program} in {one_line(str(PROGRAMS[program].root(chosen.directory)))}")
        return ExitStatus.PASSED
    lines = [
        SessionLine(one.identity, one.begun, one.project, one.trace.message, None)
        if isinstance(one.trace, Failure)
        else SessionLine(
            one.identity, one.begun, one.project, mask_keys_in(next(iter(one.prompts), "")), len(one.prompts)
        )
        for one in found[:MOST_LISTED]
    ]
    width, color = width_and_color()
    table = render_sessions(lines, more=len(found) > MOST_LISTED, width=width, color=color)
    click.echo(table, color=color)
    return ExitStatus.PASSED


def _chosen(program: str, session: str, chosen: SessionFilter, test_id: str | None) -> ImportedSession:
    from agentv.extensions.agents.stored_traces.importing import import_session
    from agentv.extensions.agents.stored_traces.sessions import find_session

    return import_session(program, find_session(program, session, chosen), test_id)


def _write(found: list[ImportedSession], out: Path | None) -> int:
    from agentv.model.values.formatting import plural
    from agentv.reports.text.escaping import one_line
    from agentv.store.files.whole_file import write_whole

    for session in found:
        if session.trace.partial:
            click.echo(f"warning: {one_line(session.file)} is partial: {one_line(session.trace.partial)}", err=True)
    rows = (session.row() + "\n" for session in found)
    if out is None:
        for row in rows:
            click.echo(row, nl=False)
        return ExitStatus.PASSED
    write_whole(out, rows)
    click.echo(f"wrote {one_line(str(out))}: {plural(len(found), 'session')}", err=True)
    return ExitStatus.PASSED
