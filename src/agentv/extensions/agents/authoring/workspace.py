"""Reads a `workspace` mapping, or AgentV's `environment`, into fields of a WorkspaceSpec."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec.structs import replace

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.kinds import refuse_data
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import is_directory, is_file
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, holds_placeholder, is_empty, span_of
from agentv.authoring.source.yaml import read_yaml
from agentv.extensions.agents.authoring.parts import (
    CopyReader,
    DigestOf,
    check_globs,
    entries,
    facts_text,
    inner_path,
    read_command,
    read_commands,
    read_hooks,
    require_mapping,
)
from agentv.extensions.agents.authoring.schema import (
    AuthoredDocker,
    AuthoredEnvironment,
    AuthoredRepository,
    AuthoredSetup,
    AuthoredWorkspace,
)
from agentv.model.suite.workspace import (
    SETUP_TIMEOUT_S,
    SYSTEM_DIRECTORIES,
    WORKSPACE,
    DockerImage,
    WorkspaceCommand,
    WorkspaceRepository,
)
from agentv.model.values.path_globs import GlobError, check_glob, glob_pattern

Parts = dict[str, Any]
"""Field of a WorkspaceSpec → value, for the fields that are set."""

_OLDER_ENV = ("required_commands", "required_python_modules")
_KEYS_WITH_VARIABLES = frozenset({"repos", "network", "home", "keep", "ignore", "protected"})
"""Keys whose values may contain variables from data; the others run code or copy files."""

_KEYS_IN_DATA = frozenset({"template", "files", "hidden", "protected", "ignore", "keep"})
"""Keys that a workspace in data may have: files of the project, and how they are treated."""

_SYSTEM = frozenset({*SYSTEM_DIRECTORIES, "dev", "proc", "sys"})
_SHORT = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_URL = re.compile(r"[a-z][a-z+]*://|[\w.-]+@[\w.-]+:")


def read_workspace(node: Node, digest_of: DigestOf, reading: Reading, *, complete: bool) -> Parts:
    """Return the fields that a `workspace` sets; none if it is not a mapping. Mistakes are reported.

    Args:
        node: `workspace` as authored.
        digest_of: hashes a file or directory.
        reading: context of the suite or case.
        complete: whether no variant adds files to it.
    """
    found = _mapping(node, "workspace", reading)
    if found is None:
        return {}
    node, reading = found
    rendered = reading.rendered(node)
    if not isinstance(rendered, MapNode) or _runs_code_from_data(node, rendered, reading):
        return {}
    reading = reading.rendering(False)
    read = shape_of(AuthoredWorkspace).decode(rendered.items, rendered, reading, "'workspace'")
    if read is INVALID:
        read = shape_of(AuthoredWorkspace).unread(rendered.items)
    parts = _parts(read, rendered, digest_of, reading)
    if complete and read.protected:
        report_unmatched(parts, rendered.items["protected"], reading)
    return parts


def _parts(read: AuthoredWorkspace, node: MapNode, digest_of: DigestOf, reading: Reading) -> Parts:
    base, copies, kept = read.template, CopyReader(digest_of), CopyReader(digest_of, hidden=True)
    readers: Mapping[str, Any] = {
        "template": lambda: None if is_empty(base) else copies.directory(base, "template", reading),
        "files": lambda: copies.read(node.items["files"], "files", reading),
        "hidden": lambda: kept.read(node.items["hidden"], "hidden", reading),
        "setup": lambda: read_commands(read.setup, "setup", reading),
        **{key: partial(getattr, read, key) for key in ("network", "home", "keep")},
        "protected": lambda: _globs(read.protected, node, "protected", reading),
        "ignore": lambda: _globs(read.ignore, node, "ignore", reading),
        "mounts": lambda: _mounts(read.mounts, node.items["mounts"], reading),
    }
    parts: Parts = {key: found() for key, found in readers.items() if key in node.items}
    if "repos" in node.items:
        repos = node.items["repos"]
        pairs = zip(read.repos, repos.items if isinstance(repos, ListNode) else [], strict=False)
        found = [_repository(one, item, reading) for one, item in pairs if isinstance(item, MapNode)]
        parts["repositories"] = tuple(found)
    if read.hooks is not None and not is_empty(read.hooks):
        parts["hooks"] = read_hooks(read.hooks, reading)
        if setup := parts["hooks"].pop("setup", ()):
            parts["setup"] = (*parts.get("setup", ()), *setup)
    if "env" in node.items:
        parts["env"] = _env(read.env, node.items["env"], reading)
    docker = node.items.get("docker")
    if read.docker is not None and isinstance(docker, MapNode):
        _remark_not_applied(("timeout", "memory", "cpus"), docker, "docker", reading)
        parts |= {"docker": _docker(read.docker, docker, "'docker'", reading), "sandbox": ("docker",)}
    _existing(read, node, parts, reading)
    return parts


def _existing(read: AuthoredWorkspace, node: MapNode, parts: Parts, reading: Reading) -> None:
    for key in ("isolation", "mode"):
        if getattr(read, key) is not None and read.mode != "static":
            why = f"'{key}' has no effect: each trial has a new workspace"
            reading.report.remark("no-effect", node.items[key], why)
    if read.mode == "static" and read.path is None:
        reading.report.error("missing-key", node.items["mode"], "'mode: static' needs 'path', the directory to use")
    if read.path is None:
        return
    at = node.items["path"]
    found = reading.find(at, "directory") if isinstance(at, Scalar) else None
    if found is not None and not is_directory(found):
        reading.report.error("bad-value", at, "'path' must be the path of a directory")
    elif found is not None:
        parts["existing"] = found


def _runs_code_from_data(written: MapNode, rendered: MapNode, reading: Reading) -> bool:
    """Report a workspace whose code comes from data or its variables, and return whether it does."""
    if reading.data:
        key = next((key for key in written.items if key not in _KEYS_IN_DATA), None)
        if key is not None:
            refuse_data(written.items[key], reading.report, f"say '{key}' of a workspace, which runs code or opens it")
        return key is not None
    if not reading.vars_are_data:
        return False
    for key, node in rendered.items.items():
        if node is not written.items[key] and (
            key not in _KEYS_WITH_VARIABLES or _repository_from_data(node, written.items[key])
        ):
            refuse_data(written.items[key], reading.report, f"be part of '{key}', which is code or an address")
            return True
    return False


def _repository_from_data(rendered: Node, written: Node) -> bool:
    """Whether an entry of `repos` takes its repository from data. Its commit may come from data."""
    if not isinstance(rendered, ListNode) or not isinstance(written, ListNode):
        return rendered is not written and isinstance(rendered, MapNode | ListNode)
    for new, old in zip(rendered.items, written.items, strict=True):
        if isinstance(new, MapNode) and isinstance(old, MapNode) and new.get("repo") is not old.get("repo"):
            return True
    return False


def _globs(globs: tuple[str, ...], node: MapNode, key: str, reading: Reading) -> tuple[str, ...]:
    check_globs(globs, node.items[key], key, reading)
    return globs


def _mounts(mounts: Mapping[str, str], node: Node, reading: Reading) -> dict[str, str]:
    found = {}
    for path, below in mounts.items():
        top = PurePosixPath(path).parts[1:2]
        if not path.startswith("/") or not top or ".." in path.split("/") or top[0] in _SYSTEM:
            message = f"'{path}' of 'mounts' must be an absolute path outside of the system's directories"
            reading.report.error("bad-value", node, message)
        else:
            found[path.rstrip("/")] = inner_path(below, node, "mounts", reading)
    return found


def _repository(read: AuthoredRepository, node: MapNode, reading: Reading) -> WorkspaceRepository:
    at = node.items["repo"]
    repository = read.repo.strip()
    if not (_URL.match(repository) or _SHORT.fullmatch(repository)) and isinstance(at, Scalar):
        repository = reading.find(at, "repository") or repository
    if read.commit is None:
        message = f"'{read.repo}' has no 'commit', so the workspace changes whenever its default branch does"
        reading.report.warning("unpinned-repository", at, message)
    path = inner_path(read.path, node.items["path"], "path", reading) if read.path is not None else ""
    sparse = tuple(inner_path(one, node.items["sparse"], "sparse", reading) for one in read.sparse or ())
    return WorkspaceRepository(repository, path, read.commit or "", read.ancestor, sparse)


def _env(env: Mapping[str, Any], node: Node, reading: Reading) -> dict[str, str]:
    """Return the variables. AgentV's lists of what must be installed are not applied."""
    found = {}
    for name, value in env.items():
        if isinstance(value, str):
            found[name] = value
        elif name in _OLDER_ENV:
            reading.report.remark("not-applied", node, f"'{name}' is not applied: 'setup' can check what is installed")
        else:
            reading.report.error("bad-value", node, f"'env.{name}' must be text, found a list")
    return found


def _docker(read: AuthoredDocker | AuthoredEnvironment, node: MapNode, whose: str, reading: Reading) -> DockerImage:
    """Return the image that a mapping describes."""
    if not read.image and not read.context:
        reading.report.error("missing-key", node, f"{whose} needs 'image' or 'context'")
    context, at = node.items.get("context"), node.items.get("mounts", node)
    place = (reading.find(context, "directory") or "") if read.context and isinstance(context, Scalar) else ""
    mounts = []
    for one in read.mounts:
        source = reading.find(Scalar(one.source, one.source, at.at), "file or directory") or one.source
        mounts.append(f"{source}:{one.target}" + (":ro" if one.read_only or one.access == "ro" else ""))
    return DockerImage(read.image or "", place, read.dockerfile or "", read.workdir or "", tuple(mounts))


def _remark_not_applied(keys: Iterable[str], node: MapNode, whose: str, reading: Reading) -> None:
    for key in keys:
        if key in node.items:
            reading.report.remark("not-applied", node.items[key], f"'{key}' of '{whose}' is not applied")


_OTHER_SOURCES = ("repositories", "files", "setup", "hooks", "existing")
"""Fields that may add files that are not known yet."""

_CONFIGURES_TESTS = frozenset({"conftest.py", "pytest.ini", "sitecustomize.py", "usercustomize.py"})
"""Files that people protect so that no agent adds them."""


def report_unmatched(parts: Mapping[str, Any], node: Node, reading: Reading) -> None:
    """Warn about globs of `protected` that match no file, unless they may be meant for files that an agent could add.

    Args:
        parts: fields of one workspace mapping.
        node: `protected`.
        reading: context of the workspace.
    """
    template, hidden = parts.get("template"), parts.get("hidden", ())
    if template is None or any(parts.get(key) for key in _OTHER_SOURCES) or any(one.is_patch for one in hidden):
        return
    below = ((one.path, name) for one in (template, *hidden) for name in [*entries(Path(one.source))] or [""])
    names = [str(PurePosixPath(*one)) for one in below]
    items = node.items if isinstance(node, ListNode) else [node]
    for glob, item in zip(parts["protected"], items, strict=False):
        with suppress(GlobError):  # reported already
            check_glob(glob)
            is_free = glob.startswith(("**/", "*")) or glob.rpartition("/")[2] in _CONFIGURES_TESTS
            if not is_free and not any(map(glob_pattern(glob, below=True).fullmatch, names)):
                begin, first = glob.partition("/")[0], {name.partition("/")[0] for name in names}
                hint = None if begin in first else did_you_mean(begin, first)
                reading.report.warning("unmatched-glob", item, f"no file of the workspace matches '{glob}'", hint=hint)


def read_environment(node: Node, copies: CopyReader, reading: Reading) -> Parts:
    """Return the fields that an environment sets. Mistakes are reported.

    On the host, `workdir` is copied for each trial, whereas AgentV works in the directory itself.
    """
    found = _mapping(node, "environment", reading)
    if found is None:
        return {}
    node, reading = found
    rendered = reading.rendered(node)
    if reading.data or (reading.vars_are_data and rendered is not node):
        refuse_data(node, reading.report, "set up an environment, which runs commands")
        return {}
    if not isinstance(rendered, MapNode):
        return {}
    reading = reading.rendering(False)
    read = shape_of(AuthoredEnvironment).decode(rendered.items, rendered, reading, "'environment'")
    if read is INVALID:
        return {}
    _remark_not_applied(("resources", "services"), rendered, "environment", reading)
    parts = _in_docker(read, rendered, reading) if read.type == "docker" else _host(read, rendered, copies, reading)
    if read.env or read.secrets:
        parts["env"] = {**read.env, **read.secrets}
        reading.secrets.update(read.secrets.values())
    if read.setup is not None and not is_empty(read.setup):
        command = _setup(read, rendered, reading)
        parts["setup"] = () if command is None else (command,)
    return parts


def _mapping(node: Node, key: str, reading: Reading) -> tuple[MapNode, Reading] | None:
    """Return the mapping of a key. It can be given as the path of its file, or of a directory for the template."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        mapping = require_mapping(node, key, reading)
        return None if mapping is None else (mapping, reading)
    found = reading.find(node, "file or directory" if key == "workspace" else "file")
    if key == "workspace" and found is not None and is_directory(found):
        return MapNode({"template": node}, {"template": node.at}, node.at), reading
    text = None if found is None else reading.text_of(found, node)
    if found is None or text is None:
        return None
    root, valid = read_yaml(found, text.encode(), reading.report)
    if isinstance(root, MapNode):
        return root, reading.rendering(reading.renders or holds_placeholder(root))
    if valid:
        what = f"the keys of {'an' if key[0] in 'aeiou' else 'a'} {key}"
        reading.report.error("bad-value", node, f"'{node.text}' must hold a mapping: {what}")
    return None


def _host(read: AuthoredEnvironment, node: MapNode, copies: CopyReader, reading: Reading) -> Parts:
    at = node.items["workdir"]
    if read.setup is not None and not is_directory(_workdir(read, node, reading)):
        return {"template": None}  # its setup creates it
    return {"template": copies.directory(at, "workdir", reading)}


def _workdir(read: AuthoredEnvironment, node: MapNode, reading: Reading) -> str:
    home = Path(span_of(node.at).file or reading.places.suite).parent
    return str((home / read.workdir).resolve())


def _in_docker(read: AuthoredEnvironment, node: MapNode, reading: Reading) -> Parts:
    if not read.workdir.startswith("/"):
        reading.report.error("bad-value", node.items["workdir"], "'workdir' must be an absolute path in the container")
    return {"sandbox": ("docker",), "docker": _docker(read, node, "'environment' of type docker", reading)}


def _setup(read: AuthoredEnvironment, node: MapNode, reading: Reading) -> WorkspaceCommand | None:
    """Return the command that prepares the workspace. On the host, it runs there only with `cwd`, as in AgentV."""
    at = require_mapping(node.items["setup"], "setup", reading)
    if at is None:
        return None
    setup = shape_of(AuthoredSetup).decode(at.items, at, reading, "'setup'")
    if setup is INVALID:
        return None
    command = read_command(setup.command, "command", reading)
    if command is None:
        return None
    timeout_s = setup.timeout_ms / 1000 if setup.timeout_ms is not None else SETUP_TIMEOUT_S
    env, stdin = {"AGENTV_ENVIRONMENT_WORKDIR": WORKSPACE}, facts_text("setup", reading)
    command = replace(command, env=env, stdin=stdin, timeout_s=timeout_s)
    if read.type == "docker":
        return replace(command, cwd=setup.cwd or "")
    if setup.cwd is None:
        home = Path(span_of(node.at).file or reading.places.suite).parent
        return replace(command, directory=str(home.resolve()))
    return _in_workspace(command, setup, _workdir(read, node, reading))


def _in_workspace(command: WorkspaceCommand, setup: AuthoredSetup, workdir: str) -> WorkspaceCommand:
    """Return a command for a copy of `workdir`. Files that it names outside of the directory get absolute paths."""
    cwd = setup.cwd or "."
    if cwd.startswith("/"):
        return replace(command, directory=cwd)
    began = Path(workdir, cwd).resolve()
    if not began.is_relative_to(workdir):
        return replace(command, directory=str(began))

    def placed(word: str) -> str:
        outside = str((began / word).resolve())
        return outside if word.startswith("../") and is_file(outside) else word

    inside = began.relative_to(workdir)
    return replace(command, argv=tuple(map(placed, command.argv)), cwd="" if str(inside) == "." else str(inside))
