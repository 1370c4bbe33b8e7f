"""Inputs of exam cases: `inputs`, and `inputs.yml` of the directory `inputs_from` (SPEC section 11).

Inputs are text: they are inserted once, and neither placeholders nor tags in them have a meaning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from agentv.authoring.assertions.entries import JUDGED
from agentv.authoring.fields.agentv.names import type_name
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.boundary import ALLOW, OUTSIDE
from agentv.authoring.source.files import is_directory, is_file, shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import (
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    children,
    is_empty,
    kind_of,
    node_of,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.model.values.span import Span
from agentv.templating import RenderError, has_placeholder, undeclared

SENTENCE = ""
"""Stands for the type of an assertion that is a plain sentence."""

INPUT_FILES = ("inputs.yml", "inputs.yaml")

_OF_ALL = re.compile(r"\bvars\s*(?:\.\s*(\w+)|\[\s*[\"']([^\"']+)[\"']\s*\])?")
"""An input as one of `vars`, where that is said by name."""

_PLAIN = frozenset(
    {
        *("contains", "contains-any", "contains-all", "icontains", "icontains-any", "icontains-all", "starts-with"),
        *("ends-with", "equals", "regex", "levenshtein", "min-tokens", "max-tokens", "is-json", "contains-json"),
        *("json-schema", "latency", "cost", "is-refusal", "rouge-n", "bleu"),
    }
)
"""Types that ask no judge, and see no input but by a placeholder in what is written."""

_SEES = frozenset({"transform", "prompt", "include"})
"""Keys of an assertion that may name code or a file, which may read any input."""


class Inputs(Struct, frozen=True):
    """The inputs of one case.

    Attributes:
        values: with the place of each in the file that gives it.
        at: where the case says its inputs.
    """

    values: MapNode
    at: Place


def read_inputs(inputs: Node | None, source: Node | None, reading: Reading) -> Inputs | None:
    """The inputs of a case, its own over those of its file; None where they are not known, or where none are given.

    Args:
        inputs: of the case.
        source: what `inputs_from` says.
        reading: of the exam; its suite's directory is that of the prompt.
    """
    reading = reading.part()
    own = None if inputs is None else _mapping(inputs, "'inputs'", reading)
    found = None if source is None else _from_directory(source, reading)
    if reading.report.failed or (inputs is None and source is None):
        return None
    parts = [part for part in (found, own) if part is not None]
    items: dict[str, Node] = {key: node for part in parts for key, node in part.items.items()}
    keys: dict[str, Place] = {key: at for part in parts for key, at in part.keys.items()}
    at = next(node.at for node in (inputs, source) if node is not None)
    return Inputs(MapNode(items, keys, at), at)


def _mapping(node: Node, what: str, reading: Reading) -> MapNode | None:
    """Values by their names, none of which is left blank."""
    if not isinstance(node, MapNode):
        hint = "if the prompt needs no inputs, write '{}'" if is_empty(node) else "write 'name: value'"
        reading.report.error("bad-value", node, f"{what} must be a mapping, found {kind_of(node)}", hint=hint)
        return None
    for key, value in node.items.items():
        if isinstance(value, Scalar) and value.value is None:
            message = f"the input '{key}' has no value"
            reading.report.error("missing-value", node.keys[key], message, hint=f'for an empty text, write {key}: ""')
    return node


def _from_directory(node: Node, reading: Reading) -> MapNode | None:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        reading.report.error("bad-value", node, f"'inputs_from' must name a directory, found {kind_of(node)}")
        return None
    path = _find(node, reading)
    text = reading.text_of(path, Scalar(path, shown(path), node.at)) if path is not None else None
    if path is None or text is None:
        return None
    root, valid = read_yaml(path, text.encode(), reading.report)
    if root is None:
        if valid:
            reading.report.error("empty-file", node, f"{shown(path)} contains no inputs")
        return None
    return _mapping(root, Path(path).name, reading)


def _find(node: Scalar, reading: Reading) -> str | None:
    """The file of inputs, below the repository's root or the prompt's directory; None if missing, which is reported."""
    written = node.text.strip()
    homes = dict.fromkeys((reading.places.root, reading.places.suite))
    folders = [os.path.normpath(Path(home) / written.lstrip("/")) for home in homes]
    inside = list(filter(reading.places.admits, folders))
    if not inside:
        reading.report.error(OUTSIDE, node, f"'{written}' is outside the repository", hint=ALLOW)
        return None
    folders = inside
    tried = [str(Path(folder) / name) for folder in folders for name in INPUT_FILES]
    found = next((path for path in tried if is_file(path)), None)
    if found is not None:
        if reading.places.on_path is not None:
            reading.places.on_path(written, span_of(node.at), found)
        return found
    notes = [f"tried {shown(path)}" for path in tried]
    if any(is_file(folder) for folder in folders):
        message = f"'inputs_from' must be the directory that contains inputs.yml, but '{written}' is a file"
        reading.report.error("missing-file", node, message, hint=f"write '{Path(written).parent}'")
        return None
    here = next((folder for folder in folders if is_directory(folder)), None)
    message = f"'{written}' contains no inputs.yml" if here else f"the directory '{written}' does not exist"
    hint = _misnamed(here) if here else _near(written, list(homes))
    reading.report.error("missing-file", node, message, hint=hint, notes=notes)
    return None


def _misnamed(folder: str) -> str | None:
    near = nearest(INPUT_FILES[0], [one.name for one in Path(folder).iterdir() if one.is_file()])
    return f"found '{near}': rename it to inputs.yml" if near else None


def _near(written: str, homes: Sequence[str]) -> str | None:
    """The directory that was most likely meant: each part that is not there replaced by the nearest that is."""
    for home in homes:
        place, parts = Path(home), list[str]()
        for part in Path(written.lstrip("/")).parts:
            beside = [one.name for one in place.iterdir() if one.is_dir()]
            found = part if part in beside else nearest(part, beside)
            if found is None:
                break
            parts.append(found)
            place /= found
        else:
            if any(is_file(str(place / name)) for name in INPUT_FILES):
                return f"did you mean '{'/'.join(parts)}'?"
    return None


def stand_ins(prompt: str | None, checks: Node) -> MapNode:
    """A value for every input that is used, for a case whose own are invalid: nothing more is said of them."""
    names = {name for text in (prompt or "", *_texts(checks)) for name in names_in(text) or ()}
    return MapNode({name: node_of(name, checks.at) for name in names}, dict.fromkeys(names, checks.at), checks.at)


class UnusedInputs(Struct):
    """Inputs that neither the prompt nor what the cases check uses; a file of inputs may serve several cases."""

    prompt: str | None
    _unused: dict[Span, str] = field(default_factory=dict)
    _used: set[Span] = field(default_factory=set)

    def look(self, inputs: Inputs, checks: Node, reference: Node | None) -> None:
        """One more case: its inputs, its assertions and its reference answer."""
        sees_all = self.prompt is None or _sees_all(checks)
        others = [checks, *([reference] if reference is not None else [])]
        found = [names_in(text) for text in (self.prompt or "", *(text for node in others for text in _texts(node)))]
        for name, place in inputs.values.keys.items():
            at = span_of(place)
            if sees_all or any(names is None or name in names for names in found):
                self._used.add(at)
            else:
                self._unused.setdefault(at, name)

    def warn(self, report: Report) -> None:
        """Warn of them, after the last case."""
        for at, name in self._unused.items():
            if at not in self._used:
                message = f"the input '{name}' is not used by the prompt or by the assertions of the case"
                report.warning("unused-input", at, message)


def names_in(text: str) -> frozenset[str] | None:
    """The inputs that the placeholders of a text read; None: any of them may be read, or there is no telling."""
    if not has_placeholder(text):
        return frozenset()
    try:
        names = undeclared(text)
    except RenderError:
        return None
    if "vars" not in names:
        return names
    inside = [first or second for first, second in _OF_ALL.findall(text)]
    return names.union(inside) if all(inside) else None


def may_ask_judge(checks: Node) -> bool:
    """Whether an assertion among these may ask a judge: a sentence, a rubric, what a template file says."""
    return any(name not in _PLAIN for name, _ in _types(checks))


def _sees_all(checks: Node) -> bool:
    """Whether an assertion among these may look at any input: code, a judge prompt, what a template file says."""
    kinds = _PLAIN | {JUDGED, SENTENCE}
    return any(name not in kinds or not _SEES.isdisjoint(entry) for name, entry in _types(checks))


def _types(checks: Node) -> Iterator[tuple[str, Collection[str]]]:
    """The type of each assertion, also inside of sets, and the keys of its entry."""
    for entry in children(checks):
        if isinstance(entry, Scalar):
            yield SENTENCE, ()
        elif isinstance(entry, MapNode):
            kind = entry.get("type")
            name = type_name(kind.text if isinstance(kind, Scalar) else next(iter(entry.items), ""))[0]
            inner = entry.get("assert") if name == "assert-set" else None
            if isinstance(inner, ListNode):
                yield from _types(inner)
            else:
                yield name, entry.items


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node, Scalar):
        if isinstance(node.value, str):
            yield node.value
    else:
        for child in children(node):
            yield from _texts(child)
