"""Which assertions of a suite need a judge, and whether one is named for them (SPEC section 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentv.model.assertion import AssertionEntry
from agentv.model.span import Span
from agentv.model.suite import Suite, TargetSpec
from agentv.registry.fields import DeclaredAssertion
from agentv.spec.nodes import Node, Scalar
from agentv.spec.reading import Reading
from agentv.spec.target_book import TargetBook

PASTE = """name one with --judge, AGENTV_JUDGE, 'judge:' in the eval file, or in .agentv/targets.yaml
  defaults:
    judge: my-judge"""


def nested(entry: AssertionEntry) -> tuple[AssertionEntry, ...]:
    """The entries inside an entry: those of an assert-set."""
    inner = getattr(entry.assertion, "assert_", ())
    return inner if isinstance(inner, tuple) else ()


def judges(entry: AssertionEntry) -> bool:
    """Whether a judge must be named for this entry, or for one inside it."""
    assertion = entry.assertion
    if isinstance(assertion, DeclaredAssertion) and assertion.needs_judge:
        return True
    return any(judges(child) for child in nested(entry))


@dataclass(slots=True)
class Judging:
    """What the entries that need a judge say: the names that they give, and the first place that gives none.

    Attributes:
        of_cases: judge → a target that a case has for itself, and that names this judge.
        keyless: judges that cases have for themselves, that are asked, and that lack a key, by their names.
        needed: some entry needs a judge.
    """

    named: dict[str, Span | None] = field(default_factory=dict)
    unnamed: Span | None = None
    of_cases: dict[str, str] = field(default_factory=dict)
    keyless: dict[str, TargetSpec] = field(default_factory=dict)
    needed: bool = False
    _indifferent: set[type] = field(default_factory=set)

    def look(self, entry: AssertionEntry, *, case_names_one: bool) -> None:
        """One more entry of a case."""
        kind = type(entry.assertion)
        if kind in self._indifferent:
            return
        if getattr(kind, "needs_judge", False) is False and not hasattr(kind, "assert_"):
            self._indifferent.add(kind)  # so that it is seen at a glance: this is called for every assertion
            return
        inner = nested(entry)
        for child in inner:
            self.look(child, case_names_one=case_names_one)
        if inner or not judges(entry):
            return
        self.needed = True
        name: Any = getattr(entry.assertion, "judge", None)
        if isinstance(name, str):
            self.named.setdefault(name, entry.span)
        elif self.unnamed is None and not case_names_one:
            self.unnamed = entry.span

    def resolve(self, suite: Suite, book: TargetBook, reading: Reading, *, for_run: bool) -> dict[str, TargetSpec]:
        """The judges that assertions and targets name, by their names. Reports where none is named at all."""
        wanted: dict[str, Node | None] = {
            name: Scalar(name, name, span) if span else None for name, span in self.named.items()
        }
        of_targets = {target.judge: target.name for target in suite.targets if target.judge}
        for name, target in {**self.of_cases, **of_targets}.items():
            wanted.setdefault(name, book.judge_of(target))
        specs = {name: book.resolve(name, at, reading) for name, at in wanted.items()}
        chosen = suite.forced_judge or suite.judge or suite.default_judge
        covered = bool(suite.targets) and all(target.judge for target in suite.targets)
        if for_run and self.unnamed is not None and chosen is None and not covered:
            message = "this needs a judge, and none is named"
            reading.report.error("no-judge", self.unnamed, message, notes=PASTE.splitlines())
        self._warn(suite, chosen, reading)
        return {name: spec for name, spec in specs.items() if spec is not None}

    def used(self, suite: Suite, judges: Mapping[str, TargetSpec]) -> Iterator[TargetSpec]:
        """The judges that the suite's assertions will ask, out of those by their names and its own."""
        if not self.needed:
            return
        if suite.forced_judge is not None:
            yield suite.forced_judge
            return
        yield from (judges[name] for name in (*self.named, *self.of_cases) if name in judges)
        yield from self.keyless.values()
        if self.unnamed is None:
            return
        of_targets = [judges.get(target.judge) if target.judge else None for target in suite.targets] or [None]
        chosen = (suite.judge or of_target or suite.default_judge for of_target in of_targets)
        yield from (one for one in chosen if one is not None)

    def _warn(self, suite: Suite, chosen: TargetSpec | None, reading: Reading) -> None:
        asked = {target.name for target in suite.targets}
        used = {**self.named, **({chosen.name: self.unnamed} if chosen is not None and self.unnamed else {})}
        for name in used.keys() & asked:
            reading.report.warning("judge-is-target", used[name], f"'{name}' judges its own answers")
