"""Labels: what people say of answers, and of what a judge said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from agentv.model.values.values import JsonObject

LabelVerdict = Literal["pass", "fail", "unsure"]
LABEL_VERDICTS: tuple[LabelVerdict, ...] = ("pass", "fail", "unsure")

LabelKey = tuple[str, str, str]
"""The id of a case, the sha256 of an answer to it, and that of the rubric: what a label is of."""

LabelItem = tuple[LabelKey, str, str, bool]
"""What a label is of, and the model, the prompt and the verdict of the judge that it is held against."""


def answer_sha256(output: str) -> str:
    """The hash of an answer, by which labels know it again."""
    return sha256(output.encode(errors="surrogatepass")).hexdigest()


class Label(Struct, frozen=True):
    """What one person says of one answer: that it meets the rubric of an assertion or, as a rating, that it is good.

    Attributes:
        case, output_sha256, rubric_sha256: what it is of.
        verdict: whether the answer meets the rubric.
        person: who says so.
        time: when, ISO 8601 in UTC.
        suite, assertion, run: where the answer was found.
        model, prompt_sha256: the judge whose grade it is held against.
        judge_passed: the verdict of that judge; of a rating, false.
        note: anything.
        probability: with which the answer was drawn from those with this verdict of the judge; None: it was not drawn.
        drawn_from: how many trials there were with that verdict.
    """

    case: str
    output_sha256: str
    rubric_sha256: str
    verdict: LabelVerdict
    person: str
    time: str
    suite: str
    assertion: str
    run: str
    model: str = ""
    prompt_sha256: str = ""
    judge_passed: bool = False
    note: str = ""
    probability: float | None = None
    drawn_from: int | None = None

    @property
    def key(self) -> LabelKey:
        """What it is of."""
        return self.case, self.output_sha256, self.rubric_sha256

    @property
    def item(self) -> LabelItem:
        """What it is of, for the judge that it is held against: a person labels it once."""
        return self.key, self.model, self.prompt_sha256, self.judge_passed

    @property
    def is_rating(self) -> bool:
        """Whether it is of a whole answer, and of no judge."""
        return not self.rubric_sha256

    def as_rating(self) -> JsonObject:
        """The rating as exports have it: `thumb` is `up`, `down` or null."""
        thumb = {"pass": "up", "fail": "down"}.get(self.verdict)
        found = {"suite": self.suite, "test_id": self.case, "output_sha256": self.output_sha256, "thumb": thumb}
        return {**found, "comment": self.note, "by": self.person, "at": self.time}

    @property
    def person_key(self) -> str:
        """Who says so, as persons are compared and counted."""
        return person_key(self.person)


_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
_AHEAD = timedelta(days=1)
"""How far the clock of the machine on which a label was given may be ahead."""


def time_problem(label: Label, now: datetime) -> str | None:
    """Why a label cannot have been given at its time; None: it can. Such a label would count for ever.

    Args:
        label: of any source.
        now: with a time zone.
    """
    try:
        moment = datetime.fromisoformat(label.time)
    except ValueError:
        return "is no time"
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if moment < _FIRST:
        return "is before the year 2000"
    return "is more than a day later than now" if moment - now > _AHEAD else None


def person_key(name: str) -> str:
    """The name of a person without upper case and needless white space: `Ada ` is `ada`."""
    return " ".join(name.split()).casefold()


Ratings = Mapping[tuple[str, str, str], Sequence[Label]]
"""A suite, the id of a case and the hash of an answer to it → the latest rating of each person."""


class ReadLabels(Struct, frozen=True):
    """The labels of a run's suites, as they were at one moment.

    Attributes:
        sha256: of their files; empty without labels.
        problem: why they cannot be read.
    """

    labels: tuple[Label, ...] = ()
    sha256: str = ""
    problem: str | None = None
