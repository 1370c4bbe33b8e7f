"""Code that writes a judge prompt, as an eval file names it; none of it is run when the file is loaded."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.python_source import parsed, required_by
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import MapNode, Scalar
from agentv.model.run.rubric import WRITER_NAMES
from agentv.model.values.values import EMPTY, Json
from agentv.registry.fields import Alias, Command, Declared, Doc, FunctionRef, PromptCode


@dataclass(frozen=True, slots=True)
class PromptCommand(Declared):
    """A command that prints a judge prompt."""

    command: Annotated[Command, Alias(("script",)), Doc("a list of words, or a shell command")]
    config: Annotated[Mapping[str, Json], Doc("passed to the command as `config`")] = field(default=EMPTY)


def read_command(node: MapNode, reading: Reading, key: str) -> PromptCode | object:
    """What `prompt: {command: …}` says, or INVALID, which is reported."""
    found = shape_of(PromptCommand).decode(node.items, node, reading.rendering(False), f"'{key}'")
    return INVALID if found is INVALID else PromptCode(command=found.command, config=found.config)


def check_parameters(function: FunctionRef, node: Scalar, reading: Reading) -> bool:
    """Whether a function asks for what a judge prompt can give it; reported where it does not.

    One with a decorator may ask for something else than it seems, and one without a file is found only by a run.
    """
    source = reading.text_of(function.path, node) if function.path else None
    found = _definition(source, function.name) if source is not None else None
    if found is None or found.decorator_list:
        return True
    required = required_by(found.args)
    unknown = [name for name in required if name not in WRITER_NAMES]
    if not unknown or len(required) == 1:  # a lone parameter gets the context, whatever its name
        return True
    names = ", ".join(f"'{name}'" for name in unknown)
    message = f"'{function.name}' has the parameters {names}, which a judge prompt does not provide"
    notes = (
        f"it is defined at {shown(function.path or '')}:{found.lineno}",
        f"available parameters: {', '.join(WRITER_NAMES)}",
    )
    reading.report.error("bad-value", node, message, hint=did_you_mean(unknown[0], WRITER_NAMES), notes=notes)
    return False


def _definition(source: str, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function of that name, if it is surely the one that will be called."""
    found = [node for node in parsed(source).body if getattr(node, "name", None) == name]
    last = found[-1] if found else None
    return last if isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef) else None
