"""Which cases of a run are listed, and in what order."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from agentv.model.run.trial import Status
from agentv.store.index.case_entries import CaseGroup
from agentv.store.totals.tally import STATUSES

CaseOrder = Literal["worst", "run", "name", "slowest", "costliest"]
AnyStatus = Literal["passed", "failed", "errored", "skipped", "shown", "flaky"]
_CODES = {status: code for code, status in enumerate(STATUSES)}
_SEVERITY: tuple[Status, ...] = ("failed", "errored", "skipped", "shown", "passed")
_RANK = " ".join(f"WHEN {_CODES[status]} THEN {rank}" for rank, status in enumerate(_SEVERITY))
_ORDERS: dict[CaseOrder, tuple[str, ...]] = {
    "worst": (f"CASE status {_RANK} END", "ifnull(score, 2)"),
    "run": (),
    "name": ('suite_name("group")', "natural_key(id)"),
    "slowest": ("-duration",),
    "costliest": ("-ifnull(cost, -1)",),
}
_TERMS = re.compile(r'"([^"]+)"|(\S+)')
_WORDS = re.compile("[^\\W_\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]+")
"""Letters and digits, but for those that SQLite takes for separators."""


class CaseChoice(Struct, frozen=True, gc=False):
    """Cases of a run; what is empty chooses all.

    Attributes:
        statuses: `flaky`: samples disagree.
        assertion: `failed NAME` or `any NAME`, where NAME is a type or a name.
        ids: of cases.
        trials: numbers of trials of which a case has one; None: any.
        q: terms that a trial of the case contains; words from their beginning, ids and names anywhere.
    """

    statuses: tuple[AnyStatus, ...] = ()
    suite: str = ""
    target: str = ""
    prompt: str = ""
    variant: str = ""
    tag: str = ""
    assertion: str = ""
    trials: tuple[int, ...] | None = None
    q: str = ""
    ids: tuple[str, ...] = ()
    order: CaseOrder = "worst"

    def with_any_status(self) -> CaseChoice:
        """The choice without its statuses."""
        return msgspec.structs.replace(self, statuses=())

    def takes(self, group: CaseGroup) -> bool:
        """Whether the names of a group are chosen."""
        return (
            self.suite in ("", group.suite)
            and self.target in ("", group.target)
            and self.prompt in ("", group.prompt)
            and self.variant in ("", group.variant)
            and (not self.tag or self.tag in group.tags)
        )

    @property
    def by_group(self) -> bool:
        """Whether names are chosen."""
        return bool(self.suite or self.target or self.prompt or self.variant or self.tag)


class Looked(Struct):
    """What a question needs of an index.

    Attributes:
        groups: every group with its number.
        assertions: type and name of every assertion, by number.
        grades: the lists of grades with their numbers.
        search: fills the table `searched` with the numbers of the cases that a search finds.
    """

    groups: Callable[[], Iterable[tuple[int, CaseGroup]]]
    assertions: Callable[[], Sequence[tuple[str, str | None]]]
    grades: Callable[[], Iterable[tuple[int, list[int]]]]
    search: Callable[[str], None]


def ordered(choice: CaseChoice) -> tuple[str, str]:
    """The tables that an order needs, and its terms."""
    tables = "cases JOIN case_names USING (number)" if choice.order == "name" else "cases"
    return tables, ", ".join((*_ORDERS[choice.order], "cases.number"))


def where(index: Looked, choice: CaseChoice) -> tuple[str, list[str | int]]:
    """The condition of a choice, and its values."""
    clauses: list[str] = []
    values: list[str | int] = []
    if choice.statuses:
        codes = [_CODES[one] for one in choice.statuses if one != "flaky"]
        either = [f"status IN ({', '.join(map(str, codes))})"] if codes else []
        either += ["flaky"] if "flaky" in choice.statuses else []
        clauses.append(f"({' OR '.join(either)})")
    if choice.by_group:
        clauses.append('"group" IN (SELECT value FROM json_each(?))')
        values.append(_as_json([number for number, group in index.groups() if choice.takes(group)]))
    if choice.ids:
        clauses.append("cases.number IN (SELECT number FROM case_names WHERE id IN (SELECT value FROM json_each(?)))")
        values.append(_as_json(choice.ids))
    if choice.assertion:
        clauses.append(_OF_TRIALS.format("grades IN (SELECT value FROM json_each(?))"))
        values.append(_as_json(_graded(index, choice.assertion)))
    if choice.trials is not None:
        clauses.append(_OF_TRIALS.format("number IN (SELECT value FROM json_each(?))"))
        values.append(_as_json(choice.trials))
    if choice.q.strip():
        index.search(choice.q)
        clauses.append("cases.number IN (SELECT number FROM temp.searched)")
    return (f" WHERE {' AND '.join(clauses)}" if clauses else ""), values


_OF_TRIALS = 'cases.number IN (SELECT "case" FROM trials WHERE {})'


def terms_of(q: str) -> list[str]:
    """The terms of a search: words, and texts in quotes."""
    return [quoted or word for quoted, word in _TERMS.findall(q)]


def searched(index: Looked, term: str) -> tuple[str, list[str | int]]:
    """The condition of one term, and its values: an id or a name of a case has it, or the words of a trial."""
    lowered = term.lower()
    named = [number for number, group in index.groups() if any(lowered in name.lower() for name in _names(group))]
    clauses = ["cases.number IN (SELECT number FROM case_names WHERE id LIKE ? ESCAPE '\\')"]
    values: list[str | int] = ["%" + re.sub(r"([%_\\])", r"\\\1", term) + "%"]
    if named:
        clauses.append('"group" IN (SELECT value FROM json_each(?))')
        values.append(_as_json(named))
    words = _WORDS.findall(unicodedata.normalize("NFC", term))
    if words:
        clauses.append(_OF_TRIALS.format("number IN (SELECT rowid FROM texts WHERE texts MATCH ?)"))
        values.append(" AND ".join(f'"{word}"*' for word in words))
    return f"({' OR '.join(clauses)})", values


def _names(group: CaseGroup) -> Iterable[str]:
    names = (group.suite, group.target, group.prompt, group.variant, *group.tags)
    return (name for name in names if name is not None)


def _graded(index: Looked, chosen: str) -> list[int]:
    """The lists of grades in which an assertion occurs; with `failed` those where it did not pass."""
    how, _, wanted = chosen.partition(" ")
    numbers = {number for number, named in enumerate(index.assertions()) if wanted in named}
    return [
        number
        for number, grades in index.grades()
        if any(
            assertion in numbers and (how != "failed" or state)
            for assertion, state in zip(grades[::2], grades[1::2], strict=True)
        )
    ]


def _as_json(values: Sequence[int | str]) -> str:
    return msgspec.json.encode(values).decode()
