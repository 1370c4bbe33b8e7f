"""Set up the agent's work in each trial of a run: its workspace, tools and gateway."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec.structs import replace

from agentv.app.wiring import Connections
from agentv.engine.calls.recorded_call import call_key
from agentv.engine.conversation import first_request, turns_of
from agentv.extensions.agents.traces.spans import DEFAULT_PORT, SOCKET, SpanReceivers
from agentv.extensions.agents.trial.gateway_use import GatewayUse
from agentv.extensions.agents.trial.work import AgentTrial
from agentv.model.run.trial import Trial
from agentv.model.suite.workspace import Hooks, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.message import portable, prompt_text
from agentv.model.values.response import Failure
from agentv.ports import Call, Workspace
from agentv.work_ports import ConversationUser, ModelExchanges, TrialWork

if TYPE_CHECKING:
    from agentv.extensions.agents.gateway.recording import CassetteExchanges, TrialExchanges
    from agentv.extensions.agents.gateway.server import LocalGateway
    from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces


class RunWorks:
    """Opens the agents' work of a run's trials (an `agentv.work_ports.TrialWorks`). Its parts are created on first use.

    Attributes:
        failures: failures after the last trial, such as those of hooks.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections, self._receivers = connections, SpanReceivers()
        self.failures: tuple[Failure, ...] = ()

    @cached_property
    def workspaces(self) -> LocalWorkspaces:
        """The run's workspaces."""
        from agentv.extensions.agents.workspaces.workspaces import LocalWorkspaces

        return LocalWorkspaces(self._connections.workspace_settings())

    @cached_property
    def gateway(self) -> LocalGateway:
        """The run's gateway between agents and their models."""
        from agentv.extensions.agents.gateway.server import LocalGateway

        connections = self._connections
        return LocalGateway(connections.throttle, connections.answers.spending, connections.clock.monotonic)

    async def open(self, trial: Trial) -> TrialWork | Failure:
        """Set up a trial's work, or return a Failure. It is empty if the trial's answer is recorded."""
        work = AgentTrial(trial, self._connections)
        exchanges = exchanges_of(trial, self._connections.answers.exchanges)
        if isinstance(exchanges, Failure):
            return exchanges
        if self._connections.unanswered is not None and exchanges is None:
            return work
        unmetered = _gateway_failure(trial)
        if unmetered is not None:
            return unmetered
        try:
            failure = await self._set_up(work, exchanges)
        except BaseException:
            await work.discard()
            raise
        if failure is not None:
            await work.discard()
            return failure
        return work

    async def _set_up(self, work: AgentTrial, exchanges: TrialExchanges | None) -> Failure | None:
        """Set up workspace, tools, gateway session and span receiver. Return a Failure if one cannot be."""
        trial, home = work.trial, ""
        if trial.case.workspace is not None:
            opened = await self._workspace(trial, trial.case.workspace)
            if isinstance(opened, Failure):
                return opened
            work.workspace, home = opened, opened.sandbox.home
        if trial.case.tools:
            from agentv.extensions.agents.trial.scripted_tools import start_tools

            servers = await start_tools(trial.case.tools, self._connections.executor, home, work.network)
            if isinstance(servers, Failure):
                return servers
            work.servers = servers
        # an agent with a network of its own reaches agentv by sockets in this directory
        apart = home if work.network != "host" else ""
        if trial.target.upstream is not None:
            session = await self.gateway.open(trial, trial.target.upstream, apart, exchanges)
            if isinstance(session, Failure):
                return session
            work.gateway = GatewayUse(session)
            if exchanges is not None:
                exchanges.set_placeholders(placeholders_of(trial, work.workspace, session.access.token))
        wanted = getattr(trial.target.settings, "otel", False)
        if wanted is False:
            return None
        # a server sends to the default port, unless another is configured
        usual = 0 if getattr(trial.target.settings, "confined", False) else DEFAULT_PORT
        port, socket = usual if wanted is True else wanted, str(Path(apart, SOCKET)) if apart else ""
        spans = await self._receivers.open(port, socket)
        if isinstance(spans, Failure):
            return spans
        work.spans = spans
        return None

    async def _workspace(self, trial: Trial, spec: WorkspaceSpec) -> Workspace | Failure:
        """Open a workspace, with the HOME that the target asks for."""
        spec, home = _with_case_facts(spec, trial), getattr(trial.target.settings, "home", None)
        spec = spec if home is None else replace(spec, home=home)
        return await self.workspaces.open(spec, trial.variant, trial.suite.own_env)

    def user(self, trial: Trial) -> ConversationUser:
        """Return the simulated user of a trial of a case with `user`."""
        from agentv.extensions.agents.trial.simulated_user import TrialUser, user_target

        return TrialUser(trial, user_target(trial, self._connections))

    async def close(self) -> None:
        """Stop listening, run the hooks after all trials, and remove what is left."""
        if "gateway" in vars(self):
            await self.gateway.close()
        await self._receivers.close()
        if "workspaces" in vars(self):
            self.failures = await self.workspaces.close()


_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def exchanges_of(trial: Trial, exchanges: ModelExchanges | None) -> TrialExchanges | Failure | None:
    """Return the recording of a trial's model calls, a Failure if it cannot be replayed, or None without one."""
    if trial.target.upstream is None or exchanges is None:
        return None
    cassette = cast("CassetteExchanges", exchanges)  # the class that this extension registers
    return cassette.open(recorded_call(trial))


def recorded_call(trial: Trial) -> Call:
    """Return the first call of a trial. Its key covers all turns, since one agent session answers them all."""
    request = first_request(trial)
    key = call_key(trial.target, request)
    if trial.case.turns:
        inputs = [portable(turn.input, request.root) for turn in turns_of(trial)]
        key = sha256(f"{key}\0".encode() + _encode(inputs)).hexdigest()
    return Call(key, trial.target.name, request)


def placeholders_of(trial: Trial, workspace: Workspace | None, token: str) -> dict[str, str]:
    """Text that differs for each trial → its placeholder in compared prompts and recorded replies."""
    texts = {token: "[token]", trial.suite.root: "[repository]"}
    if workspace is not None:
        path, home = workspace.path, workspace.sandbox.home
        texts |= {path: "[workspace]", home: "[home]"}
        if home and Path(home).parent == Path(path).parent:  # a directory of this trial alone
            texts[str(Path(path).parent)] = "[trial]"
    return {text: name for text, name in texts.items() if text}


def _with_case_facts(spec: WorkspaceSpec, trial: Trial) -> WorkspaceSpec:
    """Return the spec with the facts of a trial in its hooks' stdin."""
    hooks = spec.hooks
    if not any(command.stdin for command in (*hooks.before_each, *hooks.after_each)):
        return spec
    case = trial.case
    facts = {"test_id": case.id, "case_input": prompt_text(case.input), "case_metadata": case.metadata}

    def on_stdin(commands: Iterable[WorkspaceCommand]) -> tuple[WorkspaceCommand, ...]:
        return tuple(
            replace(one, stdin=json.dumps({**json.loads(one.stdin), **facts}, default=str)) if one.stdin else one
            for one in commands
        )

    before_each, after_each = on_stdin(hooks.before_each), on_stdin(hooks.after_each)
    return replace(spec, hooks=Hooks(hooks.before_all, before_each, after_each, hooks.after_all))


def _gateway_failure(trial: Trial) -> Failure | None:
    """Return a Failure if the trial has a budget or faults that need the gateway, but its model calls bypass it."""
    target = trial.target
    if target.upstream is not None or getattr(target.settings, "free", False):
        return None
    calls = f"model calls of '{target.name}' do not pass the gateway"
    if trial.budget_usd is not None:
        return Failure("no-gateway", f"{calls}, so that the trial's 'budget_usd' cannot be enforced")
    if getattr(target.settings, "faults", None):
        return Failure("no-gateway", f"{calls}, so that its 'faults' cannot be injected; is its API key set?")
    return None
