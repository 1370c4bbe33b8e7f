"""The authored models of an exam: what may stand in `eval.yml` beside a prompt (SPEC section 11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from agentv.authoring.fields.schema import AtLeastOne, Label, Unread
from agentv.model.values.values import EMPTY, JsonObject
from agentv.registry.fields import Alias, Declared, Doc, Seconds, Verbatim


@dataclass(frozen=True, slots=True)
class AuthoredExam(Declared):
    """The outermost mapping of an exam."""

    defaults: Annotated[Unread, Doc("what holds for every case that does not say otherwise")] = None
    triggering: Annotated[Unread, Doc("queries, and whether each should load the prompt by its description")] = None
    cases: Annotated[Unread, Doc("the questions of the exam; the prompt is asked each, and has to pass them all")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class AuthoredExamDefaults(Declared):
    """`defaults:` of an exam."""

    model: Annotated[
        Unread,
        Alias(("target",)),
        Doc("the model that sits the exam: a target's name, provider:model, or an id of Anthropic's"),
    ] = None
    judge: Annotated[Unread, Doc("the model that judges rubrics, or a mapping of it and how it judges")] = None
    timeout_s: Annotated[Seconds | None, Doc("seconds that one attempt may take")] = None


@dataclass(frozen=True, slots=True)
class AuthoredExamJudge(Declared):
    """`judge:` of a case, or of all cases."""

    model: Annotated[Unread, Alias(("target",)), Doc("the model that judges, named as that of the exam")] = None
    pass_threshold: Annotated[Unread, Doc("points at which the answer passes; 4 of 1-5")] = None
    scale: Annotated[Unread, Doc("lowest and highest points, 1-5 where nothing is said")] = None
    votes: Annotated[Unread, Doc("number of verdicts to request, odd; the median counts")] = None
    temperature: Annotated[Unread, Doc("how freely the judge chooses its words")] = None


@dataclass(frozen=True, slots=True)
class AuthoredExamCase(Declared):
    """One entry of `cases:`."""

    name: Annotated[Unread, Doc("unique in the exam; the log names the cases that failed by it")] = None
    description: Annotated[Label, Doc("shown, not judged")] = None
    inputs: Annotated[Unread, Doc("values for {{ name }} of the prompt; they win over those of inputs_from")] = None
    inputs_from: Annotated[
        Unread,
        Doc("a directory that holds inputs.yml: below the repository's root, else below the prompt's directory"),
    ] = None
    assert_: Annotated[Unread, Alias(("assertions",)), Doc("assertions, each of which the answer has to pass")] = None
    rubric: Annotated[Unread, Doc("what a judge gives points for; the answer has to reach the pass_threshold")] = None
    expected_output: Annotated[Unread, Doc("the reference answer, for assertions that compare with one")] = None
    judge: Annotated[Unread, Doc("the model that judges this case, or a mapping of it and how it judges")] = None
    model: Annotated[Unread, Alias(("target",)), Doc("the model that sits this case")] = None
    timeout_s: Annotated[Seconds | None, Doc("seconds that one attempt may take")] = None
    repeat: Annotated[AtLeastOne | None, Doc("how many times this case runs; every answer has to pass")] = None
    tags: Annotated[Unread, Doc("labels to choose cases by")] = None
    metadata: Annotated[JsonObject, Verbatim(), Doc("passed to every assertion and kept in the row")] = field(
        default=EMPTY
    )
