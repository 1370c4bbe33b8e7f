"""An exam read from its file: a suite, and the data that its attempts are recorded with (SPEC section 11)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agentv.authoring.exams.cases import ExamCases, ExamJudge, check_model, names_model, read_exam_keys, read_judge
from agentv.authoring.exams.detection import EXAM_FILES
from agentv.authoring.exams.meta import read_meta
from agentv.authoring.exams.prompt import ExamPrompt
from agentv.authoring.exams.prompt_library import library_of, prompt_directories
from agentv.authoring.exams.prompt_text import read_prompt
from agentv.authoring.exams.schema import AuthoredExam, AuthoredExamDefaults
from agentv.authoring.exams.texts import texts_of
from agentv.authoring.exams.triggering import trigger_cases
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.header.header import Header
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, is_empty, kind_of
from agentv.authoring.source.report import Report
from agentv.model.suite.exam import Exam, PromptMeta
from agentv.model.suite.suite import Case, Suite, TargetSpec

_TOP: Mapping[str, str] = {
    "tests": "the cases of an exam are under 'cases'",
    **dict.fromkeys(("model", "target", "targets", "judge", "timeout_s"), "it belongs under 'defaults'"),
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


_WHOM = {"model": "target", "target": "target", "targets": "target", "judge": "judge"}
"""Key that names who is asked → what is not missing then."""


@dataclass(slots=True)
class ExamReader:
    """Reads one exam.

    Args:
        path: of its file.
        root: root node of the file.
        reading: of the suite that it becomes.
        request: options of the command line.
    """

    path: str
    root: MapNode
    reading: Reading
    request: LoadRequest
    _authored: AuthoredExam = field(init=False)
    _defaults: AuthoredExamDefaults = field(init=False)
    _meta: PromptMeta = field(init=False)
    _judge: ExamJudge = field(init=False)
    _prompt: ExamPrompt | None = field(init=False, default=None)
    _names: dict[str, Place] = field(init=False, default_factory=dict)
    _own_target: TargetSpec | None = field(init=False, default=None)
    _header: Header = field(init=False)

    def header(self) -> MapNode:
        """All but the cases, in the words of an eval file."""
        reading = self.reading.rendering(False)
        self._meta = read_meta(self._directory, reading)
        text = read_prompt(self._directory, reading, self.root.at)
        self._check_alone()
        self._authored = read_exam_keys(AuthoredExam, self.root, "an exam", _TOP, reading)
        defaults = self._authored.defaults
        if defaults is None or is_empty(defaults):
            defaults = MapNode({}, {}, self.root.at)
        elif not isinstance(defaults, MapNode):
            reading.report.error("bad-value", defaults, f"'defaults' must be a mapping, found {kind_of(defaults)}")
            defaults = MapNode({}, {}, self.root.at)
        self._defaults = read_exam_keys(AuthoredExamDefaults, defaults, "'defaults'", _DEFAULTS, reading)
        self._judge = read_judge(self._defaults.judge, reading)
        if text is not None:
            self._prompt = ExamPrompt(text, reading)
            self._prompt.check()
        return self._lowered(defaults)

    def queries(self, header: Header) -> tuple[Case, ...]:
        """The queries, each a question to the judge whether the prompt would be loaded."""
        node = self._authored.triggering
        if node is None:
            return ()
        # nobody is asked where nothing runs: a library that is checked need not be read again for each of its prompts
        others = self._others(header.reading) if self.request.for_run else {}
        found = trigger_cases(node, self._meta, others, header, header.reading)
        self._names.update({case.id: case.span for case in found if case.span is not None})
        return found

    def cases(self, header: Header) -> Iterator[tuple[Case, ...]]:
        """The cases of each entry of `cases`, as read."""
        if self.request.targets or self.request.given_target is not None:
            self._own_target = self._named_target(header)
        self._header = header
        header.cases.notes.seen = True  # what is missing is reported here, in the exam's words
        node = self._authored.cases
        if node is None:
            if not any(key == "tests" or nearest(key, ("cases",)) for key in self.root.items):
                header.reading.report.error("missing-key", self.root, "an exam needs 'cases'")
            return
        if not isinstance(node, ListNode) or not node.items:
            hint = "start each case with '- '" if isinstance(node, MapNode) else None
            code = "no-tests" if is_empty(node) else "bad-value"
            header.reading.report.error(
                code, node, f"'cases' must be a list of cases, found {kind_of(node)}", hint=hint
            )
            return
        reader = ExamCases(header, self._prompt, self._judge, self.request.variables, self._names)
        for item in node.items:
            yield reader.read(item)
        reader.end()

    def exam(self, suite: Suite, read: Mapping[str, bytes]) -> Exam:
        """The exam data of a suite.

        Args:
            suite: as loaded.
            read: path → bytes of all files that were read for it.
        """
        queries = {case.id: bool(_should(case)) for case in suite.cases if case.asks_judge}
        return Exam(
            prompt=self._meta.id,
            directory=self._directory,
            texts=texts_of(self._directory, self._meta, suite, read, self._asked(suite)),
            other_model=self._is_other(suite),
            queries=queries,
        )

    def _asked(self, suite: Suite) -> Iterator[TargetSpec]:
        """The models and judges that the exam asks unless the command line names others; where it names none, those."""
        flagged = self.request.targets or self.request.given_target is not None
        own = self._own_target if flagged else None
        models = (own,) if own is not None else suite.targets
        for case in suite.cases:
            yield from (case.target,) if case.target is not None else models
        judging = self._header.cases.notes.judging
        named = tuple(judging.used(replace(suite, forced_judge=None), suite.judges))
        yield from named or judging.used(suite, suite.judges)

    def _others(self, reading: Reading) -> dict[str, str]:
        """Id → description of the library's other prompts; what is wrong with those is not told here."""
        silent = reading.reporting_to(Report())
        library = library_of(self._directory, silent)
        found = {}
        for directory in prompt_directories(library) if library is not None else ():
            meta = read_meta(directory, silent) if directory != self._directory else None
            if meta is not None and meta.description:
                found[meta.id] = meta.description
        return found

    def _check_alone(self) -> None:
        """Report a second exam of the prompt: nobody would know which one it has passed."""
        file = Path(self.path)
        other = next((name for name in EXAM_FILES if name != file.name and file.with_name(name).is_file()), None)
        if file.name in EXAM_FILES and other is not None:
            message = f"a prompt has one exam, found {' and '.join(EXAM_FILES)}"
            self.reading.report.error("bad-prompt-file", self.root.at, message, hint="keep one of them")

    def _named_target(self, header: Header) -> TargetSpec | None:
        """The model that the exam would ask by itself; what is wrong with it is not told here."""
        registry, silent = header.targets.registry, Report()
        node = self._defaults.model or registry.default_target
        if isinstance(node, Scalar) and node.text in registry.entries:
            return registry.read_alone(node.text, silent)
        return registry.inline(node, header.reading.reporting_to(silent)) if node is not None else None

    @property
    def not_missing(self) -> frozenset[str]:
        """Keys of the exam that are misplaced or misspelt, so that they are not also reported as missing."""
        inside = self._authored.defaults
        if self._defaults.model is not None and not names_model(self._defaults.model):
            return frozenset({"target"})
        if inside is not None and not isinstance(inside, MapNode) and not is_empty(inside):
            return frozenset(_WHOM.values())
        own = shape_of(AuthoredExamDefaults).rules
        outer = [key for key in self.root.items if key not in shape_of(AuthoredExam).rules]
        inner = [key for key in inside.items if key not in own] if isinstance(inside, MapNode) else []
        near = (key if key in _WHOM else nearest(key, (*own, *shape_of(AuthoredExam).rules)) for key in outer + inner)
        return frozenset(_WHOM[key] for key in near if key in _WHOM)

    @property
    def _directory(self) -> str:
        return os.path.dirname(self.path)  # noqa: PTH120  # asked several times for every exam

    def _lowered(self, defaults: MapNode) -> MapNode:
        top = self.root.at
        name = self._meta.id
        items: dict[str, Node] = {"name": Scalar(name, name, top)}
        places: dict[str, Place] = {"name": top}
        model = self._defaults.model
        judge = self._judge.items.get("model")
        check_model(model, self.reading)
        if model is not None and names_model(model):
            items["targets"], places["targets"] = model, model.at
        if judge is not None and names_model(judge):
            items["judge"], places["judge"] = judge, judge.at
        if self._defaults.timeout_s is not None:
            at = defaults.keys["timeout_s"]
            items["run"] = MapNode({"timeout_s": defaults.items["timeout_s"]}, {"timeout_s": at}, at)
            places["run"] = at
        return MapNode(items, places, top)

    def _is_other(self, suite: Suite) -> bool:
        """Whether the command line has another model sit or judge than the exam names, or changes the inputs.

        An exam that names none accepts any.
        """
        if self.request.variables:
            return True
        if self.request.targets or self.request.given_target is not None:
            own = [case.target or self._own_target for case in suite.cases if not case.asks_judge]
            unread = self._own_target is None and self._defaults.model is not None
            if unread or any(not _same(spec, one) for spec in own if spec is not None for one in suite.targets):
                return True
        judges = [suite.judge, *(case.judge for case in suite.cases)]
        forced = suite.forced_judge
        return forced is not None and any(not _same(spec, forced) for spec in judges if spec is not None)


def _same(one: TargetSpec, other: TargetSpec) -> bool:
    return (one.name, one.fingerprint) == (other.name, other.fingerprint)


def _should(case: Case) -> Any:
    return getattr(case.assertions[0].assertion, "value", None) if case.assertions else None
