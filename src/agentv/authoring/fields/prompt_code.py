"""Code that writes a judge prompt, as an eval file names it; none of it is run when the file is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from agentv.authoring.fields.code_kinds import (
    FUNCTION_OF_FILE,
    JAVASCRIPT_FILE,
    PYTHON_FILE,
    read_function,
    read_javascript,
    refuses_code,
)
from agentv.authoring.fields.kinds import INVALID, FieldType, refuse
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.model.run.rubric import WRITER_NAMES
from agentv.model.values.values import EMPTY, Json
from agentv.registry.fields import Alias, Command, Declared, Doc, FunctionRef, PromptCode

_WANTED = "code that writes it"


@dataclass(frozen=True, slots=True)
class PromptCommand(Declared):
    """A command that prints a judge prompt."""

    command: Annotated[Command, Alias(("script",)), Doc("a list of words, or a shell command")]
    config: Annotated[Mapping[str, Json], Doc("passed to the command as `config`")] = field(default=EMPTY)


ReadCommand = Callable[[MapNode, Reading, str], Any]
"""(the mapping, what reads it, its key) → a `PromptCommand`, or INVALID, which is reported."""


def prompt_code_type(read_command: ReadCommand) -> FieldType:
    """The reader of judge prompts in code; `read_command` reads `prompt: {command: …}`."""

    def read(node: Node, reading: Reading, key: str) -> Any:
        if refuses_code(node, reading, key):
            return INVALID
        if not isinstance(node, MapNode):
            return _read_file(node, reading, key)
        found = read_command(node, reading, key)
        return INVALID if found is INVALID else PromptCode(command=found.command, config=found.config)

    return FieldType(_WANTED, _is_prompt_code, read, verbatim=True, hint=_hint)


def _is_prompt_code(node: Node) -> bool:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return isinstance(node, MapNode)
    text = node.value.strip()
    return any(form.fullmatch(text) for form in (FUNCTION_OF_FILE, PYTHON_FILE, JAVASCRIPT_FILE))


def _hint(node: Node) -> str | None:
    forms = "file.py:function, judge-prompt.ts or {command: [node, judge-prompt.mjs]}"
    return f"for code, write {forms}" if isinstance(node, ListNode) else None


def _read_file(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, Scalar) or not _is_prompt_code(node):
        return refuse(node, reading, key, _WANTED)
    text = node.text.strip()
    if PYTHON_FILE.fullmatch(text):
        return refuse(node, reading, key, "a function of a Python file", f"name it: {text}:function")
    if JAVASCRIPT_FILE.fullmatch(text):
        script = read_javascript(node, reading, key)
        return INVALID if script is INVALID else PromptCode(script=script)
    function = read_function(node, reading, key)
    if function is INVALID or not check_parameters(function, node, reading):
        return INVALID
    return PromptCode(function=function)


def check_parameters(function: FunctionRef, node: Scalar, reading: Reading) -> bool:
    """Whether a judge prompt can provide the parameters of a function; reports those that it cannot.

    A function with a decorator may have other parameters than it seems; one without a file is only found during a run.
    """
    from agentv.authoring.fields.python_source import sure_definition  # few files name a function, and `ast` takes time

    source = reading.text_of(function.path, node) if function.path else None
    found = sure_definition(source, function.name) if source is not None else None
    if found is None:
        return True
    line, required = found
    unknown = [name for name in required if name not in WRITER_NAMES]
    if not unknown or len(required) == 1:  # a lone parameter gets the context, whatever its name
        return True
    names = ", ".join(f"'{name}'" for name in unknown)
    message = f"'{function.name}' has the parameters {names}, which a judge prompt does not provide"
    notes = (
        f"it is defined at {shown(function.path or '')}:{line}",
        f"available parameters: {', '.join(WRITER_NAMES)}",
    )
    reading.report.error("bad-value", node, message, hint=did_you_mean(unknown[0], WRITER_NAMES), notes=notes)
    return False
