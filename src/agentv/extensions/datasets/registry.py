"""The registry of OpenAI evals: which class checks a file of samples (docs/build-eval.md of openai/evals).

The registry is a directory of YAML files, most often `registry/evals` where the samples are in `registry/data`. An
entry with a `class` names its samples relative to `registry/data`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentv.authoring.source.files import repository_root, upwards
from agentv.authoring.source.nodes import MapNode, plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.extensions.datasets.checks import CHECKS, STARTS_AS_WRITTEN, DatasetCheck

MOST_FILES = 2_000
"""Files of one registry that are read."""

LARGEST = 1_000_000
"""Largest size of a registry file, in bytes."""

_CLASS = re.compile(r"[\w.]+:\w+")
_ABOVE = 5
"""Directories that are searched for a registry: that of the samples, and those above it in the repository."""

_WITHOUT_EFFECT = frozenset({"samples_jsonl", "max_tokens", "num_few_shot", "seed"})
"""Arguments of classes that change no verdict; `num_few_shot` where it is 0."""


class RegisteredEval(Struct, frozen=True):
    """An entry of a registry that checks a file of samples.

    Attributes:
        name: of the entry.
        path: of the registry file.
        kind: name of its class, without the module.
        check: the equivalent assertion, or None.
        options: arguments that have no equivalent.
    """

    name: str
    path: str
    kind: str
    check: DatasetCheck | None
    options: tuple[str, ...] = ()


def registered(samples: Path) -> tuple[RegisteredEval, ...]:
    """The entries that name a file of samples, in registries around it."""
    found: dict[str, RegisteredEval] = {}
    for path in islice(_registry_files(samples), MOST_FILES):
        for name, entry in _entries(path):
            arguments: Mapping[str, Any] = args if isinstance(args := entry.get("args"), dict) else {}
            path_given = arguments.get("samples_jsonl")
            if isinstance(path_given, str) and _means(path_given, samples, path):
                found.setdefault(name, _registered(name, path, entry, arguments))
    return tuple(found.values())


def is_registry(path: Path) -> bool:
    """Whether a YAML file is a registry."""
    return any(True for _ in _entries(path))


def _registry_files(samples: Path) -> Iterator[Path]:
    directory = str(samples.absolute().parent)
    for above in map(Path, islice(upwards(directory, repository_root(directory)), _ABOVE)):
        for place in (above, above / "evals", above / "registry" / "evals"):
            if place.is_dir():
                yield from sorted(one for one in place.iterdir() if one.suffix in (".yaml", ".yml"))


def _entries(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        data = path.read_bytes() if path.stat().st_size <= LARGEST else b""
    except OSError:
        return
    if b"class" not in data or b"samples_jsonl" not in data:
        return
    root = read_yaml(str(path), data, Report()).value
    for name, entry in root.items.items() if isinstance(root, MapNode) else ():
        values = plain(entry)
        if isinstance(values, dict) and _CLASS.fullmatch(str(values.get("class"))):
            yield name, values


def _means(name: str, samples: Path, registry: Path) -> bool:
    """Whether a registry means this file: beside itself, or in the directory `data` beside its own."""
    wanted = samples.resolve()
    places = (registry.parent / name, registry.parent / "data" / name, registry.parent.parent / "data" / name)
    return any(place.resolve() == wanted for place in places)


def _registered(name: str, path: Path, entry: Mapping[str, Any], arguments: Mapping[str, Any]) -> RegisteredEval:
    kind = str(entry["class"]).rpartition(":")[2]
    rest = {key: value for key, value in arguments.items() if key not in _WITHOUT_EFFECT}
    if arguments.get("num_few_shot"):
        rest["num_few_shot"] = arguments["num_few_shot"]
    ignores_case = kind == "Includes" and rest.pop("ignore_case", False) is True
    check = CHECKS["icontains"] if ignores_case else _CLASSES.get(kind)
    return RegisteredEval(name, str(path), kind, check if not rest else None, tuple(sorted(rest)))


_CLASSES: Mapping[str, DatasetCheck] = {
    "Match": STARTS_AS_WRITTEN,
    "Includes": CHECKS["contains"],
    "FuzzyMatch": CHECKS["fuzzy-match"],
    "JsonMatch": CHECKS["equals-json"],
}
