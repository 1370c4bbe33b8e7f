"""Files of a dataset's splits, by its README or by the names of its files.

Source: Hugging Face, "Data files configuration" and "File names and splits" in the documentation of the Hub.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from agentv.authoring.cases.data_files.hub_reference import CONVERTED, HubError, HubReference
from agentv.authoring.source.nearest import did_you_mean
from agentv.model.values.lazy_pattern import lazy_pattern

READ = (".parquet", ".arrow", ".jsonl", ".json", ".csv")
"""Suffixes of files that are read."""

_KEYWORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_SHARD = lazy_pattern(r"data/(?P<split>\w+(?:\.\w+)*)-\d{5}-of-\d{5}[^/]*")
_CONVERTED = lazy_pattern(r"(?P<config>[^/]+)/(?:partial-)?(?P<split>[^/]+)/\d+\.parquet")

Splits = Mapping[str, Sequence[str]]
"""Name of a split → its files, sorted."""


def files_of_split(wanted: HubReference, files: Sequence[str], readme: Mapping[str, Any]) -> Sequence[str]:
    """The files of a split, among all files of a dataset.

    Args:
        wanted: the split.
        files: paths in the repository.
        readme: what the head of its README says.

    Raises:
        HubError: there is no such split or subset.
    """
    data = sorted(one for one in files if not _is_hidden(one))
    configs = readme.get("configs")
    if wanted.revision == CONVERTED:
        found = _converted(data)
    elif isinstance(configs, list) and configs:
        found = {str(one.get("config_name", "default")): _configured(one, data) for one in configs if _is_map(one)}
    else:
        found = {"default": _by_name([one for one in data if one.endswith(READ)])}
    if not any(found.values()):
        raise HubError(f"{wanted.repository} has no files that agentv reads: {', '.join(READ)}", _hint(wanted, files))
    splits = found[_config(wanted, found, configs)]
    if wanted.split not in splits:
        hint = did_you_mean(wanted.split, splits) or f"its splits are {', '.join(sorted(splits))}"
        raise HubError(f"{wanted.repository} has no split '{wanted.split}'", hint)
    chosen = splits[wanted.split]
    if not chosen:
        raise HubError(f"the files that {wanted.repository} names for '{wanted.split}' are not there")
    unread = next((one for one in chosen if not one.endswith(READ)), None)
    if unread is not None:
        raise HubError(
            f"{unread} of {wanted.repository} has none of the formats {', '.join(READ)}", _hint(wanted, files)
        )
    return chosen


def _config(wanted: HubReference, found: Mapping[str, Splits], configs: object) -> str:
    """The subset that is meant."""
    if wanted.config is not None:
        if wanted.config not in found:
            hint = did_you_mean(wanted.config, found) or f"its subsets are {', '.join(sorted(found))}"
            raise HubError(f"{wanted.repository} has no subset '{wanted.config}'", hint)
        return wanted.config
    marked = (
        [str(one.get("config_name")) for one in configs if _is_map(one) and one.get("default") is True]
        if isinstance(configs, list)
        else []
    )
    choices = [*(one for one in marked if one in found), *(["default"] if "default" in found else [])]
    if choices or len(found) == 1:
        return (choices or list(found))[0]
    message = f"{wanted.repository} has several subsets: {', '.join(sorted(found))}"
    raise HubError(message, f"write hf://{wanted.repository}/SUBSET/{wanted.split}")


def _configured(config: Mapping[str, Any], files: Sequence[str]) -> dict[str, list[str]]:
    """The splits of one entry of `configs` in the README."""
    said, folder = config.get("data_files"), str(config.get("data_dir") or "").strip("./")
    within = [one for one in files if not folder or one.startswith(f"{folder}/")]
    if said is None:
        return _by_name([one for one in within if one.endswith(READ)])
    if isinstance(said, Mapping):
        entries = list(said.items())
    else:
        items = said if isinstance(said, list) else [said]
        plain = [one for one in items if isinstance(one, str)]
        entries = [(one.get("split", "train"), one.get("path")) for one in items if _is_map(one)]
        entries += [("train", plain)] if plain else []
    prefix = f"{folder}/" if folder else ""
    return {str(split): _matching([prefix + one for one in _paths(paths)], files) for split, paths in entries}


def _paths(said: object) -> list[str]:
    items = said if isinstance(said, list) else [said]
    return [one.removeprefix("./") for one in items if isinstance(one, str)]


def _matching(patterns: Sequence[str], files: Sequence[str]) -> list[str]:
    found = [re.compile(_translated(one)) for one in patterns]
    return [one for one in files if any(pattern.fullmatch(one) for pattern in found)]


def _translated(pattern: str) -> str:
    """A pattern as a regular expression: only `**` matches a `/`."""
    forms = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]*\])", pattern)
    return "".join(forms.get(one) or (one if one.startswith("[") else re.escape(one)) for one in pieces if one)


def _by_name(files: Sequence[str]) -> dict[str, list[str]]:
    """The splits that the names of files or of their directories say; all of them are `train` where none says one."""
    found: dict[str, list[str]] = {}
    for one in files:
        shard = _SHARD.fullmatch(one)
        split = shard["split"] if shard is not None else None
        if split is not None:
            found.setdefault(split, []).append(one)
    if found:
        return found
    for one in files:
        split = next((name for name, words in _KEYWORDS.items() if _says(one, words)), None)
        if split is not None:
            found.setdefault(split, []).append(one)
    return found or ({"train": list(files)} if files else {})


def _says(path: str, words: Sequence[str]) -> bool:
    return re.search(rf"(?:^|[-._ 0-9/])(?:{'|'.join(words)})(?:[-._ 0-9/]|$)", path) is not None


def _converted(files: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for one in files:
        named = _CONVERTED.fullmatch(one)
        if named is not None:
            found.setdefault(named["config"], {}).setdefault(named["split"], []).append(one)
    return found


def _hint(wanted: HubReference, files: Sequence[str]) -> str | None:
    """Of a dataset that is made by a program, which is never run, others have Parquet files."""
    if not any(one.endswith(".py") for one in files):
        return None
    return f"its program is not run; write hf://{wanted.repository}@{CONVERTED}/CONFIG/{wanted.split}"


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in PurePosixPath(path).parts)


def _is_map(one: object) -> bool:
    return isinstance(one, Mapping)
