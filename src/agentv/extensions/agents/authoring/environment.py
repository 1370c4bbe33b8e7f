"""AgentV's `environment` as the fields of a WorkspaceSpec that it gives."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.trust import refuse_data
from agentv.authoring.source.files import is_directory, is_file
from agentv.authoring.source.nodes import MapNode, Node, Scalar, is_empty, kind_of, span_of
from agentv.extensions.agents.authoring.hooks import facts_text
from agentv.extensions.agents.authoring.parts import CopyReader, any_mapping, mapping_in, read_command
from agentv.extensions.agents.authoring.schema import AuthoredEnvironment, AuthoredSetup
from agentv.extensions.agents.authoring.workspace import Parts, docker_image
from agentv.model.suite.workspace import SETUP_TIMEOUT_S, WORKSPACE, WorkspaceCommand

_NOT_APPLIED = ("resources", "services")


def read_environment(node: Node, copies: CopyReader, reading: Reading) -> Parts:
    """The fields that an environment gives; what is wrong is reported.

    The directory `workdir` of a host is copied for each trial, where AgentV works in it.
    """
    found = _mapping(node, reading)
    if found is None:
        return {}
    node, reading = found
    rendered = reading.rendered(node)
    if reading.data or (reading.fed and rendered is not node):
        refuse_data(node, reading.report, "set up an environment, which runs commands")
        return {}
    if not isinstance(rendered, MapNode):
        return {}
    reading = reading.rendering(False)
    read = shape_of(AuthoredEnvironment).decode(rendered.items, rendered, reading, "'environment'")
    if read is INVALID:
        return {}
    for key in _NOT_APPLIED:
        if key in rendered.items:
            reading.report.remark("not-applied", rendered.items[key], f"'{key}' of 'environment' is not applied")
    parts = _docker(read, rendered, reading) if read.type == "docker" else _host(read, rendered, copies, reading)
    if read.env or read.secrets:
        parts["env"] = {**read.env, **read.secrets}
        reading.secrets.update(read.secrets.values())
    if read.setup is not None and not is_empty(read.setup):
        command = _setup(read, rendered, reading)
        parts["setup"] = () if command is None else (command,)
    return parts


def _mapping(node: Node, reading: Reading) -> tuple[MapNode, Reading] | None:
    """The mapping itself, or that of the file which a text names."""
    if isinstance(node, MapNode):
        return node, reading
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        reading.report.error("bad-value", node, f"'environment' must be a mapping, found {kind_of(node)}")
        return None
    return mapping_in(reading.find(node, "file"), node, "environment", reading)


def _host(read: AuthoredEnvironment, node: MapNode, copies: CopyReader, reading: Reading) -> Parts:
    at = node.items["workdir"]
    if read.setup is not None and not is_directory(_workdir(read, node, reading)):
        return {"template": None}  # its setup makes it
    return {"template": copies.directory(at, "workdir", reading)}


def _workdir(read: AuthoredEnvironment, node: MapNode, reading: Reading) -> str:
    home = Path(span_of(node.at).file or reading.places.suite).parent
    return str((home / read.workdir).resolve())


def _docker(read: AuthoredEnvironment, node: MapNode, reading: Reading) -> Parts:
    if not read.image and not read.context:
        reading.report.error("missing-key", node, "'environment' of type docker needs 'image' or 'context'")
    if not read.workdir.startswith("/"):
        reading.report.error("bad-value", node.items["workdir"], "'workdir' must be an absolute path in the container")
    image = docker_image(read, node, node.items.get("mounts", node), reading)
    return {"sandbox": ("docker",), "docker": image}


def _setup(read: AuthoredEnvironment, node: MapNode, reading: Reading) -> WorkspaceCommand | None:
    """The command that prepares the workspace: with `cwd` in it, else beside the file, as AgentV has it."""
    at = any_mapping(node.items["setup"], "setup", reading)
    if at is None:
        return None
    setup = shape_of(AuthoredSetup).decode(at.items, at, reading, "'setup'")
    if setup is INVALID:
        return None
    made = read_command(setup.command, "command", reading)
    if made is None:
        return None
    made = replace(
        made,
        env={"AGENTV_ENVIRONMENT_WORKDIR": WORKSPACE},
        stdin=facts_text("setup", reading),
        timeout_s=setup.timeout_ms / 1000 if setup.timeout_ms is not None else SETUP_TIMEOUT_S,
        span=span_of(at.at),
    )
    if read.type == "docker":
        return replace(made, cwd=setup.cwd or "")
    if setup.cwd is None:
        home = Path(span_of(node.at).file or reading.places.suite).parent
        return replace(made, directory=str(home.resolve()))
    return _in_workspace(made, setup, _workdir(read, node, reading))


def _in_workspace(made: WorkspaceCommand, setup: AuthoredSetup, workdir: str) -> WorkspaceCommand:
    """The command in a copy of the directory: files that it names outside of it are named where they are."""
    cwd = setup.cwd or "."
    if cwd.startswith("/"):
        return replace(made, directory=cwd)
    began = Path(workdir, cwd).resolve()
    if not began.is_relative_to(workdir):
        return replace(made, directory=str(began))

    def placed(word: str) -> str:
        outside = str((began / word).resolve())
        return outside if word.startswith("../") and is_file(outside) else word

    inside = began.relative_to(workdir)
    return replace(made, argv=tuple(map(placed, made.argv)), cwd="" if str(inside) == "." else str(inside))
