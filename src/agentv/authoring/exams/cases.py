"""The cases of an exam, lowered into those of an eval file (SPEC section 11).

Every node keeps its place, and what is wrong is reported in the exam's own words before an eval file's reader sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.assertions.judging import judges
from agentv.authoring.exams.inputs import Inputs, read_inputs
from agentv.authoring.exams.prompt import ExamPrompt, reads_in
from agentv.authoring.exams.schema import AuthoredExamCase, AuthoredExamJudge
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Chain, ExtraKeys, Reading
from agentv.authoring.header.header import Header
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, is_empty, kind_of, plain, span_of
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case
from agentv.model.values.values import Json
from agentv.registry.fields import DeclaredAssertion
from agentv.templating import Scope

_MISPLACED: Mapping[str, str] = {
    "input": "the inputs of an exam fill the prompt's placeholders: write 'inputs' with one entry per name",
    "vars": "did you mean 'inputs'?",
    "variables": "did you mean 'inputs'?",
    "id": "did you mean 'name'?",
    "criteria": "did you mean 'rubric'?",
    "rubrics": "did you mean 'rubric'? For several rubrics, write one llm-rubric each under 'assert'",
    "threshold": "every assertion of an exam must pass; the threshold of a rubric is 'pass_threshold' under 'judge'",
    "defaults": "'defaults' belongs at the top level of the exam",
    **dict.fromkeys(("pass_threshold", "scale", "votes"), "it belongs under 'judge' of the case"),
}
"""What eval files and people call the keys of a case → the hint at one that is not a key of an exam's."""

_MEANT: Mapping[str, str] = {
    **dict.fromkeys(("input", "vars", "variables"), "inputs"),
    **dict.fromkeys(("criteria", "rubrics"), "rubric"),
    "id": "name",
}
"""Of those, the ones that stand in place of a key, which is not missing then."""

_JUDGED = ("pass_threshold", "scale", "votes", "temperature")
_MOVED = {
    **{key: key for key in ("description", "expected_output", "metadata", "tags", "repeat", "timeout_s")},
    "model": "target",
}
"""Key of an exam's case → what an eval file calls it."""


class ExamJudge(Struct, frozen=True):
    """The `judge:` of an exam: the model and its settings, each a node with its own position."""

    items: Mapping[str, Node] = field(default_factory=dict)
    keys: Mapping[str, Place] = field(default_factory=dict)

    def over(self, defaults: ExamJudge) -> ExamJudge:
        """The same, with what it leaves open taken from the exam's defaults."""
        return ExamJudge({**defaults.items, **self.items}, {**defaults.keys, **self.keys})


class _Written(Struct, frozen=True):
    """One case as it is written, and what it came to."""

    node: MapNode
    keys: AuthoredExamCase
    inputs: Inputs | None
    judge: ExamJudge
    own_judge: ExamJudge


class ExamCases(Struct):
    """Reads the cases of one exam.

    Attributes:
        header: of the suite that the exam becomes.
        prompt: None where it is wrong.
        fixed: variables of the command line.
        names: of the queries, and of the cases read so far.
        files: the files of inputs that were read.
    """

    header: Header
    prompt: ExamPrompt | None
    judge: ExamJudge
    fixed: Mapping[str, Json]
    names: dict[str, Place]
    files: set[str] = field(default_factory=set)
    _unused: dict[Any, str] = field(default_factory=dict)
    _used: set[Any] = field(default_factory=set)

    def read(self, node: Node) -> tuple[Case, ...]:
        """One entry of `cases:`; nothing where anything is wrong with it, all of which is then reported."""
        reading = self.header.reading
        report = reading.report
        if not isinstance(node, MapNode):
            report.error("bad-case", node, f"a case must be a mapping, found {kind_of(node)}")
            return ()
        reading = reading.part()
        case = self._written(node, reading)
        self._check_name(case, reading)
        self._check_checks(case, reading)
        check_model(case.keys.model, reading)
        messages = None
        if self.prompt is not None and self.prompt.readable and case.inputs is not None:
            messages = self.prompt.filled(case.inputs, self.fixed, reading.scope.env)
        self._check_given(case, reading)
        if messages is None or case.inputs is None or not reading.report.valid:
            self._check_all(case, reading)
            return ()
        cases = self.header.cases.read(self._lowered(case, case.inputs, messages), reading)
        for one in cases:
            self._check_inputs(one, case)
            self._check_judge(one, case, reading)
        return cases

    def end(self) -> None:
        """All cases were read: report the inputs that none of them uses."""
        for at, name in self._unused.items():
            if at not in self._used:
                message = f"the input '{name}' is not used by the prompt or by the assertions of the case"
                self.header.reading.report.warning("unused-input", at, message)

    def _written(self, node: MapNode, reading: Reading) -> _Written:
        plainly = reading.rendering(False)
        keys = read_exam_keys(AuthoredExamCase, node, "a case", _MISPLACED, plainly)
        inputs = read_inputs(keys.inputs, keys.inputs_from, plainly)
        if inputs is not None:
            self.files.update(inputs.files)
        own = read_judge(keys.judge, plainly)
        return _Written(node, keys, inputs, own.over(self.judge), own)

    def _check_name(self, case: _Written, reading: Reading) -> None:
        name = case.keys.name
        if name is None:
            if not misspelt(case.node, "name"):
                reading.report.error("missing-key", case.node, "a case needs 'name'")
        elif not isinstance(name, Scalar):
            reading.report.error("bad-value", name, f"'name' must be text, found {kind_of(name)}")
        elif is_empty(name):
            reading.report.error("missing-value", name, "'name' is empty; the log lists failed cases by name")
        elif name.text in self.names:
            first = span_of(self.names[name.text]).line
            message = f"two cases are named '{name.text}'; the first is at line {first}"
            reading.report.error("duplicate-id", name, message)
        else:
            self.names[name.text] = name.at

    def _check_given(self, case: _Written, reading: Reading) -> None:
        given = case.keys.inputs is not None or case.keys.inputs_from is not None
        if not given and not misspelt(case.node, "inputs", "inputs_from"):
            hint = "if the prompt needs no inputs, write 'inputs: {}'"
            reading.report.error("missing-key", case.node, "a case needs 'inputs' or 'inputs_from'", hint=hint)

    def _check_checks(self, case: _Written, reading: Reading) -> None:
        keys, report = case.keys, reading.report
        if keys.rubric is not None and not (isinstance(keys.rubric, Scalar) and isinstance(keys.rubric.value, str)):
            hint = (
                None
                if is_empty(keys.rubric)
                else "write a checklist as an llm-rubric under 'assert', with the list as its value"
            )
            report.error("bad-value", keys.rubric, f"'rubric' must be text, found {kind_of(keys.rubric)}", hint=hint)
        elif keys.rubric is not None and is_empty(keys.rubric):
            report.error("missing-value", keys.rubric, "'rubric' is empty; describe what the judge should grade")
        for item in keys.assert_.items if isinstance(keys.assert_, ListNode) else ():
            required = item.get("required") if isinstance(item, MapNode) else None
            if isinstance(required, Scalar) and required.value is False:
                hint = "to show an assertion without counting it, use 'weight: 0'"
                report.error("bad-value", required, "every assertion of an exam is required", hint=hint)
        if keys.assert_ is not None and is_empty(keys.assert_):
            report.error("missing-value", keys.assert_, "'assert' is empty; it needs a list of assertions")
        elif keys.assert_ is None and keys.rubric is None and not misspelt(case.node, "assert", "rubric"):
            hint = "add 'assert' or 'rubric'"
            report.error(
                "checks-nothing", case.node, "this case checks nothing: it has no assertion and no rubric", hint=hint
            )
        if keys.rubric is None and not misspelt(case.node, "rubric"):
            for key in _JUDGED:
                if key in case.own_judge.items:
                    message = f"'{key}' configures how a rubric is graded, but this case has no 'rubric'"
                    report.error("missing-key", case.own_judge.keys[key], message)

    def _check_all(self, case: _Written, reading: Reading) -> None:
        """What is wrong with the checks of a case that cannot be built, so that one pass finds it all."""
        alone = replace(reading, chain=Chain(alone=True), renders=False)
        if case.inputs is not None:
            alone = reading.within(Scope({**plain(case.inputs.values), **self.fixed}, reading.scope.env))
        if case.keys.assert_ is not None and not is_empty(case.keys.assert_):
            self.header.assertions.entries(case.keys.assert_, alone)
        for node in (case.keys.model, case.own_judge.items.get("model")):
            if node is not None and names_model(node):
                self.header.targets.registry.inline(node, reading)

    def _lowered(self, case: _Written, inputs: Inputs, messages: Node) -> MapNode:
        """The case in the words of an eval file."""
        keys, node = case.keys, case.node
        name = keys.name or node
        items: dict[str, Node] = {"id": name, "input": messages, "vars": inputs.values}
        places: dict[str, Place] = {"id": name.at, "input": inputs.at, "vars": inputs.at}
        for key, at in node.keys.items():
            lowered = _MOVED.get(canonical(AuthoredExamCase, key))
            if lowered is not None:
                items[lowered], places[lowered] = node.items[key], at
        judge = case.judge.items.get("model")
        if judge is not None:
            items["judge"], places["judge"] = judge, judge.at
        checks = _checks(case)
        items["assert"], places["assert"] = checks, checks.at
        return MapNode(items, places, node.at)

    def _check_inputs(self, case: Case, written: _Written) -> None:
        """Note the inputs that are used, and those that nothing of this case can use."""
        if self.prompt is None or written.inputs is None:
            return
        reads_all = any(_reads_all(entry, case) for entry in case.assertions)
        for name, place in written.inputs.values.keys.items():
            at = span_of(place)
            if (
                reads_all
                or self.prompt.uses(name)
                or any(reads_in(node, name, self.prompt) for node in _read_by(written))
            ):
                self._used.add(at)
            else:
                self._unused.setdefault(at, name)

    def _check_judge(self, case: Case, written: _Written, reading: Reading) -> None:
        """A judge of the case's own that nobody asks, or that is asked about itself."""
        model = written.own_judge.items.get("model")
        if model is not None and not any(map(judges, case.assertions)):
            message = "this judge is never called: the case has no 'rubric' and no assertion that needs a judge"
            reading.report.warning("unused-judge", model, message)
        target = case.target or next(iter(self.header.suite.targets), None)
        node = written.judge.items.get("model")
        if node is not None and case.judge is not None and target is not None and case.judge.name == target.name:
            reading.report.warning("judge-is-target", node, f"'{target.name}' grades its own answers")


def read_judge(node: Node | None, reading: Reading) -> ExamJudge:
    """Read a `judge:`; empty if it is invalid, which is reported."""
    if node is None:
        return ExamJudge()
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return ExamJudge({"model": node}, {"model": node.at})
    if not isinstance(node, MapNode) or not node.items:
        message = f"'judge' must name a model, or be a mapping with 'model' and 'pass_threshold', found {kind_of(node)}"
        reading.report.error("bad-value", node, message)
        return ExamJudge()
    read = read_exam_keys(AuthoredExamJudge, node, "'judge'", {}, reading)
    check_model(read.model, reading)
    known = [(canonical(AuthoredExamJudge, key), key) for key in node.items]
    return ExamJudge(
        {name: node.items[key] for name, key in known if name}, {name: node.keys[key] for name, key in known if name}
    )


def check_model(node: Node | None, reading: Reading) -> None:
    """Report what should name a model and does not."""
    if node is not None and not names_model(node):
        reading.report.error("bad-value", node, f"'model' must be the name of one model, found {kind_of(node)}")


def names_model(node: Node) -> bool:
    """Whether a node can name a model: a name, or the settings of a target."""
    return (isinstance(node, Scalar) and isinstance(node.value, str) and bool(node.value.strip())) or (
        isinstance(node, MapNode) and bool(node.items)
    )


def read_exam_keys(cls: type, node: MapNode, what: str, misplaced: Mapping[str, str], reading: Reading) -> Any:
    """The options of a mapping; of one that is wrong those that are handed on unread.

    Args:
        cls: declares the options.
        node: the mapping.
        what: whose options they are, in the words of a message.
        misplaced: key that is none → the hint at it.
        reading: of the exam.
    """
    shape = shape_of(cls)
    misplaces = False
    items = dict(node.items)
    for key in node.items:
        if key in misplaced and key not in shape.rules:
            del items[key]
            misplaces = True
            reading.report.error("unknown-key", node.keys[key], f"{what} has no key '{key}'", hint=misplaced[key])
    found = shape.decode(
        items, MapNode(items, node.keys, node.at), reading, what, extra=ExtraKeys(hinted=tuple(shape.rules))
    )
    return shape.unread(items) if found is INVALID or misplaces else found


def canonical(cls: type, key: str) -> str:
    """The name of the option that a key fills; empty where it fills none."""
    rule = shape_of(cls).rules.get(key)
    return rule.name.rstrip("_") if rule is not None else ""


def misspelt(node: MapNode, *keys: str) -> bool:
    """Whether an unknown key is probably a misspelling of one of these, which is then not missing."""
    rules = shape_of(AuthoredExamCase).rules
    unknown = (key for key in node.items if key not in rules and not key.startswith("x-"))
    return any((_MEANT.get(key) or nearest(key, rules)) in keys for key in unknown)


def _checks(case: _Written) -> Node:
    """The assertions, and behind them the rubric as one of them."""
    checks: Node | None = case.keys.assert_
    rubric: Node | None = case.keys.rubric
    if rubric is None:
        return checks if checks is not None else case.node
    options = {"type": "llm-rubric", "scale": "1-5"}
    items: dict[str, Node] = {key: Scalar(text, text, rubric.at) for key, text in options.items()}
    items["value"] = rubric
    places: dict[str, Place] = dict.fromkeys(items, rubric.at)
    for key in _JUDGED:
        if key in case.judge.items:
            items[key], places[key] = case.judge.items[key], case.judge.keys[key]
    entry = MapNode(items, places, rubric.at)
    if checks is not None and not isinstance(checks, ListNode):
        return checks  # which is reported
    return ListNode(
        [*(checks.items if checks is not None else ()), entry], checks.at if checks is not None else rubric.at
    )


def _read_by(case: _Written) -> list[Node]:
    """What is rendered beside the prompt."""
    reference: Node | None = case.keys.expected_output
    return [_checks(case), *([reference] if reference is not None else [])]


def _reads_all(entry: AssertionEntry, case: Case) -> bool:
    """Whether an assertion may look at any input: code, a judge prompt, what a template file says."""
    if not isinstance(entry.assertion, DeclaredAssertion) or entry.assertion.runs_code or entry.settings.transform:
        return True
    elsewhere = entry.span is not None and case.span is not None and entry.span.file != case.span.file
    if elsewhere or getattr(entry.assertion, "prompt", None) is not None:
        return True
    return any(_reads_all(child, case) for child in entry.inner)
