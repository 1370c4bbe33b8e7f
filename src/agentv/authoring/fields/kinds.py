"""The kinds of values that an option may be: how each is read from a node, and what a wrong one is reported."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Final

from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.trust import refuse as refuse_data
from agentv.authoring.fields.trust import refuses_template
from agentv.authoring.source.files import is_directory, is_file
from agentv.authoring.source.git_files import GIT_URL
from agentv.authoring.source.globs import files_of_globs
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, kind_of, plain
from agentv.authoring.source.scalars import resolve
from agentv.model.suite.assertion import Transform
from agentv.model.values.json_path import parse
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.values import Json
from agentv.registry import fields as declared
from agentv.templating import LITERAL_HINT, RenderError, undeclared

INVALID: Final = object()
"""What a reader gives for a node that it has reported."""

Read = Callable[[Node, Reading, str], Any]
Accepts = Callable[[Node], bool]
Hint = Callable[[Node], "str | None"]


def _no_hint(_node: Node) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class FieldType:
    """How one kind of value is read.

    Attributes:
        wanted: what it must be, in the words of an error message.
        accepts: whether a node looks like one; decides between the members of a union.
        verbatim: placeholders in it are not rendered when the file is loaded.
        hint: the likely fix of a node that is refused.
    """

    wanted: str
    accepts: Accepts
    read: Read
    verbatim: bool = False
    hint: Hint = _no_hint


@dataclass(frozen=True, slots=True)
class AsNode:
    """Marks a key whose node is handed on unread: its meaning depends on more than itself."""


def refuse(node: Node, reading: Reading, key: str, wanted: str, hint: str | None = None) -> Any:
    """Report a value that is not what it must be; INVALID."""
    reading.report.error("bad-value", node, f"'{key}' must be {wanted}, found {kind_of(node)}", hint=hint)
    return INVALID


def value_is(*types: type) -> Accepts:
    """Accepts scalars whose value is of one of the types."""
    return lambda node: isinstance(node, Scalar) and type(node.value) in types


def _scalar(wanted: str, accepts: Accepts, convert: Callable[[Any], Any], hint: Hint = _no_hint) -> FieldType:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if isinstance(node, Scalar) and accepts(node):
            return convert(node.value)
        return refuse(node, reading, key, wanted, hint(node))

    return FieldType(wanted, accepts, read, hint=hint)


def _as_is(value: Any) -> Any:
    return value


def _quoted(node: Node) -> str | None:
    return f'for text, write "{node.text}"' if isinstance(node, Scalar) and node.value is not None else None


def _boolean(node: Node) -> str | None:
    """YAML 1.1 knew more words for them."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return None
    if node.value in ("true", "false"):
        return f"in quotes it is text: write {node.value}"
    meant = _OLD_BOOLEANS.get(node.value.lower())
    return f"in YAML 1.2, '{node.value}' is text: write {meant}" if meant else None


def _number(node: Node) -> str | None:
    """A number in quotes, or out of the environment, is text; and some are beyond all bounds."""
    if isinstance(node, Scalar) and type(node.value) in (int, float) and not -_LARGEST < node.value < _LARGEST:
        return f"it must be finite and between -{_LARGEST:g} and {_LARGEST:g}"
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return None
    if measured := _MEASURED.fullmatch(node.value.strip()):
        share = float(measured["number"]) / 100
        return f"write {share:g}" if measured["unit"] == "%" else f"write {measured['number']}, without the unit"
    number = resolve(node.value.strip())
    if type(number) not in (int, float):
        return None
    authored = getattr(node.at, "value", node.value)
    if authored != node.value:
        return f"the placeholder produced text: add '| {type(number).__name__}' inside its braces"
    return f"in quotes it is text: write {number}"


def _is_text(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is not None


def _read_text(node: Node, reading: Reading, key: str) -> Any:
    if isinstance(node, Scalar) and node.value is not None:
        return node.value if type(node.value) is str else node.text
    return refuse(node, reading, key, "text")


def _is_number(node: Node) -> bool:
    # beyond the bounds are infinities, and whole numbers that are too long for a float
    return isinstance(node, Scalar) and type(node.value) in (int, float) and -_LARGEST < node.value < _LARGEST


def _anything(_node: Node) -> bool:
    return True


def _read_json(node: Node, _reading: Reading, _key: str) -> Any:
    return plain(node)


def _read_path(*, directory: bool) -> Read:
    what = "directory" if directory else "file"

    def read(node: Node, reading: Reading, key: str) -> Any:
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
            return refuse(node, reading, key, f"the path of a {what}")
        found = reading.find(node, what)
        if found is None:
            return INVALID
        if not (is_directory(found) if directory else is_file(found)):
            return refuse(node, reading, key, f"the path of a {what}")
        return found

    return read


_PLACES = ("./", "../", "/", "~/")


def _read_name_or_directory(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return refuse(node, reading, key, "a name, or the path of a directory")
    text = node.value.strip()
    if not text.startswith(_PLACES):
        return text
    found = Path(text).expanduser() if text.startswith(("/", "~")) else None
    return str(found) if found is not None and found.is_dir() else _read_path(directory=True)(node, reading, key)


_PATH_LIKE = lazy_pattern(r"(?:\.{0,2}/)?(?:[^\s{}<>|*?\"']+/)*[^\s{}<>|*?\"'/]+\.[A-Za-z0-9]{1,8}")


def looks_like_path(text: str) -> bool:
    """Whether a text that may be given inline or by a path is a path.

    That is one word with a suffix, the URL of a git host, or a line that begins with `./`, `../` or `file://`.
    """
    text = text.strip()
    begins = text.startswith(("./", "../", "file://")) and "\n" not in text
    hosted = GIT_URL.match(text) is not None and len(text.split()) == 1
    return begins or hosted or _PATH_LIKE.fullmatch(text) is not None


def _read_document(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return refuse(node, reading, key, "text, or the path of a file")
    if not looks_like_path(node.value):
        refused = reading.data and refuses_template(node.value, node, reading)
        return INVALID if refused else declared.Document(node.value)
    found = reading.find(node, "file")
    text = reading.text_of(found, node) if found else None
    if text is None or (reading.data and refuses_template(text, node, reading)):
        return INVALID
    return declared.Document(text, found)


def _read_loaded(node: Node, reading: Reading, key: str) -> Any:
    if not (isinstance(node, Scalar) and isinstance(node.value, str) and looks_like_path(node.value)):
        return declared.Loaded(plain(node))
    found = reading.find(node, "file")
    text = reading.text_of(found, node) if found else None
    if text is None or found is None:
        return INVALID
    if not text.strip():
        reading.report.error("missing-value", node, f"'{key}' refers to '{node.text}', which is empty")
        return INVALID
    read = _yaml_data if found.endswith((".yaml", ".yml")) else _json_data
    return read(found, text, node, reading)


def _yaml_data(path: str, text: str, node: Scalar, reading: Reading) -> Any:
    from agentv.authoring.source.yaml import read_yaml

    errors = reading.report.errors
    content = read_yaml(path, text.encode(), reading.report)
    if content is None and reading.report.errors == errors:
        reading.report.error("missing-value", node, f"'{node.text}' contains only comments")
    return INVALID if reading.report.errors > errors or content is None else declared.Loaded(plain(content), path)


def _json_data(path: str, text: str, node: Scalar, reading: Reading) -> Any:
    try:
        return declared.Loaded(json.loads(text), path)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        reading.report.error("bad-json", node, f"'{node.text}' is not valid JSON: {said}")
        return INVALID


_FUNCTION = lazy_pattern(r"(?P<place>.+):(?P<name>[A-Za-z_][\w.]*)", re.DOTALL)
_PYTHON_FILE = lazy_pattern(r"(?:file://)?[^\s(){}|]+\.py")
_PROMPT_CODE = "code that writes it"
_FUNCTION_OF_FILE = lazy_pattern(r"(?:file://)?[^\s(){}|]+\.py:[A-Za-z_][\w.]*")


def _read_function(node: Node, reading: Reading, key: str) -> Any:
    wanted = "a function, written file.py:name or package.module:name"
    if _refuses_code(node, reading, key):
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
    if found is None or source is None or not _defines(found, source, name, node, reading):
        return INVALID
    return declared.FunctionRef(name, path=found)


def _refuses_code(node: Node, reading: Reading, key: str) -> bool:
    """Whether code stands in data, which is then reported."""
    if reading.data:
        refuse_data(node, reading, f"name code, as '{key}' does")
    return reading.data


def _defines(path: str, source: str, name: str, node: Scalar, reading: Reading) -> bool:
    from agentv.authoring.fields.python_files import (
        check_function,  # few files name a function, and parsing takes an import
    )

    return check_function(path, source, name, node, reading)


def _read_python(node: Node, reading: Reading, key: str) -> Any:
    if _refuses_code(node, reading, key):
        return INVALID
    if isinstance(node, Scalar) and isinstance(node.value, str) and not node.value.strip():
        message = f"'{key}' is empty; it needs Python code, or a function, written file.py:name"
        reading.report.error("missing-value", node, message)
        return INVALID
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return refuse(node, reading, key, "Python code, or a function, written file.py:name")
    text = node.value.strip()
    if not _FUNCTION_OF_FILE.fullmatch(text) and not text.startswith("file://"):
        return declared.PythonSource(code=node.value)
    function = _read_function(node, reading, key)
    return INVALID if function is INVALID else declared.PythonSource(function=function)


_JAVASCRIPT_FILE = lazy_pattern(
    r"(?:file://)?(?P<path>[^\s(){}|;,'\"`]+\.(?:[mc]?js|m?ts))(?::(?P<name>[A-Za-z_$][\w$]*))?"
)


def _read_javascript(node: Node, reading: Reading, key: str) -> Any:
    if _refuses_code(node, reading, key):
        return INVALID
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return refuse(node, reading, key, "JavaScript code, or the path of a file")
    text = node.value.strip()
    match = _JAVASCRIPT_FILE.fullmatch(text)
    if match is None:
        if text.startswith("file://"):
            return refuse(node, reading, key, "the path of a .js, .mjs, .cjs, .ts or .mts file")
        return declared.JavaScriptSource(code=node.value)
    path = match["path"]
    found = reading.find(Scalar(path, path, node.at), "file")
    if found is None or reading.text_of(found, node) is None:  # read, so that the run remembers what it was
        return INVALID
    return declared.JavaScriptSource(path=found, name=match["name"])


def _is_prompt_code(node: Node) -> bool:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return isinstance(node, MapNode)
    text = node.value.strip()
    files = (_FUNCTION_OF_FILE, _PYTHON_FILE, _JAVASCRIPT_FILE)
    return any(form.fullmatch(text) for form in files)


def _prompt_code_hint(node: Node) -> str | None:
    forms = "file.py:function, judge-prompt.ts or {command: [node, judge-prompt.mjs]}"
    return f"for code, write {forms}" if isinstance(node, ListNode) else None


def _read_prompt_code(node: Node, reading: Reading, key: str) -> Any:
    return INVALID if _refuses_code(node, reading, key) else _prompt_code(node, reading, key)


def _prompt_code(node: Node, reading: Reading, key: str) -> Any:
    from agentv.authoring.fields.prompt_code import (  # it knows mappings, which know all kinds
        check_parameters,
        read_command,
    )

    if isinstance(node, MapNode):
        return read_command(node, reading, key)
    if not isinstance(node, Scalar) or not _is_prompt_code(node):
        return refuse(node, reading, key, _PROMPT_CODE)
    text = node.text.strip()
    if _PYTHON_FILE.fullmatch(text):
        return refuse(node, reading, key, "a function of a Python file", f"name it: {text}:function")
    if _JAVASCRIPT_FILE.fullmatch(text):
        script = _read_javascript(node, reading, key)
        return INVALID if script is INVALID else declared.PromptCode(script=script)
    function = _read_function(node, reading, key)
    if function is INVALID or not check_parameters(function, node, reading):
        return INVALID
    return declared.PromptCode(function=function)


def _read_globs(node: Node, reading: Reading, key: str) -> Any:
    items = node.items if isinstance(node, ListNode) else [node]
    if not items or not all(isinstance(item, Scalar) and type(item.value) is str and item.value for item in items):
        return refuse(node, reading, key, "a list of paths, which may contain * and **")
    texts = [item for item in items if isinstance(item, Scalar)]
    found: Any = declared.FileGlobs(tuple(item.text.strip() for item in texts), reading.places.suite)
    for item in texts:
        if not files_of_globs(declared.FileGlobs((item.text.strip(),), reading.places.suite)):
            reading.report.error("missing-file", item, f"no file matches '{item.text}' of '{key}'")
            found = INVALID
    return found


def _read_command(node: Node, reading: Reading, key: str) -> Any:
    cwd = reading.places.suite
    if _refuses_code(node, reading, key):
        return INVALID
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return declared.Command(shell=node.value, cwd=cwd)
    if isinstance(node, ListNode) and node.items and all(_is_text(item) for item in node.items):
        argv = tuple(item.text for item in node.items if isinstance(item, Scalar))
        if argv[0].strip():
            return declared.Command(argv=argv, cwd=cwd)
    return refuse(node, reading, key, "a command: a list of words or a shell command")


def _read_transform(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return refuse(node, reading, key, "an expression over 'output', a path ($.a.b) or file.py:function")
    text = node.value.strip()
    if _FUNCTION_OF_FILE.fullmatch(text):
        function = _read_function(node, reading, key)
        return INVALID if function is INVALID else Transform("function", function.name, function.path)
    return _read_expression(text, node, reading, key)


def _read_expression(text: str, node: Scalar, reading: Reading, key: str) -> Any:
    try:
        if text.startswith("$"):
            parse(text)
            return Transform("path", text)
        expression = text.removeprefix("{{").removesuffix("}}").strip()
        if reading.data and refuses_template(f"{{{{ {expression} }}}}", node, reading):
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


_OLD_BOOLEANS = {**dict.fromkeys(("yes", "y", "on"), "true"), **dict.fromkeys(("no", "n", "off"), "false")}
_LARGEST = 1e300
_MEASURED = lazy_pattern(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>%|s|sec|seconds|x|times|usd|\$)", re.IGNORECASE)

TEXT = FieldType("text", _is_text, _read_text)
NOTHING = _scalar("nothing", value_is(NoneType), _as_is)
JSON = FieldType("any value", _anything, _read_json)
FILE = FieldType("the path of a file", value_is(str), _read_path(directory=False))
NODE = FieldType("a value", _anything, lambda node, _reading, _key: node, verbatim=True)
PLAIN: dict[Any, FieldType] = {
    bool: _scalar("true or false", value_is(bool), _as_is, _boolean),
    int: _scalar("a whole number", value_is(int), _as_is, _number),
    float: _scalar("a number", _is_number, float, _number),
    str: _scalar("text", value_is(str), _as_is, _quoted),
    NoneType: NOTHING,
    Json: JSON,
    declared.Document: FieldType("text, or the path of a file", value_is(str), _read_document, verbatim=True),
    declared.Loaded: FieldType("a value, or the path of a file", _anything, _read_loaded),
    declared.FunctionRef: FieldType("a function", value_is(str), _read_function),
    declared.PythonSource: FieldType("Python code, or a function", value_is(str), _read_python),
    declared.JavaScriptSource: FieldType("JavaScript code, or the path of a file", value_is(str), _read_javascript),
    declared.PromptCode: FieldType(
        _PROMPT_CODE, _is_prompt_code, _read_prompt_code, verbatim=True, hint=_prompt_code_hint
    ),
    declared.FileGlobs: FieldType("a list of paths", lambda node: isinstance(node, Scalar | ListNode), _read_globs),
    declared.Command: FieldType("a command", lambda node: isinstance(node, Scalar | ListNode), _read_command),
    Transform: FieldType("an expression", value_is(str), _read_transform, verbatim=True),
}
"""Type of an annotation → how it is read."""

MARKED: dict[type, FieldType] = {
    declared.AsWritten: TEXT,
    declared.ExistingFile: FILE,
    declared.ExistingDirectory: FieldType("the path of a directory", value_is(str), _read_path(directory=True)),
    declared.NameOrDirectory: FieldType("a name, or the path of a directory", value_is(str), _read_name_or_directory),
    AsNode: NODE,
}
"""Marker on an annotation → how its value is read, whatever the type."""
