"""Ratings of whole answers by people, whether a judge graded the answer or not.

A rating applies to the text: equal answers to the same case of a suite share it, whatever target or prompt gave them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from agentv.app.results.place import RESULTS, project_with
from agentv.app.results.stored import open_run
from agentv.errors import UsageError
from agentv.extensions.labels.answers import grouped
from agentv.extensions.labels.labelling import LabelFiles, LabelStore, now
from agentv.model.run.labels import Label, LabelVerdict, answer_sha256, person_key
from agentv.model.run.row import trial_name
from agentv.model.run.trial import TrialResult
from agentv.model.values.json_text import without_breaks
from agentv.model.values.values import objects_in
from agentv.store.files.directory import INDEX, RUN, read_document
from agentv.store.rows.reading import read_lines_as

Answer = tuple[str, str, str]
"""A suite, a case id, and the hash of an answer."""


class RatedAnswer(Struct, frozen=True):
    """An answer of a run, read from a row. `key` is that of its trial."""

    key: str
    test_id: str
    suite: str = ""
    eval_path: str | None = None
    output: str | None = None

    @property
    def name(self) -> Answer:
        """The key of its ratings."""
        return self.suite, self.test_id, answer_sha256(self.output or "")


def as_in_rows(text: str) -> bytes:
    """Encode a text as it appears in rows."""
    return without_breaks(msgspec.json.encode(text))


_answer_in = msgspec.json.Decoder(RatedAnswer).decode
_BEGINNING = re.compile(rb'\{"test_id":"(?:[^"\\]|\\.)*","suite":"(?:[^"\\]|\\.)*"')
"""The beginning of a row, which names its case and suite."""


def answers_of(run: Path, wanted: Callable[[bytes], bool]) -> list[RatedAnswer]:
    """Return the current answers of a run: for a repeated trial, the newest.

    Args:
        run: directory of the run.
        wanted: whether to decode the line of a row; must give the same result for all rows of a trial.

    Raises:
        StoreError: its rows cannot be read.
    """
    found: dict[str, RatedAnswer] = {}
    rows = read_lines_as(lambda line: _answer_in(line) if wanted(line) else None, run / INDEX)
    for row in (row for _, row in rows if row is not None):
        found[trial_name(row.eval_path, row.key)] = row
    return [one for one in found.values() if one.output is not None]


def ratings_of_run(run: Path, store: LabelStore) -> dict[Answer, list[Label]]:
    """Return each person's latest ratings of the current answers of a run, without withdrawn ones.

    Args:
        run: directory of the run.
        store: store of the ratings.

    Raises:
        StoreError: its rows, or the ratings, cannot be read.
    """
    suites = {str(one.get("name")) for one in objects_in(read_document(run / RUN).get("suites"))}
    found = grouped((one for one in _latest(store.ratings(suites)) if one.verdict != "unsure" or one.note), _answer_of)
    if not found:
        return {}
    rated = {b'{"test_id":%b,"suite":%b' % (as_in_rows(case), as_in_rows(suite)) for suite, case, _ in found}

    def is_rated(line: bytes) -> bool:
        beginning = _BEGINNING.match(line)
        return beginning is None or beginning[0] in rated

    present = {one.name for one in answers_of(run, is_rated)}
    return {name: given for name, given in found.items() if name in present}


def rate(answer: Answer, said: tuple[LabelVerdict, str], person: str, run_id: str, store: LabelStore) -> Label:
    """Add a rating durably; it replaces the person's earlier one.

    Args:
        answer: key of the answer, as `RatedAnswer.name`.
        said: `pass` for thumb up, `fail` for thumb down or `unsure` for none, and a comment. No thumb and no comment
            withdraws an earlier rating.
        person: name of the person who rates.
        run_id: id of the run in which the person saw the answer.
        store: store of the ratings.

    Raises:
        StoreError: the rating cannot be stored.
    """
    suite, case, output_sha256 = answer
    own = [
        one
        for one in _latest(store.ratings([suite]))
        if _answer_of(one) == answer and one.person_key == person_key(person)
    ]
    time = max([now(), *(one.time for one in own)])  # an earlier rating may come from a machine whose clock is ahead
    verdict, comment = said
    rating = Label(case, output_sha256, "", verdict, person, time, suite, "", run_id, note=comment.strip())
    store.add([rating])
    return rating


class RatingSession(Struct):
    """The answers of a run, each text once, and people's ratings of them.

    Attributes:
        answers: key of each answer → a trial that gave it, in the order of the eval files.
        given: key of each rated answer → its ratings.
    """

    run_id: str
    store: LabelStore
    person: str
    answers: Mapping[Answer, TrialResult]
    given: dict[Answer, list[Label]]

    def own(self, answer: Answer) -> Label | None:
        """Return the person's own rating of an answer, or None."""
        wanted = person_key(self.person)
        return next((one for one in self.given.get(answer, ()) if one.person_key == wanted), None)

    def rate(self, answer: Answer, verdict: LabelVerdict, comment: str) -> None:
        """Rate an answer durably.

        Raises:
            StoreError: the rating cannot be stored.
        """
        own, rating = self.own(answer), rate(answer, (verdict, comment), self.person, self.run_id, self.store)
        others = [one for one in self.given.get(answer, ()) if one is not own]
        self.given[answer] = [*others, rating] if verdict != "unsure" or comment else others


def open_ratings(named: str, person: str) -> RatingSession:
    """Open a person's rating session on a run; an unfinished run has the answers given so far.

    Raises:
        UsageError: the run does not exist, or it has no answers.
        StoreError: the run, or a file of labels, cannot be read.
    """
    run = open_run(named, action="label", partial=True)
    answers: dict[Answer, TrialResult] = {}
    for result in run.results():
        if result.output is not None:
            name = (result.trial.suite.name, result.trial.case.id, answer_sha256(result.output))
            answers.setdefault(name, result)
    if not answers:
        raise UsageError(f"the run {run.run_id} has no answer to rate")
    store = LabelFiles(project_with(RESULTS))
    return RatingSession(run.run_id, store, person, answers, dict(ratings_of_run(run.path, store)))


def _answer_of(rating: Label) -> Answer:
    return rating.suite, rating.case, rating.output_sha256


def _latest(ratings: Iterable[Label]) -> Iterable[Label]:
    """Return each person's latest rating of each answer, by time: git or a server may have reordered the lines."""
    by_time = sorted(ratings, key=lambda one: one.time)
    return {(_answer_of(one), one.person_key): one for one in by_time}.values()
