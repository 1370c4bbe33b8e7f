"""Inputs of exam cases: `inputs`, and `inputs.yml` of the directory `inputs_from` (SPEC section 11).

Inputs are text: they are inserted once, and neither placeholders nor tags in them have a meaning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.boundary import ALLOW, OUTSIDE
from agentv.authoring.source.files import is_directory, is_file, shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import (
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
from agentv.authoring.source.yaml import read_yaml
from agentv.templating import RenderError, has_placeholder, undeclared

INPUT_FILES = ("inputs.yml", "inputs.yaml")


def read_inputs(inputs: Node | None, source: Node | None, reading: Reading) -> MapNode | None:
    """The inputs of a case, its own over those of its file; None where they are not known, or where none are given.

    Each stands where the file that gives it says it.

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
    return MapNode(items, keys, next(node.at for node in (inputs, source) if node is not None))


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
    names = {name for text in (prompt or "", *_texts(checks)) for name in _names_in(text)}
    return MapNode({name: node_of(name, checks.at) for name in names}, dict.fromkeys(names, checks.at), checks.at)


def _names_in(text: str) -> frozenset[str]:
    """The names that the placeholders of a text read."""
    try:
        return undeclared(text) if has_placeholder(text) else frozenset()
    except RenderError:
        return frozenset()


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node, Scalar):
        if isinstance(node.value, str):
            yield node.value
    else:
        for child in children(node):
            yield from _texts(child)
