"""Listings of a project's targets and of the installed plugins. They hold no values of environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from agentv.model.suite.workspace import SandboxName

MOST_TURNS = 4
"""Model calls after which a check stops an agent."""


class KeyVariables(Struct, frozen=True):
    """Alternative environment variables for one key of a target.

    Attributes:
        names: the variables, in lookup order.
        found: the variable that is set; None if none is.
        needed: whether the target cannot be called unless one of them is set.
    """

    names: tuple[str, ...]
    found: str | None = None
    needed: bool = True


class AgentCheck(Struct, frozen=True):
    """What a check learned from one turn of an agent.

    Attributes:
        name, version: as the agent reports them; empty if it does not.
        tested: versions that agentv was tested with; empty if any version works that speaks the protocol.
        untested: whether the agent's version is not among the tested ones.
        sandbox: the sandbox that it ran in; None if it did not start.
        gateway: protocol of its model calls through the gateway; None if they did not pass the gateway.
        turns, tokens, cost_usd: model calls, tokens and cost of the turn; None if unknown.
    """

    name: str = ""
    version: str = ""
    tested: tuple[str, ...] = ()
    untested: bool = False
    sandbox: SandboxName | None = None
    gateway: str | None = None
    turns: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None


class CheckOutcome(Struct, frozen=True):
    """Result of checking a target with one call.

    Attributes:
        state: `untried` if there was nothing to call.
        code, message: why the call failed.
        fix: how to fix that.
        agent: for agents, what their turn showed.
    """

    state: Literal["ok", "failed", "untried"]
    duration_ms: float | None = None
    code: str | None = None
    message: str | None = None
    fix: str | None = None
    agent: AgentCheck | None = None


class ListedTarget(Struct, frozen=True):
    """A target that suites and the command line can use.

    Attributes:
        model: name of the model, for targets that call a model API.
        place: absolute path and line of its definition; None for a target given on the command line.
        marks: its roles in the project: `default target`, `default judge`, `judge of NAME`.
        keys: the environment variables that it reads.
        written: whether one of its secrets is written in the file itself.
        finds_keys: whether its library finds a key on its own.
        problem, problem_code, fix: why it cannot be called, apart from missing keys, and how to fix that.
        check: result of the check; None if no check was requested.
    """

    name: str
    provider: str
    model: str | None = None
    place: tuple[str, int] | None = None
    marks: tuple[str, ...] = ()
    keys: tuple[KeyVariables, ...] = ()
    written: bool = False
    finds_keys: bool = False
    problem: str | None = None
    problem_code: str | None = None
    fix: str | None = None
    check: CheckOutcome | None = None


class ListedProvider(Struct, frozen=True):
    """A provider that targets can use.

    Attributes:
        example: an example target, as a `provider:rest` string.
        finds_keys: whether its library finds a key on its own.
        fix: how to install the library that it needs; None if nothing is missing.
    """

    name: str
    summary: str
    example: str
    keys: tuple[KeyVariables, ...] = ()
    finds_keys: bool = False
    fix: str | None = None

    @property
    def usable(self) -> bool:
        """Whether the example target would work now."""
        return self.fix is None and all(key.found or not key.needed for key in self.keys)


class TargetsListing(Struct, frozen=True):
    """The targets of a project, the providers, and the sandboxes of this machine.

    Attributes:
        file: absolute path of the `targets.yaml` in force, or None.
        models: providers that call a model API.
        others: the remaining providers.
        sandboxes: the sandboxes that work on this machine, and how to get more; empty if they were not requested.
    """

    file: str | None
    targets: tuple[ListedTarget, ...]
    models: tuple[ListedProvider, ...] = field(default=())
    others: tuple[ListedProvider, ...] = field(default=())
    sandboxes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a check failed."""
        return any(one.check is not None and one.check.state == "failed" for one in self.targets)


PluginStatus = Literal["ok", "shadowed", "broken"]


class ListedPlugin(Struct, frozen=True):
    """An installed plugin.

    Attributes:
        kind: `extension`, `assertion`, `target`, `report`, or another kind that an extension adds, such as `command`.
        status: `shadowed` if a built-in of the same name takes precedence; `broken` if it cannot be used.
        summary: its one-line description.
        value: the value of its entry point, `package.module:Class`; for an extension, its module.
        file, line: its place in `entry_points.txt`; for an extension, its `__init__.py`.
        adds: for agentv's own extensions, kind → names; what other packages add is listed one by one.
        code, problem, hint: why it is not used; None if it is.
    """

    kind: str
    name: str
    package: str
    version: str
    status: PluginStatus
    summary: str
    value: str
    file: str
    line: int
    adds: Mapping[str, tuple[str, ...]] | None = None
    code: str | None = None
    problem: str | None = None
    hint: str | None = None
