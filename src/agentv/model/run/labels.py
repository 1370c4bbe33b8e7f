"""Labels: people's verdicts on answers, used as ratings and to measure judges."""

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
"""What a label applies to: the id of a case, the sha256 of an answer, and the sha256 of the rubric."""

LabelItem = tuple[LabelKey, str, str, bool]
"""What a label applies to, and the model, the prompt and the verdict of the judge that it is compared with."""


def answer_sha256(output: str) -> str:
    """Return the hash by which labels identify an answer."""
    return sha256(output.encode(errors="surrogatepass")).hexdigest()


class Label(Struct, frozen=True):
    """One person's verdict on one answer: whether it meets an assertion's rubric or, as a rating, whether it is good.

    Attributes:
        case, output_sha256, rubric_sha256: case, answer and rubric; the last is empty for a rating.
        verdict: whether the answer meets the rubric.
        person: name of the person.
        time: time of labelling, ISO 8601 in UTC.
        suite, assertion, run: where the answer was found.
        model, prompt_sha256: the judge whose grade the label is compared with.
        judge_passed: verdict of that judge; False for a rating.
        note: free text.
        probability: probability with which the answer was sampled from those with this verdict of the judge; None if it
            was not sampled.
        drawn_from: number of trials with that verdict.
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
        """The case, the answer and the rubric."""
        return self.case, self.output_sha256, self.rubric_sha256

    @property
    def item(self) -> LabelItem:
        """The key together with the judge that the label is compared with; a person labels each item once."""
        return self.key, self.model, self.prompt_sha256, self.judge_passed

    @property
    def is_rating(self) -> bool:
        """Whether it rates the whole answer instead of checking a judge's grade."""
        return not self.rubric_sha256

    def as_rating(self) -> JsonObject:
        """Return the rating in the format of exports: `thumb` is `up`, `down` or null."""
        thumb = {"pass": "up", "fail": "down"}.get(self.verdict)
        found = {"suite": self.suite, "test_id": self.case, "output_sha256": self.output_sha256, "thumb": thumb}
        return {**found, "comment": self.note, "by": self.person, "at": self.time}

    @property
    def person_key(self) -> str:
        """The name of the person in the form in which persons are compared and counted."""
        return person_key(self.person)


_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
_AHEAD = timedelta(days=1)
"""How far ahead the clock of the labeller's machine may be."""


def time_problem(label: Label, now: datetime) -> str | None:
    """Return why the time of a label is not plausible, or None.

    The latest label counts, so one from the future would count for ever.

    Args:
        label: a label from any source.
        now: the current time, with a time zone.
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
    """Return a person's name in lower case and without redundant white space: `ada` for `Ada `."""
    return " ".join(name.split()).casefold()


Ratings = Mapping[tuple[str, str, str], Sequence[Label]]
"""(suite, case id, sha256 of an answer) → the latest rating of each person."""


class ReadLabels(Struct, frozen=True):
    """The labels of a run's suites, as read at one time.

    Attributes:
        sha256: hash of their files; empty without labels.
        problem: why they cannot be read; None if they can.
    """

    labels: tuple[Label, ...] = ()
    sha256: str = ""
    problem: str | None = None
