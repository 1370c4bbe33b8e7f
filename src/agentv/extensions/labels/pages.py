"""Labels in the pages of `agentv view`: answers to label one at a time, ratings of any answer, and judges checked.

Nothing tells what the judge said until all answers are labelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from agentv.app.results.project import check_files, stamp_of
from agentv.extensions.labels.answers import DrawnAnswer
from agentv.extensions.labels.checking import NoLabelsError, check_judges, check_labels
from agentv.extensions.labels.commands import SAMPLE
from agentv.extensions.labels.labelling import LabelFiles, LabellingSession, LabelStore, given_by, open_session
from agentv.extensions.labels.ratings import answers_of, as_in_rows, rate, ratings_of_run
from agentv.extensions.labels.reporting import judge_check_content
from agentv.model.run.labels import Label, LabelItem, LabelVerdict, person_key
from agentv.reports.text import without_directories
from agentv.store.files.directory import is_being_written
from agentv.web.answers import RefusedError
from agentv.web.endpoints import Call, Endpoint, ProjectContext, declaring

LONGEST_NOTE = 10_000
"""Characters of a note."""

LARGEST_SAMPLE = 10_000
"""Answers of a draw."""

_DRAWS = 4
"""Draws that are held: each has the texts of its answers."""

Sample = Annotated[int, Meta(ge=1, le=LARGEST_SAMPLE)]


class DrawQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which answers are labelled: the same draw as that of `agentv label`.

    Attributes:
        run: its id.
        assertion: only answers that this assertion graded; empty: all.
        sample: number of answers to draw.
        seed: of the draw.
    """

    run: str
    assertion: str = ""
    sample: Sample = SAMPLE
    seed: int = 0


class QueueQuery(DrawQuery, frozen=True, forbid_unknown_fields=True):
    """A draw, and one of its answers.

    Attributes:
        at: the id of an answer; empty: the first that has no label of this person.
    """

    at: str = ""


class SaidLabel(DrawQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a person says of an answer.

    Attributes:
        id: of the answer, as the queue gives it.
        verdict: whether it meets the criteria.
        note: anything.
        replaces: the time of the person's earlier label of this answer, as the queue gives it, or empty.
    """

    id: str
    verdict: LabelVerdict
    note: Annotated[str, Meta(max_length=LONGEST_NOTE)] = ""
    replaces: str = ""


class GivenLabel(Struct, frozen=True):
    """The label that a person gave an answer.

    Attributes:
        time: when.
    """

    verdict: LabelVerdict
    note: str
    time: str


class AnswerToLabel(Struct, frozen=True):
    """An answer, and what it is judged by.

    Attributes:
        id: the same for everybody and in every draw, as long as answer, rubric and judge stay.
        retrieved: texts that were retrieved for the answer.
        reference: the expected output, or empty.
        given: what this person said of it before; null: nothing.
    """

    id: str
    case: str
    assertion: str
    input: str
    retrieved: tuple[str, ...]
    reference: str
    output: str
    criteria: str
    given: GivenLabel | None


class LabelQueue(Struct, frozen=True):
    """One answer to label, and how far the person is.

    Attributes:
        run: its id.
        person: who labels.
        total: number of answers drawn.
        left: how many of them have no label of this person.
        place: of the answer among them, from 1; 0: all are labelled.
        answer: null: all are labelled.
        before: the id of the answer before; empty for the first.
        after: the id of the next answer; empty for the last.
        assertions: whose answers were drawn.
        places: where the labels are kept.
    """

    run: str
    person: str
    total: int
    left: int
    place: int
    answer: AnswerToLabel | None
    before: str
    after: str
    assertions: list[str]
    places: list[str]


class LabelSaved(Struct, frozen=True):
    """A label that is durable.

    Attributes:
        id: of the answer.
        next: the next answer that has no label.
    """

    id: str
    given: GivenLabel
    next: LabelQueue


class LabelAgreement(Struct, frozen=True):
    """On how many answers the person and the judge say the same, of those on which both say something."""

    agreed: int
    of: int


class LabelQueues:
    """The answers of a project's runs as people label them. Draws are kept as long as the runs stay."""

    def __init__(self, context: ProjectContext) -> None:
        self._context = context
        self._draws: dict[tuple[Path, str, DrawQuery], LabellingSession] = {}
        self.lock = Lock()

    def session(self, query: DrawQuery, call: Call) -> LabellingSession:
        """The session of who asks over a draw; to be called, and used to label, while `lock` is held.

        Raises:
            NoSuchRunError, UsageError, StoreError: there are no such answers, or they cannot be read.
        """
        person, kept = call.person, label_store(self._context, call)
        path = self._context.project.run(query.run)
        check_files(path)
        key = (path, stamp_of(path), DrawQuery(query.run, query.assertion, query.sample, query.seed))
        found = self._draws.get(key)
        if found is None:
            found = open_session(str(path), query.assertion or None, query.sample, query.seed, person, kept=kept)
            if len(self._draws) >= _DRAWS:
                self._draws.clear()
            self._draws[key] = found
        given = given_by(person, kept.read(found.suites))
        return LabellingSession(found.run_id, kept, person, found.drawn, given, draw=found.draw)


def _id(drawn: DrawnAnswer) -> str:
    """Made from everything that a label is of, except the judge's verdict."""
    return sha256(repr(drawn.answer.item[:-1]).encode()).hexdigest()[:32]


def _with_id(session: LabellingSession, wanted: str) -> DrawnAnswer:
    for one in session.distinct:
        if _id(one) == wanted:
            return one
    why = "this answer is not among those to label any more: the run was changed, or graded again"
    raise RefusedError(404, "no-such-answer", why)


def _given(session: LabellingSession, drawn: DrawnAnswer) -> Label | None:
    """The person's label of an answer; None without one, or if the judge's verdict was another then."""
    items: Sequence[LabelItem] = [
        one.answer.item for one in session.drawn if one.answer.item[:-1] == drawn.answer.item[:-1]
    ]
    found = [session.given[one] for one in items if one in session.given]
    return found[0] if len(found) == len(items) else None


def _shown(label: Label) -> GivenLabel:
    return GivenLabel(label.verdict, label.note, label.time)


def _queue(session: LabellingSession, drawn: DrawnAnswer | None) -> LabelQueue:
    order = session.distinct
    ids = [_id(one) for one in order]
    at = len(order) if drawn is None else ids.index(_id(drawn))
    return LabelQueue(
        run=session.run_id,
        person=session.person,
        total=len(order),
        left=session.left,
        place=0 if drawn is None else at + 1,
        answer=None if drawn is None else _answer(session, drawn),
        before=ids[at - 1] if at else "",
        after=ids[at + 1] if at + 1 < len(ids) else "",
        assertions=sorted({one.answer.assertion for one in order}),
        places=list(map(without_directories, session.kept.places(session.suites))),
    )


def _answer(session: LabellingSession, drawn: DrawnAnswer) -> AnswerToLabel:
    answer, before = drawn.answer, _given(session, drawn)
    return AnswerToLabel(
        id=_id(drawn),
        case=answer.case,
        assertion=answer.assertion,
        input=answer.input,
        retrieved=answer.retrieved,
        reference=answer.reference,
        output=answer.output,
        criteria=answer.asked.rubric,
        given=None if before is None else _shown(before),
    )


def label_store(context: ProjectContext, call: Call) -> LabelStore:
    """Where labels and ratings of who asks are kept."""
    return LabelFiles(context.project.root) if context.labels_of is None else context.labels_of(call.person)


LABELLING: list[Endpoint] = []
RATING: list[Endpoint] = []
JUDGES: list[Endpoint] = []

_labelling = declaring(LABELLING, Endpoint)
_rating = declaring(RATING, Endpoint)
_judging = declaring(JUDGES, Endpoint)


@_labelling("/api/labels/queue", query=QueueQuery, needs="label")
def _answer_to_label(context: ProjectContext, call: Call) -> LabelQueue:
    """An answer to label, without its grade."""
    query, queues = call.query, context.shared(LabelQueues)
    with queues.lock:
        session = queues.session(query, call)
    return _queue(session, _with_id(session, query.at) if query.at else next(iter(session.to_label), None))


@_labelling("/api/labels", method="POST", body=SaidLabel, needs="label")
def _label(context: ProjectContext, call: Call) -> LabelSaved:
    """Label an answer; it is durable before the answer is sent."""
    said: SaidLabel = call.body
    queues = context.shared(LabelQueues)
    with queues.lock:
        session = queues.session(said, call)
        drawn = _with_id(session, said.id)
        label, note = _given(session, drawn), said.note.strip()
        if label is None or (label.verdict, label.note) != (said.verdict, note):  # the same label again changes nothing
            if (label.time if label else "") != said.replaces:
                why = "this answer has no label of yours any more"
                if label is not None:
                    why = f"you labelled this answer elsewhere meanwhile: {label.verdict}"
                raise RefusedError(409, "labelled-meanwhile", f"{why}; look at it again")
            label = session.label(drawn, said.verdict, note)
    # the next answer without a label, from the one after this on
    left = {_id(one) for one in session.to_label}
    order = session.distinct
    at = [_id(one) for one in order].index(_id(drawn)) + 1
    following = next((one for one in (*order[at:], *order[:at]) if _id(one) in left), None)
    return LabelSaved(said.id, _shown(label), _queue(session, following))


@_labelling("/api/labels/agreement", method="POST", body=DrawQuery, needs="label")
def _agreement(context: ProjectContext, call: Call) -> LabelAgreement:
    """How often person and judge agree, once all answers of a draw are labelled."""
    queues = context.shared(LabelQueues)
    with queues.lock:
        session = queues.session(call.body, call)
        if session.left:
            raise RefusedError(409, "not-finished", f"{session.left} of these answers have no label of yours yet")
    return LabelAgreement(*session.agreed)


Thumb = Literal["up", "down", ""]

_VERDICTS: dict[Thumb, LabelVerdict] = {"up": "pass", "down": "fail", "": "unsure"}
_THUMBS: dict[str, Thumb] = {"pass": "up", "fail": "down", "unsure": ""}


class Rating(Struct, frozen=True):
    """What a person thinks of an answer.

    Attributes:
        output_sha256: of the answer, with whose case and suite it is found.
        thumb: empty: neither.
        comment: empty: none.
        mine: whether it is of who asks.
    """

    suite: str
    case: str
    output_sha256: str
    person: str
    thumb: Thumb
    comment: str
    time: str
    mine: bool


class Ratings(Struct, frozen=True):
    """The latest rating of each person of each answer; those taken back are left out."""

    ratings: list[Rating]


class SaidRating(Struct, frozen=True, forbid_unknown_fields=True):
    """A rating as it is given.

    Attributes:
        key: of the trial whose answer it is of.
        output_sha256: of the answer that the person saw.
        thumb, comment: both empty take an earlier rating back.
    """

    key: str
    output_sha256: str
    thumb: Thumb = ""
    comment: Annotated[str, Meta(max_length=LONGEST_NOTE)] = ""


_PATH = "/api/runs/{id}/ratings"


@_rating(_PATH)
def _ratings(context: ProjectContext, call: Call) -> Ratings:
    """What people think of the answers of a run."""
    run = context.project.run(call.names["id"])
    check_files(run)
    wanted = person_key(call.person)
    return Ratings(
        [
            Rating(*answer, one.person, _THUMBS[one.verdict], one.note, one.time, one.person_key == wanted)
            for answer, given in ratings_of_run(run, label_store(context, call)).items()
            for one in given
        ]
    )


@_rating(_PATH, method="POST", body=SaidRating, needs="label")
def _rate(context: ProjectContext, call: Call) -> Ratings:
    """Rate an answer; the rating is durable before this answers with all ratings of the run."""
    said: SaidRating = call.body
    run = context.project.run(call.names["id"])
    check_files(run)
    key = as_in_rows(said.key)
    answers = [one.name for one in answers_of(run, lambda line: key in line) if one.key == said.key]
    if not answers:
        raise RefusedError(404, "no-such-answer", "this run has no such answer")
    seen = next((one for one in answers if one[-1] == said.output_sha256), None)
    if seen is None:
        raise RefusedError(409, "answer-changed", "this run has another answer now; reload the page to see it")
    rate(seen, (_VERDICTS[said.thumb], said.comment), call.person, run.name, label_store(context, call))
    return _ratings(context, call)


class JudgesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which judges.

    Attributes:
        run: that they graded; empty: by all labels of the project alone.
        assertion: only the judge of this assertion; empty: of all.
    """

    run: str = ""
    assertion: str = ""


def _state(context: ProjectContext, call: Call) -> str:
    """All labels, and the files of the run."""
    labels = sha256(repr(label_store(context, call).read()).encode(errors="surrogatepass")).hexdigest()
    if not call.query.run:
        return labels
    path = context.project.run(call.query.run)
    return f"{labels} {stamp_of(path)} {is_being_written(path)}"


@_judging("/api/judges", query=JudgesQuery, state=_state, kept=True)
def _judges(context: ProjectContext, call: Call) -> dict[str, Any]:
    """How well judges agree with people: what `agentv judge check --json` prints."""
    kept, run, assertion = label_store(context, call), call.query.run, call.query.assertion or None
    try:
        if not run:
            missing = NoLabelsError("nobody has labelled answers yet", "label answers: agentv label RUN")
            return dict(judge_check_content(check_labels(kept.read(), assertion, missing)))
        path = context.project.run(run)
        check_files(path)
        return dict(judge_check_content(check_judges(str(path), assertion, kept)))
    except NoLabelsError as error:
        raise RefusedError(404, "no-labels", f"{error}; {error.hint}" if error.hint else str(error)) from error
