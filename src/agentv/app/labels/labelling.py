"""`agentv label`: a session of labelling, which can end at any moment and be resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path

from agentv.app.labels.answers import draw, graded_answers
from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.stored import open_run
from agentv.lazy_dataclass import dataclass
from agentv.model.run.labels import DrawnAnswer, Label, LabelItem, LabelVerdict
from agentv.model.values.formatting import timestamp
from agentv.store.labels.label_files import append_labels, labels_file, read_labels


def now() -> str:
    """The time of a label."""
    return timestamp(datetime.now(UTC))


@dataclass(slots=True)
class LabellingSession:
    """The drawn answers of a run, and the labels that one person gives them.

    Attributes:
        drawn: the answers, in the order in which they are shown.
        given: what the person has said so far, in this session or before.
    """

    run_id: str
    root: Path
    person: str
    drawn: Sequence[DrawnAnswer]
    given: dict[LabelItem, Label] = field(default_factory=dict)
    clock: Callable[[], str] = now

    @property
    def left(self) -> int:
        """Number of drawn answers that the person has not labelled."""
        return sum(one.answer.item not in self.given for one in self.drawn)

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
    def files(self) -> list[Path]:
        """The files that labels are written to."""
        return sorted({labels_file(self.root, one.answer.suite) for one in self.drawn})

    def label(self, drawn: DrawnAnswer, verdict: LabelVerdict, note: str = "") -> Label:
        """Write a label; it is on the disk when this returns.

        Raises:
            StoreError: it cannot be written.
        """
        found = label_of(drawn, self.run_id, self.person, verdict, note, self.clock())
        append_labels(labels_file(self.root, drawn.answer.suite), [found])
        self.given[found.item] = found
        return found


def open_session(named: str, assertion: str | None, sample: int, seed: int, person: str) -> LabellingSession:
    """The session of a person over a run.

    Raises:
        UsageError: there is no such run, or no judge graded its answers.
        StoreError: the run, or a file of labels, cannot be read.
    """
    run = open_run(named, action="label")
    root = place_holding(RESULTS)
    session = LabellingSession(run.run_id, root, person, draw(graded_answers(run, assertion), sample, seed))
    session.given = {
        label.item: label for label in latest(read_labels(session.files)).values() if label.person == person
    }
    return session


def label_of(drawn: DrawnAnswer, run_id: str, person: str, verdict: LabelVerdict, note: str, time: str) -> Label:
    """The label of a drawn answer."""
    answer = drawn.answer
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
    return {(label.item, label.person): label for label in sorted(labels, key=lambda one: one.time)}
