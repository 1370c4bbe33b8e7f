"""Translates the exam of a prompt to an eval file (SPEC section 11).

The eval file has `prompts` with the sections of the prompt's file, `vars` for the inputs, `require_all`,
`default_provider`, `triggering`, and `exam`, with which each run is recorded. Every node keeps its position. Errors are
reported with the exam's own keys. A case with an invalid part is passed on with its valid parts, so that errors in them
are reported too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentv.authoring.cases.triggering import AuthoredQueries, prompt_keys
from agentv.authoring.dialects.recognition import DocumentDialect, Surroundings, Translation
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.reading import ExtraKeys, Reading, sibling
from agentv.authoring.fields.schema import AuthoredExam, AuthoredExamCase, AuthoredExamDefaults, AuthoredExamJudge
from agentv.authoring.prompt_library import library_of, prompt_directories, read_meta, the_prompt_file
from agentv.authoring.source.boundary import ALLOW, OUTSIDE
from agentv.authoring.source.files import EXAM_FILES, INPUT_FILES, is_directory, is_exam, is_file, shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import (
    NOWHERE,
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
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.model.suite.exam import PromptMeta
from agentv.model.values.values import Span
from agentv.templating import RenderError, has_placeholder, undeclared

_MEANT: Mapping[str, str] = {
    **dict.fromkeys(("input", "vars", "variables"), "inputs"),
    **dict.fromkeys(("criteria", "rubrics"), "rubric"),
    "id": "name",
}
"""Names of keys in eval files, and likely mistakes → key of a case in an exam."""

_JUDGED = frozenset({"pass_threshold", "scale", "votes", "temperature"})
_SAME_KEYS = ("description", "expected_output", "metadata", "tags", "repeat", "timeout_s")
"""Keys with the same name in an eval file."""


def over(defaults: MapNode, own: MapNode) -> MapNode:
    """A mapping with its missing keys taken from the defaults. Values keep their positions."""
    return MapNode({**defaults.items, **own.items}, {**defaults.keys, **own.keys}, own.at)


def read_judge(node: Node | None, reading: Reading) -> MapNode:
    """The model and settings of a `judge:` by canonical key; empty after reporting that it is invalid."""
    if isinstance(node, Scalar) and _is_text(node):
        return mapping({"model": node}, node.at)
    if not isinstance(node, MapNode) or not node.items:
        if node is not None:
            reading.report.unfit(node, "'judge' must name a model, or be a mapping with 'model' and 'pass_threshold'")
        return MapNode({}, {}, NOWHERE)
    read_model(read_exam_keys(AuthoredExamJudge, node, "'judge'", reading, {}).model, reading)
    rules = shape_of(AuthoredExamJudge).rules
    known = {rules[key].name.rstrip("_"): key for key in node.items if key in rules}
    items = {name: node.items[key] for name, key in known.items()}
    return MapNode(items, {name: node.keys[key] for name, key in known.items()}, node.at)


def read_model(node: Node | None, reading: Reading) -> Node | None:
    """The node that names a model; None if none exists, or after reporting that it is invalid."""
    found = model_of(node)
    if node is not None and found is None:
        reading.report.unfit(node, "'model' must be the name of one model")
    return found


def model_of(node: Node | None) -> Node | None:
    """The node if it can name a model, as text or the settings of a target; otherwise None."""
    return node if _is_text(node) or (isinstance(node, MapNode) and node.items) else None


def _is_text(node: Node | None) -> bool:
    """Whether a node is non-blank text."""
    return isinstance(node, Scalar) and isinstance(node.value, str) and bool(node.value.strip())


def read_exam_keys(cls: type, node: MapNode, what: str, reading: Reading, meant: Mapping[str, str]) -> Any:
    """The options of a mapping. After reporting mistakes, only options that are kept as nodes are set.

    Args:
        cls: declares the options.
        node: the mapping.
        what: owner of the options, for messages.
        reading: context of the exam.
        meant: likely mistake → key.
    """
    shape = shape_of(cls)
    extra = ExtraKeys(hinted=(*shape.rules, *meant), older=meant)
    return shape.read(node.items, node, reading, what, extra=extra)


def _misspelt(node: MapNode, *keys: str) -> bool:
    """Whether an unknown key is probably a misspelling of one of `keys`, which is then not reported as missing."""
    rules = shape_of(AuthoredExamCase).rules
    unknown = (key for key in node.items if key not in rules and not key.startswith("x-"))
    found = (nearest(key, (*rules, *_MEANT)) for key in unknown)
    return any(_MEANT.get(key, key) in keys for key in found if key is not None)


def read_inputs(inputs: Node | None, source: Node | None, reading: Reading) -> MapNode | None:
    """The inputs of a case, which override those of `inputs_from`; None if none exist, or after reporting errors.

    Each input keeps its position.

    Args:
        inputs: value of `inputs`.
        source: value of `inputs_from`.
        reading: context of the exam, whose suite directory is that of the prompt.
    """
    given = inputs or source
    if given is None:
        return None
    reading, none = reading.part(), MapNode({}, {}, given.at)
    own = none if inputs is None else _mapping(inputs, "'inputs'", reading)
    found = none if source is None else _from_directory(source, reading)
    return None if reading.report.failed or own is None or found is None else over(found, own)


def _mapping(node: Node, what: str, reading: Reading) -> MapNode | None:
    """The inputs if they are a mapping; otherwise None. A missing value is reported."""
    if not isinstance(node, MapNode):
        hint = "if the prompt needs no inputs, write '{}'" if is_empty(node) else "write 'name: value'"
        reading.report.unfit(node, f"{what} must be a mapping", hint=hint)
        return None
    for key, value in node.items.items():
        if isinstance(value, Scalar) and value.value is None:
            message = f"the input '{key}' has no value"
            reading.report.error("missing-value", node.keys[key], message, hint=f'for an empty text, write {key}: ""')
    return node


def _from_directory(node: Node, reading: Reading) -> MapNode | None:
    if not isinstance(node, Scalar) or not _is_text(node):
        reading.report.unfit(node, "'inputs_from' must name a directory")
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
    """The file of inputs below the repository's root or the prompt's directory, or None after reporting an error."""
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
    if here:
        near = nearest(INPUT_FILES[0], [one.name for one in Path(here).iterdir() if one.is_file()])
        hint = f"found '{near}': rename it to inputs.yml" if near else None
    else:
        hint = sibling(written, folders)
    reading.report.error("missing-file", node, message, hint=hint, notes=notes)
    return None


def stand_ins(prompt: str | None, checks: Node) -> MapNode:
    """A value for every input that is used, so that a case with invalid inputs has no undefined variables."""
    names = {name for text in (prompt or "", *_texts(checks)) for name in _names_in(text)}
    return MapNode({name: node_of(name, checks.at) for name in names}, dict.fromkeys(names, checks.at), checks.at)


def _names_in(text: str) -> frozenset[str]:
    """The variables in a text's placeholders; empty if the text is not a valid template."""
    try:
        return undeclared(text) if has_placeholder(text) else frozenset()
    except RenderError:
        return frozenset()


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        yield node.value
    for child in children(node):
        yield from _texts(child)


PROVIDER = "anthropic"
"""Provider of a model that is named only by its id."""

_INPUT_KEYS = frozenset({"inputs", "inputs_from"})
_FORMS = "'should_trigger' and 'should_not_trigger', a list of 'query' and 'should_trigger', or the path of such a list"
"""Valid values of `triggering:`, for messages."""


class ExamDialect(DocumentDialect):
    """The dialect of exams: `eval.yml` next to a prompt, and any file with an exam's keys."""

    title = "an exam of a prompt"

    def claims(self, path: str, root: Node, data: bytes) -> bool:  # noqa: ARG002
        """Whether a file is an exam: by its name and directory, or by `cases` with keys that no eval file has."""
        cases = root.get("cases") if isinstance(root, MapNode) else None
        if cases is None or not isinstance(root, MapNode):
            return is_exam(path)
        entries = cases.items if isinstance(cases, ListNode) else []
        return (
            is_exam(path)
            or not {"defaults", "triggering"}.isdisjoint(root.items)
            or any(isinstance(entry, MapNode) and not _INPUT_KEYS.isdisjoint(entry.items) for entry in entries)
        )

    def translate(self, path: str, root: Node, reading: Reading, around: Surroundings) -> Translation | None:
        """The exam as an eval file, or None after reporting that it is not a mapping."""
        if not isinstance(root, MapNode):
            reading.report.unfit(root, "an exam is a mapping with 'cases'", "bad-eval-file")
            return None
        return _Exam(path, root, reading.rendering(False), shows_others=around.calls).translated()


class _Exam:
    """Translates one exam. `_text`: the text of its prompt; None if it cannot be read."""

    def __init__(self, path: str, root: MapNode, reading: Reading, *, shows_others: bool) -> None:
        self._path = path
        self._directory = os.path.dirname(path)  # noqa: PTH120  # for every prompt of a library
        self._root = root
        self._reading = reading
        self._shows_others = shows_others
        self._meta = read_meta(self._directory, reading)
        self._judge = MapNode({}, {}, NOWHERE)
        self._text: str | None = None
        self._has_rubric = False

    def translated(self) -> Translation:
        root, top = self._root, self._root.at
        prompt = the_prompt_file(self._directory, self._reading, top)
        file = Path(self._path)
        other = next((name for name in EXAM_FILES if name != file.name and file.with_name(name).is_file()), None)
        if file.name in EXAM_FILES and other is not None:
            message = f"a prompt has one exam, found {' and '.join(EXAM_FILES)}"
            self._reading.report.error("bad-prompt-file", top, message, hint="keep one of them")
        head = self._reading.part()
        authored: AuthoredExam = read_exam_keys(AuthoredExam, root, "an exam", head, {"tests": "cases"})
        given = authored.defaults
        if given is not None and not is_empty(given) and not isinstance(given, MapNode):
            head.report.unfit(given, "'defaults' must be a mapping")
        inside = given if isinstance(given, MapNode) else MapNode({}, {}, top)
        defaults: AuthoredExamDefaults = read_exam_keys(AuthoredExamDefaults, inside, "'defaults'", head, {})
        judge = read_judge(defaults.judge, head)
        model = read_model(defaults.model, head)
        limit, limit_at = inside.items.get("timeout_s"), inside.keys.get("timeout_s", top)
        run = None if defaults.timeout_s is None else mapping({"timeout_s": limit}, limit_at, inside.keys)
        items: dict[str, Node | None] = {
            "name": node_of(self._meta.id, top),
            "exam": exam_record(self._meta, None, top),
            "default_provider": node_of(PROVIDER, top),
            "require_all": node_of(True, top),
            "targets": model,
            "judge": model_of(judge.get("model")),
            "run": run,
            "triggering": None if authored.triggering is None else self._triggering(authored.triggering),
            "prompt": None
            if prompt is None
            else node_of({"file": f"./{prompt.name}", "sections": True}, Span.start_of(str(prompt))),
            "tests": self._tests(authored.cases, judge, prompt),
        }
        # missing cases were reported with the exam's own key, and an unknown key may be a misspelt model or judge
        missing = {"tests", "target", "judge"} if head.report.failed else {"tests"}
        return Translation(mapping(items, top), not_missing=frozenset(missing), reads_on=True)

    def _tests(self, node: Node | None, judge: MapNode, prompt: Path | None) -> Node | None:
        report = self._reading.report
        if node is None:
            if not any(key == "tests" or nearest(key, ("cases",)) for key in self._root.items):
                report.error("missing-key", self._root, "an exam needs 'cases'")
            return None
        if not isinstance(node, ListNode) or not node.items:
            hint = "start each case with '- '" if isinstance(node, MapNode) else None
            code = "no-tests" if is_empty(node) else "bad-value"
            report.error(code, node, f"'cases' must be a list of cases, found {kind_of(node)}", hint=hint)
            return None
        silent = self._reading.reporting_to(Report())  # mistakes in the prompt are reported when it is read
        text = silent.text_of(str(prompt), Scalar(str(prompt), str(prompt), node.at)) if prompt else None
        self._judge, self._text = judge, text if text is not None and text.strip() else None
        found = [case for number, item in enumerate(node.items, 1) if (case := self._case(item, number))]
        for key in sorted(_JUDGED & judge.items.keys()) if not self._has_rubric else ():
            message = f"'{key}' configures how a rubric is graded, but no case has a 'rubric'"
            report.warning("no-effect", judge.keys[key], message)
        return ListNode([*found], node.at)

    def _case(self, node: Node, number: int) -> MapNode | None:
        """The case for an entry of `cases:`, or None after reporting that it is not a mapping or checks nothing.

        Args:
            node: the entry.
            number: position in the list, from 1.
        """
        report = self._reading.report
        if not isinstance(node, MapNode):
            report.unfit(node, "a case must be a mapping", "bad-case")
            return None
        keys: AuthoredExamCase = read_exam_keys(AuthoredExamCase, node, "a case", self._reading, _MEANT)
        name = self._name(node, keys.name) or node_of(f"case {number}", node.at)
        own = read_judge(keys.judge, self._reading)
        if keys.inputs is None and keys.inputs_from is None and not _misspelt(node, "inputs", "inputs_from"):
            hint = "if the prompt needs no inputs, write 'inputs: {}'"
            self._reading.report.error("missing-key", node, "a case needs 'inputs' or 'inputs_from'", hint=hint)
        inputs = read_inputs(keys.inputs, keys.inputs_from, self._reading)
        checks = self._checks(node, keys, own)
        model = read_model(keys.model, self._reading)
        if checks is None:
            return None
        typed = {key for key in _SAME_KEYS if getattr(keys, key) not in (None, {})}
        made: dict[str, Node | None] = {
            "id": name,
            "vars": stand_ins(self._text, checks) if inputs is None else inputs,
            "input": node_of("the prompt cannot be read", node.at) if self._text is None else None,
            **{key: node.items[key] for key in _SAME_KEYS if key in typed},
            "target": model,
            "judge": model_of(over(self._judge, own).get("model")),
            "assert": checks,
        }
        return mapping(made, node.at, node.keys)

    def _name(self, node: MapNode, name: Node | None) -> Node | None:
        report = self._reading.report
        if name is None:
            if not _misspelt(node, "name"):
                report.error("missing-key", node, "a case needs 'name'")
        elif not isinstance(name, Scalar):
            report.unfit(name, "'name' must be text")
        elif is_empty(name):
            report.error("missing-value", name, "'name' is empty; the log lists failed cases by name")
        else:
            return name
        return None

    def _checks(self, node: MapNode, keys: AuthoredExamCase, own: MapNode) -> Node | None:
        """The assertions, with the rubric as the last one; None after reporting that none exist."""
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
        entry = None if keys.rubric is None else self._rubric(keys.rubric, over(self._judge, own))
        if entry is None or (given is not None and not isinstance(given, ListNode)):
            return given
        return ListNode([*(given.items if given is not None else ()), entry], given.at if given else entry.at)

    def _rubric(self, rubric: Node, judge: MapNode) -> MapNode | None:
        """The rubric as an assertion, or None after reporting that it is invalid."""
        report = self._reading.report
        if not isinstance(rubric, Scalar) or not isinstance(rubric.value, str):
            hint = "write a checklist as an llm-rubric under 'assert', with the list as its value"
            report.unfit(rubric, "'rubric' must be text", hint=None if is_empty(rubric) else hint)
            return None
        if is_empty(rubric):
            report.error("missing-value", rubric, "'rubric' is empty; describe what the judge should grade")
            return None
        options: dict[str, Node | None] = {key: judge.items.get(key) for key in sorted(_JUDGED)}
        scale = options["scale"] or node_of("1-5", rubric.at)
        entry = {"type": node_of("llm-rubric", rubric.at), "value": rubric, **options, "scale": scale}
        return mapping(entry, rubric.at, judge.keys)

    def _triggering(self, node: Node) -> Node | None:
        """The value of `triggering`: queries, and names and descriptions of the prompt and its library's others."""
        meta, report, at = self._meta, self._reading.report, node.at
        own: dict[str, Node]
        if _is_text(node) or (isinstance(node, ListNode) and node.items):
            own = {"queries": node}
        elif isinstance(node, MapNode) and node.items:
            shape = shape_of(AuthoredQueries)
            own = {key: one for key, one in node.items.items() if key in shape.rules or key.startswith("x-")}
            for key in node.items.keys() - own.keys():
                self._reading.unknown_key(key, node, shape.names, "'triggering'", ExtraKeys(hinted=tuple(shape.rules)))
            if not own:
                return None
        else:
            report.unfit(node, f"'triggering' needs {_FORMS}")
            return None
        file = shown(meta.path) if meta.path else "a meta.yaml next to the prompt"
        about = prompt_keys(meta, self._others(), node, file, report)
        keys: dict[str, Place] = {**dict.fromkeys(own, at), **(node.keys if isinstance(node, MapNode) else {})}
        items = {**own, **{key: node_of(value, at) for key, value in about.items()}}
        return MapNode(items, {**dict.fromkeys(about, at), **keys}, at)

    def _others(self) -> dict[str, str]:
        """Id → description of the library's other prompts. Mistakes in them are not reported."""
        if not self._shows_others:
            return {}  # when a library is validated, it need not be read again for every prompt
        silent = self._reading.reporting_to(Report())
        library = library_of(self._directory, silent)
        others = prompt_directories(library) if library is not None else ()
        found = (read_meta(one, silent) for one in others if one != self._directory)
        return {meta.id: meta.description for meta in found if meta.description}


def exam_record(meta: PromptMeta, directory: str | None, at: Place) -> Node:
    """The value of a suite's `exam`."""
    record = {"prompt": meta.id, "description": meta.description, "directory": directory}
    return node_of({key: text for key, text in record.items() if text is not None}, at)


EXAM = ExamDialect()
