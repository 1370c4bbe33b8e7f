"""The eval files of a command without a path: `eval_patterns`, else `evals/`, else another tool's file (SPEC 12)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agentv.authoring.config import Config, read_config
from agentv.authoring.dialects.recognition import by_name
from agentv.authoring.fields.reading import Reading
from agentv.authoring.loading.load import collected, is_named_eval_file
from agentv.authoring.loading.suite_builder import cases_beside
from agentv.authoring.prompt_library import library_reading
from agentv.authoring.source.boundary import ALLOW, OUTSIDE, Boundary, boundary_around
from agentv.authoring.source.files import (
    PASSED_OVER,
    climbs,
    is_directory,
    is_file,
    literal_part,
    matched,
    shown,
    upwards,
)
from agentv.authoring.source.nodes import ListNode, Node, span_of
from agentv.errors import LoadError, UsageError
from agentv.model.values.formatting import plural

DIRECTORY = "evals"
"""Where eval files are looked for without a word of the configuration."""

_HOW = "give a file or a directory, or list patterns of eval files as 'eval_patterns' in .agentv/config.yaml"


@dataclass(frozen=True, slots=True)
class DefaultPaths:
    """Paths to use if none is given.

    Attributes:
        paths: as typed in the working directory.
        notes: which paths were chosen and why, as sentences.
    """

    paths: tuple[str, ...]
    notes: tuple[str, ...]


def default_paths(working: str, env: Mapping[str, str], *, allow_outside: bool = False) -> DefaultPaths:
    """The eval files of a command that names none.

    Args:
        working: the directory in which the command was given, absolute.
        env: the environment of the process.
        allow_outside: patterns may leave the repository.

    Raises:
        LoadError: the configuration is wrong, or a pattern leads out of the repository.
        UsageError: there is no eval file.
    """
    reading = library_reading(working, env)
    root = reading.places.root
    boundary = boundary_around(working, root)
    boundary.is_open = allow_outside
    reading = replace(reading, places=replace(reading.places, boundary=boundary))
    config = read_config(working, reading)
    if reading.report.failed:
        raise LoadError(reading.report.diagnostics)
    if config.eval_patterns is not None:
        return _by_patterns(config, config.eval_patterns, reading, boundary)
    found = next((path for path in _homes(working, root) if is_directory(path)), None)
    if found is None:
        others = sorted(name for name in os.listdir(working) if by_name(name))  # noqa: PTH208  # as in files
        if others:
            return DefaultPaths(tuple(others), tuple(f"no path given: using {name}" for name in others))
        what = f"no path given, no configuration sets 'eval_patterns', and there is no {DIRECTORY}/"
        raise UsageError(what, _HOW)
    return DefaultPaths((shown(found),), (f"no path given: using {shown(found)}/",))


def _homes(working: str, root: str) -> Iterator[str]:
    return (os.path.join(parent, DIRECTORY) for parent in upwards(working, root))  # noqa: PTH118  # texts, as in files


def _by_patterns(config: Config, patterns: tuple[str, ...], reading: Reading, boundary: Boundary) -> DefaultPaths:
    node = config.nodes["eval_patterns"]
    file = span_of(node.at).file
    base = str(Path(file).parent.parent)
    items: list[Node] = list(node.items) if isinstance(node, ListNode) else [node] * len(patterns)
    found: dict[str, None] = {}
    empty = []
    for pattern, item in zip(patterns, items, strict=True):
        paths = list(_matching(pattern, base, item, reading, boundary))
        found.update(dict.fromkeys(paths))
        if not paths:
            empty.append(pattern)
    if reading.report.failed:
        raise LoadError(reading.report.diagnostics)
    listed = "'eval_patterns' in " + shown(file)
    if not found:
        named = ", ".join(f"'{one}'" for one in patterns)
        raise UsageError(
            f"no path given, and {listed} matches no eval file: {named}",
            f"patterns are relative to {shown(base)}; fix them, or give a file or a directory",
        )
    taken = f"no path given: using {plural(len(found), 'eval file')} of {listed}"
    return DefaultPaths(
        tuple(map(shown, found)), (taken, *(f"'{one}' of {listed} matches no eval file" for one in empty))
    )


def _matching(pattern: str, base: str, node: Node, reading: Reading, boundary: Boundary) -> Iterator[str]:
    """The eval files that a pattern names, or that lie below a directory that it names; reports what leads out."""
    home = "/" if pattern.startswith("/") else base
    written = pattern.strip("/")
    start = os.path.normpath(Path(home) / literal_part(written))
    if not boundary.admits(start) or (climbs(written) and not boundary.admits(os.sep)):
        reading.report.error(OUTSIDE, node, f"'{pattern}' points outside the repository", hint=ALLOW)
        return
    for relative in matched(written, home):
        path = os.path.normpath(Path(home) / relative)
        if not PASSED_OVER.isdisjoint(Path(relative).parts):
            continue
        if not boundary.admits(path):
            reading.report.error(OUTSIDE, node, f"'{pattern}' matches {shown(path)}, which is outside", hint=ALLOW)
        elif is_directory(path):
            yield from collected(path)
        elif is_file(path) and is_named_eval_file(path):
            yield cases_beside(path) or path
