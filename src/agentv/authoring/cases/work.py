"""What files say of the work of agents: read by an extension, which is loaded at the first key of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from agentv.authoring.source.nodes import NOWHERE, MapNode, Node, Scalar, is_empty
from agentv.model.suite.workspace import KeepWorkspaces, SandboxName, Solution, Variant, WorkspaceSpec
from agentv.registry.extensions import HOW_TO_GET, PORTS, lacking, loaded, missing
from agentv.registry.types import ChooseSandbox

if TYPE_CHECKING:
    from agentv.authoring.fields.reading import Reading
    from agentv.authoring.fields.schema import AuthoredCase
    from agentv.authoring.source.report import Report
    from agentv.authoring.targets.registry import TargetRegistry
    from agentv.model.suite.suite import Case, SimulatedUser, SkillMinimums, TargetSpec
    from agentv.model.suite.tools import ScriptedServer


class WorkReader(Protocol):
    """Reads what one suite and its cases say of work; what is wrong is reported."""

    def variants(self, reading: Reading) -> tuple[Variant, ...]:
        """The variants of the suite."""
        ...

    def activation(self, node: Node, reading: Reading) -> tuple[Sequence[MapNode], SkillMinimums | None]:
        """The cases of `activation`, as `tests` would have them, and what every skill must reach."""
        ...

    def workspace(self, case: AuthoredCase, reading: Reading) -> WorkspaceSpec | None:
        """What the agent of a case works in; None: it has no workspace."""
        ...

    def tools(self, case: AuthoredCase, reading: Reading) -> tuple[ScriptedServer, ...]:
        """The scripted tools of a case."""
        ...

    def user(self, node: Node, reading: Reading, registry: TargetRegistry) -> SimulatedUser | None:
        """The simulated user of a case; None: it is wrong, which is reported."""
        ...

    def solution(self, case: AuthoredCase, tools: Sequence[ScriptedServer], reading: Reading) -> Solution | None:
        """The known solution of a case with these tools; None: it has none, or a wrong one."""
        ...

    def check(self, case: Case, targets: Iterable[TargetSpec], report: Report) -> None:
        """Report targets that cannot work on a case as it says."""
        ...


class SuiteWork(Struct, frozen=True, dict=True):
    """What is written of work for all cases of a suite.

    Attributes:
        workspace, sandbox, environment, extensions, variants, tools: of the suite, unread.
        existing: a directory of the user's that is used as it is, by the command line.
        only, keep: the sandbox, and the workspaces that stay, by the command line.
        choose: what is run in; None: nothing is run.
        hashes: whether the files behind a workspace are hashed; a check of files needs no hash.
        first_messages: simulated users write only their first message, without a model.
    """

    workspace: Node | None
    sandbox: Node | None
    environment: Node | None
    extensions: Node | None
    variants: Node | None
    tools: Node | None
    existing: str | None
    only: SandboxName | None
    keep: KeepWorkspaces | None
    choose: ChooseSandbox | None
    hashes: bool
    first_messages: bool

    @cached_property
    def has_workspaces(self) -> bool:
        """Whether all cases have a workspace."""
        keys = (self.workspace, self.sandbox, self.environment, self.extensions)
        return self.varies or self.existing is not None or any(one is not None for one in keys)

    @property
    def varies(self) -> bool:
        """Whether the suite has variants."""
        return not is_empty(self.variants)

    @cached_property
    def reader(self) -> WorkReader:
        """Reads it, and what cases say."""
        reader: WorkReader = loaded(PORTS, "WorkReader")(self)
        return reader


def refuse_lacking(kind: str, node: MapNode, report: Report) -> bool:
    """Report the keys of a suite or a case whose extension is not here; whether there are any."""
    found = [key for key in missing(kind) if key in node.items]
    for key in found:
        report.error("missing-extra", node.keys[key], f"'{key}' {lacking(kind, key)}", hint=HOW_TO_GET)
    return bool(found)


def directory_of_agents(targets: Iterable[TargetSpec], reading: Reading) -> Node | None:
    """Return the `cwd` of the agents, which is the workspace of a suite that names none; None if they have none."""
    agents = [one for one in targets if one.is_agent]
    named = {getattr(one.settings, "cwd", None): one.span or NOWHERE for one in agents}
    if len(named) > 1:
        message = "the agents have different directories in 'cwd', or only some of them have one"
        hint = "write 'workspace: {template: …}' in the eval file, which holds for all of them"
        reading.report.error("bad-value", next(iter(named.values())), message, hint=hint)
        return None
    directory, at = next(iter(named.items()), (None, NOWHERE))
    if directory is None:
        return None
    path = f"/{os.path.relpath(directory, reading.places.root)}"
    return Scalar(path, path, at)
