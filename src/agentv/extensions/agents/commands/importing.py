"""`agentv import`: convert recorded sessions to rows, which the `replay` target grades without running an agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
from msgspec import structs

from agentv.authoring.source.masking import mask_keys, mask_keys_in
from agentv.cli.values import Choice
from agentv.errors import ExitStatus, UsageError
from agentv.extensions.agents.commands.sessions import MOST_LISTED, PROGRAMS, find_session, list_sessions, read_session
from agentv.extensions.agents.traces.values import LARGEST, Problems, records_of
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.model.values.trace_document import document
from agentv.model.values.trace_summary import Spent, messages_of, summary_of_trace


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """A session of a file, and the id of its row."""

    test_id: str
    trace: Trace
    file: str

    def row(self) -> str:
        """Return the row as one line of JSON. Text that looks like the API key of a well-known service is masked."""
        trace = self.trace
        answers = [message.text for message in messages_of(trace) if message.role == "assistant" and message.text]
        summary = summary_of_trace(trace, Spent())
        tokens = summary.token_usage
        row: dict[str, Any] = {
            "test_id": self.test_id,
            "output": answers[-1] if answers else None,
            "target": trace.agent or None,
            "token_usage": None if tokens is None else structs.asdict(tokens),
            "cost_usd": summary.cost_usd,
            "duration_ms": summary.duration_ms,
            "trace": json.loads(document(structs.replace(trace, native=b"", native_name=""))),
        }
        if trace.unanswered:
            row["error"] = {"code": "agent-stopped", "message": trace.unanswered}
        known = {key: value for key, value in row.items() if value is not None or key == "output"}
        return json.dumps(mask_keys(known), ensure_ascii=False)


def import_files(form: str, files: Sequence[str], test_id: str | None = None) -> list[ImportedSession]:
    """Read the sessions in files of one format.

    Args:
        form: a key of `FORMATS` or `PROGRAMS`.
        files: paths of the files.
        test_id: id of the row, for a single session; None: the case in its metadata, its own id, or the file name.

    Raises:
        UsageError: a file cannot be read or has another format, or two sessions have the same id.
    """
    found = [session for file in files for session in _sessions(form, Path(file))]
    if test_id is not None:
        if len(found) > 1:
            what = f"--test-id names one session, and there are {len(found)}"
            raise UsageError(what, "import their files one by one")
        found = [replace(found[0], test_id=test_id)]
    seen: dict[str, str] = {}
    for session in found:
        if session.test_id in seen:
            what = f"two sessions have the id '{session.test_id}': in {seen[session.test_id]} and {session.file}"
            raise UsageError(what, "import them one by one, with --test-id")
        seen[session.test_id] = session.file
    return found


def _sessions(form: str, path: Path) -> list[ImportedSession]:
    """Return the sessions of a file, each named by its case, its own id, or the file."""
    traces = _traces(form, path)
    stem = path.name.partition(".")[0] or path.name
    found = []
    for place, trace in enumerate(traces, 1):
        case = trace.metadata.get("agentv.case.id")
        own = trace.session_id if form in PROGRAMS or len(traces) > 1 else ""
        name = own or (stem if len(traces) == 1 else f"{stem}-{place}")
        found.append(ImportedSession(case if isinstance(case, str) and case else name, trace, str(path)))
    return found


def _traces(form: str, path: Path) -> list[Trace]:
    """Return the traces in a file.

    Raises:
        UsageError: it cannot be read, or has another format; the hint names that format.
    """
    if path.is_dir():
        raise UsageError(f"cannot read {path}: it is a directory")
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path} is larger than {LARGEST / 1_000_000:g} MB")
        found = _read(form, path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", _similar_name(path)) from None
    if isinstance(found, list):
        return found
    other = next((one for one in (*FORMATS, *PROGRAMS) if one != form and isinstance(_read(one, path), list)), None)
    raise UsageError(f"{path}: {found.message}", other and f"it reads as {other}: agentv import {other} {path}")


def _read(form: str, path: Path) -> list[Trace] | Failure:
    found = resolve_name(FORMATS[form])(path.read_bytes()) if form in FORMATS else read_session(form, path)
    if not isinstance(found, Trace):
        return found
    return [structs.replace(found, native=b"") if form in PROGRAMS else found]  # the native record may be large


def _similar_name(path: Path) -> str | None:
    """Return a hint with the file that was probably meant by a name that does not exist."""
    from agentv.authoring.source.nearest import did_you_mean

    try:
        names = [one.name for one in path.parent.iterdir()]
    except OSError:
        return None
    return did_you_mean(path.name, names)


def read_trajectories(data: bytes) -> list[Trace] | Failure:
    """Read a file with one trajectory, or with one in each line."""
    from agentv.extensions.agents.traces.atif import read_atif, trace_of_trajectory

    whole = read_atif(data)
    if not isinstance(whole, Failure):
        return [whole]
    problems = Problems()
    rows = [trace_of_trajectory(record) for _, record in records_of(data, problems)]
    traces = [row for row in rows if not isinstance(row, Failure)]
    if problems or len(traces) < len(rows) or not traces:
        return whole
    return traces


_TRACES = "agentv.extensions.agents.traces"
FORMATS = {
    "acp": f"{_TRACES}.acp:read_acp",
    "otlp": f"{_TRACES}.otlp:read_otlp",
    "atif": f"{__name__}:read_trajectories",
}
"""Format → function that reads the sessions in a file's content."""


_LONGEST_PROJECT = 40


@click.command("import", epilog="Example: agentv import claude --session latest --test-id refund -o recorded.jsonl")
@click.argument("form", type=Choice((*FORMATS, *PROGRAMS)), metavar="FORMAT")
@click.argument("files", nargs=-1, metavar="FILE…")
@click.option("--test-id", metavar="ID", help="Case that the session is of. Default: named by its file or its id.")
@click.option("--session", "--session-id", metavar="ID", help="Session of the program, or 'latest'.")
@click.option("--list", "listed", is_flag=True, help="List the sessions of the program, newest first.")
@click.option(
    "--sessions-dir",
    "--projects-dir",  # AgentV's name for claude
    "--session-state-dir",  # AgentV's name for copilot
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Where the sessions lie. Default: where the program keeps them.",
)
@click.option(
    "-o", "--out", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Output file. Default: stdout."
)
def command(
    form: str, files: tuple[str, ...], *, session: str | None, listed: bool, out: Path | None, **given: Any
) -> int:
    """Turn recorded sessions of agents into rows that the `replay` target grades without running anything.

    FORMAT is claude, codex, copilot, gemini or pi (the session files of Claude Code, Codex, Copilot CLI, Gemini CLI
    and pi), acp (a stream of the Agent Client Protocol, one JSON-RPC message per line), otlp (OpenTelemetry spans for
    generative AI, in JSON or protobuf) or atif (a trajectory of Harbor).

    Writes one JSON row per session: its final answer, what it used, and its trace. A session that can be read only in
    part is marked as partial, and gives no verdict about its tool calls.

    Exit status 2 if a file has no session of that format.
    """
    from agentv.store.files.whole_file import check_place

    test_id: str | None = given["test_id"]
    sessions_dir: Path | None = given["sessions_dir"]
    keeps = form in PROGRAMS
    if listed + (session is not None) + bool(files) != 1 or not (keeps or (files and sessions_dir is None)):
        raise UsageError(f"agentv import {form} takes {'FILE…, --session ID or --list' if keeps else 'FILE… alone'}")
    if listed:
        return _list(form, sessions_dir)
    if out is not None:
        check_place(out)
    if session is not None:
        files = (str(find_session(form, session, sessions_dir)),)
    return _write(import_files(form, files, test_id), out)


def _list(program: str, directory: Path | None) -> int:
    from itertools import islice

    from agentv.cli.printing import width_and_color
    from agentv.model.values.formatting import plural
    from agentv.reports.text import Cell, aligned, one_line

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
    from agentv.reports.text import one_line
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
