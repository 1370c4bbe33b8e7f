"""Ratings of whole answers: a thumb and a comment on any answer of a run, judged or not."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from agentv.app.results.project import check_files
from agentv.extensions.labels.keeping import LabelFiles, LabelStore
from agentv.extensions.labels.labelling import now
from agentv.extensions.labels.pages.labelling import LONGEST_NOTE
from agentv.model.run.labelled.labels import Label, answer_sha256, latest_ratings
from agentv.model.values.values import objects_in
from agentv.store.files.directory import INDEX, RUN, read_document
from agentv.store.files.lines import read_lines
from agentv.web.answers import RefusedError
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint

Thumb = Literal["up", "down", ""]

_VERDICTS = {"up": "pass", "down": "fail", "": "unsure"}
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
        thumb, comment: both empty take an earlier rating back.
    """

    key: str
    thumb: Thumb = ""
    comment: Annotated[str, Meta(max_length=LONGEST_NOTE)] = ""


class _Answer(Struct):
    key: str
    test_id: str
    suite: str = ""
    output: str | None = None


_answers = msgspec.json.Decoder(_Answer)


def _ratings(context: ProjectContext, call: Call) -> Ratings:
    suites = objects_in(read_document(context.project.run(call.names["id"]) / RUN).get("suites"))
    return Ratings(_given(_kept(context, call).ratings([str(one.get("name")) for one in suites]), call.person))


def _rate(context: ProjectContext, call: Call) -> Ratings:
    run, said = call.names["id"], call.body
    answer = _answer(context, run, said.key)
    label = Label(
        case=answer.test_id,
        output_sha256=answer_sha256(answer.output or ""),
        rubric_sha256="",
        verdict=_VERDICTS[said.thumb],  # type: ignore[arg-type]  # values of LabelVerdict
        person=call.person,
        time=now(),
        suite=answer.suite,
        assertion="",
        run=run,
        note=said.comment.strip(),
    )
    kept = _kept(context, call)
    kept.add([label])
    return Ratings(_given(kept.ratings([answer.suite]), call.person))


def _given(labels: list[Label], person: str) -> list[Rating]:
    return [
        Rating(
            one.suite,
            one.case,
            one.output_sha256,
            one.person,
            _THUMBS[one.verdict],
            one.note,
            one.time,
            one.person == person,
        )
        for given in latest_ratings(labels).values()
        for one in given
    ]


def _answer(context: ProjectContext, run: str, key: str) -> _Answer:
    wanted, path = msgspec.json.encode(key), context.project.run(run)
    check_files(path)
    for _, line in read_lines(path / INDEX):
        if wanted in line and (found := _answers.decode(line)).key == key and found.output is not None:
            return found
    raise RefusedError(404, "no-such-answer", "this run has no such answer")


def _kept(context: ProjectContext, call: Call) -> LabelStore:
    return LabelFiles(context.project.root) if context.labels_of is None else context.labels_of(call.person)


_PATH = "/api/runs/{id}/ratings"

RATING = (
    Endpoint(_PATH, "What people think of the answers of a run.", Ratings, _ratings),
    Endpoint(
        _PATH,
        "Rate an answer; it is durable before this answers with all ratings of its suite.",
        Ratings,
        _rate,
        method="POST",
        body=SaidRating,
        needs="label",
    ),
)
