"""The cases of a run that are chosen: which they are, and in what order they are listed."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from agentv.extensions.view.index.case_entries import CODES, CaseChoice, CaseOrder
from agentv.extensions.view.index.case_writer import CaseWriter
from agentv.model.run.trial import Status

_SEVERITY: tuple[Status, ...] = ("failed", "errored", "skipped", "shown", "passed")
_RANK = " ".join(f"WHEN {CODES[status]} THEN {rank}" for rank, status in enumerate(_SEVERITY))
_ORDERS: dict[CaseOrder, tuple[str, ...]] = {
    "worst": (f"CASE status {_RANK} END", "ifnull(score, 2)"),
    "run": (),
    "file": ('suite_rank("group")', "position", 'column_rank("group")'),
    "name": ('suite_name("group")', "natural_key(id)"),
    "slowest": ("-duration",),
    "costliest": ("-ifnull(cost, -1)",),
}
_TERMS = re.compile(r'"([^"]+)"|(\S+)')
_WORDS = re.compile("[^\\W_\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]+")
"""Letters and digits, but for those that SQLite takes for separators."""

_IN_GROUPS = '"group" IN (SELECT value FROM json_each(?))'
_WITH_IDS = "number IN (SELECT number FROM case_names WHERE id IN (SELECT value FROM json_each(?)))"
_WITH_ID_LIKE = "number IN (SELECT number FROM case_names WHERE instr(searched, ?))"
_WITH_TRIALS = 'number IN (SELECT "case" FROM trials WHERE number IN (SELECT value FROM json_each(?)))'
_WITH_GRADES = 'number IN (SELECT "case" FROM trials WHERE grades IN (SELECT value FROM json_each(?)))'
_WITH_WORDS = 'number IN (SELECT "case" FROM trials WHERE number IN (SELECT rowid FROM texts WHERE texts MATCH ?))'


class CaseChooser:
    """Chooses cases of an index, in the thread that uses it.

    Those that were chosen last, whatever their status, are in the table `chosen`.
    """

    def __init__(self, database: sqlite3.Connection, writer: CaseWriter) -> None:
        self._database = database
        self._writer = writer
        self._held: CaseChoice | None = None
        database.execute("CREATE TEMP TABLE chosen (number INTEGER PRIMARY KEY)")

    def forget(self) -> None:
        """Forget what was chosen: a case was added or changed."""
        self._held = None

    def choose(self, choice: CaseChoice) -> None:
        """Put the cases of a choice, whatever their statuses, into the table `chosen`."""
        wanted = msgspec.structs.replace(choice, statuses=(), order="run")
        if wanted == self._held:
            return
        conditions = list(self._conditions(choice))
        where = " AND ".join(condition for condition, _ in conditions)
        values = [value for _, of in conditions for value in of]
        self._database.execute("DELETE FROM chosen")
        self._database.execute(f"INSERT INTO chosen SELECT number FROM cases WHERE {where}", values)  # noqa: S608  # made of constants
        self._held = wanted

    def numbers(self, choice: CaseChoice) -> array[int]:
        """The numbers of the chosen cases in their order."""
        self.choose(choice)
        return array("I", chain.from_iterable(self.in_order("number", choice, with_status(choice))))

    def in_order(self, column: str, choice: CaseChoice, condition: str) -> sqlite3.Cursor:
        """A column of the cases in the table `chosen` that meet a condition, in the order of the choice."""
        names = " JOIN case_names USING (number)" if choice.order == "name" else ""
        terms = ", ".join((*_ORDERS[choice.order], "number"))
        return self._database.execute(
            f"SELECT {column} FROM chosen JOIN cases USING (number){names} WHERE {condition} ORDER BY {terms}"  # noqa: S608  # as above
        )

    def _conditions(self, choice: CaseChoice) -> Iterator[tuple[str, list[str]]]:
        """Conditions that the chosen cases meet, each with its values."""
        groups = [number for number, group in self._writer.all_groups() if choice.takes(group)]
        yield _IN_GROUPS, [_as_json(groups)]
        if choice.ids:
            yield _WITH_IDS, [_as_json(choice.ids)]
        if choice.assertion:
            yield _WITH_GRADES, [_as_json(self._graded(choice.assertion))]
        if choice.trials is not None:
            yield _WITH_TRIALS, [_as_json(choice.trials)]
        for quoted, word in _TERMS.findall(choice.q):
            yield self._with_term(quoted or word)

    def _with_term(self, term: str) -> tuple[str, list[str]]:
        """The cases that have a term: in an id or a name anywhere, or as words of one of their trials."""
        lowered = term.lower()
        named = [
            number
            for number, group in self._writer.all_groups()
            if any(lowered in name.lower() for name in group.names)
        ]
        conditions, values = [_IN_GROUPS, _WITH_ID_LIKE], [_as_json(named), lowered]
        words = _WORDS.findall(unicodedata.normalize("NFC", term))
        if words:
            conditions.append(_WITH_WORDS)
            values.append(" AND ".join(f'"{word}"*' for word in words))
        return f"({' OR '.join(conditions)})", values

    def _graded(self, chosen: str) -> list[int]:
        """The lists of grades in which an assertion occurs; with `failed` those where it did not pass."""
        how, _, wanted = chosen.partition(" ")
        numbers = {number for number, named in enumerate(self._writer.assertions.all()) if wanted in named}
        return [
            number
            for number, grades in self._writer.all_grades()
            if any(
                assertion in numbers and (how != "failed" or state)
                for assertion, state in zip(grades[::2], grades[1::2], strict=True)
            )
        ]


def with_status(choice: CaseChoice) -> str:
    """The condition that the statuses of a choice mean."""
    codes = ", ".join(str(CODES[one]) for one in choice.statuses if one != "flaky")
    flaky = " OR flaky" if "flaky" in choice.statuses else ""
    return f"(status IN ({codes}){flaky})" if choice.statuses else "1"


def _as_json(values: Sequence[int | str]) -> str:
    return msgspec.json.encode(values).decode()
