"""Reader of a suite's keys about the work of agents: workspaces, variants, tools, simulated users and solutions.

The workspace of a case is the suite's, with the keys that the case overrides. The result is hashed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.cases.context import SuiteWork
from agentv.authoring.code.fingerprints import digests_behind
from agentv.authoring.fields.decode import INVALID, kind_for, shape_of
from agentv.authoring.fields.kinds import refuse_data
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase, AuthoredSuite
from agentv.authoring.source.nodes import ListNode, MapNode, Node, holds_placeholder, is_empty, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.targets.registry import TargetRegistry
from agentv.extensions.agents.authoring.parts import CopyReader, DigestOf, digest_of, no_digest, read_extensions
from agentv.extensions.agents.authoring.schema import STAGES, AuthoredVariant
from agentv.extensions.agents.authoring.workspace import Parts, read_environment, read_workspace
from agentv.model.suite.suite import Case, SimulatedUser, SkillMinimums, TargetSpec
from agentv.model.suite.tools import ScriptedServer
from agentv.model.suite.workspace import (
    WORKSPACE,
    Hooks,
    SandboxName,
    Solution,
    Variant,
    WorkspaceCommand,
    WorkspaceSpec,
)
from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.templating import Scope

if TYPE_CHECKING:
    from agentv.extensions.agents.authoring.tools import ToolReader


def _variant(node: Node, digest_of: DigestOf, reading: Reading) -> Variant | None:
    rendered = reading.rendered(node)
    if not isinstance(rendered, MapNode):
        if rendered is not None:
            reading.report.unfit(node, "an entry of 'variants' must be a mapping with 'name'")
        return None
    reading = reading.rendering(False)
    read = shape_of(AuthoredVariant).decode(rendered.items, rendered, reading, "a variant")
    if read is INVALID:
        return None
    overlay = rendered.items.get("overlay")
    copies = CopyReader(digest_of)
    overlays = () if overlay is None else copies.read(overlay, "overlay", reading)
    ref = None if read.ref is None else commit_of(read.ref, reading)
    if read.ref is not None and ref is None:
        message = f"this repository has no branch, tag or commit '{read.ref}'"
        reading.report.error("missing-ref", rendered.items["ref"], message)
    facts = (read.name, [(one.path, one.sha256) for one in overlays], ref, sorted(read.env.items()))
    digest = hashlib.sha256(repr(facts).encode(errors="surrogatepass")).hexdigest()
    return Variant(read.name.strip(), overlays, ref, dict(read.env), digest, span_of(rendered.at))


def commit_of(ref: str, reading: Reading) -> str | None:
    """Return the commit of a ref in the suite's repository, or None."""
    from agentv.user_code.processes import Finished  # few suites compare git refs
    from agentv.user_code.repositories import LIST_S, run_git

    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    found = run_git(asked, reading.places.root, reading.scope.env, LIST_S)
    if not isinstance(found, Finished) or found.status:
        return None
    return found.stdout.decode(errors="replace").strip() or None


_OPTIONAL = "to run without it where it is missing, write `sandbox: [bwrap, none]`, or give --sandbox none"
_SANDBOX = kind_for(SandboxName | tuple[SandboxName, ...])


class SuiteReader:
    """Implements `agentv.authoring.cases.context.WorkReader`. The reader of tools is imported only if it is needed."""

    def __init__(self, work: SuiteWork) -> None:
        self._work = work
        self._keys = _workspace_keys(work.authored, work.workspace)
        self._digest_of = cache(digest_of) if work.request.for_run else no_digest
        self._has_placeholders = any(map(holds_placeholder, self._keys.values()))
        self._parts: Parts | None = None
        self._spec: WorkspaceSpec | None = None

    @cached_property
    def _tools(self) -> ToolReader:
        from agentv.extensions.agents.authoring.tools import ToolReader

        return ToolReader(self._work.authored.tools)

    def variants(self, reading: Reading) -> tuple[Variant, ...]:
        """Return the variants of the suite."""
        node = self._work.authored.variants
        if not self._has_placeholders:
            self._suite_parts(reading)  # reports its mistakes before the variants repeat them
        if node is None or is_empty(node):
            return ()
        if not isinstance(node, ListNode):
            reading.report.unfit(node, "'variants' must be a list")
            return ()
        found = [one for item in node.items if (one := _variant(item, self._digest_of, reading)) is not None]
        seen: dict[str, Variant] = {}
        for one in found:
            first = seen.setdefault(one.name, one)
            if first is not one and first.span is not None:
                message = f"two variants are named '{one.name}'; the first is in line {first.span.line}"
                reading.report.error("duplicate-id", one.span, message)
        return tuple(found)

    def activation(self, node: Node, reading: Reading) -> tuple[Sequence[MapNode], SkillMinimums | None]:
        """Return the cases of `activation`, and the minimums for every skill."""
        from agentv.extensions.agents.authoring.activation import read_activation

        workspace = self._work.workspace
        if self._work.request.workspace_path is not None or (
            isinstance(workspace, MapNode) and "path" in workspace.items
        ):
            message = "a directory of your own is used as it is, so that agents do not get the skills of 'activation'"
            hint = "leave out --workspace-path, or 'path' of 'workspace'"
            reading.report.error("bad-value", node, message, hint=hint)
            return (), None
        return read_activation(node, workspace.get("files") if isinstance(workspace, MapNode) else None, reading)

    def tools(self, case: AuthoredCase, reading: Reading) -> tuple[ScriptedServer, ...]:
        """Return the scripted tools of a case."""
        return self._tools.of_case(case.tools, reading)

    def user(self, node: Node, reading: Reading, registry: TargetRegistry) -> SimulatedUser | None:
        """Return the simulated user of a case, or None after reporting a mistake."""
        from agentv.extensions.agents.authoring.tools import read_user

        return read_user(node, reading, registry)

    def solution(self, case: AuthoredCase, tools: Sequence[ScriptedServer], reading: Reading) -> Solution | None:
        """Return the solution of a case, or None."""
        from agentv.extensions.agents.authoring.tools import read_solution

        return None if case.solution is None else read_solution(case.solution, tools, reading)

    def check(self, case: Case, targets: Iterable[TargetSpec], report: Report) -> None:
        """Report targets that cannot work on a case within its network."""
        if case.workspace is not None and case.workspace.network != "host":
            check_network(case.workspace, case.tools, targets, report)

    def workspace(self, case: AuthoredCase, reading: Reading) -> WorkspaceSpec | None:
        """Return the workspace of a case, or None if it has none."""
        own = _workspace_keys(case, case.workspace)
        if not own and not self._work.has_workspaces:
            return None
        if not own and self._spec is not None:
            return self._spec
        reading = _with_workspace_path(reading)
        base = self._suite_parts(reading.of_suite())
        parts = _merged(base, self._read_parts(own, reading)) if own else base
        spec = self._build_spec(parts, own, reading)
        if not own and not self._has_placeholders:
            self._spec = spec
        return spec

    def _suite_parts(self, reading: Reading) -> Parts:
        if self._has_placeholders:
            return self._read_parts(self._keys, reading)
        if self._parts is None:
            self._parts = self._read_parts(self._keys, _with_workspace_path(reading))
        return self._parts

    def _read_parts(self, keys: Mapping[str, Node], reading: Reading) -> Parts:
        parts: Parts = {}
        copies = CopyReader(self._digest_of)
        workspace, environment, sandbox = (keys.get(one) for one in ("workspace", "environment", "sandbox"))
        if environment is not None and not is_empty(environment):
            if workspace is not None and not is_empty(workspace):
                message = "'environment' and 'workspace' both say what the agent works in; keep one of them"
                reading.report.error("two-spellings", environment, message)
            parts = read_environment(environment, copies, reading)
        if workspace is not None and not is_empty(workspace):
            complete = not self._work.varies  # no variant adds files
            parts = {**parts, **read_workspace(workspace, self._digest_of, reading, complete=complete)}
        if "extensions" in keys:
            if reading.data:
                refuse_data(keys["extensions"], reading.report, "name code, as 'extensions' does")
                return parts
            more, files = read_extensions(keys["extensions"], copies, reading)
            parts["setup"] = (*parts.get("setup", ()), *more.pop("setup", ()))
            parts["files"] = (*parts.get("files", ()), *files)
            hooks = parts.get("hooks", {})
            parts["hooks"] = hooks | {name: (*hooks.get(name, ()), *commands) for name, commands in more.items()}
        if sandbox is not None and not is_empty(sandbox):
            if reading.data:
                refuse_data(sandbox, reading.report, "choose a sandbox")
                return parts
            rendered = reading.rendered(sandbox)
            found = INVALID if rendered is None else _SANDBOX.read(rendered, reading, "sandbox")
            if found is not INVALID:
                parts["sandbox"] = found if isinstance(found, tuple) else (found,)
        return parts

    def _build_spec(self, parts: Parts, own: Mapping[str, Node], reading: Reading) -> WorkspaceSpec:
        work, request = self._work, self._work.request
        flag = (request.sandbox,) if request.sandbox is not None else None
        flags = {"existing": request.workspace_path, "sandbox": flag, "keep": request.keep_workspaces}
        parts = {**parts, **{key: value for key, value in flags.items() if value is not None}}
        at = next(iter((*own.values(), *self._keys.values())), None)
        hooks = Hooks(**parts.get("hooks", {}))
        spec = WorkspaceSpec(**{**parts, "hooks": hooks}, span=span_of(at.at) if at is not None else None)
        if spec.mounts:
            spec = replace(spec, sandbox=tuple(one for one in spec.sandbox if one != "none"))
            if not spec.sandbox:
                reading.report.error("bad-value", at, "'mounts' of 'workspace' needs 'sandbox: bwrap' or 'docker'")
                return spec
        _check_sandbox(spec, own.get("sandbox") or self._keys.get("sandbox") or at, work, reading)
        _check_exposed(spec, reading)
        return replace(spec, sha256=_digest(spec, reading.places.root))


def _workspace_keys(keys: AuthoredSuite | AuthoredCase, workspace: Node | None) -> dict[str, Node]:
    """Return the keys about workspaces that a suite or a case has, unread."""
    others = {key: getattr(keys, key, None) for key in ("sandbox", "environment", "extensions")}
    return {key: node for key, node in {"workspace": workspace, **others}.items() if node is not None}


def _with_workspace_path(reading: Reading) -> Reading:
    """Return the context with `workspace_path` in scope, as a placeholder that the run fills in."""
    scope = reading.scope
    return reading.within(Scope(scope.vars, scope.env, {**scope.names, "workspace_path": WORKSPACE}, scope.closed))


def _merged(base: Parts, own: Parts) -> Parts:
    """Return the suite's fields, overridden by those of a case. Hooks and variables are overridden one by one."""
    merged = {**base, **own}
    if "hooks" in base and "hooks" in own:
        merged["hooks"] = base["hooks"] | {name: commands for name, commands in own["hooks"].items() if commands}
    if "env" in base and "env" in own:
        merged["env"] = {**base["env"], **own["env"]}
    return merged


def _check_sandbox(spec: WorkspaceSpec, at: Node | None, work: SuiteWork, reading: Reading) -> None:
    """Report a sandbox that is not available, or lacks its image."""
    if "docker" in spec.sandbox and spec.docker is None:
        message = "'sandbox: docker' needs 'docker' in 'workspace', with 'image' or 'context'"
        reading.report.error("missing-key", at, message)
    found = work.choose(spec.sandbox, spec.network) if work.choose is not None else None
    if isinstance(found, Failure):
        flag = f"--sandbox {work.request.sandbox}: " if work.request.sandbox is not None else ""
        hint = None if flag or "none" in spec.sandbox else _OPTIONAL
        reading.report.error(found.code, at, f"{flag}{found.message}", hint=hint)


def _check_exposed(spec: WorkspaceSpec, reading: Reading) -> None:
    """Report a template in which the agent can read how it is graded."""
    if spec.template is None:
        return
    template = Path(spec.template.source)
    for hidden in spec.hidden:
        if Path(hidden.source).is_relative_to(template):
            message = "hidden files are inside the template, so the agent can read them"
            reading.report.error("exposed-files", hidden.span, message, hint="move them out of the template")
    suite = Path(spec.template.span.file) if spec.template.span is not None else None
    if suite is not None and suite.is_relative_to(template):
        message = "the template contains this file, so the agent can read how it is graded"
        reading.report.warning("exposed-files", spec.template.span, message, hint="move the eval file out of it")


def _digest(spec: WorkspaceSpec, root: str) -> str:
    """Return a hash of what a workspace consists of. The sandbox, time limits and `keep` do not count."""
    facts: dict[str, Any] = {
        "template": spec.template and spec.template.sha256,
        "repositories": [
            [one.repository, one.path, one.commit, one.ancestor, *one.sparse] for one in spec.repositories
        ],
        "files": [[one.path, one.sha256] for one in spec.files],
        "hidden": [[one.path, one.sha256, *["patch"] * one.is_patch] for one in spec.hidden],
        "setup": [_facts(one) for one in spec.setup],
        "hooks": [[_facts(one) for one in getattr(spec.hooks, name)] for name in STAGES],
        "protected": list(spec.protected),
        "network": spec.network,
        "home": spec.home,
        "env": dict(spec.env),
        "docker": spec.docker and [spec.docker.image, spec.docker.context, spec.docker.dockerfile],
        "existing": spec.existing,
        **({"mounts": dict(spec.mounts)} if spec.mounts else {}),
    }
    written = json.dumps(facts, sort_keys=True).replace(f"{root.rstrip('/')}/", "")
    return hashlib.sha256(written.encode(errors="surrogatepass")).hexdigest()


_LOOPBACK_HINT = "write 'network: loopback', which reaches the gateway and the tools of the case, and nothing else"


def check_network(
    spec: WorkspaceSpec, tools: Iterable[ScriptedServer], targets: Iterable[TargetSpec], report: Report
) -> None:
    """Report agents that cannot reach their model, and tools that agents cannot reach."""
    if spec.network == "none":
        kept = [f"the agent of '{one.name}' from its model" for one in targets if one.upstream is not None]
        http = (one.name for one in tools if one.transport == "http")
        kept += [f"agents from the tools of '{name}', which are served over HTTP" for name in http]
        for one in kept:
            report.error("bad-value", spec.span, f"'network: none' keeps {one}", hint=_LOOPBACK_HINT)
    elif spec.network == "loopback":
        for target in targets:
            settings = target.settings
            is_without = getattr(settings, "gateway", None) is False
            if is_without and getattr(settings, "model_protocol", None) is not None:
                message = f"'network: loopback' reaches the gateway only, and '{target.name}' has 'gateway: false'"
                report.error("bad-value", spec.span, message, hint="remove 'gateway: false'")


class _Named(Struct, frozen=True):
    """A command, in the form that `digests_behind` reads."""

    command: Command


def _facts(command: WorkspaceCommand) -> list[Any]:
    """Return what to hash of a command. If it runs next to its file, the contents of files that it names count."""
    env: Mapping[str, str] = command.env
    named: tuple[str, ...] = ()
    if command.directory:
        named = digests_behind(_Named(Command(argv=command.argv, shell=command.shell, cwd=command.directory)))
    return [command.argv, command.shell, command.cwd, command.directory, dict(env), list(named)]
