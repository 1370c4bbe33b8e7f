"""Kinds of values that are code: functions, Python, JavaScript, commands, expressions, and code for judge prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import Struct, field

from agentv.authoring.fields.kinds import INVALID, TEXT, FieldType, refuse, refuse_data, refuses_template, value_is
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.model.suite.assertion import Transform
from agentv.model.values.values import EMPTY, Json, lazy_pattern
from agentv.registry import fields as declared
from agentv.registry.fields import Alias, Command, Declared, Doc, FunctionRef, PromptCode
from agentv.templating import LITERAL_HINT, RenderError, undeclared

PROMPTFOO_FUNCTION = "get_assert"
"""Function that is called if only a Python file is named, as in promptfoo."""

_FUNCTION = lazy_pattern(r"(?P<place>.+):(?P<name>[A-Za-z_][\w.]*)", re.DOTALL)
PYTHON_FILE = lazy_pattern(r"(?:file://)?[^\s(){}|]+\.py")
FUNCTION_OF_FILE = lazy_pattern(r"(?:file://)?[^\s(){}|]+\.py:[A-Za-z_][\w.]*")


def read_function(node: Node, reading: Reading, key: str) -> Any:
    """Read a function as a FunctionRef, or return INVALID after reporting an error, such as a missing function."""
    wanted = "a function, written file.py:name or package.module:name"
    if refuses_code(node, reading, key):
        return INVALID
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return refuse(node, reading, key, wanted)
    match = _FUNCTION.fullmatch(node.value.removeprefix("file://").strip())
    if match is None:
        return refuse(node, reading, key, wanted)
    place, name = match["place"], match["name"]
    if not place.endswith(".py"):
        return declared.FunctionRef(name, module=place)
    found = reading.find(Scalar(place, place, node.at), "file")
    source = reading.text_of(found, node) if found else None
    is_right = False
    if found is not None and source is not None:
        from agentv.authoring.fields.python_source import check_function  # imports `ast`, which few suites need

        is_right = check_function(found, source, name, node, reading)
    return declared.FunctionRef(name, path=found) if is_right else INVALID


def refuses_code(node: Node, reading: Reading, key: str) -> bool:
    """Whether code is used in data; if so, this is reported."""
    if reading.data:
        refuse_data(node, reading.report, f"name code, as '{key}' does")
    return reading.data


def _read_python(node: Node, reading: Reading, key: str) -> Any:
    if refuses_code(node, reading, key):
        return INVALID
    if isinstance(node, Scalar) and isinstance(node.value, str) and not node.value.strip():
        message = f"'{key}' is empty; it needs Python code, or a function, written file.py:name"
        reading.report.error("missing-value", node, message)
        return INVALID
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return refuse(node, reading, key, "Python code, or a function, written file.py:name")
    text = node.value.strip()
    if PYTHON_FILE.fullmatch(text):  # as promptfoo names a file
        whole = f"{text}:{PROMPTFOO_FUNCTION}"
        node = Scalar(whole, whole, node.at)
    elif not FUNCTION_OF_FILE.fullmatch(text) and not text.startswith("file://"):
        return declared.PythonSource(code=node.value)
    function = read_function(node, reading, key)
    return INVALID if function is INVALID else declared.PythonSource(function=function)


JAVASCRIPT_MARK = "javascript:"
"""Prefix of a transform in JavaScript."""

JAVASCRIPT_FILE = lazy_pattern(r"(?:file://)?(?P<path>[^\s(){}|;,'\"`]+\.[mc]?[jt]s)(?::(?P<name>[A-Za-z_$][\w$]*))?")


def read_javascript(node: Node, reading: Reading, key: str) -> Any:
    """Read code or a file as a JavaScriptSource, or return INVALID after reporting an error."""
    if refuses_code(node, reading, key):
        return INVALID
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return refuse(node, reading, key, "JavaScript code, or the path of a file")
    text = node.value.strip()
    reading.note_javascript(node)
    match = JAVASCRIPT_FILE.fullmatch(text)
    if match is None:
        if text.startswith("file://"):
            return refuse(node, reading, key, "the path of a .js, .mjs, .cjs, .ts or .mts file")
        return declared.JavaScriptSource(code=node.value)
    path = match["path"]
    found = reading.find(Scalar(path, path, node.at), "file")
    if found is None or reading.text_of(found, node) is None:  # read to record the file's digest in the run
        return INVALID
    return declared.JavaScriptSource(path=found, name=match["name"])


def _read_command(node: Node, reading: Reading, key: str) -> Any:
    cwd = reading.places.suite
    if refuses_code(node, reading, key):
        return INVALID
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return declared.Command(shell=node.value, cwd=cwd)
    if isinstance(node, ListNode) and node.items and all(TEXT.accepts(item) for item in node.items):
        argv = tuple(item.text for item in node.items if isinstance(item, Scalar))
        if argv[0].strip():
            return declared.Command(argv=argv, cwd=cwd)
    return refuse(node, reading, key, "a command: a list of words or a shell command")


_KEY_OF_OUTPUT = lazy_pattern(r"output(?:\.[A-Za-z_]\w*|\[-?\d+\])*\.[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[-?\d+\])*")
"""`output.a.b`, which is read as a path: the answer is text, so an expression would find no keys in it."""


def _read_transform(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return refuse(node, reading, key, "an expression over 'output', a path ($.a.b), a function or javascript: …")
    text = node.value.strip()
    if text.startswith(JAVASCRIPT_MARK) or JAVASCRIPT_FILE.fullmatch(text):
        rest = text.removeprefix(JAVASCRIPT_MARK).strip()
        source = read_javascript(Scalar(rest, rest, node.at), reading, key)
        if source is INVALID:
            return INVALID
        if source.path is not None:
            return Transform("javascript-file", source.name or "", source.path)
        return Transform("javascript", source.code)
    if FUNCTION_OF_FILE.fullmatch(text):
        function = read_function(node, reading, key)
        return INVALID if function is INVALID else Transform("function", function.name, function.path)
    return _read_expression(text, node, reading, key)


def _read_expression(text: str, node: Scalar, reading: Reading, key: str) -> Any:
    from agentv.model.values.json_path import parse

    try:
        if text.startswith("$"):
            parse(text)
            return Transform("path", text)
        expression = text.removeprefix("{{").removesuffix("}}").strip()
        if _KEY_OF_OUTPUT.fullmatch(expression):  # promptfoo's spelling of a path into the answer
            return Transform("path", f"${expression.removeprefix('output')}")
        if reading.data and refuses_template(f"{{{{ {expression} }}}}", node, reading.report):
            return INVALID
        if "{{" in expression:
            return refuse(node, reading, key, "one expression over 'output'", "write it without braces")
        undeclared(f"{{{{ {expression} }}}}")
    except ValueError as error:
        reading.report.error("bad-path", node, f"'{key}': {error}")
    except RenderError as error:
        message = error.message.removesuffix(f"; {LITERAL_HINT}")
        reading.report.error(error.code, node, f"'{key}': {message}")
    else:
        return Transform("jinja", expression)
    return INVALID


CODE: dict[Any, FieldType] = {
    declared.FunctionRef: FieldType("a function", value_is(str), read_function),
    declared.PythonSource: FieldType("Python code, or a function", value_is(str), _read_python),
    declared.JavaScriptSource: FieldType("JavaScript code, or the path of a file", value_is(str), read_javascript),
    declared.Command: FieldType("a command", lambda node: isinstance(node, Scalar | ListNode), _read_command),
    Transform: FieldType("an expression", value_is(str), _read_transform, verbatim=True),
}
"""Type of an annotation → how it is read."""


_WANTED = "code that writes it"


class PromptCommand(Declared, Struct, frozen=True):
    """A command that prints a judge prompt."""

    command: Annotated[Command, Alias(("script",)), Doc("a list of words, or a shell command")]
    config: Annotated[Mapping[str, Json], Doc("passed to the command as `config`")] = field(default=EMPTY)


ReadCommand = Callable[[MapNode, Reading, str], Any]
"""(mapping, context, key) → a `PromptCommand`, or INVALID after reporting an error."""


def prompt_code_type(read_command: ReadCommand) -> FieldType:
    """The reader of judge prompts written by code. `read_command` reads `prompt: {command: …}`."""

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
    """Whether a judge prompt can provide the parameters of a function; those that it cannot are reported.

    Functions with a decorator, whose parameters may differ, and functions that are not in a file are not checked.
    """
    from agentv.authoring.fields.python_source import sure_definition  # imports `ast`, which few suites need
    from agentv.model.run.rubric import WRITER_NAMES

    source = reading.text_of(function.path, node) if function.path else None
    found = sure_definition(source, function.name) if source is not None else None
    if found is None:
        return True
    line, required = found
    unknown = [name for name in required if name not in WRITER_NAMES]
    if not unknown or len(required) == 1:  # a single parameter gets the context, whatever its name
        return True
    names = ", ".join(f"'{name}'" for name in unknown)
    message = f"'{function.name}' has the parameters {names}, which a judge prompt does not provide"
    notes = (
        f"it is defined at {shown(function.path or '')}:{line}",
        f"available parameters: {', '.join(WRITER_NAMES)}",
    )
    reading.report.error("bad-value", node, message, hint=did_you_mean(unknown[0], WRITER_NAMES), notes=notes)
    return False
