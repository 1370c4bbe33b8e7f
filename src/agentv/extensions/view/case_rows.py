"""The index of cases: its tables, the data of its entries, and writing finished trials to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal
from urllib.parse import quote

import msgspec
from msgspec import Struct

from agentv.extensions.view.pages.entries import early_facts
from agentv.model.run.cases import RequiredGrade, Sample
from agentv.model.run.trial import Status
from agentv.model.suite.suite import Aggregate
from agentv.model.values.hashes import text_hash
from agentv.stats.samples.deciding import Rule, verdict_over
from agentv.store.totals.tally import STATUSES

VERSION = 8

SCHEMA = """
CREATE TABLE read (            -- one row: how far index.jsonl is read
    place INTEGER NOT NULL,    -- bytes
    trials INTEGER NOT NULL,   -- number of the next trial
    fingerprint INTEGER NOT NULL
);
INSERT INTO read VALUES (0, 1, 0);
CREATE TABLE saved (           -- what was computed of all rows
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
);
CREATE TABLE assertions (number INTEGER PRIMARY KEY, type TEXT NOT NULL, name TEXT);
CREATE TABLE groups (          -- what many cases have in common
    number INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL UNIQUE,
    value TEXT NOT NULL        -- JSON of a `CaseGroup`
);
CREATE TABLE grades (          -- lists of [assertion, state], which many trials have in common
    number INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL UNIQUE,
    value TEXT NOT NULL
);
CREATE TABLE cases (           -- what lists are chosen and sorted by
    number INTEGER PRIMARY KEY,
    "group" INTEGER NOT NULL,
    status INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    score REAL,
    duration REAL NOT NULL,
    cost REAL,
    cluster INTEGER NOT NULL,
    same INTEGER NOT NULL,     -- hash of file, suite and id
    position INTEGER NOT NULL  -- in its file
);
CREATE TABLE case_names (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    searched TEXT NOT NULL,         -- the id in small letters
    route INTEGER NOT NULL UNIQUE,  -- hash of its route
    copy INTEGER NOT NULL,          -- 1, or the number that its route ends with
    sha TEXT NOT NULL,
    told_by INTEGER NOT NULL,       -- the trial whose teaser the case has
    early TEXT
);
CREATE TABLE trials (
    number INTEGER PRIMARY KEY,     -- in the order of the file, from 1
    "case" INTEGER NOT NULL,
    sample INTEGER NOT NULL,
    status INTEGER NOT NULL,
    score REAL,
    duration REAL NOT NULL,
    cost REAL,
    grades INTEGER NOT NULL,
    place INTEGER NOT NULL          -- where its row begins, in bytes
);
CREATE UNIQUE INDEX trials_by_case ON trials ("case", sample);
CREATE TABLE trial_texts (number INTEGER PRIMARY KEY, teaser TEXT NOT NULL, gates TEXT);
CREATE VIRTUAL TABLE texts USING fts5 (
    text, content = '', columnsize = 0, detail = none, tokenize = 'unicode61 remove_diacritics 2'
);
"""

SET_VERSION = f"PRAGMA user_version = {VERSION};"

SETTINGS = """
PRAGMA trusted_schema = OFF;
PRAGMA cache_size = -8000;
PRAGMA temp_store = FILE;
"""

UNSAFE_WRITES = """
PRAGMA journal_mode = OFF;  -- a file that a process leaves half written is never read by another
PRAGMA synchronous = OFF;
"""


CaseOrder = Literal["worst", "run", "file", "name", "slowest", "costliest"]
AnyStatus = Literal["passed", "failed", "errored", "skipped", "shown", "flaky"]
CODES = {status: code for code, status in enumerate(STATUSES)}
"""Status → its number in an index."""

_UNESCAPED = "!'()*"


class CaseGroup(Struct, frozen=True, gc=False, array_like=True):
    """Properties that many cases have in common.

    Attributes:
        path: path of the eval file, as in rows.
        clustered_by: what defines the clusters of its cases; None if each case is its own cluster.
    """

    suite: str
    path: str | None
    target: str
    prompt: str | None
    variant: str | None
    tags: tuple[str, ...]
    threshold: float
    repeat: int
    aggregate: Aggregate
    alpha: float | None
    clustered_by: str | None

    @property
    def rule(self) -> Rule:
        """The rule by which the samples of a case determine its verdict."""
        return Rule(self.repeat, self.threshold, self.aggregate, self.alpha)

    @property
    def key(self) -> tuple[str | None, ...]:
        """What distinguishes cases with the same id: file, suite, target, prompt and variant."""
        return (self.path, self.suite, self.target, self.prompt, self.variant)

    @property
    def names(self) -> Iterable[str]:
        """The searchable names."""
        names = (self.suite, self.target, self.prompt, self.variant, *self.tags)
        return (name for name in names if name is not None)


class CaseChoice(Struct, frozen=True, gc=False):
    """A selection of a run's cases. Empty fields select all.

    Attributes:
        statuses: statuses; `flaky` selects cases whose samples disagree.
        assertion: `failed NAME` or `any NAME`, where NAME is the type or name of an assertion.
        ids: ids of cases.
        trials: numbers of trials, one of which must be of the case; None selects all.
        q: search terms that a trial of the case contains: prefixes of words, or any part of ids and names.
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

    def includes(self, group: CaseGroup) -> bool:
        """Whether the choice includes a group, by its names and tags."""
        return (
            self.suite in ("", group.suite)
            and self.target in ("", group.target)
            and self.prompt in ("", group.prompt)
            and self.variant in ("", group.variant)
            and (not self.tag or self.tag in group.tags)
        )


class IndexedTrial(Struct, frozen=True, gc=False):
    """A trial to be added to the index.

    Attributes:
        place: position of its row, in bytes.
        cluster: hash of its cluster.
        same: hash of file, suite and id of its case.
        grades: for each assertion its type, name and state: 0 (passed), 1 (failed) or 2 (errored).
        position: position of its case in the eval file.
        texts: all searchable text.
    """

    place: int
    group: CaseGroup
    case_id: str
    sample: int
    sha: str
    result: Sample
    duration: float
    cost: float | None
    grades: Sequence[tuple[str, str, int]]
    teaser: str
    cluster: int
    same: int
    position: int
    texts: str


class CaseTrial(Struct, frozen=True, gc=False):
    """A trial of a listed case. Its row begins at `place`, in bytes."""

    number: int
    place: int
    sample: int
    status: Status
    score: float | None
    duration: float
    cost: float | None
    grades: list[list[int]]
    teaser: str


class CaseEntry(Struct, frozen=True, gc=False):
    """A listed case with its trials, in the order of samples."""

    number: int
    route: str
    case_id: str
    group: CaseGroup
    status: Status
    score: float | None
    teaser: str
    sha: str
    early: dict[str, object] | None
    trials: list[CaseTrial]


def route_of(group: CaseGroup, case_id: str, copy: int = 1) -> str:
    """The route of a case within its run, equal to that of the page's function `giveRoutes`."""
    after = "".join(f"/{_quoted(name)}" for name in (group.target, group.prompt, group.variant) if name is not None)
    route = f"{_quoted(group.suite)}/{quote(_well_formed(case_id), safe=_UNESCAPED)}{after}"
    return route if copy == 1 else f"{_without_copy(route)}~{copy}"


@lru_cache(maxsize=1024)
def _quoted(name: str) -> str:
    """A quoted name; cached, as many cases have the same names."""
    return quote(_well_formed(name), safe=_UNESCAPED)


def _without_copy(route: str) -> str:
    head, mark, tail = route.rpartition("~")
    return head if mark and tail.isascii() and tail.isdigit() else route


def _well_formed(name: str) -> str:
    return name if name.isascii() else name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_gates = msgspec.json.Decoder(tuple[RequiredGrade, ...])
_group_in = msgspec.json.Decoder(CaseGroup).decode
_numbers_in = msgspec.json.Decoder(list[int]).decode


class CaseWriter:
    """Writes trials to the tables, in a transaction of the caller.

    Attributes:
        statuses: number of cases by status, in the order of `STATUSES`.
        trials: number of trials with a row.
        replaced: number of rows replaced by later ones.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._groups = InternedTexts(database, "groups")
        self._grades = InternedTexts(database, "grades")
        self.assertions = InternedAssertions(database)
        self.replaced = 0
        found = dict(database.execute("SELECT status, count(*) FROM cases GROUP BY status"))
        self.statuses: list[int] = [found.get(code, 0) for code in CODES.values()]
        self.trials: int
        (self.trials,) = database.execute("SELECT count(*) FROM trials").fetchone()

    def group(self, number: int) -> CaseGroup:
        """The group with a number."""
        return _group_in(self._groups.value(number))

    def all_groups(self) -> Iterator[tuple[int, CaseGroup]]:
        """Every group with its number."""
        return ((number, _group_in(value)) for number, value in self._groups.all())

    def all_grades(self) -> Iterator[tuple[int, list[int]]]:
        """Every list of grades with its number: assertion, state, assertion, state, …."""
        return ((number, _numbers_in(value)) for number, value in self._grades.all())

    def add(self, trials: Iterable[IndexedTrial], first: int) -> int:
        """Add trials, numbered from `first`; return the next number."""
        sampled: dict[int, None] = {}
        number = first
        for trial in trials:
            case = self._add(trial, number)
            if trial.group.repeat > 1:
                sampled[case] = None
            number += 1
        for case in sampled:
            self._update_case(case)
        return number

    def _add(self, trial: IndexedTrial, number: int) -> int:
        case, copy, route = self._find(trial)
        group = self._groups.number(_as_text(trial.group))
        if case is None:
            case = self._new_case(trial, (copy, route), group, number)
        else:
            self._remove(case, trial.sample)
            if trial.group.repeat == 1:
                self._count(case, CODES[trial.result.status])
                result = (trial.result.score, trial.duration, trial.cost)
                self._database.execute(
                    'UPDATE cases SET "group" = ?, status = ?, score = ?, duration = ?, cost = ? WHERE number = ?',
                    (group, CODES[trial.result.status], *result, case),
                )
                self._database.execute(
                    "UPDATE case_names SET sha = ?, told_by = ? WHERE number = ?", (trial.sha, number, case)
                )
        self._insert(trial, case, number)
        return case

    def _find(self, trial: IndexedTrial) -> tuple[int | None, int, int]:
        """The number of a trial's case or None, the copy number of its route, and the hash of the route."""
        copy = 1
        while True:
            route = text_hash(route_of(trial.group, trial.case_id, copy))
            found = self._database.execute(_AT_ROUTE, (route,)).fetchone()
            if found is None:
                return None, copy, route
            number, case_id, group = found
            if case_id == trial.case_id and self.group(group).key == trial.group.key:
                return number, copy, route
            copy += 1

    def _new_case(self, trial: IndexedTrial, route: tuple[int, int], group: int, number: int) -> int:
        status = CODES[trial.result.status]
        self.statuses[status] += 1
        case = sum(self.statuses)  # cases are numbered from 1, and never removed
        result = (status, 0, trial.result.score, trial.duration, trial.cost)
        values = (case, group, *result, trial.cluster, trial.same, trial.position)
        self._database.execute("INSERT INTO cases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        copy, hashed = route
        names = (case, trial.case_id, trial.case_id.lower(), hashed, copy, trial.sha, number)
        self._database.execute("INSERT INTO case_names VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", names)
        return case

    def _remove(self, case: int, sample: int) -> None:
        """Remove the previous trial of a sample, whose row is being replaced."""
        question = 'SELECT number FROM trials WHERE "case" = ? AND sample = ?'
        found = self._database.execute(question, (case, sample)).fetchone()
        if found is not None:
            self._database.execute("DELETE FROM trials WHERE number = ?", found)
            self._database.execute("DELETE FROM trial_texts WHERE number = ?", found)
            self.trials -= 1
            self.replaced += 1

    def _insert(self, trial: IndexedTrial, case: int, number: int) -> None:
        grades = [one for kind, name, state in trial.grades for one in (self.assertions.number(kind, name), state)]
        result = (CODES[trial.result.status], trial.result.score, trial.duration, trial.cost)
        values = (number, case, trial.sample, *result, self._grades.number(_as_text(grades)), trial.place)
        self._database.execute("INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        gates = _as_text(trial.result.gates) if trial.result.gates and trial.group.repeat > 1 else None
        self._database.execute("INSERT INTO trial_texts VALUES (?, ?, ?)", (number, trial.teaser, gates))
        self._database.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (number, trial.texts))
        self.trials += 1

    def _update_case(self, case: int) -> None:
        """Update the verdict, score and costs of a case with several samples."""
        (group,) = self._database.execute('SELECT "group" FROM cases WHERE number = ?', (case,)).fetchone()
        rule = self.group(group).rule
        rows = self._database.execute(
            "SELECT number, sample, status, score, duration, cost, gates FROM trials JOIN trial_texts USING (number) "
            'WHERE "case" = ? ORDER BY number',
            (case,),
        ).fetchall()
        samples = [
            Sample(STATUSES[status], score, () if gates is None else _gates.decode(gates))
            for _, _, status, score, _, _, gates in rows
        ]
        verdict = verdict_over(samples, rule)
        scores = [one.score for one in samples if one.score is not None]
        passed = sum(one.status == "passed" for one in samples)
        judged = passed + sum(one.status == "failed" for one in samples)
        costs = [cost for *_, cost, _ in rows if cost is not None]
        by_sample = sorted(rows, key=lambda row: row[1])
        told_by = next((row[0] for row in by_sample if STATUSES[row[2]] == verdict), by_sample[0][0])
        self._count(case, CODES[verdict])
        self._database.execute(
            "UPDATE cases SET status = ?, flaky = ?, score = ?, duration = ?, cost = ? WHERE number = ?",
            (
                CODES[verdict],
                0 < passed < judged,
                sum(scores) / len(scores) if scores else None,
                sum(row[4] for row in rows),
                sum(costs) if costs else None,
                case,
            ),
        )
        early = early_facts(samples, rule)
        self._database.execute(
            "UPDATE case_names SET told_by = ?, early = ? WHERE number = ?",
            (told_by, None if early is None else _as_text(early), case),
        )

    def _count(self, case: int, status: int) -> None:
        """Move a case to another status in `statuses`."""
        (before,) = self._database.execute("SELECT status FROM cases WHERE number = ?", (case,)).fetchone()
        self.statuses[before] -= 1
        self.statuses[status] += 1


_AT_ROUTE = 'SELECT number, id, "group" FROM case_names JOIN cases USING (number) WHERE route = ?'


def _as_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


_MAX_CACHED = 10_000
"""Maximum number of texts that are cached in memory."""

_MAX_NAMES = 500
"""Maximum number of assertions with a name; later ones have only a type, so that filters stay short."""


class InternedTexts:
    """The interned texts of a table with the columns number, hash and value.

    Args:
        table: name of the table.
    """

    def __init__(self, database: sqlite3.Connection, table: str) -> None:
        self._database = database
        self._numbers: dict[str, int] = {}
        self._values: dict[int, str] = {}
        self._select = f"SELECT number FROM {table} WHERE hash = ?"  # noqa: S608  # the table's name is a constant
        self._insert = f"INSERT INTO {table} (hash, value) VALUES (?, ?)"  # noqa: S608
        self._read = f"SELECT value FROM {table} WHERE number = ?"  # noqa: S608
        self._read_all = f"SELECT number, value FROM {table}"  # noqa: S608

    def number(self, value: str) -> int:
        """The number of a text, which is added if it is new."""
        found = self._numbers.get(value)
        if found is None:
            if len(self._numbers) >= _MAX_CACHED:
                self._numbers.clear()
            found = self._numbers[value] = self._stored(value)
        return found

    def value(self, number: int) -> str:
        """The text with a number."""
        found = self._values.get(number)
        if found is None:
            if len(self._values) >= _MAX_CACHED:
                self._values.clear()
            found = self._values[number] = self._database.execute(self._read, (number,)).fetchone()[0]
        return found

    def all(self) -> Iterator[tuple[int, str]]:
        """Every text with its number."""
        yield from self._database.execute(self._read_all)

    def _stored(self, value: str) -> int:
        key = text_hash(value)
        row = self._database.execute(self._select, (key,)).fetchone()
        return int(row[0] if row else self._database.execute(self._insert, (key, value)).lastrowid or 0)


class InternedAssertions:
    """Numbers assertions by type and name from 0, in the order of their first row."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        rows = database.execute("SELECT type, name FROM assertions ORDER BY number")
        self._numbers: dict[tuple[str, str | None], int] = {(kind, name): at for at, (kind, name) in enumerate(rows)}

    def number(self, kind: str, name: str) -> int:
        """The number of an assertion, or that of its type if there are too many names."""
        named: tuple[str, str | None] = (kind, name)
        if named not in self._numbers and len(self._numbers) >= _MAX_NAMES:
            named = (kind, None)
        found = self._numbers.get(named)
        if found is None:
            found = self._numbers[named] = len(self._numbers)
            self._database.execute("INSERT INTO assertions VALUES (?, ?, ?)", (found, *named))
        return found

    def all(self) -> list[tuple[str, str | None]]:
        """Type and name of each assertion, by number."""
        return list(self._numbers)
