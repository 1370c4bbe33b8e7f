"""The exam of a prompt as an eval file (SPEC section 11).

What an eval file says of it: `prompts` with the sections of the prompt's file, `vars` for the inputs, `require_all`,
`default_provider`, `triggering`, and `exam`, by which each run is recorded. Every node keeps its place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agentv.authoring.cases.triggering import AuthoredQueries
from agentv.authoring.dialects.exam_cases import (
    AuthoredExam,
    AuthoredExamDefaults,
    ExamCases,
    Judge,
    check_model,
    names_model,
    read_exam_keys,
    read_judge,
)
from agentv.authoring.dialects.recognition import DocumentDialect, Surroundings, Translation
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.prompt_library import library_of, prompt_directories, read_meta, the_prompt_file
from agentv.authoring.source.files import EXAM_FILES, is_exam, shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, is_empty, kind_of, mapping, node_of
from agentv.authoring.source.report import Report
from agentv.model.suite.exam import PromptMeta
from agentv.model.values.values import Json, Span

PROVIDER = "anthropic"
"""Of a model that is named by its id alone."""

_OF_CASES = frozenset({"inputs", "inputs_from"})
_TOP: Mapping[str, str] = {
    "tests": "the cases of an exam are under 'cases'",
    **dict.fromkeys(("model", "target", "targets", "judge", "timeout_s"), "it belongs under 'defaults'"),
    **dict.fromkeys(("provider", "providers"), "name the model under 'defaults': defaults: {model: …}"),
    **dict.fromkeys(("description", "status", "owner", "tags", "id"), "it belongs in meta.yaml"),
    **dict.fromkeys(("assert", "assertions", "rubric"), "it belongs to a case"),
    **dict.fromkeys(("pass_threshold", "scale", "votes"), "it belongs under 'judge' of a case or of 'defaults'"),
    **dict.fromkeys(("should_trigger", "should_not_trigger"), "it belongs under 'triggering'"),
    **dict.fromkeys(
        ("prompt", "prompts"), "the prompt is the file prompt.xml, prompt.md or prompt.txt next to the exam"
    ),
}
_DEFAULTS: Mapping[str, str] = {
    **dict.fromkeys(("pass_threshold", "scale", "votes"), "it belongs under 'judge'"),
    **dict.fromkeys(
        ("temperature", "max_tokens", "system"), "settings of a model belong to its target in .agentv/targets.yaml"
    ),
}
"""What people write there → the hint."""

_NAMES = {**dict.fromkeys(("model", "target", "targets", "provider", "providers"), "target"), "judge": "judge"}
"""Key that names a model → what is not missing then."""

_FORMS = "'should_trigger' and 'should_not_trigger', a list of 'query' and 'should_trigger', or the path of such a list"
"""Of `triggering:`, for messages."""


class ExamDialect(DocumentDialect):
    """`eval.yml` beside a prompt, and any file with the keys of one."""

    title = "an exam of a prompt"

    def claims(self, path: str, root: Node, data: bytes) -> bool:  # noqa: ARG002  # of the interface
        """Whether a file is an exam: by its name and place, or `cases` with keys that no eval file has."""
        cases = root.get("cases") if isinstance(root, MapNode) else None
        if cases is None or not isinstance(root, MapNode):
            return is_exam(path)
        entries = cases.items if isinstance(cases, ListNode) else []
        return (
            is_exam(path)
            or not {"defaults", "triggering"}.isdisjoint(root.items)
            or any(isinstance(entry, MapNode) and not _OF_CASES.isdisjoint(entry.items) for entry in entries)
        )

    def translate(self, path: str, root: Node, reading: Reading, around: Surroundings) -> Translation | None:
        """The exam as an eval file."""
        if not isinstance(root, MapNode):
            reading.report.error("bad-eval-file", root, f"an exam is a mapping with 'cases', found {kind_of(root)}")
            return None
        return _Exam(path, root, reading.rendering(False), shows_others=around.calls).translated()


class _Exam:
    """Translates one exam."""

    def __init__(self, path: str, root: MapNode, reading: Reading, *, shows_others: bool) -> None:
        self._path = path
        self._directory = os.path.dirname(path)  # noqa: PTH120  # for every prompt of a library
        self._root = root
        self._reading = reading
        self._shows_others = shows_others
        self._meta = read_meta(self._directory, reading)

    def translated(self) -> Translation:
        root, report, top = self._root, self._reading.report, self._root.at
        prompt = the_prompt_file(self._directory, self._reading, top)
        self._check_alone()
        authored: AuthoredExam = read_exam_keys(AuthoredExam, root, "an exam", _TOP, self._reading)
        given = authored.defaults
        if given is not None and not is_empty(given) and not isinstance(given, MapNode):
            report.error("bad-value", given, f"'defaults' must be a mapping, found {kind_of(given)}")
        inside = given if isinstance(given, MapNode) else MapNode({}, {}, top)
        defaults: AuthoredExamDefaults = read_exam_keys(
            AuthoredExamDefaults, inside, "'defaults'", _DEFAULTS, self._reading
        )
        judge = read_judge(defaults.judge, self._reading)
        check_model(defaults.model, self._reading)
        items: dict[str, Node | None] = {
            "name": node_of(self._meta.id, top),
            "exam": exam_record(self._meta, None, top),
            "default_provider": node_of(PROVIDER, top),
            "require_all": node_of(True, top),
            "targets": defaults.model if defaults.model is not None and names_model(defaults.model) else None,
            "judge": judge.model,
            "run": None if defaults.timeout_s is None else self._limits(inside),
            "triggering": None if authored.triggering is None else self._triggering(authored.triggering),
            "prompt": None if prompt is None else self._prompt(prompt),
            "tests": self._tests(authored.cases, judge, prompt),
        }
        return Translation(mapping(items, top), not_missing=self._not_missing(given, defaults), reads_on=True)

    def _limits(self, defaults: MapNode) -> Node:
        key = "timeout_s"
        return MapNode({key: defaults.items[key]}, {key: defaults.keys[key]}, defaults.keys[key])

    def _prompt(self, file: Path) -> Node:
        """The prompt's file, whose sections are messages."""
        return node_of({"file": f"./{file.name}", "sections": True}, Span(str(file), 1, 1, 1, 2))

    def _tests(self, node: Node | None, judge: Judge, prompt: Path | None) -> Node | None:
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
        silent = self._reading.reporting_to(Report())  # what is wrong with the prompt is reported where it is read
        text = silent.text_of(str(prompt), Scalar(str(prompt), str(prompt), node.at)) if prompt else None
        cases = ExamCases(self._reading, judge, text if text is not None and text.strip() else None)
        found = [case for number, item in enumerate(node.items, 1) if (case := cases.translated(item, number))]
        cases.warn_of_unused(judge)
        return ListNode([*found], node.at)

    def _triggering(self, node: Node) -> Node | None:
        """The queries, with the prompt's name and description, and those of the library's other prompts."""
        meta, report, at = self._meta, self._reading.report, node.at
        own: dict[str, Node]
        if (isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip()) or (
            isinstance(node, ListNode) and node.items
        ):
            own = {"queries": node}
        elif isinstance(node, MapNode) and node.items:
            shape = shape_of(AuthoredQueries)
            own = {key: one for key, one in node.items.items() if key in shape.rules or key.startswith("x-")}
            for key in node.items.keys() - own.keys():
                self._reading.unknown_key(key, node, shape.names, "'triggering'", ExtraKeys(hinted=tuple(shape.rules)))
            if not own:
                return None
        else:
            report.error("bad-value", node, f"'triggering' needs {_FORMS}, found {kind_of(node)}")
            return None
        if not (meta.description or "").strip():
            file = shown(meta.path) if meta.path else "a meta.yaml next to the prompt"
            message = f"'{meta.id}' has no description to decide by whether it is loaded"
            report.error("missing-value", node, message, hint=f"write 'description: …' into {file}")
        about: dict[str, Json] = {"name": meta.id, "description": meta.description or meta.id, "others": self._others()}
        keys: dict[str, Place] = {**dict.fromkeys(own, at), **(node.keys if isinstance(node, MapNode) else {})}
        items = {**own, **{key: node_of(value, at) for key, value in about.items()}}
        return MapNode(items, {**dict.fromkeys(about, at), **keys}, at)

    def _others(self) -> dict[str, str]:
        """Id → description of the library's other prompts, whose mistakes are not reported here."""
        if not self._shows_others:
            return {}  # a library that is checked need not be read again for each of its prompts
        silent = self._reading.reporting_to(Report())
        library = library_of(self._directory, silent)
        others = prompt_directories(library) if library is not None else ()
        found = (read_meta(one, silent) for one in others if one != self._directory)
        return {meta.id: meta.description for meta in found if meta.description}

    def _check_alone(self) -> None:
        """Report a second exam of the prompt: nobody would know which one it has passed."""
        file = Path(self._path)
        other = next((name for name in EXAM_FILES if name != file.name and file.with_name(name).is_file()), None)
        if file.name in EXAM_FILES and other is not None:
            message = f"a prompt has one exam, found {' and '.join(EXAM_FILES)}"
            self._reading.report.error("bad-prompt-file", self._root.at, message, hint="keep one of them")

    def _not_missing(self, inside: Node | None, defaults: AuthoredExamDefaults) -> frozenset[str]:
        """Keys that are misplaced, misspelt or invalid, so that they are not also reported as missing."""
        cases = {"tests"}  # reported in an exam's words
        if defaults.model is not None and not names_model(defaults.model):
            return frozenset({"target", *cases})
        if inside is not None and not isinstance(inside, MapNode) and not is_empty(inside):
            return frozenset({*_NAMES.values(), *cases})
        own, top = shape_of(AuthoredExamDefaults).rules, shape_of(AuthoredExam).rules
        outer = [key for key in self._root.items if key not in top]
        inner = [key for key in inside.items if key not in own] if isinstance(inside, MapNode) else []
        near = (key if key in _NAMES else nearest(key, (*own, *top)) for key in outer + inner)
        return frozenset({*(_NAMES[key] for key in near if key in _NAMES), *cases})


def exam_record(meta: PromptMeta, directory: str | None, at: Place) -> Node:
    """The value of `exam` of a suite."""
    record = {"prompt": meta.id, "description": meta.description, "directory": directory}
    return node_of({key: text for key, text in record.items() if text is not None}, at)


EXAM = ExamDialect()
