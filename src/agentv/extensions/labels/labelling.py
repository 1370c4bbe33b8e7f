"""Labels of a project, where they are kept, and a session of `agentv label`, which can end at any moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.stored import open_run
from agentv.extensions.labels.answers import DrawnAnswer, draw, graded_answers, grouped
from agentv.model.run.labels import Label, LabelItem, LabelVerdict, person_key
from agentv.model.values.formatting import timestamp
from agentv.store.labels.label_files import (
    append_labels,
    labels_directory,
    labels_file,
    read_labels,
    read_labels_and_ratings,
)


class LabelStore(Protocol):
    """The labels of a project. Labels are added, never changed: the latest of a person counts."""

    def read(self, suites: Collection[str] | None = None) -> list[Label]:
        """The labels of these suites, or of all, in the order in which they were added.

        Raises:
            StoreError: they cannot be read.
        """

    def ratings(self, suites: Collection[str]) -> list[Label]:
        """The ratings of whole answers of these suites, in the order in which they were added.

        Raises:
            StoreError: they cannot be read.
        """

    def add(self, labels: Sequence[Label]) -> None:
        """Add labels or ratings; they are durable when this returns.

        Raises:
            StoreError: they cannot be kept; none of them counts then.
        """

    def places(self, suites: Collection[str]) -> list[str]:
        """Where the labels of these suites lie, for messages."""


class LabelFiles:
    """The labels of a project in `.agentv/labels/SUITE.jsonl`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, suites: Collection[str] | None = None) -> list[Label]:
        """As `LabelStore.read`. Suites whose names differ only in signs share a file."""
        if suites is None:
            return read_labels(sorted(labels_directory(self._root).glob("*.jsonl")))
        return read_labels(self.files(suites))

    def ratings(self, suites: Collection[str]) -> list[Label]:
        """As `LabelStore.ratings`."""
        found = read_labels_and_ratings(self.files(suites))
        return [one for one in found if one.is_rating and one.suite in suites]

    def add(self, labels: Sequence[Label]) -> None:
        """As `LabelStore.add`."""
        for file, found in sorted(grouped(labels, lambda one: labels_file(self._root, one.suite)).items()):
            append_labels(file, found)

    def places(self, suites: Collection[str]) -> list[str]:
        """As `LabelStore.places`."""
        return list(map(str, self.files(suites)))

    def files(self, suites: Collection[str]) -> list[Path]:
        """The files of these suites; not all of them need exist."""
        return sorted({labels_file(self._root, one) for one in suites})


def now() -> str:
    """The time of a label."""
    return timestamp(datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Draw:
    """How answers were drawn from a run: enough to draw them again.

    Attributes:
        one_assertion: only answers of one assertion were drawn.
    """

    sample: int
    seed: int
    one_assertion: bool = False


@dataclass(slots=True)
class LabellingSession:
    """The drawn answers of a run, and the labels that one person gives them.

    Attributes:
        kept: where labels are kept.
        drawn: the answers, in the order in which they are shown.
        given: what the person has said so far, in this session or before.
        draw: how the answers were drawn.
    """

    run_id: str
    kept: LabelStore
    person: str
    drawn: Sequence[DrawnAnswer]
    given: dict[LabelItem, Label] = field(default_factory=dict)
    clock: Callable[[], str] = now
    draw: Draw | None = None

    @property
    def distinct(self) -> list[DrawnAnswer]:
        """The drawn answers, without those drawn already with the judge's other verdict: they are labelled together."""
        return list({one.answer.item[:-1]: one for one in reversed(self.drawn)}.values())[::-1]

    @property
    def to_label(self) -> list[DrawnAnswer]:
        """The answers that the person has not labelled, in the order in which they are shown."""
        left = {one.answer.item[:-1] for one in self.drawn if one.answer.item not in self.given}
        return [one for one in self.distinct if one.answer.item[:-1] in left]

    @property
    def left(self) -> int:
        """Number of drawn answers that the person has not labelled."""
        return len(self.to_label)

    @property
    def agreed(self) -> tuple[int, int]:
        """On how many drawn answers the person and the judge say the same, and of how many both say something."""
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
        """Add a label; it is durable when this returns.

        Args:
            drawn: the answer.
            verdict: of the person.
            note: anything.

        Raises:
            StoreError: it cannot be kept.
        """
        together = [one for one in self.drawn if one.answer.item[:-1] == drawn.answer.item[:-1]]
        earlier = [self.given[one.answer.item].time for one in together if one.answer.item in self.given]
        time = max([self.clock(), *earlier])  # the clock of the machine that gave an earlier one may be ahead
        found = [label_of(one, (self.run_id, self.person), verdict, note, time) for one in together]
        self.kept.add(found)
        self.given.update((one.item, one) for one in found)
        return self.given[drawn.answer.item]


def open_session(
    named: str, assertion: str | None, sample: int, seed: int, person: str, *, kept: LabelStore | None = None
) -> LabellingSession:
    """The session of a person over a run.

    Args:
        named: the run.
        assertion: only answers of this assertion; None: of all.
        sample: number of answers to draw.
        seed: of the draw.
        person: who labels.
        kept: where labels are kept; None: in the files of the working directory's project.

    Raises:
        UsageError: there is no such run, or no judge graded its answers.
        StoreError: the run, or a file of labels, cannot be read.
    """
    run = open_run(named, action="label")
    drawn = draw(graded_answers(run, assertion), sample, seed)
    how = Draw(sample, seed, one_assertion=bool(assertion))
    session = LabellingSession(run.run_id, kept or LabelFiles(place_holding(RESULTS)), person, drawn, draw=how)
    session.given = given_by(person, session.kept.read(session.suites))
    return session


def given_by(person: str, labels: Sequence[Label]) -> dict[LabelItem, Label]:
    """The labels of a person that count."""
    wanted = person_key(person)
    return {label.item: label for label in latest(labels).values() if label.person_key == wanted}


def label_of(drawn: DrawnAnswer, source: tuple[str, str], verdict: LabelVerdict, note: str, time: str) -> Label:
    """The label of a drawn answer. `source`: the id of the run, and the person."""
    answer, (run_id, person) = drawn.answer, source
    return Label(
        answer.case,
        answer.output_sha256,
        answer.asked.rubric_sha256,
        verdict,
        person,
        time,
        answer.suite,
        answer.assertion,
        run_id,
        answer.asked.model,
        answer.asked.prompt_sha256,
        answer.passed,
        note,
        drawn.probability,
        drawn.drawn_from,
    )


def latest(labels: Sequence[Label]) -> Mapping[tuple[LabelItem, str], Label]:
    """The label that counts of each answer and person: the one with the latest time, of two the one further down."""
    return {(label.item, label.person_key): label for label in sorted(labels, key=lambda one: one.time)}
