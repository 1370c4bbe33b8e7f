"""One ACP session with an agent: start it, prompt it, end it, and build the trace of each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, image_block, resource_link_block, schema, text_block
from acp.schema import ClientCapabilities, Implementation, InitializeResponse
from pydantic import ValidationError

from agentv.extensions.agents.adapters import trials
from agentv.extensions.agents.adapters.acp_stream import AcpClient, AcpTransport, TraceBuilder
from agentv.extensions.agents.adapters.process import GRACE_S, AgentProcess, argv_of, start_argv
from agentv.extensions.agents.adapters.settings import AcpSettings
from agentv.extensions.agents.traces.acp import NATIVE_NAME, is_call, model_in, usage_of_turn
from agentv.extensions.agents.traces.values import tokens_of
from agentv.model.suite.tools import McpServer
from agentv.model.values.message import DocumentBlock, ImageBlock, Message, prompt_text
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import AgentActivity, Step, Trace, UsageStep
from agentv.ports import TargetRequest
from agentv.targets.model_api.content import picture_of
from agentv.user_code.files import temporary_prefix
from agentv.version import __version__


def prompt_blocks(messages: Sequence[Message], agent: InitializeResponse | None) -> list[Any] | Failure:
    """Return the content blocks of a prompt, or a Failure if the agent does not accept its pictures.

    Args:
        messages: messages that are new to the session; their texts are joined into one block.
        agent: the agent's reply to `initialize`, which gives its capabilities.
    """
    blocks: list[Any] = [text_block(prompt_text(tuple(messages)))]
    for message in messages:
        for block in message.content if isinstance(message.content, tuple) else ():
            if isinstance(block, ImageBlock):
                picture = _picture(block, agent)
                if isinstance(picture, Failure):
                    return picture
                blocks.append(picture)
            elif isinstance(block, DocumentBlock):
                path = Path(block.path)
                blocks.append(resource_link_block(path.name, path.as_uri(), mime_type=block.media_type))
    return blocks


def _picture(block: ImageBlock, agent: InitializeResponse | None) -> Any:
    known = agent and agent.agent_capabilities
    capabilities = known and known.prompt_capabilities
    if not capabilities or not capabilities.image:
        return Failure("bad-picture", "the agent takes no pictures")
    found = picture_of(block)
    if isinstance(found, str):
        return Failure("bad-picture", f"{block.value}: an agent takes pictures of files, not addresses")
    return found if isinstance(found, Failure) else image_block(found.base64, found.media_type)


def mcp_servers(servers: Sequence[McpServer], agent: InitializeResponse) -> list[Any] | Failure:
    """Return MCP servers as parameters of `session/new`, or a Failure `no-tools` if the agent lacks a transport."""
    capabilities = agent.agent_capabilities and agent.agent_capabilities.mcp_capabilities
    parameters: list[Any] = []
    for one in servers:
        if one.transport == "stdio":
            env = [schema.EnvVariable(name=name, value=value) for name, value in one.env.items()]
            command, *arguments = one.command
            parameters.append(schema.McpServerStdio(name=one.name, command=command, args=arguments, env=env))
        elif not capabilities or not capabilities.http:
            return Failure("no-tools", f"the agent does not connect to MCP servers over HTTP, such as '{one.name}'")
        else:
            headers = [schema.HttpHeader(name=name, value=value) for name, value in one.headers.items()]
            parameters.append(schema.HttpMcpServer(type="http", name=one.name, url=one.url, headers=headers))
    return parameters


AUTH_REQUIRED = -32000
CANCEL_S = 2.0
"""Seconds that a cancelled agent has to end its turn."""

_EXIT_S = 1.0


class AcpSession:
    """A session with one agent, which `open_session` creates.

    Attributes:
        usable: whether it can be prompted again.
        directory: temporary directory that is removed with the session; None if it works in the trial's workspace.
    """

    def __init__(self, settings: AcpSettings, process: AgentProcess, request: TargetRequest, root: str) -> None:
        self._settings = settings
        self.directory: TemporaryDirectory[str] | None = None
        self._process = process
        self._root = root
        self.limits = trials.SessionLimits(settings, request)
        self._trace = TraceBuilder(prompt_text(request.messages), self._on_progress)
        self._client = AcpClient(settings.permissions, root)
        self._client.trace = self._trace
        self._transport = AcpTransport(process, self._on_update)
        self._connection = connect_to_agent(self._client, self._transport, use_unstable_protocol=True)  # type: ignore[arg-type]  # implements a part of Client
        self._agent: InitializeResponse | None = None  # its reply to `initialize`
        self._id = ""
        self._model: str | None = None
        self._earlier_cost_usd = 0.0
        self._on_activity = request.on_activity
        self.usable = False

    def _on_update(self, session_id: object, fields: Mapping[str, Any]) -> str | None:
        """Handle an update. Only tool calls count from other sessions, such as those of sub-agents."""
        if session_id in {None, self._id}:
            return self._trace.update(fields)
        return self._trace.update(fields) if is_call(fields) else None

    async def open(self, request: TargetRequest) -> Failure | None:
        """Initialize, authenticate if that needs no input, and begin the session. Return a Failure on error."""
        limits = self.limits
        opening = asyncio.ensure_future(self._begin_session(request))
        try:
            await self._wait_within_limits(opening)
            if opening.done():
                return opening.result()
            why = limits.reached.result() if limits.reached.done() else f"{request.timeout_s:g} s passed"
            return self._failed(limits.code, f"{why} before the agent began its session")
        except (RequestError, ConnectionError, ValidationError) as error:
            return await self._failure_of_error(error, "before its session began")
        finally:
            opening.cancel()

    async def _wait_within_limits(self, doing: asyncio.Future[Any]) -> None:
        """Wait until a future is done, a limit is reached or the time is up."""
        doing.add_done_callback(lambda one: one.cancelled() or one.exception())  # mark its exception as retrieved
        both = (doing, self.limits.reached)
        await asyncio.wait(both, timeout=self.limits.left_s, return_when=asyncio.FIRST_COMPLETED)

    async def _begin_session(self, request: TargetRequest) -> Failure | None:
        info = Implementation(name="agentv", version=__version__)
        connection = self._connection
        self._agent = agent = await connection.initialize(PROTOCOL_VERSION, ClientCapabilities(), info)
        if agent.protocol_version != PROTOCOL_VERSION:
            message = f"the agent speaks version {agent.protocol_version} of ACP, not {PROTOCOL_VERSION}"
            return self._failed(trials.PROTOCOL, message)
        if self._settings.auth_method is not None:
            await connection.authenticate(self._settings.auth_method)
        servers = mcp_servers((*request.mcp_servers, *self._settings.servers), agent)
        if isinstance(servers, Failure):
            return servers
        try:
            session = await connection.new_session(self._root, mcp_servers=servers)
        except RequestError as error:
            method = _unattended_method(agent, request.env) if error.code == AUTH_REQUIRED else None
            if method is None:
                raise
            await connection.authenticate(method)
            session = await connection.new_session(self._root, mcp_servers=servers)
        self._id = session.session_id
        options = session.model_dump(mode="json", by_alias=True, exclude_none=True).get("configOptions")
        self._model = model_in(options) or None
        return await self._configure(options)

    async def _configure(self, options: Any) -> Failure | None:
        """Set the target's model and mode. Return a Failure if the agent has no option for its model."""
        settings = self._settings
        if settings.model is not None and settings.model != self._model:
            found = next((one for one in options or () if one.get("category") == "model"), None)
            if found is None:
                return self._failed(trials.PROTOCOL, "the agent has no option for its model; set it by 'args' or 'env'")
            await self._connection.set_config_option(found["id"], self._id, settings.model)
            self._model = settings.model
        if settings.mode is not None:
            await self._connection.set_session_mode(settings.mode, self._id)
        self.usable = True
        return None

    async def prompt(self, request: TargetRequest) -> TargetResponse | Failure:
        """Prompt the agent and return its answer with the trace. After a failure, the session is not usable."""
        if trials.is_later_turn(request):
            self._on_activity = request.on_activity
            self._trace = self._client.trace = TraceBuilder(prompt_text(request.messages), self._on_progress)
        self.usable = False
        moment = trials.file_clock()
        blocks = prompt_blocks(request.messages, self._agent)
        if isinstance(blocks, Failure):
            return blocks
        asking = asyncio.ensure_future(self._connection.prompt(self._id, blocks))
        try:
            limits = self.limits
            await self._wait_within_limits(asking)
            if limits.reached.done() and not (asking.done() and limits.is_interrupted):
                return await self._stop(asking, limits.reached.result())
            if not asking.done():
                return await self._stop(asking, f"no answer after {request.timeout_s:g} s")
            return self._outcome(asking.result(), moment)
        except (RequestError, ConnectionError, ValidationError) as error:
            return await self._failure_of_error(error, "before it answered")
        finally:
            asking.cancel()
            self._transport.native = bytearray()  # it held the stream of this turn

    def _outcome(self, ended: Any, moment: int) -> TargetResponse | Failure:
        """Return the answer, or a Failure if the turn did not end properly."""
        if self._transport.broken is not None:
            return self._failed(self._transport.broken.code, self._transport.broken.message)
        reason = ended.stop_reason
        response = self._response(reason, ended)
        if reason in {"max_tokens", "max_turn_requests"}:
            return trials.failed(trials.LIMIT, f"the agent stopped at a limit of its own: {reason}", response)
        if reason == "cancelled":
            why = "the agent says that its turn was cancelled, which nobody asked for"
            return trials.failed(trials.AGENT_STOPPED, why, response)
        if reason == "refusal":
            return trials.failed(trials.REFUSED, "the agent's model refused to go on (stop reason 'refusal')", response)
        forbids, trace = self._settings.on_denied == "error", response.trace
        if forbids and trace is not None and trace.denials and trials.did_nothing(trace, self._root, moment):
            return trials.failed(trials.DENIED, trace.denial_message, response)
        self.limits.end(self._trace.turns, len(self._trace.calls))
        self._earlier_cost_usd = self._trace.cost_usd or self._earlier_cost_usd
        self.usable = True
        return response

    async def _stop(self, asking: asyncio.Future[Any], why: str) -> Failure:
        """Cancel the turn and return a Failure with what the agent has done so far."""
        with suppress(Exception):
            async with asyncio.timeout(min(CANCEL_S, self.limits.remaining_s * 0.3)):
                await self._connection.cancel(self._id)
                await asyncio.wait([asking])
        return trials.failed(self.limits.code, why, self._response("cancelled", None))

    async def _failure_of_error(self, error: Exception, when: str) -> Failure:
        """Return the Failure for an error of a call to the agent."""
        if isinstance(error, RequestError):
            data = error.data
            more = data.get("details") or data.get("message") if isinstance(data, Mapping) else data
            error_text = f"{error} ({error.code})" if not more else f"{error} ({error.code}): {str(more)[:500]}"
            if error.code == AUTH_REQUIRED:
                methods = (self._agent.auth_methods if self._agent else None) or ()
                offered = ", ".join(str(one.id) for one in methods) or "no method"
                error_text = f"{error_text}; it offers {offered}; 'auth_method' of the target chooses one"
            return self._failed(trials.API, f"the agent reports an error: {error_text}")
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            place = ".".join(str(one) for one in first["loc"])
            return self._failed(trials.PROTOCOL, f"the agent's reply is not of the protocol: {place}: {first['msg']}")
        with suppress(TimeoutError):  # the rest of the stream may say why the agent ended
            async with asyncio.timeout(_EXIT_S):
                await self._transport.ended.wait()
        broken = self._transport.broken
        if broken is not None:
            return self._failed(broken.code, broken.message)
        status = await self._process.wait(_EXIT_S)
        how = "closed its stdout" if status is None else f"ended with exit status {status}"
        return self._failed(trials.AGENT_STOPPED, f"the agent {how} {when}")

    def _failed(self, code: str, message: str) -> Failure:
        return trials.failed(code, message, self._response("", None), self._process.stderr)

    def _response(self, reason: str, ended: Any) -> TargetResponse:
        trace = self._build_trace(reason, ended)
        return trials.response_of(trace, self._trace.answer, self.limits.elapsed_ms, self._process.stderr)

    def _build_trace(self, reason: str, ended: Any) -> Trace:
        """Return the trace of a turn.

        Args:
            reason: the agent's stop reason.
            ended: the agent's response to the prompt, or None if it gave none.
        """
        builder, info = self._trace, self._agent and self._agent.agent_info
        steps: tuple[Step, ...] = builder.steps(cancelled=ended is None)
        name, version = (info.name, info.version) if info else ("", "")
        used, session_cost = getattr(ended, "usage", None), builder.cost_usd
        reported = None if used is None else tokens_of(used.model_dump(by_alias=True))
        usage = usage_of_turn(name, reported, called_tools=bool(builder.calls))
        cost = None if session_cost is None else max(0.0, session_cost - self._earlier_cost_usd)  # reported per session
        if usage is not None or cost is not None:
            steps = (*steps, UsageStep(builder.model or self._model, usage, cost))
        return Trace(
            steps,
            source="acp",
            agent=name,
            agent_version=version,
            session_id=self._id,
            stop_reason=reason,
            duration_ms=builder.now_ms,
            metadata=self._metadata(),
            native=bytes(self._transport.native),
            native_name=NATIVE_NAME,
        )

    def _metadata(self) -> dict[str, Any]:
        agent, transport = self._agent, self._transport
        facts: dict[str, Any] = {"session_id": self._id, "turns": self._trace.turns}
        if agent is not None:
            known = agent.agent_capabilities
            facts["protocol_version"] = agent.protocol_version
            facts["capabilities"] = known.model_dump(mode="json", by_alias=True, exclude_none=True) if known else {}
        model = self._trace.model or self._model
        facts |= {"model": model} if model else {}
        return facts | ({"noise_lines": transport.noise} if transport.noise else {})

    def _on_progress(self) -> None:
        trace, limits = self._trace, self.limits
        limits.check(trace.turns, len(trace.calls))
        if self._on_activity is None:
            return
        tool = trace.latest.names[0] if trace.latest is not None else ""
        turns, calls = limits.turns + trace.turns, limits.tool_calls + len(trace.calls)
        cost = trace.cost_usd if trace.cost_usd is not None else self._earlier_cost_usd or None
        self._on_activity(AgentActivity(tool, turns, calls, None, cost))

    async def close(self, grace_s: float = GRACE_S) -> None:
        """End the agent and remove the session's temporary directory."""
        self.usable = False
        self.limits.close()
        try:
            await self._process.end(grace_s)
        finally:
            try:
                await self._connection.close()
            finally:
                if self.directory is not None:
                    self.directory.cleanup()


async def open_session(settings: AcpSettings, request: TargetRequest) -> AcpSession | Failure:
    """Start an agent and begin a session in the workspace, or in a temporary directory if there is no workspace."""
    directory = None if request.workspace_path is not None else TemporaryDirectory(prefix=temporary_prefix())
    root = request.workspace_path or (directory.name if directory else "")
    process: AgentProcess | Failure | None = None
    try:
        process = await start_argv(argv_of(settings.started), request, root)
    finally:
        if directory is not None and not isinstance(process, AgentProcess):
            directory.cleanup()
    if isinstance(process, Failure):
        return process
    session = AcpSession(settings, process, request, root)
    session.directory = directory
    try:
        failure = await session.open(request)
    except BaseException:
        await session.close(0.0)
        raise
    if failure is not None:
        await session.close(session.limits.grace_s)
        return failure
    return session


def _unattended_method(agent: InitializeResponse, env: Mapping[str, str]) -> str | None:
    """Return an authentication method whose required variables are all set, or None."""
    for one in agent.auth_methods or ():
        variables = getattr(one, "vars", None)
        if variables and all(variable.name in env or getattr(variable, "optional", False) for variable in variables):
            return str(one.id)
    return None
