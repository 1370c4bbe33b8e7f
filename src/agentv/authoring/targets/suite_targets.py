"""Targets and judge of a suite: from Python, then flags, then the eval file, then the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from agentv.authoring.fields.agentv.targets import translated_target
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.source.nodes import MapNode, Node, Scalar, is_empty, node_of, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.targets.catalog import entries_of
from agentv.authoring.targets.registry import PASTE, TargetRegistry
from agentv.authoring.targets.target import read_target
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.span import Span
from agentv.model.values.values import Json

PASTE_MODEL = """name one on the command line: --target {provider}:MODEL, or in .agentv/targets.yaml
  defaults:
    target: {provider}:MODEL"""


class SuiteTargets(Struct, frozen=True):
    """The targets and judges of one suite.

    Attributes:
        path: its file.
        of_targets, of_judge, of_default_judge: what is wrong with them, until it is known whether a case uses them.
    """

    request: LoadRequest
    registry: TargetRegistry
    path: str
    of_targets: Report = field(default_factory=Report)
    of_judge: Report = field(default_factory=Report)
    of_default_judge: Report = field(default_factory=Report)

    def asked(self, node: Node | None, reading: Reading) -> Iterator[TargetSpec]:
        """The systems under test; `node` is what the eval file says, and the last to be looked at.

        Two of one name are reported: their rows could not be distinguished. The targets that the eval file spells out
        can be named from now on, on the command line and in its cases.
        """
        self._enter_own(node, reading)
        first: dict[str, Node | None] = {}
        for target, at in self._named(node, reading):
            if target.name in first:
                self._report_twice(target.name, at, first[target.name], reading)
            else:
                first[target.name] = at
                yield target

    def _enter_own(self, node: Node | None, reading: Reading) -> None:
        """Make the targets that the eval file spells out known by their names."""
        if node is None or is_empty(node):
            return
        unread = reading.reporting_to(reading.report.beside())  # what is wrong counts where a target is read
        for item, own in entries_of(node, unread):
            if not isinstance(item, MapNode):
                continue
            made = translated_target(item, self.registry.providers, own)
            name = own.rendered(made.items["name"]) if "name" in made.items else None
            if isinstance(name, Scalar) and not is_empty(name):
                self.registry.enter_own(name.text.strip(), made, item, own)

    def _named(self, node: Node | None, reading: Reading) -> Iterator[tuple[TargetSpec, Node | None]]:
        """Each target with what names it in a file."""
        if self.request.given_target is not None:
            yield from _one(next(self._given(self.request.given_target, reading), None), None)
        elif self.request.targets:
            for name in self.request.targets:
                yield from _one(self.registry.typed(name, reading), None)
        elif node is None or is_empty(node):
            default = self.registry.default_target
            later = self.of_targets
            found = self.registry.resolve(default.text, default, reading, later=later) if default else None
            yield from _one(found, default)
        else:
            for item, own in entries_of(node, reading):
                yield from _one(self.registry.inline(item, own, later=self.of_targets), item)

    def judge(self, node: Node | None, reading: Reading) -> TargetSpec | None:
        """The judge that the eval file names."""
        if node is None:
            return None
        found = self.registry.inline(node, reading, later=self.of_judge)
        if found is None:
            self.of_judge.fail()
        return found

    def forced_judge(self, reading: Reading) -> TargetSpec | None:
        """The judge of the command line, or one made in Python."""
        if self.request.given_judge is not None:
            return next(self._given(self.request.given_judge, reading), None)
        return self.registry.typed(self.request.judge, reading) if self.request.judge is not None else None

    def default_judge(self, reading: Reading) -> TargetSpec | None:
        """The project's judge."""
        default = self.registry.default_judge
        if default is None:
            return None
        found = self.registry.resolve(default.text, default, reading, later=self.of_default_judge)
        if found is None:
            self.of_default_judge.fail()
        return found

    def settle(self, suite: Suite, reading: Reading, *, untargeted: bool, judged: bool) -> None:
        """Report what is wrong with the suite's targets and judge, now that all cases were read.

        Args:
            suite: with what could be read of them.
            reading: of the suite.
            untargeted: a case names no target of its own.
            judged: an assertion leaves it to the suite which judge grades.
        """
        judged = judged and suite.forced_judge is None
        named = suite.judge is not None or bool(self.of_judge.diagnostics)
        by_targets = bool(suite.targets) and all(target.judge for target in suite.targets)
        self.registry.settle(self.of_targets, reading, used=untargeted)
        self.registry.settle(self.of_judge, reading, used=judged)
        self.registry.settle(self.of_default_judge, reading, used=judged and not named and not by_targets)

    @property
    def judge_broken(self) -> bool:
        """Whether a judge is named and cannot be used, which is reported where it is needed."""
        return self.of_judge.failed or self.of_default_judge.failed

    def need(self, node: Node | None, span: Span | None, reading: Reading, *, untargeted: bool) -> None:
        """Report that nothing names a target, where a case has none of its own."""
        request = self.request
        named = (
            request.given_target is not None or request.targets or not is_empty(node) or self.registry.default_target
        )
        if request.for_run and untargeted and not named and not self.registry.is_unreadable(reading):
            message, provider = "no target is set, so there is nothing to test", self.registry.default_provider
            paste = PASTE if provider is None else PASTE_MODEL.replace("{provider}", provider)
            reading.report.error("no-target", span, message, notes=paste.splitlines())

    def _report_twice(self, name: str, at: Node | None, first: Node | None, reading: Reading) -> None:
        if at is None or first is None:
            reading.report.error("duplicate-target", None, f"--target '{name}' is given twice")
            return
        written = self._name_of(at, reading)
        subject = f"two targets are named '{name}'"
        if isinstance(written, Scalar) and written.text.strip() != name:
            subject = f"'{written.text}' means the target '{name}', which is named twice"
        message = f"{subject}; the first is at line {span_of(self._name_of(first, reading).at).line}"
        hint = "give each a different 'name'" if isinstance(at, MapNode) or isinstance(first, MapNode) else None
        reading.report.error("duplicate-target", written, message, hint=hint)

    def _name_of(self, node: Node, reading: Reading) -> Node:
        """Where an inline target says its name, else all of it."""
        if not isinstance(node, MapNode):
            return node
        made = translated_target(node, self.registry.providers, reading.reporting_to(reading.report.beside()))
        return made.get("name") or node

    def _given(self, given: TargetSpec | Mapping[str, Json], reading: Reading) -> Iterator[TargetSpec]:
        if isinstance(given, TargetSpec):
            yield given
            return
        node = node_of(given, Span(self.path, 1, 1, 1, 2))
        assert isinstance(node, MapNode)  # noqa: S101  # it was made of a mapping
        reading = reading.rendering(False)
        made = translated_target(node, self.registry.providers, reading)
        found = read_target(made, self.registry.providers, reading, self.registry.retry)
        if found is not None:
            yield found


def default_of(name: str | None, nodes: Mapping[str, Node], key: str) -> Scalar | None:
    """A default of `config.yaml`, as a name with its place."""
    return Scalar(name, name, nodes[key].at) if name else None


def _one(found: TargetSpec | None, at: Node | None) -> Iterator[tuple[TargetSpec, Node | None]]:
    if found is not None:
        yield found, at
