"""Kinds of option values: how each is read from a node, and how an invalid one is reported."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.boundary import ALLOW, ALLOW_DATA, GIT_URL, OUTSIDE, UNTRUSTED
from agentv.authoring.source.files import climbs, files_of_globs, is_directory, is_file, literal_part, matched, shown
from agentv.authoring.source.nearest import provider_name
from agentv.authoring.source.nodes import ListNode, Node, Place, Scalar, is_empty, node_of, plain, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml, resolve
from agentv.model.values.values import Json, lazy_pattern
from agentv.registry import fields as declared
from agentv.registry.types import Provider, Registry
from agentv.templating import RenderError, undeclared

INVALID: Final = object()
"""Returned by readers for a node that they reported as invalid."""

Read = Callable[[Node, Reading, str], Any]
Accepts = Callable[[Node], bool]
Hint = Callable[[Node], "str | None"]


def _no_hint(_node: Node) -> str | None:
    return None


class FieldType(Struct, frozen=True):
    """Reader of one kind of value.

    Attributes:
        wanted: description of valid values, for error messages.
        accepts: whether a node is of this kind; selects the member of a union.
        read: returns the value of a node, or INVALID after reporting it.
        verbatim: placeholders are not rendered at load.
        hint: returns the likely fix for an invalid node, or None.
        from_file: `file://…` is replaced by the text of the file.
    """

    wanted: str
    accepts: Accepts
    read: Read
    verbatim: bool = False
    hint: Hint = _no_hint
    from_file: bool = False


class AsNode(Struct, frozen=True):
    """Marks a key whose value is kept as a node, because its meaning depends on other keys."""


def refuse(node: Node, reading: Reading, key: str, wanted: str, hint: str | None = None) -> Any:
    """Report an invalid value and return INVALID."""
    reading.report.unfit(node, f"'{key}' must be {wanted}", hint=hint)
    return INVALID


def value_is(*types: type) -> Accepts:
    """A predicate for scalars whose value is of one of the types."""
    return lambda node: isinstance(node, Scalar) and type(node.value) in types


def _scalar(wanted: str, accepts: Accepts, convert: Callable[[Any], Any], hint: Hint = _no_hint) -> FieldType:
    def read(node: Node, reading: Reading, key: str) -> Any:
        if isinstance(node, Scalar) and accepts(node):
            return convert(node.value)
        return refuse(node, reading, key, wanted, hint(node))

    return FieldType(wanted, accepts, read, hint=hint)


def _as_is(value: Any) -> Any:
    return value


def _quote_hint(node: Node) -> str | None:
    return f'for text, write "{node.text}"' if isinstance(node, Scalar) and node.value is not None else None


def _boolean_hint(node: Node) -> str | None:
    """A hint for a boolean in quotes or in YAML 1.1's spelling, or None."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return None
    if node.value in ("true", "false"):
        return f"in quotes it is text: write {node.value}"
    suggestion = _OLD_BOOLEANS.get(node.value.lower())
    return f"in YAML 1.2, '{node.value}' is text: write {suggestion}" if suggestion else None


def _number_hint(node: Node) -> str | None:
    """A hint for a number that is out of bounds, has a unit, or is text because of quotes or a placeholder; or None."""
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


def _read_text(node: Node, reading: Reading, key: str) -> Any:
    if isinstance(node, Scalar) and node.value is not None:
        return node.value if type(node.value) is str else node.text
    return refuse(node, reading, key, "text")


def _is_number(node: Node) -> bool:
    # excludes infinities, and integers that are too large for a float
    return isinstance(node, Scalar) and type(node.value) in (int, float) and -_LARGEST < node.value < _LARGEST


def _anything(_node: Node) -> bool:
    return True


def _read_path(*, directory: bool | None) -> Read:
    """A reader of paths: of directories if `directory` is True, of files if False, of either if None."""
    what = "file or directory" if directory is None else "directory" if directory else "file"

    def read(node: Node, reading: Reading, key: str) -> Any:
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
            return refuse(node, reading, key, f"the path of a {what}")
        found = reading.find(node, what)
        if found is None:
            return INVALID
        if not ((directory is not False and is_directory(found)) or (not directory and is_file(found))):
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
    """Whether a text that is either content or a path is a path.

    A path is one word with a suffix, the URL of a git host, or a line that starts with `./`, `../` or `file://`.
    """
    text = text.strip()
    begins = text.startswith(("./", "../", "file://")) and "\n" not in text
    hosted = GIT_URL.match(text) is not None and len(text.split()) == 1
    return begins or hosted or _PATH_LIKE.fullmatch(text) is not None


FILE_MARK: Final = "file://"
_LINE_END = lazy_pattern(r"\r\n|\r|\n")


def names_file(node: Node) -> bool:
    """Whether a node is a `file://` reference."""
    return isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip().startswith(FILE_MARK)


def with_content(node: Node, reading: Reading, key: str) -> Node | None:
    """The node, or the text of the file that it names without the last line end; None after reporting an error."""
    if not isinstance(node, Scalar) or not names_file(node):
        return node
    found = reading.find(node, "file")
    text = reading.text_of(found, node) if found else None
    if text is not None and not text.strip():
        reading.report.error("missing-value", node, f"'{key}' refers to '{node.text}', which is empty")
        return None
    if text is None:
        return None
    line_end = next((one for one in ("\r\n", "\n", "\r") if text.endswith(one)), "")
    return Scalar(text.removesuffix(line_end), text, node.at)


def with_lines(node: Node, reading: Reading, key: str, *, inside: bool) -> Node | None:
    """The node, or a list of the texts in the file that it names; None after reporting an error.

    A text file has one text per line; blank lines are skipped. A JSON or YAML file contains a list.

    Args:
        node: a list, or a `file://` reference.
        reading: context of the suite.
        key: key of the list, for messages.
        inside: whether items of a list may name files too.
    """
    if isinstance(node, ListNode) and inside and any(map(names_file, node.items)):
        lists = [with_lines(one, reading, key, inside=False) for one in node.items]
        parts = [one.items if isinstance(one, ListNode) else [one] for one in lists if one is not None]
        return ListNode([one for part in parts for one in part], node.at) if None not in lists else None
    if not isinstance(node, Scalar) or not names_file(node):
        return node
    if node.value.strip().endswith((".json", ".yaml", ".yml")):
        loaded = _read_loaded(node, reading, key)
        listed = node_of(loaded.value, node.at) if loaded is not INVALID else None
        if listed is None or (isinstance(listed, ListNode) and listed.items and not any(map(is_empty, listed.items))):
            return listed
        message = f"'{key}' refers to '{node.text}', which must contain a list of texts, none of them empty"
        reading.report.error("bad-value", node, message)
        return None
    content = with_content(node, reading, key)
    if not isinstance(content, Scalar):
        return None
    lines = [line.strip() for line in _LINE_END.split(content.value)]
    return ListNode([Scalar(line, line, node.at) for line in lines if line], node.at)


def _read_document(node: Node, reading: Reading, key: str) -> Any:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        return refuse(node, reading, key, "text, or the path of a file")
    if not looks_like_path(node.value):
        refused = reading.data and refuses_template(node.value, node, reading.report)
        return INVALID if refused else declared.Document(node.value)
    found = reading.find(node, "file")
    text = reading.text_of(found, node) if found else None
    if text is None or (reading.data and refuses_template(text, node, reading.report)):
        return INVALID
    return declared.Document(text, found)


def _read_loaded(node: Node, reading: Reading, key: str) -> Any:
    if not (isinstance(node, Scalar) and isinstance(node.value, str) and looks_like_path(node.value)):
        return declared.LoadedJson(plain(node))
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
    content, valid = read_yaml(path, text.encode(), reading.report)
    if content is None and valid:
        reading.report.error("missing-value", node, f"'{node.text}' contains only comments")
    return INVALID if content is None or not valid else declared.LoadedJson(plain(content), path)


def _json_data(path: str, text: str, node: Scalar, reading: Reading) -> Any:
    try:
        return declared.LoadedJson(json.loads(text), path)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        reading.report.error("bad-json", node, f"'{node.text}' is not valid JSON: {reason}")
        return INVALID


def _read_schema(node: Node, reading: Reading, key: str) -> Any:
    loaded = _read_loaded(node, reading, key)
    if loaded is INVALID:
        return INVALID
    reading = reading.part()
    root = reading.places.root
    home = loaded.path or f"{Path(span_of(node.at).file).parent}/"  # for an inline schema, only the directory matters
    inside = home.startswith(f"{root}/")
    base = quote(home.removeprefix(root) if inside else home)

    def read(path: str) -> Json | None:
        place = f"{root}{path}" if inside else path
        if place == loaded.path or not is_file(place):
            return loaded.value if place == loaded.path else None
        named = Scalar(path.lstrip("/"), path.lstrip("/"), node.at)
        text = reading.text_of(place, named)
        kind = _yaml_data if place.endswith((".yaml", ".yml")) else _json_data
        document = kind(place, text, named, reading) if text is not None else INVALID
        # unreadable files are reported; the schema False accepts no value
        return document.value if isinstance(document, declared.LoadedJson) else False

    files: dict[str, Json] = {}
    if _refers(loaded.value):
        from agentv.matching.json_schema import files_of  # takes 0.1 s, and few schemas refer to other files

        files = files_of(loaded.value, f"file://{base}", read)
    if reading.report.failed:
        return INVALID
    return declared.LoadedSchema(loaded.value, loaded.path, f"file://{base}" if files else "", files)


def _refers(document: Json) -> bool:
    """Whether a schema contains a `$ref` to another file."""
    if isinstance(document, Mapping):
        reference = document.get("$ref")
        elsewhere = isinstance(reference, str) and not reference.startswith("#")
        return elsewhere or any(map(_refers, document.values()))
    return isinstance(document, list | tuple) and any(map(_refers, document))


def selected(node: Scalar, written: str, reading: Reading, wanted: Callable[[str], bool]) -> list[str]:
    """The wanted paths that match a pattern. Reports a pattern that matches none or points outside the repository."""
    places = reading.places
    base = places.root if written.startswith("/") else str(Path(span_of(node.at).file).parent)
    pattern = written.lstrip("/")
    start = os.path.normpath(Path(base) / literal_part(pattern))
    if not places.admits(start) or (climbs(pattern) and not places.admits(os.sep)):
        reading.report.error(OUTSIDE, node, f"'{written}' points outside the repository", hint=ALLOW)
        return []
    found = list(filter(wanted, (os.path.normpath(Path(base) / path) for path in matched(pattern, base))))
    if not found:
        reading.report.error("missing-file", node, f"no file matches '{written}' in {shown(base)}")
    return found


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


_OLD_BOOLEANS = {**dict.fromkeys(("yes", "y", "on"), "true"), **dict.fromkeys(("no", "n", "off"), "false")}
_LARGEST = 1e300
_MEASURED = lazy_pattern(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>%|s|sec|seconds|x|times|usd|\$)", re.IGNORECASE)

TEXT = FieldType("text", lambda node: isinstance(node, Scalar) and node.value is not None, _read_text)
NOTHING = _scalar("nothing", value_is(NoneType), _as_is)
JSON = FieldType("any value", _anything, lambda node, _reading, _key: plain(node))
FILE = FieldType("the path of a file", value_is(str), _read_path(directory=False))
NODE = FieldType("a value", _anything, lambda node, _reading, _key: node, verbatim=True)
PLAIN: dict[Any, FieldType] = {
    bool: _scalar("true or false", value_is(bool), _as_is, _boolean_hint),
    int: _scalar("a whole number", value_is(int), _as_is, _number_hint),
    float: _scalar("a number", _is_number, float, _number_hint),
    str: _scalar("text", value_is(str), _as_is, _quote_hint),
    NoneType: NOTHING,
    Json: JSON,
    declared.Document: FieldType("text, or the path of a file", value_is(str), _read_document, verbatim=True),
    declared.LoadedJson: FieldType("a value, or the path of a file", _anything, _read_loaded),
    declared.LoadedSchema: FieldType("a JSON Schema, or the path of a file", _anything, _read_schema),
    declared.FileGlobs: FieldType("a list of paths", lambda node: isinstance(node, Scalar | ListNode), _read_globs),
}
"""Type of an annotation → how it is read."""

FILE_OR_DIRECTORY = FieldType("the path of a file or a directory", value_is(str), _read_path(directory=None))

MARKED: dict[type, FieldType] = {
    declared.AsWritten: TEXT,
    declared.ExistingFile: FILE,
    declared.ExistingDirectory: FieldType("the path of a directory", value_is(str), _read_path(directory=True)),
    declared.ExistingPath: FILE_OR_DIRECTORY,
    declared.NameOrDirectory: FieldType("a name, or the path of a directory", value_is(str), _read_name_or_directory),
    AsNode: NODE,
}
"""Marker on an annotation → how its value is read. It takes precedence over the type."""


TARGETS = frozenset({"judge", "embedder"})
"""Options of assertions that name a target."""

_MAY_CONTAIN_DATA = frozenset({"config", "threshold", "target"})
"""Options of assertions that run code which may still contain variables from data."""


def refuse_data(at: Node | Place, report: Report, what: str) -> None:
    """Report something that data must not do; `what` completes the message, such as `name code`."""
    report.error(UNTRUSTED, at, f"data must not {what}", hint=ALLOW_DATA)


def refuses_provider(name: str, providers: Registry[Provider] | None, *, alone: bool) -> bool:
    """Whether data must not name a target of a provider; see `Provider.may_stand_in_data`."""
    provider = providers.find(name) if providers is not None else None
    return provider is None or not provider.may_stand_in_data(alone=alone)


def refuses_target(node: Scalar, providers: Registry[Provider] | None, report: Report) -> bool:
    """Whether data names a target that it must not name; if so, this is reported.

    A name without a colon is a target of the project and is allowed.
    """
    name, colon, _ = str(node.value).partition(":")
    if not colon or not refuses_provider(provider_name(name), providers, alone=True):
        return False
    refuse_data(node, report, f"name the target '{name}:…', which could start a command or call any server")
    return True


def refuses_template(text: str, node: Node, report: Report) -> bool:
    """Whether a template from data, which is rendered later, reads the environment; if so, this is reported."""
    try:
        reads = "env" in undeclared(text)
    except RenderError:
        return False  # the renderer reports it
    if reads:
        refuse_data(node, report, "read the environment")
    return reads


def fills_code(cls: type, option: str) -> bool:
    """Whether an option of an assertion is code or an address, which must not contain variables from data."""
    return bool(getattr(cls, "runs_code", False)) and option not in _MAY_CONTAIN_DATA
