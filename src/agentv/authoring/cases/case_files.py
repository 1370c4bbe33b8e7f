"""Files that hold cases: which ones a path or pattern means, and the cases of those that are read at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import has_magic
from pathlib import Path

from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.spellings import CASE
from agentv.authoring.source.boundary import ALLOW, GIT_URL, OUTSIDE
from agentv.authoring.source.files import TABLES, is_directory, shown
from agentv.authoring.source.json_text import read_json
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, holds_placeholder, is_empty, span_of
from agentv.authoring.source.patterns import climbs, literal_part, matched
from agentv.authoring.source.yaml import read_yaml

CASE_FILES = ("case.yaml", "case.yml")
"""A file of this name is one case, which takes the name of its directory where it gives no id."""

_WORKSPACE = "workspace"
"""A directory of this name beside such a file is the template of its workspace."""

_WORKSPACES = frozenset({"workspace", "environment"})
"""Keys of a case that say what its workspace is."""

_HELD = (".yaml", ".yml", ".jsonl", ".csv", *TABLES)
"""Suffixes of files that hold cases: what a pattern selects; other files may lie beside them.

JSON is selected by a pattern that says so: much of what has that suffix is no case.
"""

_YAML = (".yaml", ".yml")
_NAMED = (*_YAML, ".json", ".jsonl", ".csv", *TABLES)
"""Suffixes of a file with cases that is named."""

_ALLOWED = f"files with cases end in {', '.join(_NAMED[:-1])} or {_NAMED[-1]}"

_RENAMED = {".ndjson": ".jsonl", ".ldjson": ".jsonl", ".jsonlines": ".jsonl"}
"""Other suffixes of one format."""

_SAVED_AS = {
    ".xls": "save it as .xlsx",
    ".xlsb": "save it as .xlsx",
    ".ods": "save it as .xlsx",
    ".numbers": "save it as .xlsx",
    ".tsv": "save it with commas, as .csv",
    ".txt": "save it with one case per line, as .jsonl",
}
"""Formats that are not read, and what to do about it."""


def matching(node: Scalar, reading: Reading, own: str) -> Sequence[str]:
    """The files, or the one directory, that an item of `tests:` matches; reports an item without a match.

    Args:
        node: a path or a pattern, with or without `file://`.
        reading: of the suite.
        own: the eval file, which no pattern matches.
    """
    written = node.text.strip().removeprefix("file://")
    places = reading.places
    literal, _ = places.find(written, span_of(node.at).file)
    if literal is not None or not has_magic(written) or GIT_URL.match(written):
        found = literal or reading.find(node, "file")
        if found == own:
            message = f"'{node.text}' is this file itself; 'tests' must be another file or a list"
            reading.report.error("bad-value", node, message)
            return ()
        return [found] if found and _has_format(found, node, reading) else ()
    base, found_paths = selected(node, written, reading)
    suffixes = (".json",) if written.endswith(".json") else _HELD
    paths = [path for path in found_paths or () if path.endswith(suffixes) and path != own and not _is_lock(path)]
    if not paths and found_paths is not None:
        reading.report.error("missing-file", node, f"no file matches '{written}' in {shown(base)}")
    return paths


def _is_lock(path: str) -> bool:
    """Whether a file is the one that Excel keeps beside a workbook while it is open."""
    return Path(path).name.startswith("~$")


def _has_format(path: str, node: Scalar, reading: Reading) -> bool:
    """Whether a file that is named can hold cases by its suffix; reported where it cannot."""
    name = Path(path)
    if name.suffix in _NAMED or is_directory(path):
        return True
    found = f"the suffix '{name.suffix}'" if name.suffix else "no suffix"
    message = f"the format of '{node.text}' is unknown: it has {found}; {_ALLOWED}"
    meant = _RENAMED.get(name.suffix.lower(), name.suffix.lower())
    hint = f"rename it to {name.with_suffix(meant).name}" if meant in _NAMED else _SAVED_AS.get(meant)
    reading.report.error("bad-value", node, message, hint=hint)
    return False


def selected(node: Scalar, written: str, reading: Reading) -> tuple[str, list[str] | None]:
    """The directory where a pattern begins, and the paths that match; None where it leaves the repository: reported."""
    places = reading.places
    base = places.root if written.startswith("/") else str(Path(span_of(node.at).file).parent)
    pattern = written.lstrip("/")
    start = os.path.normpath(Path(base) / literal_part(pattern))
    if not places.admits(start) or (climbs(pattern) and not places.admits(os.sep)):
        reading.report.error(OUTSIDE, node, f"'{written}' points outside the repository", hint=ALLOW)
        return base, None
    return base, [os.path.normpath(Path(base) / path) for path in matched(pattern, base)]


def in_directory(path: str, node: Scalar, reading: Reading) -> Sequence[str]:
    """The `case.yaml` of a directory and of each directory in it; reports a directory without any."""
    folder = Path(path)
    try:
        folders = [folder, *sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))]
        found = [_case_file(one, node, reading, warns=one != folder) for one in folders]
    except OSError as error:
        reading.report.error("missing-file", node, f"cannot read {shown(path)}: {error.strerror}")
        return ()
    paths = [str(one) for one in found if one is not None]
    if not paths:
        message = f"'{node.text}' holds no transcripts, and no directory in it contains a 'case.yaml'"
        hint = f"for the files in it, write '{node.text.rstrip('/')}/*.yaml'" if _yaml_in(folder) else None
        reading.report.error("no-tests", node, message, hint=hint)
    return paths


def _case_file(folder: Path, node: Scalar, reading: Reading, *, warns: bool) -> Path | None:
    found = next((folder / name for name in CASE_FILES if (folder / name).is_file()), None)
    near = did_you_mean(CASE_FILES[0], _yaml_in(folder)) if found is None and warns else None
    if near is not None:
        message = f"{shown(str(folder))} contains no 'case.yaml', so it is not a case"
        reading.report.warning("missing-file", node, message, hint=near.replace("did you mean", "rename", 1))
    return found


def _yaml_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.suffix in _YAML)


def cases_in(path: str, node: Scalar, reading: Reading) -> Iterator[tuple[Node, Reading]]:
    """The cases of a YAML or JSON file as nodes, with what reads them; what is wrong is reported."""
    text = reading.text_of(path, node)
    if text is None:
        return
    is_json = path.endswith(".json")
    root, valid = read_json(path, text, reading.report) if is_json else read_yaml(path, text.encode(), reading.report)
    if root is None and not valid:
        return
    if root is None or is_empty(root) or isinstance(root, Scalar):
        reading.report.error("no-tests", node, f"'{shown(path)}' contains no cases")
        return
    reading = reading.rendering(reading.renders or holds_placeholder(root))
    for item in root.items if isinstance(root, ListNode) else [_with_id(root, path)]:
        yield item, reading


def _with_id(case: MapNode, path: str) -> MapNode:
    """A `case.yaml` takes its directory's name (SPEC section 4), and the `workspace/` in it."""
    file = Path(path)
    if file.name not in CASE_FILES:
        return case
    added: dict[str, Node] = {}
    if not any(key in case.items for key in CASE.spelled("id")):
        added["id"] = Scalar(file.parent.name, file.parent.name, case.at)
    workspace = case.items.get("workspace")
    own = isinstance(workspace, MapNode) and "template" not in workspace.items
    if (own or not case.items.keys() & _WORKSPACES) and (file.parent / _WORKSPACE).is_dir():
        template = Scalar(f"./{_WORKSPACE}", f"./{_WORKSPACE}", case.at)
        said, keys = (workspace.items, workspace.keys) if isinstance(workspace, MapNode) else ({}, {})
        merged = MapNode({"template": template, **said}, {"template": case.at, **keys}, case.at)
        case = MapNode({**case.items, "workspace": merged}, {"workspace": case.at, **case.keys}, case.at)
    return MapNode({**added, **case.items}, {**dict.fromkeys(added, case.at), **case.keys}, case.at) if added else case
