"""Web API of labels for `agentv view`: answers to label one at a time, ratings of any answer, and checks of judges.

The judge's verdicts stay hidden until all answers are labelled.
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
"""Most characters of a note."""

LARGEST_SAMPLE = 10_000
"""Most answers in a draw."""

_DRAWS = 4
"""Most draws held in memory, each with the texts of its answers."""

Sample = Annotated[int, Meta(ge=1, le=LARGEST_SAMPLE)]


class DrawQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The answers to label, drawn as `agentv label` draws them.

    Attributes:
        run: id of the run.
        assertion: draw only answers that this assertion graded; empty: all.
        sample: number of answers to draw.
        seed: seed of the draw.
    """

    run: str
    assertion: str = ""
    sample: Sample = SAMPLE
    seed: int = 0


class QueueQuery(DrawQuery, frozen=True, forbid_unknown_fields=True):
    """A draw, and one of its answers.

    Attributes:
        at: id of an answer; empty: the first that this person has not labelled.
    """

    at: str = ""


class SaidLabel(DrawQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A person's label of an answer, as sent.

    Attributes:
        id: id of the answer, from the queue.
        verdict: whether the answer meets the criteria.
        note: free text.
        replaces: time of the person's earlier label of this answer, from the queue; empty if none exists.
    """

    id: str
    verdict: LabelVerdict
    note: Annotated[str, Meta(max_length=LONGEST_NOTE)] = ""
    replaces: str = ""


class GivenLabel(Struct, frozen=True):
    """A person's label of an answer, as stored.

    Attributes:
        time: time of labelling.
    """

    verdict: LabelVerdict
    note: str
    time: str


class AnswerToLabel(Struct, frozen=True):
    """An answer, and the criteria to judge it by.

    Attributes:
        id: the same for everyone and in every draw while the answer, the rubric and the judge do not change.
        retrieved: texts retrieved for the answer.
        reference: the expected output, or empty.
        given: this person's earlier label, or null.
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
    """One answer to label, and the person's progress.

    Attributes:
        run: id of the run.
        person: name of the person who labels.
        total: number of answers drawn.
        left: number of them that this person has not labelled.
        place: position of the answer among them, from 1; 0 if all are labelled.
        answer: null if all are labelled.
        before: id of the answer before; empty for the first.
        after: id of the next answer; empty for the last.
        assertions: assertions whose answers were drawn.
        places: where the labels are stored.
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
    """A label that has been stored durably.

    Attributes:
        id: id of the answer.
        next: the next answer without a label.
    """

    id: str
    given: GivenLabel
    next: LabelQueue


class LabelAgreement(Struct, frozen=True):
    """Agreement of the person and the judge.

    Attributes:
        agreed: number of answers on which they agree.
        of: number of answers with a label other than unsure.
    """

    agreed: int
    of: int


class LabelQueues:
    """Labelling sessions of a project's runs. A draw is reused while its run does not change."""

    def __init__(self, context: ProjectContext) -> None:
        self._context = context
        self._draws: dict[tuple[Path, str, DrawQuery], LabellingSession] = {}
        self.lock = Lock()

    def session(self, query: DrawQuery, call: Call) -> LabellingSession:
        """Return the caller's session on a draw. Hold `lock` while calling this and while labelling.

        Raises:
            NoSuchRunError, UsageError: the run or such answers do not exist.
            StoreError: the run or the labels cannot be read.
        """
        person, store = call.person, label_store(self._context, call)
        path = self._context.project.run(query.run)
        check_files(path)
        key = (path, stamp_of(path), DrawQuery(query.run, query.assertion, query.sample, query.seed))
        found = self._draws.get(key)
        if found is None:
            found = open_session(str(path), query.assertion or None, query.sample, query.seed, person, store=store)
            if len(self._draws) >= _DRAWS:
                self._draws.clear()
            self._draws[key] = found
        given = given_by(person, store.read(found.suites))
        return LabellingSession(found.run_id, store, person, found.drawn, given, draw=found.draw)


def _id(drawn: DrawnAnswer) -> str:
    """Hash the item that a label applies to, without the judge's verdict."""
    return sha256(repr(drawn.answer.item[:-1]).encode()).hexdigest()[:32]


def _with_id(session: LabellingSession, wanted: str) -> DrawnAnswer:
    for one in session.distinct:
        if _id(one) == wanted:
            return one
    why = "this answer is not among those to label any more: the run was changed, or graded again"
    raise RefusedError(404, "no-such-answer", why)


def _given(session: LabellingSession, drawn: DrawnAnswer) -> Label | None:
    """Return the person's label of an answer, or None if any drawn verdict of the judge on it is unlabelled."""
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
        places=list(map(without_directories, session.store.places(session.suites))),
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
    """Return the store of the caller's labels and ratings."""
    return LabelFiles(context.project.root) if context.labels_of is None else context.labels_of(call.person)


LABELLING: list[Endpoint] = []
RATING: list[Endpoint] = []
JUDGES: list[Endpoint] = []

_labelling = declaring(LABELLING, Endpoint)
_rating = declaring(RATING, Endpoint)
_judging = declaring(JUDGES, Endpoint)


@_labelling("/api/labels/queue", query=QueueQuery, needs="label")
def _answer_to_label(context: ProjectContext, call: Call) -> LabelQueue:
    """Return an answer to label, without its grade."""
    query, queues = call.query, context.shared(LabelQueues)
    with queues.lock:
        session = queues.session(query, call)
    return _queue(session, _with_id(session, query.at) if query.at else next(iter(session.to_label), None))


@_labelling("/api/labels", method="POST", body=SaidLabel, needs="label")
def _label(context: ProjectContext, call: Call) -> LabelSaved:
    """Label an answer. The label is stored durably before the response is sent."""
    said: SaidLabel = call.body
    queues = context.shared(LabelQueues)
    with queues.lock:
        session = queues.session(said, call)
        drawn = _with_id(session, said.id)
        label, note = _given(session, drawn), said.note.strip()
        if label is None or (label.verdict, label.note) != (said.verdict, note):  # repeating a label changes nothing
            if (label.time if label else "") != said.replaces:
                why = "this answer has no label of yours any more"
                if label is not None:
                    why = f"you labelled this answer elsewhere meanwhile: {label.verdict}"
                raise RefusedError(409, "labelled-meanwhile", f"{why}; look at it again")
            label = session.label(drawn, said.verdict, note)
    # the next answer without a label, starting after this one
    left = {_id(one) for one in session.to_label}
    order = session.distinct
    at = [_id(one) for one in order].index(_id(drawn)) + 1
    following = next((one for one in (*order[at:], *order[:at]) if _id(one) in left), None)
    return LabelSaved(said.id, _shown(label), _queue(session, following))


@_labelling("/api/labels/agreement", method="POST", body=DrawQuery, needs="label")
def _agreement(context: ProjectContext, call: Call) -> LabelAgreement:
    """Return how often person and judge agree, once all answers of a draw are labelled."""
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
    """A person's rating of an answer.

    Attributes:
        output_sha256: hash of the answer, which with `suite` and `case` identifies it.
        thumb: empty if none exists.
        comment: empty if none exists.
        mine: whether it is the caller's own.
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
    """Each person's latest rating of each answer, without withdrawn ones."""

    ratings: list[Rating]


class SaidRating(Struct, frozen=True, forbid_unknown_fields=True):
    """A rating to store.

    Attributes:
        key: key of the trial whose answer is rated.
        output_sha256: hash of the answer that the person saw.
        thumb: empty for none.
        comment: empty for none; without thumb and comment, an earlier rating is withdrawn.
    """

    key: str
    output_sha256: str
    thumb: Thumb = ""
    comment: Annotated[str, Meta(max_length=LONGEST_NOTE)] = ""


_PATH = "/api/runs/{id}/ratings"


@_rating(_PATH)
def _ratings(context: ProjectContext, call: Call) -> Ratings:
    """Return people's ratings of the answers of a run."""
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
    """Rate an answer, store the rating durably, and return all ratings of the run."""
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
    """Selects the judges to check.

    Attributes:
        run: id of the run that they graded; empty: check judges by all labels of the project alone.
        assertion: check only the judge of this assertion; empty: of all.
    """

    run: str = ""
    assertion: str = ""


def _state(context: ProjectContext, call: Call) -> str:
    """Return a hash of all labels, and the state of the run's files."""
    labels = sha256(repr(label_store(context, call).read()).encode(errors="surrogatepass")).hexdigest()
    if not call.query.run:
        return labels
    path = context.project.run(call.query.run)
    return f"{labels} {stamp_of(path)} {is_being_written(path)}"


@_judging("/api/judges", query=JudgesQuery, state=_state, cached=True)
def _judges(context: ProjectContext, call: Call) -> dict[str, Any]:
    """Return how well judges agree with people, as `agentv judge check --json` prints it."""
    store, run, assertion = label_store(context, call), call.query.run, call.query.assertion or None
    try:
        if not run:
            missing = NoLabelsError("nobody has labelled answers yet", "label answers: agentv label RUN")
            return dict(judge_check_content(check_labels(store.read(), assertion, missing)))
        path = context.project.run(run)
        check_files(path)
        return dict(judge_check_content(check_judges(str(path), assertion, store)))
    except NoLabelsError as error:
        raise RefusedError(404, "no-labels", f"{error}; {error.hint}" if error.hint else str(error)) from error
