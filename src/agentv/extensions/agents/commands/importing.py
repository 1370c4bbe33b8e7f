"""`agentv import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.values import Choice
from agentv.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from agentv.extensions.agents.stored_traces.importing import ImportedSession

PROGRAMS = ("claude", "codex", "copilot", "gemini", "pi")
FORMATS = ("acp", "otlp", "atif", *PROGRAMS)
_LONGEST_PROJECT = 40


@click.command("import", epilog="Example: agentv import claude --session latest --test-id refund -o recorded.jsonl")
@click.argument("form", type=Choice(FORMATS), metavar="FORMAT")
@click.argument("files", nargs=-1, metavar="FILE…")
@click.option("--test-id", metavar="ID", help="Case that the session is of. Default: named by its file or its id.")
@click.option("--session", "--session-id", metavar="ID", help="Session of the program, or 'latest'.")
@click.option("--list", "listed", is_flag=True, help="List the sessions of the program, newest first.")
@click.option(
    "--sessions-dir",
    "--projects-dir",  # as AgentV calls it for claude
    "--session-state-dir",  # and for copilot
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
    from agentv.extensions.agents.stored_traces.importing import import_files, import_session
    from agentv.extensions.agents.stored_traces.sessions import find_session
    from agentv.store.files.whole_file import check_place

    test_id: str | None = given["test_id"]
    sessions_dir: Path | None = given["sessions_dir"]
    if form not in PROGRAMS and sessions_dir is not None:
        raise UsageError(f"--sessions-dir does not apply to {form}")
    if listed + (session is not None) + bool(files) != 1:
        ways = "FILE…, --session ID or --list" if form in PROGRAMS else "FILE…"
        raise UsageError(f"agentv import {form} takes {ways}")
    if form not in PROGRAMS and not files:
        raise UsageError(f"{form} has no directory of sessions", f"agentv import {form} FILE…")
    if listed:
        return _list(form, sessions_dir)
    if out is not None:
        check_place(out)
    if session is None:
        return _write(import_files(form, files, test_id), out)
    return _write([import_session(form, find_session(form, session, sessions_dir), test_id)], out)


def _list(program: str, directory: Path | None) -> int:
    from itertools import islice

    from agentv.authoring.source.masking import mask_keys_in
    from agentv.cli.printing import width_and_color
    from agentv.extensions.agents.stored_traces.sessions import MOST_LISTED, PROGRAMS, list_sessions
    from agentv.model.values.formatting import plural
    from agentv.model.values.response import Failure
    from agentv.reports.text.escaping import one_line
    from agentv.reports.text.tables import Cell, aligned

    found = list(islice(list_sessions(program, directory), MOST_LISTED + 1))
    if not found:
        click.echo(f"no sessions of {program} in {one_line(str(PROGRAMS[program].root(directory)))}")
        return ExitStatus.PASSED
    rows: list[list[Cell]] = [[(name, "bold") for name in ("SESSION", "BEGUN", "PROJECT", "TURNS", "FIRST PROMPT")]]
    for one in found[:MOST_LISTED]:
        begun = "-" if one.begun is None else f"{one.begun:%Y-%m-%d %H:%M}"
        project = one_line(one.project)
        project = project if len(project) <= _LONGEST_PROJECT else "…" + project[1 - _LONGEST_PROJECT :]
        prompt = mask_keys_in(next(iter(one.prompts), ""))
        turns: Cell = (str(len(one.prompts)), None)
        if isinstance(one.trace, Failure):
            prompt, turns = one.trace.message, ("-", "wrong")
        cells: list[Cell] = [(one_line(one.identity), None), (begun, "dim"), (project or "-", None), turns]
        rows.append([*cells, (one_line(prompt, 200), None)])
    more = len(found) > MOST_LISTED
    total = f"the {plural(MOST_LISTED, 'newest session')}" if more else plural(len(found), "session")
    width, color = width_and_color()
    click.echo("\n".join([*aligned(rows, width, color=color), "", total]), color=color)
    return ExitStatus.PASSED


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
