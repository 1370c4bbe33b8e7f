"""Ratings of whole answers: a thumb and a comment on any answer of a run, judged or not."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from agentv.app.results.project import check_files
from agentv.extensions.labels.pages.labelling import LONGEST_NOTE, label_store
from agentv.extensions.labels.ratings import answers_of, as_in_rows, rate, ratings_of_run
from agentv.model.run.labels import LabelVerdict, person_key
from agentv.web.answers import RefusedError
from agentv.web.endpoints import Call, Endpoint, ProjectContext

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


def _ratings(context: ProjectContext, call: Call) -> Ratings:
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


def _rate(context: ProjectContext, call: Call) -> Ratings:
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


_PATH = "/api/runs/{id}/ratings"

RATING = (
    Endpoint(_PATH, "What people think of the answers of a run.", Ratings, _ratings),
    Endpoint(
        _PATH,
        "Rate an answer; the rating is durable before this answers with all ratings of the run.",
        Ratings,
        _rate,
        method="POST",
        body=SaidRating,
        needs="label",
    ),
)
