"""The workspace of each case of a suite, and its variants: the suite's, with what the case says key by key, hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.cases.context import SuiteWork
from agentv.authoring.code.fingerprints import digests_behind
from agentv.authoring.fields.decode import INVALID, kind_for, shape_of
from agentv.authoring.fields.kinds import refuse_data
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.source.nodes import ListNode, MapNode, Node, holds_placeholder, is_empty, kind_of, span_of
from agentv.extensions.agents.authoring.parts import CopyReader, FileDigests, read_extensions
from agentv.extensions.agents.authoring.schema import STAGES, AuthoredVariant
from agentv.extensions.agents.authoring.workspace import MappingReader, Parts, read_environment
from agentv.model.suite.workspace import WORKSPACE, Hooks, SandboxName, Variant, WorkspaceCommand, WorkspaceSpec
from agentv.model.values.response import Failure
from agentv.registry.fields import Command
from agentv.templating import Scope


class WorkspaceKeys(Struct, frozen=True):
    """What one place says of workspaces: the suite, or a case. Nothing is read."""

    workspace: Node | None = None
    sandbox: Node | None = None
    environment: Node | None = None
    extensions: Node | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Those that are written."""
        keys = (self.workspace, self.sandbox, self.environment, self.extensions)
        return tuple(one for one in keys if one is not None)


def _variant(node: Node, digests: FileDigests, reading: Reading) -> Variant | None:
    rendered = reading.rendered(node)
    if not isinstance(rendered, MapNode):
        if rendered is not None:
            message = f"an entry of 'variants' must be a mapping with 'name', found {kind_of(node)}"
            reading.report.error("bad-value", node, message)
        return None
    reading = reading.rendering(False)
    read = shape_of(AuthoredVariant).decode(rendered.items, rendered, reading, "a variant")
    if read is INVALID:
        return None
    overlay = rendered.items.get("overlay")
    copies = CopyReader(digests)
    overlays = () if overlay is None else copies.read(overlay, "overlay", reading)
    ref = None if read.ref is None else commit_of(read.ref, reading)
    if read.ref is not None and ref is None:
        message = f"this repository has no branch, tag or commit '{read.ref}'"
        reading.report.error("missing-ref", rendered.items["ref"], message)
    facts = (read.name, [(one.path, one.sha256) for one in overlays], ref, sorted(read.env.items()))
    digest = hashlib.sha256(repr(facts).encode(errors="surrogatepass")).hexdigest()
    return Variant(read.name.strip(), overlays, ref, dict(read.env), digest, span_of(rendered.at))


def commit_of(ref: str, reading: Reading) -> str | None:
    """The commit that a ref names in the repository of the suite, or None."""
    from agentv.user_code.processes import Finished  # few suites compare git refs
    from agentv.user_code.repositories import LIST_S, run_git

    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
    found = run_git(asked, reading.places.root, reading.scope.env, LIST_S)
    if not isinstance(found, Finished) or found.status:
        return None
    return found.stdout.decode(errors="replace").strip() or None


_OPTIONAL = "to run without it where it is missing, write `sandbox: [bwrap, none]`, or give --sandbox none"
_SANDBOX = kind_for(SandboxName | tuple[SandboxName, ...])


class WorkspaceReader:
    """Reads the workspaces of one suite; what is wrong is reported."""

    def __init__(self, work: SuiteWork) -> None:
        self._work = work
        self._keys = WorkspaceKeys(
            work.workspace, work.authored.sandbox, work.authored.environment, work.authored.extensions
        )
        self._digests = FileDigests(reads=work.request.for_run)
        self._mappings = MappingReader(self._digests, complete=not work.varies)
        self._changes = any(map(holds_placeholder, self._keys.nodes))
        self._parts: Parts | None = None
        self._spec: WorkspaceSpec | None = None

    def variants(self, node: Node | None, reading: Reading) -> tuple[Variant, ...]:
        """The variants of the suite."""
        if not self._changes:
            self._of_suite(reading)  # its mistakes are reported before those of variants, which repeat them
        if node is None or is_empty(node):
            return ()
        if not isinstance(node, ListNode):
            reading.report.error("bad-value", node, f"'variants' must be a list, found {kind_of(node)}")
            return ()
        found = [one for item in node.items if (one := _variant(item, self._digests, reading)) is not None]
        seen: dict[str, Variant] = {}
        for one in found:
            first = seen.setdefault(one.name, one)
            if first is not one and first.span is not None:
                message = f"two variants are named '{one.name}'; the first is in line {first.span.line}"
                reading.report.error("duplicate-id", one.span, message)
        return tuple(found)

    def of_case(self, case: AuthoredCase, reading: Reading) -> WorkspaceSpec | None:
        """The workspace of a case; None where it has none."""
        keys = WorkspaceKeys(case.workspace, case.sandbox, case.environment)
        own = keys.nodes
        if not own and not self._work.has_workspaces:
            return None
        if not own and self._spec is not None:
            return self._spec
        reading = _knowing_path(reading)
        base = self._of_suite(reading.of_suite())
        parts = _merged(base, self._of(keys, reading)) if own else base
        spec = self._made(parts, keys, reading)
        if not own and not self._changes:
            self._spec = spec
        return spec

    def _of_suite(self, reading: Reading) -> Parts:
        if self._changes:
            return self._of(self._keys, reading)
        if self._parts is None:
            self._parts = self._of(self._keys, _knowing_path(reading))
        return self._parts

    def _of(self, keys: WorkspaceKeys, reading: Reading) -> Parts:
        parts: Parts = {}
        copies = CopyReader(self._digests)
        if keys.environment is not None and not is_empty(keys.environment):
            if keys.workspace is not None and not is_empty(keys.workspace):
                message = "'environment' and 'workspace' both say what the agent works in; keep one of them"
                reading.report.error("two-spellings", keys.environment, message)
            parts = read_environment(keys.environment, copies, reading)
        if keys.workspace is not None and not is_empty(keys.workspace):
            parts = {**parts, **self._mappings.read(keys.workspace, reading)}
        if keys.extensions is not None:
            if reading.data:
                refuse_data(keys.extensions, reading.report, "name code, as 'extensions' does")
                return parts
            more, setup, files = read_extensions(keys.extensions, copies, reading)
            parts["setup"] = (*parts.get("setup", ()), *setup)
            parts["files"] = (*parts.get("files", ()), *files)
            hooks = parts.get("hooks", Hooks())
            parts["hooks"] = Hooks(**{name: getattr(hooks, name) + getattr(more, name) for name in STAGES})
        if keys.sandbox is not None and not is_empty(keys.sandbox):
            if reading.data:
                refuse_data(keys.sandbox, reading.report, "choose a sandbox")
                return parts
            rendered = reading.rendered(keys.sandbox)
            found = INVALID if rendered is None else _SANDBOX.read(rendered, reading, "sandbox")
            if found is not INVALID:
                parts["sandbox"] = found if isinstance(found, tuple) else (found,)
        return parts

    def _made(self, parts: Parts, keys: WorkspaceKeys, reading: Reading) -> WorkspaceSpec:
        work, request = self._work, self._work.request
        if request.workspace_path is not None:
            parts = {**parts, "existing": request.workspace_path}
        if request.sandbox is not None:
            parts = {**parts, "sandbox": (request.sandbox,)}
        if request.keep_workspaces is not None:
            parts = {**parts, "keep": request.keep_workspaces}
        at = next(iter((*keys.nodes, *self._keys.nodes)), None)
        spec = WorkspaceSpec(**parts, span=span_of(at.at) if at is not None else None)
        if spec.mounts:
            spec = replace(spec, sandbox=tuple(one for one in spec.sandbox if one != "none"))
            if not spec.sandbox:
                reading.report.error("bad-value", at, "'mounts' of 'workspace' needs 'sandbox: bwrap' or 'docker'")
                return spec
        _check_sandbox(spec, keys.sandbox or self._keys.sandbox or at, work, reading)
        _check_exposed(spec, reading)
        return replace(spec, sha256=_digest(spec, reading.places.root))


def _knowing_path(reading: Reading) -> Reading:
    """The same, with the path of the workspace in reach, which is known when the run has made it."""
    scope = reading.scope
    return reading.within(Scope(scope.vars, scope.env, {**scope.names, "workspace_path": WORKSPACE}, scope.closed))


def _merged(base: Parts, own: Parts) -> Parts:
    """The suite's fields with those of a case over them; of hooks each by its name."""
    merged = {**base, **own}
    if "hooks" in base and "hooks" in own:
        hooks, others = own["hooks"], base["hooks"]
        merged["hooks"] = Hooks(**{name: getattr(hooks, name) or getattr(others, name) for name in STAGES})
    if "env" in base and "env" in own:
        merged["env"] = {**base["env"], **own["env"]}
    return merged


def _check_sandbox(spec: WorkspaceSpec, at: Node | None, work: SuiteWork, reading: Reading) -> None:
    """Report a sandbox that cannot be made."""
    if "docker" in spec.sandbox and spec.docker is None:
        message = "'sandbox: docker' needs 'docker' in 'workspace', with 'image' or 'context'"
        reading.report.error("missing-key", at, message)
    found = work.choose(spec.sandbox, spec.network) if work.choose is not None else None
    if isinstance(found, Failure):
        if work.request.sandbox is not None:
            reading.report.error(found.code, at, f"--sandbox {work.request.sandbox}: {found.message}")
            return
        hint = None if "none" in spec.sandbox else _OPTIONAL
        reading.report.error(found.code, at, found.message, hint=hint)


def _check_exposed(spec: WorkspaceSpec, reading: Reading) -> None:
    """Report a template that shows the agent what it is graded by."""
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
    """A hash of what a workspace is made of; how it is confined, kept and limited has no part in it."""
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


class _Named(Struct, frozen=True):
    """A command, for the files that it names."""

    command: Command


def _facts(command: WorkspaceCommand) -> list[Any]:
    """What a command does; the files of one beside its file count by their content."""
    env: Mapping[str, str] = command.env
    named: tuple[str, ...] = ()
    if command.directory:
        named = digests_behind(_Named(Command(argv=command.argv, shell=command.shell, cwd=command.directory)))
    return [command.argv, command.shell, command.cwd, command.directory, dict(env), list(named)]
