"""Judgement of how a turn ended, with every false success of agents in one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentv.extensions.agents.adapters.denials import did_nothing
from agentv.extensions.agents.adapters.failures import AGENT_STOPPED, DENIED, NO_TOOLS
from agentv.extensions.agents.adapters.native.recorder import AgentFacts
from agentv.extensions.agents.adapters.native.stream import Ending
from agentv.extensions.agents.adapters.settings import OnDenied
from agentv.model.suite.tools import McpServer
from agentv.model.values.response import Failure
from agentv.model.values.tool_names import canonical_name
from agentv.model.values.trace import Trace

_JOINTS = (".", "_", "__", "/", "-")
"""What stands between the names of server and tool, in the names that agents make of them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn that has ended by itself.

    Attributes:
        ending: as the stream tells it.
        facts: what the agent said of itself.
        status: exit status of the program; None: it went on after the end of its stream.
        trace: its steps.
        servers: the scripted tools of the case.
        root: absolute path of the workspace.
        began: when it began, in seconds since the epoch.
        cut: the stream ends in the middle of an event.
    """

    ending: Ending
    facts: AgentFacts
    status: int | None
    trace: Trace
    servers: Sequence[McpServer]
    root: str
    began: float
    cut: bool = False


def failure_of(turn: Turn, on_denied: OnDenied) -> Failure | None:
    """Why a turn is no answer; None: it is one. What the stream reports comes first, then what it leaves out."""
    return next(_failures(turn, on_denied), None)


def _failures(turn: Turn, on_denied: OnDenied) -> Iterator[Failure]:
    ending = turn.ending
    if ending.failure is not None:
        yield ending.failure
    if not ending.complete or turn.cut:
        yield Failure(AGENT_STOPPED, _stopped(turn))
    if ending.repeated:
        yield Failure(AGENT_STOPPED, "the agent's stream has more than one result")
    if turn.status:
        yield Failure(AGENT_STOPPED, f"the agent reports success, and ended with exit status {turn.status}")
    missing = _missing_tools(turn)
    if missing:
        yield Failure(NO_TOOLS, f"the agent does not offer its model the tools of {', '.join(missing)}")
    if on_denied == "error" and turn.trace.denials and did_nothing(turn.trace, turn.root, turn.began):
        yield Failure(DENIED, turn.trace.denial_message)


def _stopped(turn: Turn) -> str:
    where = "in the middle of an event" if turn.cut else "before its result"
    how = "goes on" if turn.status is None else f"ended with exit status {turn.status}"
    return f"the agent's stream ends {where}, and its program {how}"


def _missing_tools(turn: Turn) -> list[str]:
    """The servers of the case none of whose tools the agent lists; nothing where it lists no tools at all."""
    if turn.facts.tools is None:
        return []
    listed = {form for name in turn.facts.tools for form in (name, canonical_name(name))}
    return [one.name for one in turn.servers if not any(form.startswith(_prefixes(one.name)) for form in listed)]


def _prefixes(server: str) -> tuple[str, ...]:
    """What the names of a server's tools begin with."""
    return tuple(f"{before}{server}{joint}" for before in ("", "mcp__", "mcp_") for joint in _JOINTS)
