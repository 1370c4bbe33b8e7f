"""Dialects: files of other tools, which extensions recognize and convert."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from agentv.authoring.source.nodes import MapNode
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import CASE, SUITE
from agentv.authoring.source.yaml import read_yaml
from agentv.registry.extensions import DIALECTS, SIGNS, lacking, missing
from agentv.user_code.plugin_tables import added, added_value, usable

CHECKED = frozenset({*CASE.spelled("assert"), *CASE.spelled("criteria"), "rubrics", "turns"})
"""Keys that only a case of agentv has."""

_NAME, _KEYS, _RECORD = "name:", "keys:", "record:"


class Dialect(Protocol):
    """The files of another tool, as registered under `DIALECTS`.

    Attributes:
        title: what a file is, as in "this is a promptfoo configuration", or what it contains.
    """

    title: str

    @abstractmethod
    def convert(self, source: Path, options: Mapping[str, Any]) -> int:
        """Write a file as an eval file, as `agentv convert` with these options does. Return the exit status.

        Raises:
            AgentvError: it is invalid, or cannot be converted as the options say.
            OSError: a file cannot be read or written.
        """

    def claims(self, path: Path, data: bytes) -> bool:  # noqa: ARG002  # of those that look at whole files
        """Whether a YAML or JSON file is one of this dialect. Files of records are recognized by `SIGNS` alone."""
        return False

    def refuse(self, path: Path) -> None:
        """Refuse a file of the tool that can be recognized and not converted.

        Raises:
            UsageError: it is one.
        """


class Claim(NamedTuple):
    """Whose file it is.

    Attributes:
        name: of the dialect; None where its extension is not here.
        needs: `needs extension NAME`, for such a one.
    """

    name: str | None
    needs: str | None = None

    @property
    def dialect(self) -> Dialect:
        """The dialect of one that is here."""
        return dialect(str(self.name))


def dialect(name: str) -> Dialect:
    """The dialect of a name."""
    found: Dialect = added_value(DIALECTS, name)
    return found


def of_whole_files() -> list[str]:
    """The names of dialects whose files are not recognized by their records."""
    return list(dict.fromkeys(name for sign, name in added(SIGNS).items() if sign.startswith(_KEYS)))


def by_name(path: str) -> Claim | None:
    """The dialect that the name of a file shows."""
    name = Path(path).name
    return next((_claim(sign) for sign, pattern in _signs(_NAME) if fnmatchcase(name, pattern)), None)


def may_be_document(data: bytes) -> bool:
    """Whether a YAML or JSON file has the keys of a dialect, wherever they are in it."""
    return any(all(key.encode() in data for key in keys.split("+")) for _, keys in _signs(_KEYS))


def by_content(path: Path, data: bytes) -> Claim | None:
    """The dialect of a YAML or JSON file: of those that are here the one that claims it, else one whose keys it has."""
    for name in added(DIALECTS):
        if any(one.claims(path, data) for one in usable(DIALECTS, [name])):
            return Claim(name)
    for sign, keys in _signs(_KEYS):
        wanted = set(keys.split("+"))
        if lacking(SIGNS, sign) and not wanted <= SUITE.canonical:  # those are an eval file's, too
            root = read_yaml(str(path), data, Report()).value if may_be_document(data) else None
            if isinstance(root, MapNode) and root.items.keys() >= wanted:
                return _claim(sign)
    return None


def by_record(keys: Collection[str]) -> tuple[Claim, ...]:
    """The dialects that a record with these keys can only be of; none where it may be a case of agentv.

    Args:
        keys: of the first record of a file.
    """
    is_case = not CHECKED.isdisjoint(keys)
    signs = ((sign, set(wanted.split("+"))) for sign, wanted in _signs(_RECORD))
    found = (_claim(sign) for sign, wanted in signs if wanted <= set(keys) and not (is_case and "input" in wanted))
    return tuple(dict.fromkeys(found))


def _signs(form: str) -> Iterator[tuple[str, str]]:
    return ((sign, sign.removeprefix(form)) for sign in (*added(SIGNS), *missing(SIGNS)) if sign.startswith(form))


def _claim(sign: str) -> Claim:
    needs = lacking(SIGNS, sign)
    return Claim(None if needs else added(SIGNS)[sign], needs)
