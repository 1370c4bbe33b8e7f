"""Files of datasets on the Hugging Face Hub, in the cache that its own tools use. No code of a dataset is run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentv.authoring.cases.data_files.arrow_file import ArrowTable
from agentv.authoring.cases.data_files.hub_reference import HubError, HubReference, read_reference
from agentv.authoring.cases.data_files.hub_splits import files_of_split
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Scalar, plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.registry.extras import missing_extra
from agentv.registry.fields import Issue

_README = "README.md"
_LARGEST_README = 1_000_000
_OF = lazy_pattern(r"(?P<stem>.*)-\d{5}-of-(?P<count>\d{5})(?P<rest>.*)")


class SplitFiles(Struct, frozen=True):
    """The files of a split on this machine.

    Attributes:
        paths: of the files, in order.
        directory: that holds all of the dataset's files in the cache.
    """

    paths: Sequence[str]
    directory: str


def missing_hub() -> Issue | None:
    """The Issue `missing-extra` where a library is not installed."""
    what = "reading a dataset of Hugging Face"
    return missing_extra("huggingface_hub", "hf", what) or missing_extra("pyarrow", "hf", what)


def split_files(wanted: HubReference, token: str | None) -> SplitFiles:
    """The files of a split: downloaded where they changed, else those of the cache.

    Args:
        wanted: the split.
        token: of Hugging Face; None: that of its own configuration.

    Raises:
        HubError: the split cannot be had.
    """
    import httpx  # comes with huggingface_hub
    from huggingface_hub.errors import HFValidationError

    try:
        return _Repository(wanted, token).files()
    except (OSError, httpx.HTTPError, HFValidationError) as error:
        raise _explained(wanted, error) from None


class _Repository:
    """The repository of a dataset at one revision."""

    def __init__(self, wanted: HubReference, token: str | None) -> None:
        from huggingface_hub.utils import disable_progress_bars

        if sys.stderr is None or not sys.stderr.isatty():
            disable_progress_bars()
        self._wanted = wanted
        self._token = token
        self._commit, self._names = self._listed()

    def files(self) -> SplitFiles:
        """The files of the split."""
        names = files_of_split(self._wanted, self._names, self._readme())
        _check_shards(names, self._wanted)
        paths = [self._file(name) for name in names]
        snapshot = Path(paths[0]).parents[len(Path(names[0]).parts) - 1]
        return SplitFiles(paths, str(snapshot.parent.parent))

    def _listed(self) -> tuple[str, Sequence[str]]:
        """The commit, and the paths of all files: those that there are, without a network those of the cache."""
        import httpx
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import OfflineModeIsEnabled

        repository, revision = self._wanted.repository, self._wanted.revision
        try:
            info = HfApi(token=self._token).dataset_info(repository, revision=revision, timeout=10)
        except (httpx.ConnectError, httpx.TimeoutException, OfflineModeIsEnabled):
            found = snapshot_download(
                repository, repo_type="dataset", revision=revision, local_files_only=True, allow_patterns=_README
            )
            folder = Path(found)
            return folder.name, [str(one.relative_to(folder)) for one in sorted(folder.rglob("*")) if one.is_file()]
        return str(info.sha), [one.rfilename for one in info.siblings or ()]

    def _file(self, name: str) -> str:
        from huggingface_hub import hf_hub_download

        repository = self._wanted.repository
        found = hf_hub_download(repository, name, repo_type="dataset", revision=self._commit, token=self._token)
        return str(found)

    def _readme(self) -> Mapping[str, Any]:
        """What the head of the README says of subsets and splits."""
        if _README not in self._names:
            return {}
        path = Path(self._file(_README))
        with path.open("rb") as file:
            data = file.read(_LARGEST_README)
        head = re.match(rb"---\s*\n(.*?)\n---\s*(?:\n|$)", data, re.DOTALL)
        root = read_yaml(str(path), head[1], Report()).value if head is not None else None
        said = plain(root) if root is not None else None
        return said if isinstance(said, dict) else {}


def _check_shards(names: Sequence[str], wanted: HubReference) -> None:
    """Refuse a split of which some files are not there: the cache may hold a part of it.

    Raises:
        HubError: one is missing.
    """
    counts: dict[tuple[str, str, str], int] = {}
    for name in names:
        found = _OF.fullmatch(name)
        if found is not None:
            key = found["stem"], found["count"], found["rest"]
            counts[key] = counts.get(key, 0) + 1
    for (_, count, _), here in counts.items():
        if here < int(count):
            message = f"the cache has {here} of {int(count)} files of {wanted}"
            raise HubError(message, "run it once with a network, and without HF_HUB_OFFLINE")


def _explained(wanted: HubReference, error: Exception) -> HubError:
    """What an error of the library means."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = wanted.repository
    at = f" at '{wanted.revision}'" if wanted.revision else ""
    if isinstance(error, GatedRepoError):
        return HubError(f"{name} is only for those who accepted its terms", f"accept them on its page, then: {_LOGIN}")
    if isinstance(error, RevisionNotFoundError):
        return HubError(f"{name} has no revision '{wanted.revision}'")
    if isinstance(error, RepositoryNotFoundError):
        return HubError(f"Hugging Face has no dataset {name}, or it is private", f"if it is private: {_LOGIN}")
    if isinstance(error, LocalEntryNotFoundError | OfflineModeIsEnabled):
        message = f"{name}{at} is not in the cache of Hugging Face, and there is no network"
        return HubError(message, "run it once with a network, and without HF_HUB_OFFLINE")
    if isinstance(error, HfHubHTTPError):
        return HubError(f"Hugging Face refused {name}: {' '.join(str(error).split())[:200]}")
    return HubError(f"{name}{at} cannot be downloaded: {' '.join(str(error).split())[:200]}")


_LOGIN = "set HF_TOKEN, or run: hf auth login"


def tables_of_split(written: str, node: Scalar, reading: Reading) -> Sequence[ArrowTable] | None:
    """The files of a split as tables, which the suite may read then; None where they cannot be had: reported.

    Args:
        written: the reference, such as `hf://ORG/NAME/SPLIT`.
        node: where it is written.
        reading: of the suite.
    """
    missing = missing_hub()
    if missing is not None:
        reading.report.error(missing.code, node, missing.message, hint=missing.hint)
        return None
    try:
        found = split_files(read_reference(written), reading.scope.env.get("HF_TOKEN"))
    except HubError as error:
        reading.report.error("bad-dataset", node, str(error), hint=error.hint)
        return None
    boundary = reading.places.boundary
    if boundary is not None:
        boundary.trees.append(os.path.realpath(found.directory) + os.sep)
    return [ArrowTable(path) for path in found.paths]
