"""Inputs of exam cases: `inputs`, and `inputs.yml` of the directory `inputs_from` (SPEC section 11)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.boundary import ALLOW, OUTSIDE
from agentv.authoring.source.files import is_directory, is_file, shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import MapNode, Node, Place, Scalar, is_empty, kind_of, span_of
from agentv.authoring.source.yaml import read_yaml

INPUT_FILES = ("inputs.yml", "inputs.yaml")


class Inputs(Struct, frozen=True):
    """The inputs of one case.

    Attributes:
        values: with the place of each in the file that gives it.
        at: where the case says its inputs, for what is missing among them.
        files: the input files that were read.
    """

    values: MapNode
    at: Place
    files: tuple[str, ...] = ()


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
    parts = [part for part in (found and found[1], own) if part is not None]
    items: dict[str, Node] = {key: node for part in parts for key, node in part.items.items()}
    keys: dict[str, Place] = {key: at for part in parts for key, at in part.keys.items()}
    at = next(node.at for node in (inputs, source) if node is not None)
    return Inputs(MapNode(items, keys, at), at, (found[0],) if found else ())


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


def _from_directory(node: Node, reading: Reading) -> tuple[str, MapNode] | None:
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
    found = _mapping(root, f"{Path(path).name}", reading)
    return None if found is None else (path, found)


def _find(node: Scalar, reading: Reading) -> str | None:
    """The file of inputs: below the repository's root, else the prompt's directory; reports where there is none."""
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
