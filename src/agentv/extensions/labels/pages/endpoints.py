"""Labels by people, and what they say of judges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from agentv.extensions.labels.labelling import LabelFiles, LabelStore
from agentv.extensions.labels.pages.judges import CheckedJudges, checked_labels
from agentv.extensions.labels.pages.labelling import (
    DrawQuery,
    LabelAgreement,
    LabelQueue,
    LabelQueues,
    LabelRefusedError,
    LabelSaved,
    Person,
    QueueQuery,
    SaidLabel,
    check_said,
)
from agentv.extensions.labels.reports.judge_check import judge_check_content
from agentv.web.answers import RefusedError
from agentv.web.context import ProjectContext
from agentv.web.endpoints import Call, Endpoint


class JudgesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which judges.

    Attributes:
        run: that they graded; empty: by all labels of the project alone.
        assertion: only the judge of this assertion; empty: of all.
    """

    run: str = ""
    assertion: str = ""


def _person(context: ProjectContext, call: Call) -> Person:
    return Person(call.person, label_store(context, call))


def label_store(context: ProjectContext, call: Call) -> LabelStore:
    """Where labels and ratings of who asks are kept."""
    return LabelFiles(context.project.root) if context.labels_of is None else context.labels_of(call.person)


def _queues(context: ProjectContext) -> LabelQueues:
    return LabelQueues(context.project)


def _checked_judges(context: ProjectContext) -> CheckedJudges:
    return CheckedJudges(context.project)


def _queue(context: ProjectContext, call: Call) -> LabelQueue:
    with _refusable():
        return context.shared(_queues).queue(call.query, _person(context, call))


def _label(context: ProjectContext, call: Call) -> LabelSaved:
    said: SaidLabel = call.body
    check_said(said)
    with _refusable():
        return context.shared(_queues).add(said, _person(context, call))


def _agreement(context: ProjectContext, call: Call) -> LabelAgreement:
    with _refusable():
        return context.shared(_queues).agreement(call.body, _person(context, call))


@contextmanager
def _refusable() -> Iterator[None]:
    try:
        yield
    except LabelRefusedError as error:
        raise RefusedError(404 if error.code == "no-such-answer" else 409, error.code, str(error)) from error


def _judges(context: ProjectContext, call: Call) -> dict[str, Any]:
    from agentv.extensions.labels.checking import NoLabelsError  # imports numpy

    kept, query = label_store(context, call), call.query
    try:
        if query.run:
            return dict(judge_check_content(context.shared(_checked_judges).of_run(query.run, query.assertion, kept)))
        return dict(judge_check_content(checked_labels(query.assertion, kept)))
    except NoLabelsError as error:
        raise RefusedError(404, "no-labels", f"{error}; {error.hint}" if error.hint else str(error)) from error


LABELLING = (
    Endpoint(
        "/api/labels/queue", "An answer to label, without its grade.", LabelQueue, _queue, QueueQuery, needs="label"
    ),
    Endpoint(
        "/api/labels",
        "Label an answer; it is durable before the answer is sent.",
        LabelSaved,
        _label,
        method="POST",
        body=SaidLabel,
        needs="label",
    ),
    Endpoint(
        "/api/labels/agreement",
        "How often person and judge agree, once all answers of a draw are labelled; then these labels stay.",
        LabelAgreement,
        _agreement,
        method="POST",
        body=DrawQuery,
        needs="label",
    ),
)

JUDGES = (
    Endpoint(
        "/api/judges",
        "How well judges agree with people: what `agentv judge check --json` prints.",
        dict[str, Any],
        _judges,
        JudgesQuery,
    ),
)
