"""The `cli` target, which runs a program for each answer."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Annotated, ClassVar

from msgspec import structs

from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.tools import McpServer, ModelProtocol, mcp_config
from agentv.model.values.message import attached_files
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.values import EMPTY, Json
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Alias, Command, DirectoryPath, Doc, Issue, Nonempty, Text, Verbatim
from agentv.registry.gateway_options import Faults, GatewaySettings, Otel, UpstreamKey, UpstreamUrl
from agentv.targets.http.answers import LIMIT, TOO_LARGE, decoded, from_reply, parsed
from agentv.targets.http.preparation import Healthcheck, Once, timed
from agentv.targets.placeholders import MCP_CONFIG, CommandPlan, command_issues, plan_command
from agentv.targets.promptfoo import context_of, options_of, prompt_of
from agentv.user_code.excerpts import exit_text, is_javascript_error, last_error, tail
from agentv.user_code.files import temporary_prefix
from agentv.user_code.processes import Finished, run_program

MCP_VARIABLE = f"AGENTV_{MCP_CONFIG}"
"""Environment variable with the path of a file that configures the MCP servers of a case with `tools`."""

PROMPT_LIMIT = 100_000
"""Largest prompt in bytes that can be passed as an argument. Linux allows 131,071 per string (MAX_ARG_STRLEN)."""


@dataclass(frozen=True, slots=True)
class Cli(GatewaySettings):
    """Runs a program and uses its output as the answer."""

    example: ClassVar[str | None] = "./my-agent {PROMPT}"
    short: ClassVar[str | None] = "command"
    confined: ClassVar[bool] = True

    command: Annotated[
        Command,
        Alias(("command_template",)),
        Doc("a list of words, or a shell command; the prompt is passed on stdin, and replaces `{PROMPT}`"),
    ]
    cwd: Annotated[DirectoryPath | None, Doc("working directory")] = None
    files_format: Annotated[
        Text, Nonempty(), Verbatim(), Doc("arguments for each attached file, with `{path}` or `{basename}`")
    ] = "{path}"
    options: Annotated[Mapping[str, Json], Doc("replaces `{OPTIONS}`, as `config` in its JSON")] = field(default=EMPTY)
    healthcheck: Annotated[
        Command | Healthcheck | None, Doc("a command or a URL that must succeed once before the first call")
    ] = None
    gateway: Annotated[
        bool | ModelProtocol | None,
        Doc("protocol by which the program calls a model; its calls then pass agentv's gateway"),
    ] = None
    base_url: UpstreamUrl = None
    api_key: UpstreamKey = None
    faults: Faults = field(default_factory=dict)
    otel: Otel = False

    def validate(self) -> Iterable[Issue]:
        """Report misspelt or unsafe placeholders, and gateway options that are given without `gateway`."""
        yield from self.fault_issues()
        yield from self.protocol_issues()
        yield from command_issues(self.command)
        yield from format_issues(self.files_format)

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that starts a program for each call."""
        del executor
        check = Healthcheck.of(self.healthcheck) if self.healthcheck else None
        if check is not None and check.command is not None:
            own = structs.replace(check.command, cwd=check.cwd) if check.cwd else self._with_cwd(check.command)
            check = replace(check, command=own)
        plan, options = plan_command(self._with_cwd(self.command)), options_of(spec.name, self.options)
        return _Cli(plan, check, self.files_format, options)

    def _with_cwd(self, command: Command) -> Command:
        return structs.replace(command, cwd=self.cwd) if self.cwd else command


@dataclass(slots=True)
class _Cli:
    _plan: CommandPlan
    _check: Healthcheck | None
    _files_format: str
    _options: Mapping[str, Json]
    _checking: Once[Failure | None] = field(default_factory=Once)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        check = self._check
        if check is None:
            return await self._ask(request)
        unhealthy = await self._checking.result(lambda: check.failed(request.env))
        return unhealthy or await timed(self._ask(request))

    async def _ask(self, request: TargetRequest) -> TargetResponse | Failure:
        uses = self._plan.uses
        if "CONTEXT" in uses:  # promptfoo's script interface passes a conversation as JSON
            request = structs.replace(request, prompt=prompt_of(request))
        prompt = _encoded(request.prompt, as_argument="PROMPT" in uses)
        if isinstance(prompt, Failure):
            return prompt
        home = request.sandbox.home if request.sandbox is not None else None
        with _directory(uses, prompt, home, request.mcp_servers) as paths:
            known = {
                "PROMPT": request.prompt,
                "EVAL_ID": request.case_id,
                "ATTEMPT": str(request.attempt),
                **paths,
                "WORKSPACE": request.workspace_path or "",
            }
            if "OPTIONS" in uses:  # ASCII, so that every value can be an argument
                known["OPTIONS"] = json.dumps(self._options, default=str)
            if "CONTEXT" in uses:
                known["CONTEXT"] = json.dumps(context_of(request), default=str)
            values = {name: value for name, value in known.items() if name in uses}
            if any(len(values.get(name, "").encode()) > PROMPT_LIMIT for name in ("OPTIONS", "CONTEXT")):
                message = "{OPTIONS} or {CONTEXT} is too long for an argument; read the prompt from stdin instead"
                return Failure("prompt-too-long", message)
            files = arguments_of(self._files_format, dict.fromkeys(attached_files(request.messages)))
            command, extra = self._plan.filled(values, files)
            if request.gateway is not None:
                shell = None if command.shell is None else request.gateway.filled(command.shell)
                argv = tuple(map(request.gateway.filled, command.argv))
                command = structs.replace(command, argv=argv, shell=shell)
            env = {**request.env, **extra}
            if request.mcp_servers:
                env[MCP_VARIABLE] = paths[MCP_CONFIG]
            ended = await run_program(
                confined(command, request), stdin=prompt, env=env, timeout_s=request.timeout_s, limit=LIMIT
            )
            answer = _answer(ended, paths.get("OUTPUT_FILE"))
            return answer if request.workspace_path is None else _with_logs(answer, ended)

    async def close(self) -> None:
        """Cancel a healthcheck that is still running."""
        await self._checking.close()


def _encoded(prompt: str, *, as_argument: bool) -> bytes | Failure:
    try:
        data = prompt.encode()
    except UnicodeEncodeError:
        return Failure("not-utf-8", "the prompt contains half of a surrogate pair, which cannot be passed to a program")
    if as_argument and (len(data) > PROMPT_LIMIT or b"\0" in data):
        why = "a NUL byte in it" if b"\0" in data else f"{len(data):,} bytes"
        message = f"a prompt with {why} cannot be an argument; read it from stdin, or use {{PROMPT_FILE}}"
        return Failure("prompt-too-long", message)
    return data


@contextmanager
def _directory(
    uses: frozenset[str], prompt: bytes, home: str | None, servers: Sequence[McpServer] = ()
) -> Iterator[Mapping[str, str]]:
    """Create the files for a command in a temporary directory, and yield their paths by placeholder.

    Args:
        uses: the placeholders of the command.
        prompt: the encoded prompt of the call.
        home: a directory that a sandboxed program can read and write; None without a sandbox.
        servers: the MCP servers of the case, written as a configuration file.
    """
    if not servers and not uses & {"PROMPT_FILE", "OUTPUT_FILE", MCP_CONFIG}:
        yield {}
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix=temporary_prefix(), dir=home, ignore_cleanup_errors=True) as name:
        directory = Path(name)
        paths = {"PROMPT_FILE": directory / "prompt.txt", "OUTPUT_FILE": directory / "output.txt"}
        paths[MCP_CONFIG] = directory / "mcp.json"
        if "PROMPT_FILE" in uses:
            paths["PROMPT_FILE"].write_bytes(prompt)
        if servers or MCP_CONFIG in uses:
            paths[MCP_CONFIG].write_text(json.dumps(mcp_config(servers), indent=2), encoding="utf-8")
        wanted = uses | ({MCP_CONFIG} if servers else frozenset())
        yield {placeholder: str(path) for placeholder, path in paths.items() if placeholder in wanted}


def _answer(ended: Finished | Failure, output_file: str | None) -> TargetResponse | Failure:
    if isinstance(ended, Failure):
        return ended
    if ended.status:
        message = last_error(ended.stderr) if is_javascript_error(ended.stderr) else tail(ended.stderr or ended.stdout)
        return Failure("exit-status", f"{exit_text(ended.status)}: {message or 'no message'}")
    data = ended.stdout if output_file is None else _content(output_file)
    text = decoded(data) if isinstance(data, bytes) else data
    if isinstance(text, Failure):
        return text
    text = text.removesuffix("\n").removesuffix("\r")
    if text.strip() == "null":
        return TargetResponse(None)
    return from_reply(text, parsed(text) if text.lstrip().startswith("{") else text)


def _with_logs(answer: TargetResponse | Failure, ended: Finished | Failure) -> TargetResponse | Failure:
    """Return an agent's answer with the output of its program attached as logs."""
    if isinstance(ended, Failure):
        return answer
    printed = {"stdout.txt": ended.stdout, "stderr.txt": ended.stderr}
    logs = {name: data for name, data in printed.items() if data}
    if isinstance(answer, TargetResponse):
        return structs.replace(answer, logs=logs)
    return CallFailure(answer.code, answer.message, answer.retryable, response=TargetResponse(None, logs=logs))


def _content(path: str) -> bytes | Failure:
    """Read the output file of a program. Only a regular file is read: a pipe could block for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Failure("no-output-file", "{OUTPUT_FILE} is not a regular file")
            data = file.read(LIMIT + 1)
    except OSError as error:
        return Failure("no-output-file", f"the command succeeded but did not write {{OUTPUT_FILE}}: {error.strerror}")
    return TOO_LARGE if len(data) > LIMIT else data


_PLACEHOLDER = re.compile(r"\{(path|basename)\}")


def arguments_of(template: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Fill in a template such as `--file {path}` for each path. A path with spaces stays a single argument."""
    words = shlex.split(template)
    return tuple(_filled(word, path) for path in paths for word in words)


def _filled(word: str, path: str) -> str:
    values = {"path": path, "basename": PurePath(path).name}
    return _PLACEHOLDER.sub(lambda found: values[found[1]], word)


def format_issues(template: str) -> Iterator[Issue]:
    """Report a template that cannot be split into words, or that has no placeholder."""
    try:
        shlex.split(template)
    except ValueError as error:
        yield Issue(("files_format",), f"'files_format' cannot be split into words: {error}")
        return
    if not _PLACEHOLDER.search(template):
        yield Issue(("files_format",), "'files_format' must contain {path} or {basename}")


_SCRIPT = re.compile(r"\.(?:py|[mc]?js|[mc]?ts|sh|bash|rb|pl|php|jar|exe)$")
_BARE_WORD = re.compile(r"(?<![\w'\"=/.$~-])(?P<word>(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)*)(?![\w'\"/])")


def confined(command: Command, request: TargetRequest) -> Command:
    """Return the command to run in the request's workspace and sandbox, or the command itself without a workspace.

    An eval file names programs and scripts relative to its own directory, but an agent runs in its workspace. So the
    program and its script become absolute paths, which the sandbox mounts read-only. Other words are unchanged: they
    may name files of the workspace.
    """
    if request.workspace_path is None:
        return command
    argv = _shell_argv(command.shell, command.cwd) if command.shell is not None else _list_argv(command)
    if request.sandbox is not None:
        argv = request.sandbox.argv(argv)
    return Command(argv=tuple(argv), cwd=request.workspace_path)


def _list_argv(command: Command) -> tuple[str, ...]:
    argv, cwd = list(command.argv), command.cwd
    if tuple(argv[:2]) == (
        "/bin/sh",
        "-c",
    ):  # a shell command with placeholders, whose values are passed in the environment
        _, _, line, _, *scripts = _shell_argv(argv[2], cwd)
        return (*argv[:2], line, *argv[3:], *(() if '"$@"' in line else scripts))
    if "/" in argv[0]:
        argv[0] = _absolute(argv[0], cwd)
    for place, word in enumerate(argv[1:], 1):
        if _is_script(word, cwd):
            argv[place] = _absolute(word, cwd)
            break
    return tuple(argv)


def _shell_argv(line: str, cwd: str) -> tuple[str, ...]:
    """Return the argv for a shell command. Its scripts follow as arguments, so that the sandbox makes them readable."""
    scripts: list[str] = []

    def placed(found: re.Match[str]) -> str:
        word = found["word"]
        if not _is_script(word, cwd):
            return word
        scripts.append(_absolute(word, cwd))
        return scripts[-1]

    line = _BARE_WORD.sub(placed, line)
    return ("/bin/sh", "-c", line, "sh", *dict.fromkeys(scripts))


def _is_script(word: str, cwd: str) -> bool:
    return _SCRIPT.search(word) is not None and not word.startswith("-") and Path(cwd, word).is_file()


def _absolute(word: str, cwd: str) -> str:
    return os.path.normpath(Path(cwd, word))
