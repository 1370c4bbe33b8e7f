"""Find and download splits of Hugging Face datasets: `hf://ORG/NAME[@REVISION]/[CONFIG/]SPLIT`. No code is run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from agentv.authoring.cases.data_files.binary_tables import ArrowTable
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import Scalar, plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import UsageError
from agentv.model.values.values import lazy_pattern
from agentv.registry.fields import Issue, missing_extra

FORM = "hf://ORG/NAME/SPLIT, hf://ORG/NAME/CONFIG/SPLIT or hf://ORG/NAME@REVISION/SPLIT"

_WORD = r"[A-Za-z0-9_][\w.-]*"
_REFERENCE = lazy_pattern(
    rf"hf://(?P<repository>{_WORD}/{_WORD})"
    r"(?:@(?P<revision>refs/(?:pr/\d+|convert/\w+)|[^/@]+))?"
    r"/(?:(?P<config>[^/@]+)/)?(?P<split>[^/@]+)"
)

CONVERTED = "refs/convert/parquet"
"""The branch with the Parquet files that Hugging Face generates for every public dataset."""


class HubError(UsageError):
    """A dataset does not exist, is invalid or cannot be downloaded."""


class HubReference(Struct, frozen=True):
    """A split of a dataset.

    Attributes:
        repository: `ORG/NAME`.
        revision: a commit, a tag or a branch; None for the branch `main`.
        config: a subset of the dataset; None for its default.
    """

    repository: str
    split: str
    revision: str | None = None
    config: str | None = None

    def __str__(self) -> str:
        """The reference as it is written."""
        revision = f"@{self.revision}" if self.revision else ""
        return f"hf://{self.repository}{revision}/{f'{self.config}/' if self.config else ''}{self.split}"


def read_reference(written: str) -> HubReference:
    """Parse the reference to a split.

    Raises:
        HubError: the reference is invalid.
    """
    found = None if written.startswith("hf://datasets/") else _REFERENCE.fullmatch(written)
    if found is None:  # such as the address of a file
        raise HubError(f"'{written}' names no split of a dataset", f"write {FORM}")
    return HubReference(found["repository"], found["split"], found["revision"], found["config"])


READ = (".parquet", ".arrow", ".jsonl", ".json", ".csv")
"""Suffixes of files that can be read."""

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
        readme: the YAML front matter of its README.

    Raises:
        HubError: there is no such split or subset.
    """
    data = sorted(one for one in files if not any(part.startswith((".", "_")) for part in PurePosixPath(one).parts))
    configs = readme.get("configs")
    if wanted.revision == CONVERTED:
        found = _converted(data)
    elif isinstance(configs, list) and configs:
        found = {
            str(one.get("config_name", "default")): _configured(one, data)
            for one in configs
            if isinstance(one, Mapping)
        }
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
    """The name of the requested subset, or of the default one."""
    if wanted.config is not None:
        if wanted.config not in found:
            hint = did_you_mean(wanted.config, found) or f"its subsets are {', '.join(sorted(found))}"
            raise HubError(f"{wanted.repository} has no subset '{wanted.config}'", hint)
        return wanted.config
    marked = (
        [str(one.get("config_name")) for one in configs if isinstance(one, Mapping) and one.get("default") is True]
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
    listed, folder = config.get("data_files"), str(config.get("data_dir") or "").strip("./")
    within = [one for one in files if not folder or one.startswith(f"{folder}/")]
    if listed is None:
        return _by_name([one for one in within if one.endswith(READ)])
    if isinstance(listed, Mapping):
        entries = list(listed.items())
    else:
        items = listed if isinstance(listed, list) else [listed]
        plain = [one for one in items if isinstance(one, str)]
        entries = [(one.get("split", "train"), one.get("path")) for one in items if isinstance(one, Mapping)]
        entries += [("train", plain)] if plain else []
    prefix = f"{folder}/" if folder else ""
    return {str(split): _matching([prefix + one for one in _paths(paths)], files) for split, paths in entries}


def _paths(listed: object) -> list[str]:
    items = listed if isinstance(listed, list) else [listed]
    return [one.removeprefix("./") for one in items if isinstance(one, str)]


def _matching(patterns: Sequence[str], files: Sequence[str]) -> list[str]:
    try:
        found = [re.compile(_expression(one)) for one in patterns]
    except re.error as error:  # a mistake in the dataset's README
        raise HubError(f"a path in the README of the dataset is no pattern: {error}") from None
    return [one for one in files if any(pattern.fullmatch(one) for pattern in found)]


def _expression(pattern: str) -> str:
    """A glob pattern as a regular expression. Only `**` matches a `/`."""
    forms = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]*\])", pattern)
    return "".join(
        forms.get(one) or (one.replace("[!", "[^") if one.startswith("[") else re.escape(one)) for one in pieces if one
    )


def _by_name(files: Sequence[str]) -> dict[str, list[str]]:
    """The splits by the names of files or their directories. If none names a split, all files are `train`."""
    found: dict[str, list[str]] = {}
    for one in files:
        shard = _SHARD.fullmatch(one)
        split = shard["split"] if shard is not None else None
        if split is not None:
            found.setdefault(split, []).append(one)
    if found:
        return found
    for one in files:
        split = next((name for name, words in _KEYWORDS.items() if _has_word(one, words)), None)
        if split is not None:
            found.setdefault(split, []).append(one)
    return found or ({"train": list(files)} if files else {})


def _has_word(path: str, words: Sequence[str]) -> bool:
    return re.search(rf"(?:^|[-._ 0-9/])(?:{'|'.join(words)})(?:[-._ 0-9/]|$)", path) is not None


def _converted(files: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for one in files:
        named = _CONVERTED.fullmatch(one)
        if named is not None:
            found.setdefault(named["config"], {}).setdefault(named["split"], []).append(one)
    return found


def _hint(wanted: HubReference, files: Sequence[str]) -> str | None:
    """The hint for a dataset with a loading script, which is never run: use the converted Parquet files."""
    if not any(one.endswith(".py") for one in files):
        return None
    return f"its program is not run; write hf://{wanted.repository}@{CONVERTED}/CONFIG/{wanted.split}"


_README = "README.md"
_LARGEST_README = 1_000_000
_NUMBERED_FILE = lazy_pattern(r"(?P<stem>.*)-\d{5}-of-(?P<count>\d{5})(?P<rest>.*)")


def missing_hub() -> Issue | None:
    """The issue `missing-extra` if a library is not installed, else None."""
    what = "reading a dataset of Hugging Face"
    return missing_extra("huggingface_hub", "hf", what) or missing_extra("pyarrow", "hf", what)


def split_files(wanted: HubReference, token: str | None) -> tuple[list[str], str]:
    """Download the changed files of a split. Return the paths of all its files, and the dataset's directory.

    Args:
        wanted: the split.
        token: token for Hugging Face; None for that of its own configuration.

    Raises:
        HubError: the split does not exist or cannot be downloaded.
    """
    import httpx  # comes with huggingface_hub
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import disable_progress_bars

    if sys.stderr is None or not sys.stderr.isatty():
        disable_progress_bars()
    try:
        commit, listed = _listed(wanted, token)

        def file(name: str) -> str:
            return str(hf_hub_download(wanted.repository, name, repo_type="dataset", revision=commit, token=token))

        names = files_of_split(wanted, listed, _front_matter(file(_README)) if _README in listed else {})
        counts: dict[tuple[str, str, str], int] = {}
        for found in filter(None, map(_NUMBERED_FILE.fullmatch, names)):
            key = found["stem"], found["count"], found["rest"]
            counts[key] = counts.get(key, 0) + 1
        for (_, count, _), here in counts.items():
            if here < int(count):
                message = f"the cache has {here} of {int(count)} files of {wanted}"
                raise HubError(message, "run it once with a network, and without HF_HUB_OFFLINE")
        paths = [file(name) for name in names]
    except (OSError, httpx.HTTPError, HFValidationError) as error:
        raise _hub_error(wanted, error) from None
    snapshot = Path(paths[0]).parents[len(Path(names[0]).parts) - 1]
    return paths, str(snapshot.parent.parent)


def _listed(wanted: HubReference, token: str | None) -> tuple[str, Sequence[str]]:
    """The commit, and the paths of all its files; without a network, those in the cache."""
    import httpx
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import OfflineModeIsEnabled

    repository, revision = wanted.repository, wanted.revision
    try:
        info = HfApi(token=token).dataset_info(repository, revision=revision, timeout=10)
    except (httpx.ConnectError, httpx.TimeoutException, OfflineModeIsEnabled):
        found = snapshot_download(
            repository, repo_type="dataset", revision=revision, local_files_only=True, allow_patterns=_README
        )
        folder = Path(found)
        return folder.name, [str(one.relative_to(folder)) for one in sorted(folder.rglob("*")) if one.is_file()]
    return str(info.sha), [one.rfilename for one in info.siblings or ()]


def _front_matter(path: str) -> Mapping[str, Any]:
    """The YAML front matter of a README; {} if it has none."""
    with Path(path).open("rb") as file:
        data = file.read(_LARGEST_README)
    head = re.match(rb"---\s*\n(.*?)\n---\s*(?:\n|$)", data, re.DOTALL)
    root = read_yaml(path, head[1], Report()).value if head is not None else None
    values = plain(root) if root is not None else None
    return values if isinstance(values, dict) else {}


def _hub_error(wanted: HubReference, error: Exception) -> HubError:
    """The HubError that explains an error of the library."""
    from huggingface_hub.errors import (
        GatedRepoError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    name = f"{wanted.repository} at '{wanted.revision}'" if wanted.revision else wanted.repository
    if isinstance(error, GatedRepoError):
        return HubError(f"{name} is only for those who accepted its terms", f"accept them on its page, then: {_LOGIN}")
    if isinstance(error, RepositoryNotFoundError):
        return HubError(f"Hugging Face has no dataset {name}, or it is private", f"if it is private: {_LOGIN}")
    if isinstance(error, LocalEntryNotFoundError | OfflineModeIsEnabled):
        message = f"{name} is not in the cache of Hugging Face, and there is no network"
        return HubError(message, "run it once with a network, and without HF_HUB_OFFLINE")
    return HubError(f"{name} cannot be downloaded: {' '.join(str(error).split())[:200]}")


_LOGIN = "set HF_TOKEN, or run: hf auth login"


def tables_of_split(written: str, node: Scalar, reading: Reading) -> Sequence[ArrowTable] | None:
    """Download the files of a split as tables, and let the suite read them; None if that fails, which is reported.

    Args:
        written: the reference, such as `hf://ORG/NAME/SPLIT`.
        node: where it is written.
        reading: the suite's `Reading`.
    """
    missing = missing_hub()
    if missing is not None:
        reading.report.error(missing.code, node, missing.message, hint=missing.hint)
        return None
    try:
        paths, directory = split_files(read_reference(written), reading.scope.env.get("HF_TOKEN"))
    except HubError as error:
        reading.report.error("bad-dataset", node, str(error), hint=error.hint)
        return None
    boundary = reading.places.boundary
    if boundary is not None:
        boundary.trees.append(os.path.realpath(directory) + os.sep)
    return [ArrowTable(path) for path in paths]
