"""The authored models of an exam: the keys of `eval.yml` in a prompt's directory (SPEC section 11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from agentv.authoring.fields.schema import AtLeastOne, Label, Unread
from agentv.model.values.values import EMPTY, JsonObject
from agentv.registry.fields import Alias, Declared, Doc, Seconds, Verbatim


@dataclass(frozen=True, slots=True)
class AuthoredExam(Declared):
    """The outermost mapping of an exam."""

    defaults: Annotated[Unread, Doc("settings for every case that does not override them")] = None
    triggering: Annotated[Unread, Doc("queries, and which of them should load the prompt based on its description")] = (
        None
    )
    cases: Annotated[Unread, Doc("the cases of the exam; the prompt must pass all of them")] = None


@dataclass(frozen=True, slots=True)
class AuthoredExamDefaults(Declared):
    """`defaults:` of an exam."""

    model: Annotated[
        Unread,
        Alias(("target",)),
        Doc("the model under test: a target name, provider:model, or an Anthropic model id"),
    ] = None
    judge: Annotated[Unread, Doc("the model that grades rubrics, or a mapping with the model and its settings")] = None
    timeout_s: Annotated[Seconds | None, Doc("time limit for one attempt, in seconds")] = None


@dataclass(frozen=True, slots=True)
class AuthoredExamJudge(Declared):
    """`judge:` of a case, or of all cases."""

    model: Annotated[Unread, Alias(("target",)), Doc("the model that grades; same forms as the exam's model")] = None
    pass_threshold: Annotated[Unread, Doc("minimum points to pass; 4 of 1-5")] = None
    scale: Annotated[Unread, Doc("lowest and highest points; default: 1-5")] = None
    votes: Annotated[Unread, Doc("number of verdicts to request, odd; the median counts")] = None
    temperature: Annotated[Unread, Doc("sampling temperature of the judge")] = None


@dataclass(frozen=True, slots=True)
class AuthoredExamCase(Declared):
    """One entry of `cases:`."""

    name: Annotated[Unread, Doc("unique in the exam; the log lists failed cases by name")] = None
    description: Annotated[Label, Doc("shown, not graded")] = None
    inputs: Annotated[Unread, Doc("values for {{ name }} in the prompt; they override those of inputs_from")] = None
    inputs_from: Annotated[
        Unread,
        Doc("a directory with inputs.yml, relative to the repository root, else to the prompt's directory"),
    ] = None
    assert_: Annotated[Unread, Alias(("assertions",)), Doc("assertions; the answer must pass all of them")] = None
    rubric: Annotated[Unread, Doc("what a judge grades with points; the answer must reach the pass_threshold")] = None
    expected_output: Annotated[Unread, Doc("the reference answer, for assertions that compare with one")] = None
    judge: Annotated[Unread, Doc("the model that grades this case, or a mapping with the model and its settings")] = (
        None
    )
    model: Annotated[Unread, Alias(("target",)), Doc("the model under test for this case")] = None
    timeout_s: Annotated[Seconds | None, Doc("time limit for one attempt, in seconds")] = None
    repeat: Annotated[AtLeastOne | None, Doc("how many times this case runs; every answer must pass")] = None
    tags: Annotated[Unread, Doc("labels to select cases by")] = None
    metadata: Annotated[JsonObject, Verbatim(), Doc("passed to every assertion and judge, and kept in the row")] = (
        field(default=EMPTY)
    )
