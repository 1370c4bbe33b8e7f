"""Find and read the sessions that coding agents store in HOME."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from agentv.errors import UsageError
from agentv.extensions.agents.traces.values import LARGEST
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, Trace

if TYPE_CHECKING:
    from agentv.extensions.agents.traces.sessions.recorder import SessionFile


LATEST = "latest"
MOST_LISTED = 50
_FIRST_LINE = 65_536
_SHORTEST_PREFIX = 6
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([\w.-]{1,100})"')
_PARENT = b'"parent_thread_id"'
_READERS = "agentv.extensions.agents.traces.sessions"


@dataclass(frozen=True, slots=True)
class SessionProgram:
    """Where a program keeps its sessions.

    Attributes:
        variable: environment variable with a directory that replaces the one in HOME; "" if the program has none.
        directory: path of its directory, relative to HOME.
        inside: path from that directory to the sessions.
        patterns: globs of the session files.
    """

    variable: str
    directory: str
    inside: str
    patterns: tuple[str, ...]

    def root(self, override: Path | None) -> Path:
        """Return the directory of the sessions."""
        if override is not None:
            return override
        own = os.environ.get(self.variable, "")
        return (Path(own) if own else Path.home() / self.directory) / self.inside


PROGRAMS: Mapping[str, SessionProgram] = {
    "claude": SessionProgram("CLAUDE_CONFIG_DIR", ".claude", "projects", ("*/*.jsonl",)),
    "codex": SessionProgram("CODEX_HOME", ".codex", "sessions", ("*/*/*/rollout-*.jsonl", "rollout-*.jsonl")),
    "copilot": SessionProgram("COPILOT_HOME", ".copilot", "session-state", ("*/events.jsonl", "*.jsonl")),
    "gemini": SessionProgram("", ".gemini", "tmp", ("*/chats/session-*.json", "*/chats/session-*.jsonl")),
    "pi": SessionProgram("PI_CODING_AGENT_DIR", ".pi/agent", "sessions", ("*/*.jsonl",)),
}


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session in a program's directory.

    Attributes:
        identity: session id.
        trace: its trace, or a Failure if it cannot be read.
        begun: start in local time, or None if unknown.
    """

    identity: str
    path: Path
    trace: Trace | Failure
    begun: datetime | None = None

    @property
    def project(self) -> str:
        """Directory that the session ran in; empty if unknown."""
        project = self.trace.metadata.get("project") if isinstance(self.trace, Trace) else None
        return project if isinstance(project, str) else ""

    @property
    def prompts(self) -> tuple[str, ...]:
        """Messages of the user."""
        steps = self.trace.steps if isinstance(self.trace, Trace) else ()
        messages = (step for step in steps if isinstance(step, MessageStep) and step.parent is None)
        return tuple(step.text for step in messages if step.role == "user")


def read_session(program: str, path: Path) -> Trace | Failure:
    """Return the trace of the session in a file, including its sub-agents, whose files are beside it.

    Raises:
        OSError: a file cannot be read.
        UsageError: a file is too large.
    """
    from agentv.extensions.agents.traces.sessions.recorder import SessionFile

    data = _content(path)
    others = {one.name: _content(one) for one in sorted(_subagent_files(program, path, data))}
    root = path.parent.parent / ".project_root"
    if program == "gemini" and root.is_file():
        others[root.name] = _content(root)
    read: Callable[[SessionFile], Trace | Failure] = resolve_name(f"{_READERS}.{program}:read_{program}")
    return read(SessionFile(data, others))


def list_sessions(program: str, directory: Path | None = None) -> Iterator[FoundSession]:
    """Yield the sessions of a program, newest first. Each is read when it is yielded."""
    for path in _paths(program, directory):
        try:
            trace = read_session(program, path)
        except OSError as error:
            trace = Failure("bad-trace", f"cannot read it: {error.strerror}")
        named = (trace.session_id if isinstance(trace, Trace) else "") or _identity_by_name(path)
        yield FoundSession(named, path, trace, _start_time(trace, path))


def find_session(program: str, identity: str, directory: Path | None = None) -> Path:
    """Return the file of a session.

    Args:
        program: key of `PROGRAMS`.
        identity: session id, a prefix of one, or `latest`.
        directory: directory of the sessions, if not the program's own.

    Raises:
        UsageError: no session or several sessions match; the hint names the closest match.
    """
    from agentv.authoring.source.nearest import did_you_mean

    root = PROGRAMS[program].root(directory)
    if identity == LATEST:
        newest = next(list_sessions(program, directory), None)
        if newest is None:
            raise UsageError(f"no session of {program} in {root}", f"agentv import {program} --list")
        return newest.path
    paths = list(_paths(program, directory))
    paths_by_id = {_identity_by_name(path): path for path in reversed(paths)}
    found = [name for name in paths_by_id if name.startswith(identity)] if len(identity) >= _SHORTEST_PREFIX else []
    if identity in paths_by_id or len(found) == 1:
        return paths_by_id[identity] if identity in paths_by_id else paths_by_id[found[0]]
    if found:
        raise UsageError(f"{len(found)} sessions of {program} begin with '{identity}': {', '.join(sorted(found)[:3])}")
    by_record = next((one for one in list_sessions(program, directory) if one.identity == identity), None)
    if by_record is not None:
        return by_record.path
    names = [_identity_by_name(path) for path in paths]
    near = did_you_mean(identity, names)
    hint = near or (f"the newest is '{names[0]}'; agentv import {program} --list" if names else None)
    raise UsageError(f"no session '{identity}' of {program} in {root}", hint)


def _paths(program: str, directory: Path | None) -> list[Path]:
    """Return the session files, newest first, without those of sub-agents."""
    about = PROGRAMS[program]
    root = about.root(directory)
    found: dict[Path, float] = {}
    for pattern in about.patterns:
        for path in root.glob(pattern):
            try:
                if path.is_file() and not (program == "codex" and _PARENT in _first_line(path)):
                    found[path] = path.stat().st_mtime
            except OSError:
                continue
    return sorted(found, key=lambda path: (-found[path], str(path)))


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(_FIRST_LINE)


def _identity_by_name(path: Path) -> str:
    """Return the id in a file's name (`SESSION`, `rollout-TIME-SESSION`, `TIME_SESSION`), directory or content."""
    if path.name == "events.jsonl":
        return path.parent.name
    stem = path.name.partition(".")[0]
    if stem.startswith("rollout-"):
        return stem[-36:]
    if stem.startswith("session-"):  # the name ends with only the first letters of the id
        beginning = b""
        with suppress(OSError), path.open("rb") as file:
            beginning = file.read(_FIRST_LINE)
        named = _SESSION_ID.search(beginning)
        return named[1].decode(errors="replace") if named else stem
    return stem.rpartition("_")[2] if "_" in stem else stem


def _start_time(trace: Trace | Failure, path: Path) -> datetime | None:
    started_ms = trace.metadata.get("started_at_ms") if isinstance(trace, Trace) else None
    try:
        seconds = started_ms / 1000 if isinstance(started_ms, int | float) else path.stat().st_mtime
        return datetime.fromtimestamp(seconds).astimezone()
    except (OSError, OverflowError, ValueError):
        return None


def _subagent_files(program: str, path: Path, data: bytes) -> Iterator[Path]:
    """Yield the files of a session's sub-agents."""
    if program == "claude":
        folder = path.with_suffix("") / "subagents"
        yield from folder.rglob("*.jsonl")
        yield from folder.rglob("*.meta.json")
    elif program == "codex" and b"spawn_agent" in data:
        own = f'"{_identity_by_name(path)}"'.encode()
        for one in path.parent.glob("rollout-*.jsonl"):
            line = _first_line(one) if one != path else b""
            if _PARENT in line and own in line:
                yield one
    elif program == "gemini" and b'"agentId"' in data:
        for folder in path.parent.iterdir():
            if folder.is_dir() and folder.name.encode() in data[:_FIRST_LINE]:
                yield from islice(folder.glob("*.json*"), 1000)


def _content(path: Path) -> bytes:
    if path.stat().st_size > LARGEST:
        raise UsageError(f"{path} is larger than {LARGEST / 1_000_000:g} MB")
    return path.read_bytes()
