"""The authored models: what may stand in a suite, a case, a run block, a target (SPEC sections 3, 4 and 12).

Keys whose meaning depends on more than themselves are declared as `AsNode` and lowered elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from agentv.authoring.fields.decode import AsNode
from agentv.authoring.fields.pacing import AuthoredRate, AuthoredRetry
from agentv.model.suite.assertion import Transform
from agentv.model.suite.suite import Until
from agentv.model.values.values import EMPTY, JsonObject
from agentv.registry.fields import Alias, Between, Declared, Doc, FileGlobs, Fraction, Nonempty, Seconds, Text, Verbatim

Unread: TypeAlias = Annotated[Any, AsNode()]
AtLeastOne: TypeAlias = Annotated[int, Between(1)]
Label: TypeAlias = Annotated[Text | None, Verbatim()]
"""Text that no placeholder changes: SPEC section 6 lists what is rendered, and this is not in it."""
Name: TypeAlias = Annotated[Text | None, Nonempty(), Verbatim()]
"""A label that must hold something where it is given."""


@dataclass(frozen=True, slots=True)
class AuthoredRepeat(Declared):
    """How many times a case runs, where that depends on what comes of it."""

    max: Annotated[AtLeastOne, Doc("how many times at most")]
    until: Annotated[Until, Doc("samples end where they show on which side of its threshold a case's pass rate lies")]
    alpha: Annotated[
        Annotated[float, Between(0.0001, 0.5)] | None, Doc("the largest chance that this is wrong, 0.05")
    ] = None


@dataclass(frozen=True, slots=True)
class AuthoredRun(Declared):
    """The `run:` block of a suite."""

    workers: Annotated[AtLeastOne | None, Doc("number of trials to run concurrently")] = None
    repeat: Annotated[
        AtLeastOne | AuthoredRepeat | None, Doc("how many times each case runs, or until when and how often at most")
    ] = None
    aggregate: Annotated[
        Literal["mean", "pass_any", "pass_all", "majority"] | None, Doc("how the samples of a case make its verdict")
    ] = None
    timeout_s: Annotated[Seconds | None, Doc("seconds that one attempt may take")] = None
    max_errors: Annotated[AtLeastOne | None, Doc("stop after so many errored trials")] = None
    budget_usd: Annotated[
        float | None, Between(0.0001), Doc("US dollars that a run may spend on targets, judges and embeddings")
    ] = None
    budget_tokens: Annotated[AtLeastOne | None, Doc("tokens that they may take, of questions and answers")] = None
    cluster: Annotated[
        Name, Doc("a key of metadata or vars, or a template, whose equal values make cases dependent")
    ] = None
    cache: Annotated[
        bool | None, Doc("answers of earlier runs are used again, and those of this one kept for later")
    ] = None
    retry: Annotated[AuthoredRetry | None, Doc("when a failed call is made again; a target's own says more")] = None
    trust_data: Annotated[
        bool | None, Doc("rows that `tests` pulls in, and CSV files, may name code and read the environment")
    ] = None


@dataclass(frozen=True, slots=True)
class AuthoredSuite(Declared):
    """The outermost mapping of an eval file."""

    name: Annotated[Label, Doc("what results call this suite; the file's name where missing")] = None
    description: Annotated[Label, Doc("shown, not judged")] = None
    version: Annotated[Label, Doc("of these cases, kept in the results")] = None
    author: Annotated[Unread, Doc("author")] = None
    license: Annotated[Label, Doc("under which terms")] = None
    tags: Annotated[Unread, Doc("a list or a map of labels")] = None
    metadata: Annotated[JsonObject, Verbatim(), Doc("kept in every row")] = field(default=EMPTY)
    requires: Annotated[Unread, Doc("what this suite needs, for people")] = None
    targets: Annotated[Unread, Doc("the systems under test: names, provider:rest strings or inline targets")] = None
    judge: Annotated[Unread, Doc("the target that grades rubrics")] = None
    prompts: Annotated[Unread, Doc("what is asked: texts, messages or files; every case runs with each")] = None
    input: Annotated[Unread, Doc("messages put before every case's input")] = None
    input_files: Annotated[Unread, Doc("files attached to every case with a string input")] = None
    assert_: Annotated[Unread, Doc("assertions added to every case")] = None
    default_test: Annotated[Unread, Doc("a partial case that every case builds on")] = None
    threshold: Annotated[Fraction | None, Doc("pass mark of a case, 0..1")] = None
    cluster: Annotated[
        Name, Doc("a key of metadata or vars, or a template, whose equal values make cases dependent")
    ] = None
    run: Annotated[Unread, Doc("how the suite runs")] = None
    env: Annotated[Unread, Doc("environment for targets and scripts of this suite")] = None
    tests: Annotated[Unread, Doc("the cases: a list, or where they are")] = None


@dataclass(frozen=True, slots=True)
class AuthoredCase(Declared):
    """One entry of `tests:`."""

    id: Annotated[Label, Doc("unique in the suite")] = None
    description: Annotated[Label, Doc("shown, not judged")] = None
    criteria: Annotated[Unread, Doc("what a right answer does")] = None
    input: Annotated[Unread, Doc("a text, a message, or a list of messages")] = None
    expected_output: Annotated[Unread, Doc("the reference answer; it grades nothing by itself")] = None
    vars: Annotated[Unread, Doc("values for {{ name }}")] = None
    expand: Annotated[bool | None, Doc("a list in vars stands for one case for each of its items")] = None
    assert_: Annotated[Unread, Doc("this case's assertions")] = None
    rubrics: Annotated[Unread, Doc("shorthand for one llm-rubric over the list")] = None
    skip_defaults: Annotated[bool, Doc("nothing of the suite's assertions, input or files applies")] = False
    metadata: Annotated[JsonObject, Verbatim(), Doc("passed to every assertion and kept in the row")] = field(
        default=EMPTY
    )
    threshold: Annotated[Fraction | None, Doc("pass mark of this case, 0..1")] = None
    repeat: Annotated[AtLeastOne | None, Doc("how many times this case runs")] = None
    timeout_s: Annotated[Seconds | None, Doc("seconds that one attempt may take")] = None
    tags: Annotated[Unread, Doc("labels to choose cases by")] = None
    target: Annotated[Unread, Doc("the target of this case alone")] = None
    judge: Annotated[Unread, Doc("the judge of this case alone")] = None
    turns: Annotated[Unread, Doc("questions that are asked one after the other, each with its own assertions")] = None
    mode: Annotated[Literal["conversation"] | None, Verbatim(), Doc("older: `turns` says it already")] = None
    conversation_id: Annotated[Name, Doc("cases that share one continue each other, in the order of the file")] = None
    depends_on: Annotated[Unread, Doc("the id of a case that must pass first, or a list of ids")] = None


@dataclass(frozen=True, slots=True)
class AuthoredTurn(Declared):
    """One entry of `turns:`."""

    input: Annotated[Unread, Doc("a text, a message, or a list of messages")] = None
    criteria: Annotated[Unread, Doc("what a right answer to this turn does")] = None
    expected_output: Annotated[Unread, Doc("the reference for this turn's answer")] = None
    assert_: Annotated[Unread, Doc("assertions that grade this turn's answer")] = None


@dataclass(frozen=True, slots=True)
class AuthoredPrompt(Declared):
    """An entry of `prompts:` that is an object."""

    id: Annotated[Label, Doc("unique in the suite; rows show it")] = None
    label: Annotated[Label, Doc("its name where it has no id; beside one, for people")] = None
    prompt: Annotated[Unread, Alias(("raw",)), Doc("a text, a list of messages, or a file that holds one")] = None


@dataclass(frozen=True, slots=True)
class AuthoredTarget(Declared):
    """What every target takes, whatever its provider."""

    name: Annotated[Text | None, Doc("what suites call it")] = None
    provider: Annotated[Label, Doc("what kind of system it is")] = None
    judge: Annotated[Text | None, Doc("the target that grades this one's answers")] = None
    env: Annotated[Mapping[str, Text], Doc("environment of this target's own processes")] = field(default_factory=dict)
    workers: Annotated[AtLeastOne | None, Doc("maximum number of concurrent calls")] = None
    timeout_s: Annotated[Seconds | None, Doc("seconds that one attempt may take")] = None
    retry: Annotated[AuthoredRetry | None, Doc("when a failed call is made again")] = None
    rate: Annotated[AuthoredRate | None, Doc("rate limit")] = None
    allow_empty: Annotated[bool, Doc("an empty answer is an answer")] = False
    fingerprint: Annotated[FileGlobs | None, Doc("files that it depends on beside those that its settings name")] = None


@dataclass(frozen=True, slots=True)
class AuthoredSettings(Declared):
    """The keys that every assertion takes (SPEC section 7.1)."""

    name: Annotated[Label, Doc("shown, and the key of the score"), Alias(("metric",))] = None
    weight: Annotated[float, Between(0), Doc("0: reported, not counted")] = 1.0
    required: Annotated[bool | Fraction, Doc("a gate: true, the grade must pass; a number, it must score that")] = False
    min_score: Annotated[Fraction | None, Doc("the grade passes at or above it")] = None
    negate: Annotated[bool, Doc("the grade and its checks inverted")] = False
    timeout_s: Annotated[Seconds | None, Doc("seconds that code or a judge may take")] = None
    transform: Annotated[Transform | None, Doc("reshapes the output for this assertion")] = None


__all__ = [
    "AuthoredCase",
    "AuthoredPrompt",
    "AuthoredRun",
    "AuthoredSettings",
    "AuthoredSuite",
    "AuthoredTarget",
    "AuthoredTurn",
]
