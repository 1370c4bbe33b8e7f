"""Recognizes files of other tools, in dialects or with samples, by name, keys or first record; see `DIALECTS`."""

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
"""Values of `--from`, besides the dialects of extensions and packages."""


def named_by(names: Sequence[str]) -> str:
    """The hint to name one of several formats with `--from`."""
    flags = [f"--from {name}" for name in names]
    return f"name its format: {' or '.join([', '.join(flags[:-1])] * (len(flags) > 1) + flags[-1:])}"


class Dialect(ABC):  # the abstract methods are in the two kinds below
    """The files of another tool.

    Attributes:
        title: what a file is or contains, for messages: "this is a promptfoo configuration".
    """

    title: str

    @staticmethod
    def note(path: str, title: str) -> str:
        """The message that a file is read as this dialect."""
        return f"{os.path.relpath(path)} is read as {title}"

    def refuse(self, path: Path) -> None:  # noqa: B027  # most tools have no such files
        """Raise if a file of the tool is recognized but cannot be read.

        Raises:
            UsageError: the file cannot be read.
        """


class Translation(Struct, frozen=True):
    """A file translated to the keys of an eval file.

    Attributes:
        root: the root mapping of an eval file. Every node keeps its original position.
        not_missing: keys not to report as missing, because they were reported as misplaced or invalid.
        own_paths: whether all paths are relative to `home`, even those in other files.
        home: the directory to which paths are relative; None for that of the file.
        reads_on: whether the rest can be read normally after an error in the translation; if not, errors that may be
            consequences are omitted.
    """

    root: MapNode
    not_missing: frozenset[str] = frozenset()
    own_paths: bool = False
    home: str | None = None
    reads_on: bool = False


class Surroundings(Struct, frozen=True):
    """What a translation depends on besides the file.

    Attributes:
        calls: whether functions that return cases are called; if not, they are only located.
        agents: returns whether the default targets, for a file that names none, are agents.
    """

    calls: bool
    agents: Callable[[], bool]


class DocumentDialect(Dialect):
    """A dialect whose files are YAML or JSON documents with cases."""

    @abstractmethod
    def claims(self, path: str, root: Node, data: bytes) -> bool:
        """Whether a file is in this dialect. Called only for files that have a sign of the dialect.

        Args:
            path: absolute path of the file.
            root: root node of the file.
            data: content of the file.
        """

    @abstractmethod
    def translate(self, path: str, root: Node, reading: Reading, around: Surroundings) -> Translation | None:
        """The canonical nodes of a file, or None after reporting errors.

        Report a key without an equivalent at its position: as an error if it could change a verdict, or else as a
        hint. Write nothing, and read files only through `reading.reader`.

        Args:
            path: absolute path of the file.
            root: root node of the file.
            reading: reads files, and receives diagnostics.
            around: what else the translation depends on.
        """


class SampleDialect(Dialect):
    """A dialect whose files contain records, recognized by the keys of the first one, or whose tasks are directories.

    Attributes:
        reads_directories: whether it converts directories instead of files.
    """

    reads_directories: bool = False

    def cases(self, path: str, report: Report) -> Sequence[MapNode] | None:  # noqa: ARG002  # most need --assert
        """The cases of a file named in `tests:`, or None if it must be converted first. Errors are reported.

        Raises:
            OSError: the file cannot be read.
        """
        return None

    @abstractmethod
    def convert(self, source: Path, options: Mapping[str, Any]) -> int:
        """Write a file as an eval file, like `agentv convert` with these options, and return the exit status.

        Raises:
            AgentvError: the file is invalid, or cannot be converted with these options.
            OSError: a file cannot be read or written.
        """


CHECKED = frozenset({*CASE.spelled("assert"), *CASE.spelled("criteria"), "rubrics", "turns"})
"""Keys that only cases of agentv have."""

_NAME, _KEYS, _RECORD = "name:", "keys:", "record:"


class Claim(Struct, frozen=True):
    """The dialect of a file.

    Attributes:
        name: name of the dialect; None if its extension is missing.
        needs: `needs extension NAME` for messages, if the extension is missing.
    """

    name: str | None
    needs: str | None = None


OWN = {AGENT_SKILLS: "agentv.authoring.dialects.skills:TESTS_OF_SKILLS", EVA: "agentv.authoring.dialects.exam:EXAM"}
"""Dialects of the core: name → `package.module:OBJECT`."""


def dialects() -> tuple[str, ...]:
    """The names of all available dialects."""
    return (*OWN, *added(DIALECTS))


def dialect(name: str) -> Dialect:
    """The dialect with a name."""
    found: Dialect = resolve_name(OWN[name]) if name in OWN else added_value(DIALECTS, name)
    return found


def document_dialect(name: str) -> DocumentDialect | None:
    """The dialect with a name, or None if its files are not documents."""
    found = dialect(name)
    return found if isinstance(found, DocumentDialect) else None


def may_be_own(path: str, data: bytes) -> str | None:
    """The dialect of the core that a file may use, or None: a fast check that rules out nearly all eval files."""
    if path.endswith(".json"):
        is_skill = any(key in data for key in (b'"evals"', b'"query"', b'"should_trigger"'))
        return AGENT_SKILLS if is_skill else None
    has_cases = b"cases" in data and any(word in data for word in (b"inputs", b"defaults", b"triggering"))
    return EVA if has_cases or is_exam(path) else None


def by_name(path: str) -> Claim | None:
    """The dialect that a file's name indicates, or None."""
    name = Path(path).name
    return next((_claim(sign) for sign, pattern in _signs(_NAME) if fnmatchcase(name, pattern)), None)


def may_be_document(path: str, data: bytes) -> bool:
    """Whether a YAML or JSON file has a dialect's name, or contains its keys anywhere."""
    keyed = any(all(key.encode() in data for key in keys.split("+")) for _, keys in _signs(_KEYS))
    return keyed or may_be_own(path, data) is not None or by_name(path) is not None


def by_content(path: str, root: Node, data: bytes) -> tuple[Claim, ...]:
    """The dialects that claim a document; several if it has the keys of both, or two packages add the same one."""
    named = by_name(path)
    if named is not None and named.needs:
        return (named,)
    own = may_be_own(path, data)
    names = (*([own] if own is not None else []), *added(DIALECTS))
    here = tuple(Claim(name) for name in names if _claims(name, path, root, data))
    return here or tuple(_missing_dialect(root))


def _claims(name: str, path: str, root: Node, data: bytes) -> bool:
    found = [dialect(name)] if name in OWN else usable(DIALECTS, [name])
    return any(isinstance(one, DocumentDialect) and one.claims(path, root, data) for one in found)


def _missing_dialect(root: Node) -> Iterator[Claim]:
    """The dialect of a missing extension, if the document has its keys and no eval file can have all of them."""
    keys = root.items.keys() if isinstance(root, MapNode) else set()
    for sign, wanted in _signs(_KEYS):
        if lacking(SIGNS, sign) and keys >= set(wanted.split("+")) and not set(wanted.split("+")) <= SUITE.canonical:
            yield _claim(sign)
            return


def by_record(keys: Collection[str]) -> tuple[Claim, ...]:
    """The dialects whose samples have these keys; empty if the record may be a case of agentv.

    Args:
        keys: keys of the first record of a file.
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
    """Raise if a file's name belongs to another tool, and its files cannot be read or its extension is missing.

    Raises:
        UsageError: the file cannot be read.
    """
    claim = by_name(written)
    if claim is not None and claim.needs:
        raise UsageError(f"{written} {claim.needs}")
    if claim is not None:
        dialect(str(claim.name)).refuse(Path(written))


def of_json(path: str, root: Node) -> Diagnostic | None:
    """A diagnostic if a JSON file certainly is a list of another tool's samples; otherwise None."""
    if not path.endswith(".json"):
        return None
    from agentv.authoring.convert.records import listed

    samples = listed(root)
    first = samples.items[0] if isinstance(samples, ListNode) and samples.items else None
    return _samples(path, first) if isinstance(first, MapNode) else None


def of_stream(path: str) -> Diagnostic | None:
    """A diagnostic like that of `of_json` for a JSON Lines or CSV file. One with a sidecar is always an eval file."""
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
    """The cases of a file of another tool's samples, or None if it contains none or must be converted first."""
    from agentv.authoring.convert.records import SUFFIXES, Findings, first_record

    if not (path.endswith(SUFFIXES) and is_file(path)):
        return None
    try:
        record = first_record(path, Findings())
        names = [claim.name for claim in by_record(record.items)] if record is not None else []
        found = dialect(names[0]) if len(names) == 1 and names[0] is not None else None
        return found.cases(path, report) if isinstance(found, SampleDialect) else None
    except (OSError, UsageError):  # reported when the file is read
        return None


def _samples(path: str, record: MapNode) -> Diagnostic | None:
    claims = by_record(record.items)
    if len(claims) != 1:
        return None
    import shlex  # only for a file of another tool

    claim, at = claims[0], Span.start_of(path)
    if claim.needs:
        return Diagnostic("bad-eval-file", f"this file contains samples of another tool, which {claim.needs}", at)
    hint = f"convert it: agentv convert {shlex.quote(shown(path))}"
    return Diagnostic("bad-eval-file", f"this file contains {dialect(str(claim.name)).title}", at, hint=hint)
