"""Whom a suite asks and who judges: what was given in Python, then flags, then the eval file, then the project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentv.model.span import Span
from agentv.model.suite import TargetSpec
from agentv.model.values import Json
from agentv.spec.files import Places
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, is_empty, node_of
from agentv.spec.reading import Reading
from agentv.spec.request import LoadRequest
from agentv.spec.target_book import PASTE, TargetBook
from agentv.spec.targets import read_target


@dataclass(frozen=True, slots=True)
class SuiteTargets:
    """The targets and judges of one suite; `path` is its file."""

    request: LoadRequest
    book: TargetBook
    path: str

    def asked(self, node: Node | None, reading: Reading) -> Iterator[TargetSpec]:
        """The systems under test; `node` is what the eval file says, and the last to be looked at."""
        if self.request.given_target is not None:
            yield from self._given(self.request.given_target, reading)
        elif self.request.targets:
            for name in self.request.targets:
                yield from _one(self._from_command_line(name, reading))
        elif node is None or is_empty(node):
            default = self.book.default_target
            yield from _one(self.book.resolve(default.text, default, reading) if default else None)
        else:
            for item in node.items if isinstance(node, ListNode) else (node,):
                yield from _one(self.book.inline(item, reading))

    def forced_judge(self, reading: Reading) -> TargetSpec | None:
        """The judge of the command line, or one made in Python."""
        if self.request.given_judge is not None:
            return next(self._given(self.request.given_judge, reading), None)
        return self._from_command_line(self.request.judge, reading) if self.request.judge is not None else None

    def default_judge(self, reading: Reading) -> TargetSpec | None:
        """The project's judge."""
        default = self.book.default_judge
        return self.book.resolve(default.text, default, reading) if default else None

    def need(self, node: Node | None, span: Span | None, reading: Reading, *, untargeted: bool) -> None:
        """Report that nothing names a target, where a case has none of its own."""
        request = self.request
        named = request.given_target is not None or request.targets or not is_empty(node) or self.book.default_target
        if request.for_run and untargeted and not named:
            message = "no target is named, so there is nothing to ask"
            reading.report.error("no-target", span, message, notes=PASTE.splitlines())

    def _given(self, given: TargetSpec | Mapping[str, Json], reading: Reading) -> Iterator[TargetSpec]:
        if isinstance(given, TargetSpec):
            yield given
            return
        node = node_of(given, Span(self.path, 1, 1, 1, 2))
        assert isinstance(node, MapNode)  # noqa: S101  # it was made of a mapping
        yield from _one(read_target(node, self.book.providers, reading.rendering(False)))

    def _from_command_line(self, name: str, reading: Reading) -> TargetSpec | None:
        places = Places(str(Path.cwd()), reading.places.root, alone=True, typed=True)
        return self.book.resolve(name, None, replace(reading, places=places, renders=False))


def default_of(name: str | None, nodes: Mapping[str, Node], key: str) -> Scalar | None:
    """A default of `config.yaml`, as a name with its place."""
    return Scalar(name, name, nodes[key].at) if name else None


def _one(found: TargetSpec | None) -> Iterator[TargetSpec]:
    if found is not None:
        yield found
