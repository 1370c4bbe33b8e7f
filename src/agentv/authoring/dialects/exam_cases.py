"""The cases of an exam as cases of an eval file (SPEC section 11).

What is wrong is reported in the exam's own words, and a case of which a part is wrong is handed on with the rest, so
that the reader finds what else is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.fields.schema import AtLeastOne, Label, Unread
from agentv.authoring.source.boundary import ALLOW, OUTSIDE
from agentv.authoring.source.files import is_directory, is_file, shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import (
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    children,
    is_empty,
    kind_of,
    mapping,
    node_of,
    span_of,
)
from agentv.authoring.source.yaml import read_yaml
from agentv.model.values.values import EMPTY, JsonObject
from agentv.registry.fields import Alias, Declared, Doc, Seconds, Verbatim
from agentv.templating import RenderError, has_placeholder, undeclared


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
"""Of those, the ones that replace a key → the key, which is then not reported as missing."""

_JUDGED = frozenset({"pass_threshold", "scale", "votes", "temperature"})
_SAME = ("description", "expected_output", "metadata", "tags", "repeat", "timeout_s")
"""Keys that an eval file calls the same."""


class Judge(Struct, frozen=True):
    """The `judge:` of an exam or of a case: the model and its settings, each a node with its own position."""

    items: Mapping[str, Node] = msgspec.field(default_factory=dict)
    keys: Mapping[str, Place] = msgspec.field(default_factory=dict)

    @property
    def model(self) -> Node | None:
        """The model that grades, if one is named."""
        node = self.items.get("model")
        return node if node is not None and names_model(node) else None

    def over(self, defaults: Judge) -> Judge:
        """The same, with what it leaves open taken from the exam's defaults."""
        return Judge({**defaults.items, **self.items}, {**defaults.keys, **self.keys})


class ExamCases:
    """Translates the cases of one exam.

    Args:
        reading: of the exam.
        judge: of its defaults.
        prompt: the text of its prompt; None if that cannot be read.
    """

    def __init__(self, reading: Reading, judge: Judge, prompt: str | None) -> None:
        self._reading = reading
        self._judge = judge
        self._prompt = prompt
        self._has_rubric = False

    def translated(self, node: Node, number: int) -> MapNode | None:
        """One entry of `cases:`; None if too little of it is right to read the rest, which is reported.

        Args:
            node: the entry.
            number: its place, from 1.
        """
        report = self._reading.report
        if not isinstance(node, MapNode):
            report.error("bad-case", node, f"a case must be a mapping, found {kind_of(node)}")
            return None
        keys: AuthoredExamCase = read_exam_keys(AuthoredExamCase, node, "a case", _MISPLACED, self._reading)
        name = self._name(node, keys.name) or node_of(f"case {number}", node.at)
        own = read_judge(keys.judge, self._reading)
        inputs = self._inputs(node, keys)
        checks = self._checks(node, keys, own)
        check_model(keys.model, self._reading)
        if checks is None:
            return None
        typed = {key for key in _SAME if getattr(keys, key) not in (None, {})}
        made: dict[str, Node | None] = {
            "id": name,
            "vars": stand_ins(self._prompt, checks) if inputs is None else inputs,
            "input": node_of("the prompt cannot be read", node.at) if self._prompt is None else None,
            **{key: node.items[key] for key in _SAME if key in typed},
            "target": keys.model if keys.model is not None and names_model(keys.model) else None,
            "judge": own.over(self._judge).model,
            "assert": checks,
        }
        return mapping(made, node.at, node.keys)

    def warn_of_unused(self, judge: Judge) -> None:
        """Warn of settings of the exam's judge if no case has a rubric."""
        for key in sorted(_JUDGED & judge.items.keys()) if not self._has_rubric else ():
            message = f"'{key}' configures how a rubric is graded, but no case has a 'rubric'"
            self._reading.report.warning("no-effect", judge.keys[key], message)

    def _name(self, node: MapNode, name: Node | None) -> Node | None:
        report = self._reading.report
        if name is None:
            if not _misspelt(node, "name"):
                report.error("missing-key", node, "a case needs 'name'")
        elif not isinstance(name, Scalar):
            report.error("bad-value", name, f"'name' must be text, found {kind_of(name)}")
        elif is_empty(name):
            report.error("missing-value", name, "'name' is empty; the log lists failed cases by name")
        else:
            return name
        return None

    def _inputs(self, node: MapNode, keys: AuthoredExamCase) -> MapNode | None:
        if keys.inputs is None and keys.inputs_from is None and not _misspelt(node, "inputs", "inputs_from"):
            hint = "if the prompt needs no inputs, write 'inputs: {}'"
            self._reading.report.error("missing-key", node, "a case needs 'inputs' or 'inputs_from'", hint=hint)
        return read_inputs(keys.inputs, keys.inputs_from, self._reading)

    def _checks(self, node: MapNode, keys: AuthoredExamCase, own: Judge) -> Node | None:
        """The assertions, followed by the rubric as one of them; None after reporting a case without any."""
        report = self._reading.report
        given: Node | None = keys.assert_
        if given is None and keys.rubric is None and not _misspelt(node, "assert", "rubric"):
            message = "this case checks nothing: it has no assertion and no rubric"
            report.error("checks-nothing", node, message, hint="add 'assert' or 'rubric'")
        if given is not None and is_empty(given):
            report.error("missing-value", given, "'assert' is empty; it needs a list of assertions")
            given = None
        for item in given.items if isinstance(given, ListNode) else ():
            required = item.get("required") if isinstance(item, MapNode) else None
            if isinstance(required, Scalar) and required.value is False:
                hint = "to show an assertion without counting it, use 'weight: 0'"
                report.error("bad-value", required, "every assertion of an exam is required", hint=hint)
        self._has_rubric |= keys.rubric is not None or _misspelt(node, "rubric")
        if keys.rubric is None and not _misspelt(node, "rubric"):
            for key in _JUDGED & own.items.keys():
                message = f"'{key}' configures how a rubric is graded, but this case has no 'rubric'"
                report.error("missing-key", own.keys[key], message)
        entry = None if keys.rubric is None else self._rubric(keys.rubric, own.over(self._judge))
        if entry is None or (given is not None and not isinstance(given, ListNode)):
            return given
        return ListNode([*(given.items if given is not None else ()), entry], given.at if given else entry.at)

    def _rubric(self, rubric: Node, judge: Judge) -> MapNode | None:
        """The rubric as an assertion; None if it is invalid, which is reported."""
        report = self._reading.report
        if not isinstance(rubric, Scalar) or not isinstance(rubric.value, str):
            hint = "write a checklist as an llm-rubric under 'assert', with the list as its value"
            message = f"'rubric' must be text, found {kind_of(rubric)}"
            report.error("bad-value", rubric, message, hint=None if is_empty(rubric) else hint)
            return None
        if is_empty(rubric):
            report.error("missing-value", rubric, "'rubric' is empty; describe what the judge should grade")
            return None
        options: dict[str, Node | None] = {key: judge.items.get(key) for key in sorted(_JUDGED)}
        scale = options["scale"] or node_of("1-5", rubric.at)
        entry = {"type": node_of("llm-rubric", rubric.at), "value": rubric, **options, "scale": scale}
        return mapping(entry, rubric.at, judge.keys)


def read_judge(node: Node | None, reading: Reading) -> Judge:
    """Read a `judge:`; empty if it is invalid, which is reported."""
    if node is None:
        return Judge()
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return Judge({"model": node}, {"model": node.at})
    if not isinstance(node, MapNode) or not node.items:
        message = f"'judge' must name a model, or be a mapping with 'model' and 'pass_threshold', found {kind_of(node)}"
        reading.report.error("bad-value", node, message)
        return Judge()
    read = read_exam_keys(AuthoredExamJudge, node, "'judge'", {}, reading)
    check_model(read.model, reading)
    rules = shape_of(AuthoredExamJudge).rules
    known = {rules[key].name.rstrip("_"): key for key in node.items if key in rules}
    items = {name: node.items[key] for name, key in known.items()}
    return Judge(items, {name: node.keys[key] for name, key in known.items()})


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
    """The options of a mapping; only those that are passed on unread if one is invalid, which is reported.

    Args:
        cls: declares the options.
        node: the mapping.
        what: whose options they are, in the words of a message.
        misplaced: unknown key → the hint at it.
        reading: of the exam.
    """
    shape = shape_of(cls)
    misplaces = [key for key in node.items if key in misplaced and key not in shape.rules]
    for key in misplaces:
        reading.report.error("unknown-key", node.keys[key], f"{what} has no key '{key}'", hint=misplaced[key])
    items = {key: one for key, one in node.items.items() if key not in misplaces}
    extra = ExtraKeys(hinted=tuple(shape.rules))
    found = shape.decode(items, MapNode(items, node.keys, node.at), reading, what, extra=extra)
    return shape.unread(items) if found is INVALID or misplaces else found


def _misspelt(node: MapNode, *keys: str) -> bool:
    """Whether an unknown key is probably a misspelling of one of these, which is then not missing."""
    rules = shape_of(AuthoredExamCase).rules
    unknown = (key for key in node.items if key not in rules and not key.startswith("x-"))
    return any((_MEANT.get(key) or nearest(key, rules)) in keys for key in unknown)


INPUT_FILES = ("inputs.yml", "inputs.yaml")


def read_inputs(inputs: Node | None, source: Node | None, reading: Reading) -> MapNode | None:
    """The inputs of a case, its own over those of its file; None where they are not known, or where none are given.

    Each stands where the file that gives it says it.

    Args:
        inputs: of the case.
        source: what `inputs_from` says.
        reading: of the exam; its suite's directory is that of the prompt.
    """
    reading = reading.part()
    own = None if inputs is None else _mapping(inputs, "'inputs'", reading)
    found = None if source is None else _from_directory(source, reading)
    if reading.report.failed or (inputs is None and source is None):
        return None
    parts = [part for part in (found, own) if part is not None]
    items: dict[str, Node] = {key: node for part in parts for key, node in part.items.items()}
    keys: dict[str, Place] = {key: at for part in parts for key, at in part.keys.items()}
    return MapNode(items, keys, next(node.at for node in (inputs, source) if node is not None))


def _mapping(node: Node, what: str, reading: Reading) -> MapNode | None:
    """Values by their names, none of which is left blank."""
    if not isinstance(node, MapNode):
        hint = "if the prompt needs no inputs, write '{}'" if is_empty(node) else "write 'name: value'"
        reading.report.error("bad-value", node, f"{what} must be a mapping, found {kind_of(node)}", hint=hint)
        return None
    for key, value in node.items.items():
        if isinstance(value, Scalar) and value.value is None:
            message = f"the input '{key}' has no value"
            reading.report.error("missing-value", node.keys[key], message, hint=f'for an empty text, write {key}: ""')
    return node


def _from_directory(node: Node, reading: Reading) -> MapNode | None:
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        reading.report.error("bad-value", node, f"'inputs_from' must name a directory, found {kind_of(node)}")
        return None
    path = _find(node, reading)
    text = reading.text_of(path, Scalar(path, shown(path), node.at)) if path is not None else None
    if path is None or text is None:
        return None
    root, valid = read_yaml(path, text.encode(), reading.report)
    if root is None:
        if valid:
            reading.report.error("empty-file", node, f"{shown(path)} contains no inputs")
        return None
    return _mapping(root, Path(path).name, reading)


def _find(node: Scalar, reading: Reading) -> str | None:
    """The file of inputs, below the repository's root or the prompt's directory; None if missing, which is reported."""
    written = node.text.strip()
    homes = dict.fromkeys((reading.places.root, reading.places.suite))
    folders = [os.path.normpath(Path(home) / written.lstrip("/")) for home in homes]
    inside = list(filter(reading.places.admits, folders))
    if not inside:
        reading.report.error(OUTSIDE, node, f"'{written}' is outside the repository", hint=ALLOW)
        return None
    folders = inside
    tried = [str(Path(folder) / name) for folder in folders for name in INPUT_FILES]
    found = next((path for path in tried if is_file(path)), None)
    if found is not None:
        if reading.places.on_path is not None:
            reading.places.on_path(written, span_of(node.at), found)
        return found
    notes = [f"tried {shown(path)}" for path in tried]
    if any(is_file(folder) for folder in folders):
        message = f"'inputs_from' must be the directory that contains inputs.yml, but '{written}' is a file"
        reading.report.error("missing-file", node, message, hint=f"write '{Path(written).parent}'")
        return None
    here = next((folder for folder in folders if is_directory(folder)), None)
    message = f"'{written}' contains no inputs.yml" if here else f"the directory '{written}' does not exist"
    hint = _misnamed(here) if here else _near(written, list(homes))
    reading.report.error("missing-file", node, message, hint=hint, notes=notes)
    return None


def _misnamed(folder: str) -> str | None:
    near = nearest(INPUT_FILES[0], [one.name for one in Path(folder).iterdir() if one.is_file()])
    return f"found '{near}': rename it to inputs.yml" if near else None


def _near(written: str, homes: Sequence[str]) -> str | None:
    """The directory that was most likely meant: each part that is not there replaced by the nearest that is."""
    for home in homes:
        place, parts = Path(home), list[str]()
        for part in Path(written.lstrip("/")).parts:
            beside = [one.name for one in place.iterdir() if one.is_dir()]
            found = part if part in beside else nearest(part, beside)
            if found is None:
                break
            parts.append(found)
            place /= found
        else:
            if any(is_file(str(place / name)) for name in INPUT_FILES):
                return f"did you mean '{'/'.join(parts)}'?"
    return None


def stand_ins(prompt: str | None, checks: Node) -> MapNode:
    """A value for every input that is used, for a case whose own are invalid: nothing more is said of them."""
    names = {name for text in (prompt or "", *_texts(checks)) for name in _names_in(text)}
    return MapNode({name: node_of(name, checks.at) for name in names}, dict.fromkeys(names, checks.at), checks.at)


def _names_in(text: str) -> frozenset[str]:
    """The names that the placeholders of a text read."""
    try:
        return undeclared(text) if has_placeholder(text) else frozenset()
    except RenderError:
        return frozenset()


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        yield node.value
    for child in children(node):
        yield from _texts(child)
