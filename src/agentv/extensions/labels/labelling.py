"""Stores of labels, sessions of `agentv label`, and the import and export of answers to label as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.app.results.place import RESULTS, project_with
from agentv.app.results.stored import open_run
from agentv.errors import StoreError, UsageError
from agentv.extensions.labels.answers import DrawnAnswer, GradedAnswer, draw, graded_answers, grouped
from agentv.model.run.labels import LABEL_VERDICTS, Label, LabelItem, LabelVerdict, person_key
from agentv.model.values.formatting import timestamp
from agentv.reports.csv_rows import guarded, unguarded
from agentv.reports.text import one_line
from agentv.store.files.whole_file import as_store_error
from agentv.store.labels import append_labels, labels_directory, labels_file, read_labels, read_labels_and_ratings


class LabelStore(Protocol):
    """The labels of a project. Labels are only added: the latest label of a person counts."""

    def read(self, suites: Collection[str] | None = None) -> list[Label]:
        """Return the labels of these suites, or of all, in the order in which they were added.

        Raises:
            StoreError: the labels cannot be read.
        """

    def ratings(self, suites: Collection[str]) -> list[Label]:
        """Return the ratings of whole answers of these suites, in the order in which they were added.

        Raises:
            StoreError: the labels cannot be read.
        """

    def add(self, labels: Sequence[Label]) -> None:
        """Add labels or ratings durably.

        Raises:
            StoreError: the labels cannot be stored; none of them counts then.
        """

    def places(self, suites: Collection[str]) -> list[str]:
        """Return where the labels of these suites are stored, for messages."""


class LabelFiles:
    """The labels of a project in `.agentv/labels/SUITE.jsonl`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, suites: Collection[str] | None = None) -> list[Label]:
        """Return labels as `LabelStore.read`. Suites whose names differ only in special characters share a file."""
        if suites is None:
            return read_labels(sorted(labels_directory(self._root).glob("*.jsonl")))
        return read_labels(self.files(suites))

    def ratings(self, suites: Collection[str]) -> list[Label]:
        """Return ratings as `LabelStore.ratings`."""
        found = read_labels_and_ratings(self.files(suites))
        return [one for one in found if one.is_rating and one.suite in suites]

    def add(self, labels: Sequence[Label]) -> None:
        """Append labels to the files of their suites."""
        for file, found in sorted(grouped(labels, lambda one: labels_file(self._root, one.suite)).items()):
            append_labels(file, found)

    def places(self, suites: Collection[str]) -> list[str]:
        """Return the paths of `files`."""
        return list(map(str, self.files(suites)))

    def files(self, suites: Collection[str]) -> list[Path]:
        """Return the files of these suites, whether they exist or not."""
        return sorted({labels_file(self._root, one) for one in suites})


def now() -> str:
    """Return the current time in the format of labels."""
    return timestamp(datetime.now(UTC))


class Draw(Struct, frozen=True):
    """How answers were drawn from a run; the same draw can be repeated from it.

    Attributes:
        one_assertion: whether only answers of one assertion were drawn.
    """

    sample: int
    seed: int
    one_assertion: bool = False

    def __str__(self) -> str:
        """Return the value of the column `draw` in an export."""
        return f"sample {self.sample} seed {self.seed}" + (" of one assertion" if self.one_assertion else "")


class LabellingSession(Struct):
    """The drawn answers of a run, and the labels that one person gives them.

    Attributes:
        store: store of the labels.
        drawn: the answers, in the order in which they are shown.
        given: the person's labels so far, from this session or earlier.
        draw: how the answers were drawn.
    """

    run_id: str
    store: LabelStore
    person: str
    drawn: Sequence[DrawnAnswer]
    given: dict[LabelItem, Label] = field(default_factory=dict)
    clock: Callable[[], str] = now
    draw: Draw | None = None

    @property
    def distinct(self) -> list[DrawnAnswer]:
        """The drawn answers, each once: an answer drawn with both verdicts of the judge is labelled once for both."""
        return list({one.answer.item[:-1]: one for one in reversed(self.drawn)}.values())[::-1]

    @property
    def to_label(self) -> list[DrawnAnswer]:
        """The answers that the person has not labelled yet, in the order in which they are shown."""
        left = {one.answer.item[:-1] for one in self.drawn if one.answer.item not in self.given}
        return [one for one in self.distinct if one.answer.item[:-1] in left]

    @property
    def left(self) -> int:
        """Number of drawn answers that the person has not labelled yet."""
        return len(self.to_label)

    @property
    def agreed(self) -> tuple[int, int]:
        """Number of drawn answers on which person and judge agree, and number with a label other than unsure."""
        pairs = [
            (self.given[one.answer.item].verdict == "pass", one.answer.passed)
            for one in self.drawn
            if one.answer.item in self.given and self.given[one.answer.item].verdict != "unsure"
        ]
        return sum(person is judge for person, judge in pairs), len(pairs)

    @property
    def suites(self) -> set[str]:
        """The suites of the drawn answers."""
        return {one.answer.suite for one in self.drawn}

    def label(self, drawn: DrawnAnswer, verdict: LabelVerdict, note: str = "") -> Label:
        """Add a label durably.

        Args:
            drawn: the answer.
            verdict: the person's verdict.
            note: free text.

        Raises:
            StoreError: the label cannot be stored.
        """
        together = [one for one in self.drawn if one.answer.item[:-1] == drawn.answer.item[:-1]]
        earlier = [self.given[one.answer.item].time for one in together if one.answer.item in self.given]
        time = max([self.clock(), *earlier])  # an earlier label may come from a machine whose clock is ahead
        found = [label_of(one, (self.run_id, self.person), verdict, note, time) for one in together]
        self.store.add(found)
        self.given.update((one.item, one) for one in found)
        return self.given[drawn.answer.item]


def open_session(
    named: str, assertion: str | None, sample: int, seed: int, person: str, *, store: LabelStore | None = None
) -> LabellingSession:
    """Open a person's labelling session on a run.

    Args:
        named: the run.
        assertion: draw only answers of this assertion; None: of all.
        sample: number of answers to draw.
        seed: seed of the draw.
        person: name of the person who labels.
        store: store of the labels; None: the files of the project in the working directory.

    Raises:
        UsageError: the run does not exist, or no judge graded its answers.
        StoreError: the run, or a file of labels, cannot be read.
    """
    run = open_run(named, action="label")
    drawn = draw(graded_answers(run, assertion), sample, seed)
    how = Draw(sample, seed, one_assertion=bool(assertion))
    session = LabellingSession(run.run_id, store or LabelFiles(project_with(RESULTS)), person, drawn, draw=how)
    session.given = given_by(person, session.store.read(session.suites))
    return session


def given_by(person: str, labels: Sequence[Label]) -> dict[LabelItem, Label]:
    """Return a person's labels that count, by item."""
    wanted = person_key(person)
    return {label.item: label for label in latest(labels).values() if label.person_key == wanted}


def label_of(drawn: DrawnAnswer, source: tuple[str, str], verdict: LabelVerdict, note: str, time: str) -> Label:
    """Create the label of a drawn answer. `source`: the id of the run, and the person."""
    answer, (run_id, person) = drawn.answer, source
    return Label(
        case=answer.case,
        output_sha256=answer.output_sha256,
        rubric_sha256=answer.asked.rubric_sha256,
        verdict=verdict,
        person=person,
        time=time,
        suite=answer.suite,
        assertion=answer.assertion,
        run=run_id,
        model=answer.asked.model,
        prompt_sha256=answer.asked.prompt_sha256,
        judge_passed=answer.passed,
        note=note,
        probability=drawn.probability,
        drawn_from=drawn.drawn_from,
    )


def latest(labels: Sequence[Label]) -> Mapping[tuple[LabelItem, str], Label]:
    """Return the label that counts for each (item, person): the latest, or the last in order of equally late ones."""
    return {(label.item, label.person_key): label for label in sorted(labels, key=lambda one: one.time)}


_NEEDED = ("case", "assertion", "label", "output_sha256", "rubric_sha256")


def label_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a CSV file of labels, each with its line number.

    Raises:
        UsageError: the file is not CSV, or columns are missing.
        StoreError: the file cannot be read.
    """
    try:
        with as_store_error("read", path):
            text = path.read_text(encoding="utf-8-sig", errors="strict")
    except UnicodeDecodeError as error:
        raise StoreError(f"cannot read {path}: it is not UTF-8; save it as CSV in UTF-8") from error
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    csv.field_size_limit(1 << 28)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    missing = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
    if missing:
        hint = "export again with 'agentv label RUN --export FILE.csv', and keep its columns"
        raise UsageError(f"{path}: no column {', '.join(missing)}", hint)
    try:
        for row in reader:
            yield reader.line_num, {name: cell or "" for name, cell in row.items() if isinstance(name, str)}
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not CSV: {error}") from error


_DRAW = re.compile(r"sample (\d{1,9}) seed (-?\d{1,18})( of one assertion)?")


class ImportedLines:
    """Turns the rows of an import into labels of a run's answers."""

    def __init__(self, run_id: str, answers: Sequence[GradedAnswer]) -> None:
        self._run_id = run_id
        self._answers = answers
        self._by_key = grouped(answers, lambda one: (_plain(one.case), *one.key[1:]))
        self._draws: dict[tuple[Draw, str | None], dict[GradedAnswer, DrawnAnswer]] = {}

    def labels(self, row: Mapping[str, str], person: str) -> list[Label]:
        """Return the labels of a row, one for each verdict of the judge on its answer.

        Raises:
            ValueError: the row is invalid; the text says why.
        """
        case = _plain(row.get("case", ""))
        hashes = (row.get("output_sha256", "").strip(), row.get("rubric_sha256", "").strip())
        if not all(hashes):
            lacking = "the line has no output_sha256 or no rubric_sha256"
            raise ValueError(f"{lacking}: it was cut off, or these columns were emptied")
        wanted = row.get("prompt_sha256", "").strip()
        matching = [one for one in self._by_key.get((case, *hashes), ()) if wanted in ("", one.asked.prompt_sha256)]
        named = [one for one in matching if _plain(one.assertion) == _plain(row.get("assertion", ""))]
        if not (matching := named or matching):
            what = f"the run {self._run_id} has no answer of case {_quoted(case)} with these hashes"
            raise ValueError(f"{what}; it is of another run or rubric")
        written = row["label"].strip().lower()
        verdict = next((one for one in LABEL_VERDICTS if one == written), None)
        if verdict is None:
            raise ValueError(f"unknown label {_quoted(row['label'])}; write pass, fail or unsure")
        note, time = unguarded(row.get("note", "")), now()
        drawn = self._drawn(row.get("draw", "").strip(), matching)
        labels = [
            label_of(drawn.get(one) or DrawnAnswer(one, 1.0, 1), (self._run_id, person), verdict, note, time)
            for one in matching
            if one in drawn or not drawn
        ]
        return labels if drawn else [replace(one, probability=None, drawn_from=None) for one in labels]

    def _drawn(self, written: str, matching: Sequence[GradedAnswer]) -> dict[GradedAnswer, DrawnAnswer]:
        """Return those of the answers that are in the draw named by the column `draw`."""
        if not written:
            return {}
        found = _DRAW.fullmatch(written)
        if found is None:
            raise ValueError(f"agentv wrote no draw {_quoted(written)}; leave that column as it was exported")
        how = Draw(int(found[1]), int(found[2]), one_assertion=bool(found[3]))
        assertion = matching[0].assertion if how.one_assertion else None
        if (how, assertion) not in self._draws:
            among = [one for one in self._answers if assertion in (None, one.assertion)]
            self._draws[how, assertion] = {one.answer: one for one in draw(among, how.sample, how.seed)}
        drawn = self._draws[how, assertion]
        return {one: drawn[one] for one in matching if one in drawn}


def _quoted(text: str) -> str:
    return f"'{one_line(text, 60)}'"


def _plain(name: str) -> str:
    """Return a name without the guard of exports, even if a spreadsheet removed part of it."""
    return unguarded(name).removeprefix("'")


class ImportedLabels(Struct, frozen=True):
    """Numbers of imported labels.

    Attributes:
        added: new labels.
        known: labels that existed before.
        empty: rows without a label.
        not_drawn: new labels of answers that were not drawn at random.
    """

    added: int
    known: int
    empty: int
    not_drawn: int = 0


def export_answers(session: LabellingSession, path: Path) -> None:
    """Write the drawn answers as CSV, without the judge's verdicts but with the person's earlier labels.

    Raises:
        UsageError: the file is not named .csv, or it exists and may hold labels that were not imported.
        StoreError: the file cannot be written.
    """
    if path.suffix.lower() != ".csv":
        raise UsageError(f"cannot tell the format of {path}", "name it .csv")
    rows: list[dict[str, str]] = []
    for drawn in session.distinct:
        answer, label = drawn.answer, session.given.get(drawn.answer.item)
        # no column may reveal the judge's verdict, as the number of answers with that verdict would
        row = {
            "case": answer.case,
            "assertion": answer.assertion,
            "input": answer.input,
            "retrieved": "\n\n".join(answer.retrieved),
            "reference": answer.reference,
            "output": answer.output,
            "criteria": answer.asked.rubric,
            "label": label.verdict if label else "",
            "note": label.note if label else "",
            "person": "",
            "output_sha256": answer.output_sha256,
            "rubric_sha256": answer.asked.rubric_sha256,
            "prompt_sha256": answer.asked.prompt_sha256,
            "draw": str(session.draw or ""),
        }
        rows.append(row)
    text = io.StringIO()
    csv.writer(text).writerows([list(rows[0]), *(map(guarded, row.values()) for row in rows)])
    with as_store_error("write", path):
        try:
            file = path.open("x", encoding="utf-8", errors="replace", newline="")
        except FileExistsError as error:
            raise UsageError(f"{path} exists and may hold labels", "import it first, or choose another name") from error
        with file:
            file.write(text.getvalue())


def import_labels(named: str, path: Path, person: str) -> ImportedLabels:
    """Add the labels in a CSV file to those of a run; if any row is invalid, add none.

    Args:
        named: the run.
        path: a file exported from the run.
        person: the person of rows without one.

    Raises:
        UsageError: rows are invalid; the text names each of them.
        StoreError: a file cannot be read or written.
    """
    run = open_run(named, action="label")
    lines = ImportedLines(run.run_id, graded_answers(run))
    store = LabelFiles(project_with(RESULTS))
    found: dict[tuple[LabelItem, str], Label] = {}
    problems: list[str] = []
    empty = lines_with_label = 0
    for number, row in label_rows(path):
        if not row.get("label", "").strip():
            empty += 1
            continue
        try:
            labels = lines.labels(row, row.get("person", "").strip() or person)
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        lines_with_label += 1
        if any(_is_new(one, found.get((one.item, one.person_key), one)) for one in labels):
            problems.append(f"{path}:{number}: {labels[0].person} says something else of this answer above")
        found.update({(one.item, one.person_key): one for one in labels})
    if problems:
        raise UsageError("\n".join(problems), "no label was added; correct the lines and try again")
    before = latest(store.read({one.suite for one in found.values()}))
    new = [one for which, one in found.items() if _is_new(one, before.get(which))]
    store.add(new)
    added = {(one.item[:-1], one.person_key): one for one in new}  # count an answer with both verdicts once
    not_drawn = sum(one.probability is None for one in added.values())
    return ImportedLabels(len(added), lines_with_label - len(added), empty, not_drawn)


def _is_new(label: Label, before: Label | None) -> bool:
    return before is None or (label.verdict, label.note) != (before.verdict, before.note)
