"""Recognition of a dialect by the signs of a file: its name, the keys of a document, the keys of its first record."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

from agentv.authoring.convert.source_formats import AGENT_SKILLS, EVA
from agentv.authoring.dialects.dialect import Dialect, DocumentDialect
from agentv.authoring.fields.agentv.spellings import CASE, SUITE
from agentv.authoring.prompt_library.files import is_exam
from agentv.authoring.source.nodes import MapNode, Node
from agentv.registry.extensions import DIALECTS, SIGNS, lacking, missing
from agentv.user_code.plugin_tables import added, added_value, usable

CHECKED = frozenset({*CASE.spelled("assert"), *CASE.spelled("criteria"), "rubrics", "turns"})
"""Keys that only a case of agentv has."""

_NAME, _KEYS, _RECORD = "name:", "keys:", "record:"


class Claim(NamedTuple):
    """The dialect that a file is written in.

    Attributes:
        name: of the dialect; None where its extension is not here.
        needs: `needs extension NAME`, for such a one.
    """

    name: str | None
    needs: str | None = None


OWN = {
    AGENT_SKILLS: "agentv.authoring.dialects.skill.evals:TESTS_OF_SKILLS",
    EVA: "agentv.authoring.dialects.eva.exam:EXAM",
}
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
