"""The targets of a project and the installed plugins, as commands list them. Contains no value of a variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from agentv.model.suite.workspace import SandboxName

MOST_TURNS = 4
"""Model calls after which a check ends the turn of an agent."""


class KeyFact(Struct, frozen=True):
    """Environment variables of which a target needs one.

    Attributes:
        names: the variables, in the order in which they are looked for.
        found: the one that is set; None: none is.
        needed: without one of them the target cannot be asked.
    """

    names: tuple[str, ...]
    found: str | None = None
    needed: bool = True


class AgentCheck(Struct, frozen=True):
    """What one turn of an agent showed.

    Attributes:
        name, version: as the agent reports them; empty: it reports none.
        tested: versions that agentv was tested with; empty: any that speaks the protocol.
        untested: its version is not like one of these.
        sandbox: what confined it; None: it did not start.
        gateway: the protocol of its model calls, where they passed the gateway; None: they did not.
        turns, tokens, cost_usd: what the turn took; None: unknown.
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
    """Result of a check call.

    Attributes:
        state: `untried`: there is nothing to call.
        code, message: why there was no answer.
        fix: what to do about it.
        agent: of an agent, what its turn showed.
    """

    state: Literal["ok", "failed", "untried"]
    duration_ms: float | None = None
    code: str | None = None
    message: str | None = None
    fix: str | None = None
    agent: AgentCheck | None = None


class ListedTarget(Struct, frozen=True):
    """One target that suites and the command line can use.

    Attributes:
        model: of a model API.
        place: absolute path of the file that it stands in, and its line; None for one of the command line.
        marks: what it is to the project: `default target`, `default judge`, `judge of NAME`.
        keys: the variables that it takes something from.
        written: a secret of it stands in the file itself.
        finds_keys: its library looks for a key by itself.
        problem, problem_code, fix: why it cannot be asked, whatever the keys are, and what to do about that.
        check: None where none was asked for.
    """

    name: str
    provider: str
    model: str | None = None
    place: tuple[str, int] | None = None
    marks: tuple[str, ...] = ()
    keys: tuple[KeyFact, ...] = ()
    written: bool = False
    finds_keys: bool = False
    problem: str | None = None
    problem_code: str | None = None
    fix: str | None = None
    check: CheckOutcome | None = None


class ListedProvider(Struct, frozen=True):
    """A provider that could be used.

    Attributes:
        example: a target of it, as a `provider:rest` string.
        finds_keys: its library looks for a key by itself.
        fix: how to get the library that it needs; None where nothing is missing.
    """

    name: str
    summary: str
    example: str
    keys: tuple[KeyFact, ...] = ()
    finds_keys: bool = False
    fix: str | None = None

    @property
    def usable(self) -> bool:
        """Whether its example would work now."""
        return self.fix is None and all(key.found or not key.needed for key in self.keys)


class TargetsListing(Struct, frozen=True):
    """All of it.

    Attributes:
        file: absolute path of the `targets.yaml` in force, or None.
        models: providers of models; `others` answer without a model API.
        sandboxes: what can confine agents on this machine, and how to get more; empty: nobody asked.
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
    """One plugin.

    Attributes:
        kind: `extension`, `assertion`, `target`, `report`, or what else an extension adds, such as `command`.
        status: `shadowed`: something built in has its name and wins; `broken`: it cannot be used.
        summary: what it says of itself, one line.
        value: what its entry point names: `package.module:Class`; the module of an extension.
        file, line: where its `entry_points.txt` says so; an extension's `__init__.py`.
        adds: of an extension of agentv itself: kind → names; those of other packages are listed one by one.
        code, problem, hint: why it is not used; None: it is.
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
