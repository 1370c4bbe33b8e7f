"""References to datasets of Hugging Face: `hf://ORG/NAME[@REVISION]/[CONFIG/]SPLIT`."""

from __future__ import annotations

from urllib.parse import parse_qs

from msgspec import Struct

from agentv.model.values.lazy_pattern import lazy_pattern

FORM = "hf://ORG/NAME/SPLIT, hf://ORG/NAME/CONFIG/SPLIT or hf://ORG/NAME@REVISION/SPLIT"

_WORD = r"[A-Za-z0-9_][\w.-]*"
_REFERENCE = lazy_pattern(
    rf"hf://(?P<repository>{_WORD}/{_WORD})"
    r"(?:@(?P<revision>refs/(?:pr/\d+|convert/\w+)|[^/@]+))?"
    r"/(?:(?P<config>[^/@]+)/)?(?P<split>[^/@]+)"
)

_OF_PROMPTFOO = lazy_pattern(rf"huggingface://datasets/(?P<repository>{_WORD}/{_WORD})(?:\?(?P<query>.*))?")

CONVERTED = "refs/convert/parquet"
"""The branch with the Parquet files that Hugging Face makes of every public dataset."""


class HubError(Exception):
    """A dataset cannot be had. `hint`: what to do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class HubReference(Struct, frozen=True):
    """A split of a dataset.

    Attributes:
        repository: `ORG/NAME`.
        revision: a commit, a tag or a branch; None: the branch `main`.
        config: a subset of the dataset; None: its default.
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
    """The split that a reference names.

    Raises:
        HubError: it names none.
    """
    of_promptfoo = _OF_PROMPTFOO.fullmatch(written)
    if of_promptfoo is not None:
        raise HubError(
            f"'{written}' is promptfoo's spelling", _translated(of_promptfoo["repository"], of_promptfoo["query"])
        )
    if written.startswith("hf://datasets/"):
        raise HubError(f"'{written}' is the address of a file", f"leave out 'datasets/': {FORM}")
    found = _REFERENCE.fullmatch(written)
    if found is None:
        raise HubError(f"'{written}' names no split of a dataset", f"write {FORM}")
    return HubReference(found["repository"], found["split"], found["revision"], found["config"])


def _translated(repository: str, query: str | None) -> str:
    """What to write for a dataset in promptfoo's spelling."""
    said = {key: values[-1] for key, values in parse_qs(query or "").items()}
    config = said.get("config") or said.get("subset")
    config = config if config != "default" else None
    wanted = HubReference(repository, said.get("split", "test"), said.get("revision"), config)
    return f"write {wanted}" + (f", and add --limit {said['limit']}" if said.get("limit") else "")
