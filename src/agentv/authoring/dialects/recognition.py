"""Files of other tools: dialects and samples, recognized by name, keys or the first record; `DIALECTS` has them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final

from msgspec import Struct

from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.spellings import CASE, SUITE
from agentv.authoring.source.files import TABLES, is_exam, is_file, shown
from agentv.authoring.source.nodes import ListNode, MapNode, Node
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, UsageError
from agentv.model.values.values import Span
from agentv.registry.extensions import DIALECTS, SIGNS, lacking, missing
from agentv.user_code.plugins import added, added_value, usable

AGENTV: Final = "agentv"
AGENT_SKILLS: Final = "agent-skills"
EVA: Final = "eva"

FORMATS = (AGENTV, AGENT_SKILLS, EVA)
"""What `--from` takes, beside the dialects of extensions and packages."""


def named_by(names: Sequence[str]) -> str:
    """How to name one of these formats."""
    flags = [f"--from {name}" for name in names]
    return f"name its format: {' or '.join([', '.join(flags[:-1])] * (len(flags) > 1) + flags[-1:])}"


class Dialect(ABC):  # the two kinds below have methods to implement
    """The files of another tool.

    Attributes:
        title: what a file is, as in "this is a promptfoo configuration", or what it contains.
    """

    title: str

    @staticmethod
    def note(path: str, title: str) -> str:
        """`promptfooconfig.yaml is read as a promptfoo configuration`."""
        return f"{os.path.relpath(path)} is read as {title}"

    def refuse(self, path: Path) -> None:  # noqa: B027  # most tools have no such files
        """Refuse a file of the tool that is recognized and cannot be read.

        Raises:
            UsageError: it is one.
        """


class Translation(Struct, frozen=True):
    """A file in the words of an eval file.

    Attributes:
        root: the outermost mapping of an eval file. Every node keeps the position that it was written at.
        not_missing: keys whose absence is not reported: they are misplaced or invalid, which is reported already.
        own_paths: paths are relative to the file, whichever other file mentions them.
        home: the directory that paths are relative to; None: that of the file.
        reads_on: after an error in the translation, the rest can be read as if it were whole; if not, errors that may
            follow from the first ones are omitted.
    """

    root: MapNode
    not_missing: frozenset[str] = frozenset()
    own_paths: bool = False
    home: str | None = None
    reads_on: bool = False


class Surroundings(Struct, frozen=True):
    """What a translation depends on besides the file.

    Attributes:
        calls: functions that return cases are called; else they are only looked for.
        agents: whether agents answer a file that names no target.
    """

    calls: bool
    agents: Callable[[], bool]


class DocumentDialect(Dialect):
    """A dialect whose files are YAML or JSON documents with cases."""

    @abstractmethod
    def claims(self, path: str, root: Node, data: bytes) -> bool:
        """Whether a file is of this dialect. Called where a sign of the dialect fits.

        Args:
            path: absolute.
            root: its outermost node.
            data: its bytes.
        """

    @abstractmethod
    def translate(self, path: str, root: Node, reading: Reading, around: Surroundings) -> Translation | None:
        """The canonical nodes of a file, or None after reporting why.

        What has no equivalent and could change a verdict is an error at its place, what could not is a hint. Nothing
        is written, and files are read through `reading.reader`.

        Args:
            path: absolute.
            root: its outermost node.
            reading: reads files, and gets what is wrong.
            around: what else it depends on.
        """


class SampleDialect(Dialect):
    """A dialect whose files hold records, recognized by the keys of the first one, or whose tasks are directories.

    Attributes:
        reads_directories: what it converts is a directory.
    """

    reads_directories: bool = False

    def cases(self, path: str, report: Report) -> Sequence[MapNode] | None:  # noqa: ARG002  # most need --assert
        """The cases of a file that `tests:` names; what is wrong is reported. None: it must be converted first.

        Raises:
            OSError: the file cannot be read.
        """
        return None

    @abstractmethod
    def convert(self, source: Path, options: Mapping[str, Any]) -> int:
        """Write a file as an eval file, as `agentv convert` with these options does. Return the exit status.

        Raises:
            AgentvError: it is invalid, or cannot be converted as the options say.
            OSError: a file cannot be read or written.
        """


CHECKED = frozenset({*CASE.spelled("assert"), *CASE.spelled("criteria"), "rubrics", "turns"})
"""Keys that only a case of agentv has."""

_NAME, _KEYS, _RECORD = "name:", "keys:", "record:"


class Claim(Struct, frozen=True):
    """The dialect that a file is written in.

    Attributes:
        name: of the dialect; None where its extension is not here.
        needs: `needs extension NAME`, for such a one.
    """

    name: str | None
    needs: str | None = None


OWN = {AGENT_SKILLS: "agentv.authoring.dialects.skills:TESTS_OF_SKILLS", EVA: "agentv.authoring.dialects.exam:EXAM"}
"""Dialects of the core: name → place."""


def dialects() -> tuple[str, ...]:
    """The names of all dialects."""
    return (*OWN, *added(DIALECTS))


def dialect(name: str) -> Dialect:
    """The dialect of a name."""
    found: Dialect = resolve_name(OWN[name]) if name in OWN else added_value(DIALECTS, name)
    return found


def document_dialect(name: str) -> DocumentDialect | None:
    """The dialect of a name, if its files are documents."""
    found = dialect(name)
    return found if isinstance(found, DocumentDialect) else None


def may_be_own(path: str, data: bytes) -> str | None:
    """The dialect of the core that a file may be written in; nearly all eval files are excluded at once."""
    if path.endswith(".json"):
        is_skill = any(key in data for key in (b'"evals"', b'"query"', b'"should_trigger"'))
        return AGENT_SKILLS if is_skill else None
    has_cases = b"cases" in data and any(word in data for word in (b"inputs", b"defaults", b"triggering"))
    return EVA if has_cases or is_exam(path) else None


def by_name(path: str) -> Claim | None:
    """The dialect that the name of a file shows."""
    name = Path(path).name
    return next((_claim(sign) for sign, pattern in _signs(_NAME) if fnmatchcase(name, pattern)), None)


def may_be_document(path: str, data: bytes) -> bool:
    """Whether a YAML or JSON file has the name of a dialect, or its keys, wherever they are in it."""
    keyed = any(all(key.encode() in data for key in keys.split("+")) for _, keys in _signs(_KEYS))
    return keyed or may_be_own(path, data) is not None or by_name(path) is not None


def by_content(path: str, root: Node, data: bytes) -> tuple[Claim, ...]:
    """The dialects that claim a document: several, if it has the keys of both, or two packages add them."""
    named = by_name(path)
    if named is not None and named.needs:
        return (named,)
    own = may_be_own(path, data)
    names = (*([own] if own is not None else []), *added(DIALECTS))
    here = tuple(Claim(name) for name in names if _claims(name, path, root, data))
    return here or tuple(_lacking(root))


def _claims(name: str, path: str, root: Node, data: bytes) -> bool:
    found = [dialect(name)] if name in OWN else usable(DIALECTS, [name])
    return any(isinstance(one, DocumentDialect) and one.claims(path, root, data) for one in found)


def _lacking(root: Node) -> Iterator[Claim]:
    """The dialect of an extension that is not here, whose keys the document has and no eval file could have."""
    keys = root.items.keys() if isinstance(root, MapNode) else set()
    for sign, wanted in _signs(_KEYS):
        if lacking(SIGNS, sign) and keys >= set(wanted.split("+")) and not set(wanted.split("+")) <= SUITE.canonical:
            yield _claim(sign)
            return


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


def refuse_unreadable(written: str) -> None:
    """Refuse a file whose name shows that it is another tool's, where it is not read or its extension is not here.

    Raises:
        UsageError: it is one; the hint says what to do.
    """
    claim = by_name(written)
    if claim is not None and claim.needs:
        raise UsageError(f"{written} {claim.needs}")
    if claim is not None:
        dialect(str(claim.name)).refuse(Path(written))


def of_json(path: str, root: Node) -> Diagnostic | None:
    """Diagnostic for a JSON file that is a list of another tool's samples; None if that is uncertain."""
    if not path.endswith(".json"):
        return None
    from agentv.authoring.convert.records import listed

    samples = listed(root)
    first = samples.items[0] if isinstance(samples, ListNode) and samples.items else None
    return _samples(path, first) if isinstance(first, MapNode) else None


def of_stream(path: str) -> Diagnostic | None:
    """The same for a JSON Lines or CSV file; never for one with a sidecar, which makes it a suite."""
    has_sidecar = any(is_file(str(Path(path).with_suffix(suffix))) for suffix in (".yaml", ".yml"))
    if has_sidecar or path.endswith(TABLES) or not is_file(path):  # a pipe can be read only once
        return None
    from agentv.authoring.convert.records import Findings, first_record

    try:
        record = first_record(path, Findings())
    except OSError:
        return None
    return _samples(path, record) if record is not None else None


def cases_of_samples(path: str, report: Report) -> Sequence[MapNode] | None:
    """The cases of samples that say themselves what is right; None where a file holds others, or none."""
    from agentv.authoring.convert.records import SUFFIXES, Findings, first_record

    if not (path.endswith(SUFFIXES) and is_file(path)):
        return None
    try:
        record = first_record(path, Findings())
        names = [claim.name for claim in by_record(record.items)] if record is not None else []
        found = dialect(names[0]) if len(names) == 1 and names[0] is not None else None
        return found.cases(path, report) if isinstance(found, SampleDialect) else None
    except (OSError, UsageError):  # the reader of the file says what is missing
        return None


def _samples(path: str, record: MapNode) -> Diagnostic | None:
    claims = by_record(record.items)
    if len(claims) != 1:
        return None
    import shlex  # only for a file of another tool

    claim, at = claims[0], Span(path, 1, 1, 1, 2)
    if claim.needs:
        return Diagnostic("bad-eval-file", f"this file contains samples of another tool, which {claim.needs}", at)
    hint = f"convert it: agentv convert {shlex.quote(shown(path))}"
    return Diagnostic("bad-eval-file", f"this file contains {dialect(str(claim.name)).title}", at, hint=hint)
