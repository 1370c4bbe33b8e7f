"""`agentv label`: a session of labelling, which can end at any moment and be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.stored import open_run
from agentv.errors import UsageError
from agentv.extensions.labels.answers import draw, graded_answers
from agentv.extensions.labels.graded_answers import DrawnAnswer
from agentv.extensions.labels.keeping import LabelFiles, LabelStore
from agentv.model.run.labelled.labels import Label, LabelItem, LabelVerdict, person_key, time_problem
from agentv.model.values.formatting import timestamp


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


@dataclass(frozen=True, slots=True)
class Said:
    """What a person says of an answer: a verdict, or points on the scale of the rubric, which decide it."""

    verdict: LabelVerdict | None = None
    points: int | None = None
    note: str = ""


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

    def label(
        self, drawn: DrawnAnswer, verdict: LabelVerdict | None = None, note: str = "", *, points: int | None = None
    ) -> Label:
        """Add a label; it is durable when this returns.

        Args:
            drawn: the answer.
            verdict: of the person; None: that of the points.
            note: anything.
            points: on the scale of the rubric, if it has one.

        Raises:
            ValueError: neither a verdict nor points of the scale are given.
            StoreError: it cannot be kept.
        """
        together = [one for one in self.drawn if one.answer.item[:-1] == drawn.answer.item[:-1]]
        earlier = [self.given[one.answer.item].time for one in together if one.answer.item in self.given]
        time = max([self.clock(), *earlier])  # the clock of the machine that gave an earlier one may be ahead
        found = [label_of(one, self.run_id, self.person, Said(verdict, points, note), time) for one in together]
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


def login_name() -> str:
    """Who labels where nobody says so.

    Raises:
        UsageError: the system does not know.
    """
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise UsageError("your login name is unknown", "say who labels with --by NAME") from error


def label_of(drawn: DrawnAnswer, run_id: str, person: str, said: Said, time: str) -> Label:
    """The label of a drawn answer.

    Raises:
        ValueError: neither a verdict nor points of the scale are given.
    """
    answer = drawn.answer
    verdict, score = said.verdict, None
    if said.points is not None:
        if answer.scale is None:
            raise ValueError("the rubric has no scale")
        score = answer.scale.score(said.points)
        verdict = verdict or answer.scale.verdict(said.points)
    if verdict is None:
        raise ValueError("a label needs a verdict or points")
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
        said.note,
        drawn.probability,
        drawn.drawn_from,
        score,
    )


def latest(labels: Sequence[Label]) -> Mapping[tuple[LabelItem, str], Label]:
    """The label that counts of each answer and person: the one with the latest time, of two the one further down.

    A label that cannot have been given at its time does not count: nobody could ever replace one of the year 9999.
    """
    return {(label.item, label.person_key): label for label in sorted(possible(labels), key=lambda one: one.time)}


def possible(labels: Iterable[Label]) -> list[Label]:
    """The labels that can have been given at their time."""
    moment = datetime.now(UTC)
    return [label for label in labels if time_problem(label, moment) is None]
