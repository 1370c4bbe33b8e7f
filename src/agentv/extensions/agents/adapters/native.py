"""Agents that print their own JSON stream: start one for each turn, read its stream, and judge how it ended."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import structs

from agentv.extensions.agents.adapters import trials
from agentv.extensions.agents.adapters.native_settings import (
    Directories,
    Ending,
    Launch,
    Memory,
    NativeAgentSettings,
    StreamReader,
)
from agentv.extensions.agents.adapters.process import (
    INTERRUPT_S,
    STREAM_LIMIT,
    AgentProcess,
    TooLargeStreamError,
    argv_of,
    environment_of,
    start_argv,
)
from agentv.extensions.agents.adapters.recorder import Recording
from agentv.model.suite.tools import McpServer
from agentv.model.values.formatting import plural
from agentv.model.values.message import prompt_text
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import AgentActivity, Trace, UsageStep
from agentv.ports import TargetRequest
from agentv.registry.fields import Command
from agentv.user_code.files import temporary_prefix
from agentv.user_code.processes import run_program

_HIDDEN_DIRECTORY = ".agentv-agent-"
_PRIVATE_FILE = 0o600
_PRIVATE_DIRECTORY = 0o700


class TrialDirectories:
    """The directories of one trial's agent. `remove` removes the temporary ones.

    Args:
        request: the first request of the trial.
        host_home: whether to use the user's HOME if no sandbox sets one.
    """

    def __init__(self, request: TargetRequest, *, host_home: bool = False) -> None:
        self._made: list[TemporaryDirectory[str]] = []
        workspace = request.workspace_path or self._temporary()
        home = request.sandbox.home if request.sandbox is not None and request.sandbox.home else ""
        of_user = os.path.expanduser("~")  # noqa: PTH111  # does not raise without a HOME
        home = home or (of_user if host_home else self._temporary())
        own = os.path.realpath(home) != os.path.realpath(of_user)
        config = home if own else self._temporary(home)
        self.paths = Directories(workspace, home, config)

    def _temporary(self, within: str | None = None) -> str:
        made = TemporaryDirectory(prefix=_HIDDEN_DIRECTORY if within else temporary_prefix(), dir=within)
        self._made.append(made)
        return made.name

    def prepare(self, launch: Launch, skills: Iterable[str]) -> Failure | None:
        """Write the settings, readable only by the user, and copy the skills; return a Failure if that fails.

        An earlier report of the agent is removed.
        """
        try:
            for name, text in launch.files.items():
                path = self._place(name)
                path.unlink(missing_ok=True)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(text.encode(errors="surrogateescape"))
            if launch.report and "*" not in launch.report:
                self._place(launch.report).unlink(missing_ok=True)
            for one in skills:
                shutil.copytree(one, self._place(f"{launch.skills}/{Path(one).name}"), dirs_exist_ok=True)
        except (OSError, ValueError) as error:
            return Failure("cannot-start", f"the files of the agent's HOME cannot be written: {error}")
        return None

    def read(self, name: str) -> bytes:
        """Return what the agent wrote to a file; empty if it is missing or a link, which may lead anywhere."""
        try:
            if "*" in name:
                found = Path(self.paths.config).glob(name)
                name = max(found, key=lambda one: one.lstat().st_mtime).as_posix()  # ValueError: no file matches
            descriptor = os.open(self._place(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return b""
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(STREAM_LIMIT)

    def _place(self, name: str) -> Path:
        """Return the path of a file below the configuration directory, and create its parents.

        Raises:
            OSError: they cannot be created, or an agent has replaced one with a link.
        """
        path = Path(self.paths.config, name)
        path.parent.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        root = os.path.realpath(self.paths.config)
        if os.path.commonpath([root, os.path.realpath(path.parent)]) != root:
            raise OSError(f"{name} lies outside of the agent's configuration")
        return path

    def remove(self) -> None:
        """Remove the temporary directories."""
        for one in self._made:
            one.cleanup()


MASK = b"***"
_SHORTEST_SECRET = 6


class StreamLines:
    """The lines that an agent prints in one turn.

    Args:
        reader: gets each event.
        discarded: prefixes of lines that are neither read nor kept.
        secrets: strings to mask in what is kept.

    Attributes:
        broken: why reading stopped early, or None.
        cut: whether the stream ends in the middle of an event.
        count: number of lines so far.
        noise: number of lines that are not events, such as logs.
        unread: number of events of an unknown shape, which the adapter could not read.
        native: the raw stream, with secrets masked.
    """

    def __init__(self, reader: StreamReader, secrets: Iterable[str], discarded: tuple[bytes, ...] = ()) -> None:
        self._reader = reader
        self._discarded = discarded
        self._secrets = [one.encode() for one in secrets if len(one) >= _SHORTEST_SECRET]
        self.native = bytearray()
        self.broken: Failure | None = None
        self.cut = False
        self.count = 0
        self.noise = 0
        self.unread = 0

    async def read(self, process: AgentProcess) -> None:
        """Read until the stream ends or fails."""
        try:
            while (line := await process.line()) is not None:
                if self._discarded and line.startswith(self._discarded):
                    process.discount(len(line))
                else:
                    self.take(line)
        except TooLargeStreamError:
            self.broken = Failure("output-too-large", "the agent printed more than is allowed")
            return
        except OSError as error:
            self.broken = Failure("agent-stopped", f"the agent's stream cannot be read: {error}")
            return
        rest = process.partial.strip()
        if rest:
            self.cut = rest.startswith(b"{") and not isinstance(_parse_json(rest), dict)
            self.take(rest)

    def take_report(self, data: bytes) -> None:
        """Read the content of a report: one JSON document, or the lines of a stream."""
        document = _parse_json(data)
        if isinstance(document, dict):
            self.take(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
            return
        for line in data.splitlines():
            self.take(line)

    def take(self, line: bytes) -> None:
        """Read a line."""
        line = line.strip()
        if not line:
            return
        self.native += self.masked(line) + b"\n"
        self.count += 1
        event = _parse_json(line)
        if not isinstance(event, dict):
            self.noise += 1
            return
        try:
            self._reader.read(event)
        except (LookupError, TypeError, ValueError, AttributeError):  # an event of an unknown version
            self.unread += 1

    def masked(self, data: bytes) -> bytes:
        """Return data with the secrets masked."""
        for secret in self._secrets:
            data = data.replace(secret, MASK)
        return data


def _parse_json(line: bytes) -> Any:
    try:
        return json.loads(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


EXIT_S = 10.0
"""Seconds that an agent has to exit after its last event."""

DRAIN_S = 1.0
"""Seconds to wait for the rest of an exited agent's stream, whose pipe its child processes may hold open."""


@dataclass(slots=True)
class _Running:
    """A turn in progress."""

    process: AgentProcess
    recording: Recording
    reader: StreamReader
    lines: StreamLines
    began: int
    report: str


class NativeSession:
    """The session of one trial's agent.

    Args:
        settings: settings of the target.
        request: the first request of the trial.

    Attributes:
        usable: whether it can be asked again.
    """

    def __init__(self, settings: NativeAgentSettings, request: TargetRequest) -> None:
        self._settings = settings
        self._memory = Memory()
        self._directories = TrialDirectories(request, host_home=settings.home == "host")
        self.limits = trials.SessionLimits(settings, request)
        self._activity = AgentActivity()
        self._session_id = ""
        self._running: _Running | None = None
        self.usable = True

    async def ask(self, request: TargetRequest, version: str) -> TargetResponse | Failure:
        """Start the agent for a turn and return its answer with the trace. After a failure, the session is not usable.

        Args:
            request: request of the turn, with the messages that are new to the session.
            version: version of the program; empty if it is not known yet.
        """
        self.usable = False

        def progressed(activity: AgentActivity) -> None:
            if self._running is not None:
                self.limits.check(recording.turns, recording.tool_calls)
            if request.on_activity is not None:
                request.on_activity(activity)

        recording = Recording(prompt_text(request.messages), self._activity, progressed)
        recording.agent(version=version)
        running = await self._start(request, recording)
        if isinstance(running, Failure):
            return running
        self._running = running
        try:
            answer = await self._wait_for_answer(running, request)
        finally:
            self._activity = recording.activity
            await running.process.end(self.limits.grace_s)
        self.usable = isinstance(answer, TargetResponse)
        return answer

    async def _start(self, request: TargetRequest, recording: Recording) -> _Running | Failure:
        paths = self._directories.paths
        self._memory.servers = tuple(one.name for one in (*request.mcp_servers, *self._settings.servers))
        launch = self._settings.launch(request, paths, self._session_id)
        if isinstance(launch, Failure):
            return launch
        if self._settings.skills and not launch.skills:
            return Failure("cannot-start", f"{self._settings.title} takes no skills with the HOME of the user")
        problem = self._directories.prepare(launch, self._settings.skills)
        if problem is not None:
            return problem
        reader = self._settings.reader(recording, self._memory)
        lines = StreamLines(reader, self._secrets(request), launch.discarded)
        began = trials.file_clock()
        words = argv_of(self._settings.started)
        if self._settings.started.shell is not None and words[:2] == ("/bin/sh", "-c"):
            words = (*words[:2], f'{words[2]} "$@"', "sh")
        env = environment_of(request) | {"HOME": paths.home, **launch.env}
        process = await start_argv((*words, *launch.argv, *self._settings.args), request, paths.workspace, env)
        if isinstance(process, Failure):
            return process
        process.feed(launch.stdin)
        return _Running(process, recording, reader, lines, began, launch.report)

    def _secrets(self, request: TargetRequest) -> Iterable[str]:
        if self._settings.api_key:
            yield self._settings.api_key
        if request.gateway is not None:
            yield request.gateway.token
        for server in self._settings.servers:
            yield from (*server.env.values(), *server.headers.values())

    async def _wait_for_answer(self, running: _Running, request: TargetRequest) -> TargetResponse | Failure:
        """Wait for the end of a turn, or end it at a limit, and return its answer."""
        limits, process = self.limits, running.process
        reading = asyncio.ensure_future(running.lines.read(process))
        exiting = asyncio.ensure_future(process.wait(None))
        try:
            lingers = await self._wait_for_end(running, reading, exiting)
            over = lingers or reading.done() or exiting.done()
            why = "" if over else f"no answer after {request.timeout_s:g} s"
            why = limits.reached.result() if limits.reached.done() else why
            if why and limits.is_interrupted:
                await process.interrupt(min(INTERRUPT_S, limits.remaining_s * 0.3))
            if why or lingers or running.lines.broken is not None:
                await process.end(limits.grace_s)
            await asyncio.wait((reading,), timeout=min(DRAIN_S, limits.remaining_s))
            status = None if why or lingers else await process.wait(min(EXIT_S, limits.left_s))
            if running.report:
                running.lines.take_report(await asyncio.to_thread(self._directories.read, running.report))
                why = why or (limits.reached.result() if limits.reached.done() else "")
            if why:
                return self._limit_failure(why, running)
            return self._outcome(running, request, status)
        finally:
            for one in (reading, exiting):
                one.cancel()

    async def _wait_for_end(
        self, running: _Running, reading: asyncio.Future[None], exiting: asyncio.Future[int | None]
    ) -> bool:
        """Wait for the end of the stream, the program or a limit. Return True if it lingers after its result."""
        limits, seen = self.limits, -1
        both = (reading, exiting, limits.reached)
        while limits.left_s > 0:
            done, _ = await asyncio.wait(both, timeout=min(EXIT_S, limits.left_s), return_when=asyncio.FIRST_COMPLETED)
            if done:
                return False
            if running.lines.count == seen and running.reader.ending().complete:
                return True
            seen = running.lines.count
        return False

    def _limit_failure(self, why: str, running: _Running) -> Failure:
        """Return the failure of a turn that was ended at a limit. An error of its model's API takes precedence."""
        ending = replace(running.reader.ending(), complete=False)
        failure = ending.failure
        if failure is not None and failure.code == trials.API and not self.limits.is_interrupted:
            return self._failure(structs.replace(failure, message=f"{failure.message}; {why}"), running, ending)
        return self._failure(Failure(self.limits.code, why), running, ending)

    def _outcome(self, running: _Running, request: TargetRequest, status: int | None) -> TargetResponse | Failure:
        lines, recording = running.lines, running.recording
        ending = running.reader.ending()
        if lines.broken is not None:
            return self._failure(lines.broken, running, ending)
        failure = next(self._failures(running, request.mcp_servers, ending, status), None)
        if failure is not None:
            return self._failure(failure, running, ending)
        self.limits.end(recording.turns, recording.tool_calls)
        self._session_id = ending.session_id or self._session_id
        return self._response(running, ending)

    def _failures(
        self, running: _Running, servers: Sequence[McpServer], ending: Ending, status: int | None
    ) -> Iterator[Failure]:
        """Yield why a turn that ended by itself is not an answer. What its stream reports comes first.

        Args:
            running: the turn.
            servers: MCP servers with the scripted tools of the case.
            ending: how the turn ended, according to the stream.
            status: exit status of the program; None if it still ran after the end of its stream.
        """
        if ending.failure is not None:
            yield ending.failure
        cut = running.lines.cut
        if not ending.complete or cut:
            where = "in the middle of an event" if cut else "before its result"
            how = "goes on" if status is None else f"ended with exit status {status}"
            yield Failure(trials.AGENT_STOPPED, f"the agent's stream ends {where}, and its program {how}")
        if ending.repeated:
            yield Failure(trials.AGENT_STOPPED, "the agent's stream has more than one result")
        if status:
            yield Failure(trials.AGENT_STOPPED, f"the agent reports success, and ended with exit status {status}")
        offered = running.recording.offered
        names = () if offered is None else (one.name for one in servers)
        missing = [name for name in names if not any(one.startswith(f"mcp__{name}__") for one in offered or ())]
        if missing:
            yield Failure(trials.NO_TOOLS, f"the agent does not offer its model the tools of {', '.join(missing)}")
        trace, root = self._trace(running, ending), self._directories.paths.workspace
        if self._settings.on_denied == "error" and trace.denials and trials.did_nothing(trace, root, running.began):
            yield Failure(trials.DENIED, trace.denial_message)

    def _failure(self, failure: Failure, running: _Running, ending: Ending) -> Failure:
        stderr = running.lines.masked(running.process.stderr)
        response = self._response(running, ending)
        untested = self._settings.program.untested(running.recording.version)
        message = f"{failure.message} ({untested})" if untested else failure.message
        return trials.failed(failure.code, message, response, b"" if failure.code == self.limits.code else stderr)

    def _response(self, running: _Running, ending: Ending) -> TargetResponse:
        stderr = running.lines.masked(running.process.stderr)
        answer = running.recording.answer if ending.output is None else ending.output
        return trials.response_of(self._trace(running, ending), answer, self.limits.elapsed_ms, stderr)

    def _trace(self, running: _Running, ending: Ending) -> Trace:
        recording, lines = running.recording, running.lines
        steps, program = recording.steps(cancelled=not ending.complete), self._settings.program
        if ending.tokens is not None or ending.cost_usd is not None:
            steps = tuple(one for one in steps if not isinstance(one, UsageStep))
            steps = (*steps, UsageStep(recording.model or None, ending.tokens, ending.cost_usd))
        missing = [] if ending.complete else ["the agent was ended, or ended, before its stream was complete"]
        if lines.unread:
            missing.append(f"{plural(lines.unread, 'event')} of the agent's stream could not be read")
        known: dict[str, Any] = {
            "session_id": ending.session_id,
            "model": recording.model,
            "turns": recording.own_turns,
            "noise_lines": lines.noise,
            "unread_events": lines.unread,
            "untested_version": program.untested(recording.version),
        }
        return Trace(
            steps,
            source=program.name,
            agent=program.name,
            agent_version=recording.version,
            session_id=ending.session_id,
            stop_reason=ending.stop_reason,
            duration_ms=recording.now_ms,
            metadata={key: one for key, one in known.items() if one},
            native=bytes(lines.native),
            native_name=f"{program.name}.jsonl",
            partial="; ".join(missing),
        )

    async def close(self, grace_s: float) -> None:
        """End the agent, if it runs, and remove the temporary directories."""
        self.usable = False
        self.limits.close()
        try:
            if self._running is not None:
                await self._running.process.end(grace_s)
        finally:
            self._directories.remove()


VERSION_S = 20.0
"""Seconds that `--version` may take; after that, the version is unknown."""

_LIMIT = 100_000
_VERSION = re.compile(rb"\d+\.\d+(?:\.\d+)*[\w.+-]*")


class NativeTarget(trials.SessionTarget[NativeSession]):
    """A target that starts a program for each turn."""

    def __init__(self, settings: NativeAgentSettings) -> None:
        super().__init__()
        self._settings = settings
        self._version_lock: asyncio.Lock = asyncio.Lock()
        self._version: str | None = None

    async def begin(self, request: TargetRequest) -> NativeSession | Failure:
        """Return a new session in the directories of the trial."""
        try:
            return NativeSession(self._settings, request)
        except OSError as error:
            return Failure("cannot-start", f"no directory can be made for the agent: {error}")

    async def ask(self, session: NativeSession, request: TargetRequest) -> TargetResponse | Failure:
        """Return the agent's answer. Its version is looked up once."""
        async with self._version_lock:
            if self._version is None:
                self._version = await self._look_up_version(request)
        return await session.ask(request, self._version)

    async def _look_up_version(self, request: TargetRequest) -> str:
        """Return the version that the program prints in the sandbox of the first trial; empty if it prints none."""
        started, asked = self._settings.started, self._settings.program.version_argv
        if not asked or started.shell is not None:
            return ""
        argv, cwd = (*argv_of(started), *asked), request.workspace_path or ""
        confined = argv if request.sandbox is None else tuple(request.sandbox.argv(argv, cwd))
        env, timeout_s = environment_of(request), min(VERSION_S, request.timeout_s / 4)
        ended = await run_program(Command(confined, cwd=cwd), stdin=b"", env=env, timeout_s=timeout_s, limit=_LIMIT)
        if isinstance(ended, Failure) or ended.status:
            return ""
        found = _VERSION.search(ended.stdout) or _VERSION.search(ended.stderr)
        return found[0].decode(errors="replace").rstrip(".") if found else ""
