"""The models that assertions need: judges, and targets that compute embeddings (SPEC section 9)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from msgspec import Struct, field, structs
from msgspec.structs import replace

from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Node, Scalar
from agentv.authoring.source.report import Report
from agentv.authoring.targets.registry import TargetRegistry
from agentv.errors import Diagnostic, Severity
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.values.values import Span
from agentv.registry.fields import DeclaredAssertion
from agentv.registry.types import Provider, Registry

PASTE = """add --judge {model} to the command, or name one with AGENTV_JUDGE, 'judge:' in the eval file, or in
.agentv/targets.yaml
  defaults:
    judge: my-judge"""
PASTE_EMBEDDER = """name one with 'embedder:' beside the assertion's type, such as
  embedder: openai:text-embedding-3-small
  embedder: local:minishlab/potion-base-8M"""


_FEWEST = 2
"""Minimum number of answers to compare."""


def judges(entry: AssertionEntry) -> bool:
    """Whether this entry, or one nested in it, needs a judge."""
    inner = (one.assertion for one in entry.nested())
    return any(isinstance(one, DeclaredAssertion) and one.needs_judge for one in inner)


class _Unnamed(Struct, frozen=True):
    """An entry that needs a model but names none, with the target and judge that its case names."""

    span: Span | None
    target: TargetSpec | None
    judge: TargetSpec | None


class Judging(Struct):
    """Judges and embedders that entries name, and entries that need one but name none.

    Attributes:
        named, embedders: judges and embedders that entries name → the first entry that does.
        unnamed: the first entry that needs a judge that neither it nor its case names.
        of_cases: judge → a case's own target that names this judge.
        keyless: cases' own judges that lack a key, by name.
        needed: whether an entry needs a judge.
        calling_case: the first case that calls the judge itself, such as instead of a target.
        comparing: (why the answers cannot be compared, or None; whether the case has its own target) → the first such
            entry that compares answers.
        need_no_model: types of assertions that need no model, and need not be checked again.
    """

    named: dict[str, Span | None] = field(default_factory=dict)
    embedders: dict[str, Span | None] = field(default_factory=dict)
    unnamed: Span | None = None
    of_cases: dict[str, str] = field(default_factory=dict)
    keyless: dict[str, TargetSpec] = field(default_factory=dict)
    needed: bool = False
    calling_case: Span | None = None
    comparing: dict[tuple[str | None, bool], AssertionEntry] = field(default_factory=dict)
    _needing_embedder: dict[tuple[int, int], _Unnamed] = field(default_factory=dict)
    _needing_agent: dict[tuple[str | None, int, int], _Unnamed] = field(default_factory=dict)
    need_no_model: set[type] = field(default_factory=set)

    def add_entry(
        self,
        entry: AssertionEntry,
        *,
        target: TargetSpec | None,
        judge: TargetSpec | None,
        why_alone: str | None = None,
    ) -> None:
        """Record what an entry needs.

        Args:
            entry: an entry of a case.
            target: the case's own target, if any.
            judge: the case's own judge, if any.
            why_alone: why its answer cannot be compared with others, such as that the case has turns; None if it can.
        """
        kind = type(entry.assertion)
        flags = (getattr(kind, flag, False) is not False for flag in ("needs_judge", "needs_embedder"))
        if not any(flags) and not hasattr(kind, "assert_"):
            self.need_no_model.add(kind)
            return
        inner = entry.inner
        for child in inner:
            child = child if child.span is not None else structs.replace(child, span=entry.span)  # noqa: PLW2901
            self.add_entry(child, target=target, judge=judge, why_alone=why_alone or "inside an assert-set")
        if inner:
            return
        if getattr(kind, "compares", False):
            self.comparing.setdefault((why_alone, target is not None), entry)
        if judges(entry):
            self.needed = True
            if not _note(entry, "judge", self.named):
                named = judge is not None or bool(target and target.judge)
                self.unnamed = self.unnamed if named else self.unnamed or entry.span
        if getattr(kind, "needs_agent", False):
            key = (getattr(entry.assertion, "judge", None), id(target), id(judge))
            self._needing_agent.setdefault(key, _Unnamed(entry.span, target, judge))
        if getattr(entry.assertion, "needs_embedder", False) and not _note(entry, "embedder", self.embedders):
            self._needing_embedder.setdefault((id(target), id(judge)), _Unnamed(entry.span, target, judge))

    def need_judge(self, span: Span) -> None:
        """Record a case that itself calls the judge in effect, such as instead of a target."""
        self.needed = True
        self.calling_case = self.calling_case or span

    @property
    def _nameless(self) -> Span | None:
        """Position of an entry or case that needs the judge of the suite, target or project, or None."""
        return self.unnamed or self.calling_case

    @property
    def asks_suite(self) -> bool:
        """Whether something needs the judge or embedder that the suite, its target or the project names."""
        return self._nameless is not None or bool(self._needing_embedder)

    def resolve(
        self, suite: Suite, registry: TargetRegistry, reading: Reading, *, nameless: Severity | None
    ) -> dict[str, TargetSpec]:
        """The judges and embedders that assertions and targets name, by name.

        Missing judges are reported, and targets that cannot be used as a judge or embedder.

        Args:
            suite: the suite with its targets and judge.
            registry: the targets that can be named.
            reading: context of the suite.
            nameless: severity of the diagnostic that no judge is named; None to omit it.
        """
        wanted: dict[str, Node | None] = {
            name: Scalar(name, name, span) if span else None for name, span in {**self.embedders, **self.named}.items()
        }
        of_targets = {target.judge: target.name for target in suite.targets if target.judge}
        for judge_name, target_name in {**self.of_cases, **of_targets}.items():
            wanted.setdefault(judge_name, registry.judge_of(target_name))
        names = set(self.of_cases) if self.needed else set()
        names |= of_targets.keys() if self.asks_suite and suite.forced_judge is None else set()
        specs = self._resolved(wanted, names, registry, reading)
        chosen = suite.forced_judge or suite.judge or suite.default_judge
        if nameless is not None and self._nameless is not None and not _names_judge(suite):
            _, example = keyed_models(registry.providers, reading.scope.env)
            notes = tuple(PASTE.replace("{model}", example).splitlines())
            message = "this needs a judge, but none is set"
            reading.report.add(Diagnostic("no-judge", message, self._nameless, nameless, notes=notes))
        names = {target.name for target in suite.targets}
        used = {**self.named, **({chosen.name: self.unnamed} if chosen is not None and self.unnamed else {})}
        for own in used.keys() & names:
            reading.report.warning("judge-is-target", used[own], f"'{own}' grades its own answers")
        self._refuse(suite, specs, wanted, reading)
        for (name, *_), one in self._needing_agent.items():
            for target in (one.target,) if one.target is not None else suite.targets or (None,):
                of_target = specs.get(target.judge) if target is not None and target.judge else None
                named = suite.forced_judge or (specs.get(name) if name else None) or one.judge
                judge = named or of_target or suite.judge or suite.default_judge
                if judge is not None and not judge.is_agent:
                    message = f"this needs an agent as its judge, and '{judge.name}' ({judge.provider}) is not one"
                    hint = "name one with 'judge' beside the type, such as a target of the provider claude or codex"
                    reading.report.error("no-judge", one.span, message, hint=hint)
                    break
        return specs

    def judge_by_key(self, suite: Suite, registry: TargetRegistry, reading: Reading) -> TargetSpec | None:
        """The small model of the only provider whose API key is set, if a judge is needed and none is named.

        None if `CI` is set: the judge in CI must not depend on which keys a machine has.
        """
        if self._nameless is None or _names_judge(suite) or reading.scope.env.get("CI", "").strip():
            return None
        found, _ = keyed_models(registry.providers, reading.scope.env)
        key, model = next(iter(found.items()), ("", ""))
        if len(found) != 1 or not model:
            return None
        message = f"no judge is named: '{model}' grades, since {key} is the only API key that is set"
        reading.report.warning("default-judge", self._nameless, message, hint=f"to name it, add --judge {model}")
        return registry.resolve(model, None, reading)

    def _resolved(
        self, wanted: Mapping[str, Node | None], names: Container[str], registry: TargetRegistry, reading: Reading
    ) -> dict[str, TargetSpec]:
        """The targets with these names.

        Args:
            wanted: name → node that names it, if any.
            names: the judges named by targets that will be called; errors about the others are not reported.
            registry: the targets that can be named.
            reading: context of the suite.
        """
        found = {}
        for name, at in wanted.items():
            own, named = Report(), name in self.named or name in self.embedders
            if named:
                spec = registry.resolve(name, at, reading)
            else:
                later = None if name in names else own
                spec = registry.resolve(name, at, reading.reporting_to(own), later=later)
            for one in own.diagnostics if name in names else ():
                open_yet = one.code == "unknown-target" and not reading.strict_env  # --judge may name another
                reading.report.add(replace(one, severity="warning") if open_yet else one)
            if spec is not None:
                found[name] = spec
        return found

    def need_embedder(
        self, suite: Suite, specs: Mapping[str, TargetSpec], reading: Reading, severity: Severity = "error"
    ) -> None:
        """Report entries that need a target that computes embeddings but have none. `specs`: result of `resolve`."""
        for one in self._needing_embedder.values():
            for target in (one.target,) if one.target is not None else suite.targets:
                of_target = specs.get(target.judge) if target.judge else None
                judge = suite.forced_judge or one.judge or suite.judge or of_target or suite.default_judge
                if not target.embeds and (judge is None or not judge.embeds):
                    beside = (
                        f"and neither does its judge '{judge.name}'" if judge is not None else "and there is no judge"
                    )
                    message = f"this needs a target that computes embeddings; '{target.name}' does not, {beside}"
                    notes = tuple(PASTE_EMBEDDER.splitlines())
                    reading.report.add(Diagnostic("no-embedder", message, one.span, severity, notes=notes))
                    break

    def need_comparison_group(self, suite: Suite, reading: Reading, *, for_run: bool, targets_win: bool) -> None:
        """Report entries that compare answers although there is only one answer, or comparing is not supported.

        Args:
            suite: the suite with its targets and prompts.
            reading: context of the suite.
            for_run: the suite's targets are the ones that will be called.
            targets_win: the suite's targets override those of cases.
        """
        for (why_alone, own_target), entry in self.comparing.items():
            targets = 1 if own_target and not targets_win else len(suite.targets)
            if why_alone is not None:
                message = f"'{entry.type}' {why_alone} is recognized but not supported yet"
                reading.report.error("not-yet", entry.span, message)
            elif for_run and 0 < targets * max(1, len(suite.prompts)) * max(1, len(suite.variants)) < _FEWEST:
                message = (
                    "there is nothing to choose from: the case gets only one answer, from one prompt and one target"
                )
                hint = "set several 'prompts' or 'targets' in the suite, or give several --target"
                reading.report.error("nothing-to-choose", entry.span, message, hint=hint)

    def used(self, suite: Suite, judges: Mapping[str, TargetSpec]) -> Iterator[TargetSpec]:
        """The judges and embedders that the suite's assertions will call. `judges`: result of `resolve`."""
        yield from (judges[name] for name in self.embedders if name in judges)
        embedded = bool(self._needing_embedder) and not all(target.embeds for target in suite.targets)
        if not self.needed and not embedded:
            return
        if suite.forced_judge is not None:
            yield suite.forced_judge
            return
        yield from (judges[name] for name in (*self.named, *self.of_cases) if name in judges)
        yield from self.keyless.values()
        if self._nameless is None and not embedded:
            return
        of_targets = [judges.get(target.judge) if target.judge else None for target in suite.targets] or [None]
        chosen = (suite.judge or of_target or suite.default_judge for of_target in of_targets)
        yield from (one for one in chosen if one is not None)

    def _refuse(
        self, suite: Suite, specs: Mapping[str, TargetSpec], wanted: Mapping[str, Node | None], reading: Reading
    ) -> None:
        """Report embedders that compute no embeddings, and targets and judges that compute nothing else."""
        for name in self.embedders.keys() & specs.keys():
            if not specs[name].embeds:
                message = f"'{name}' does not compute embeddings"
                reading.report.error("no-embedder", wanted[name], message, notes=PASTE_EMBEDDER.splitlines())
        chosen = suite.forced_judge or suite.judge or suite.default_judge
        targets = (*suite.targets, *((chosen,) if self._nameless is not None else ()))
        embed_only = {spec.name for spec in targets if spec is not None and not _answers(spec)}
        named = {name for name in self.named.keys() & specs.keys() if not _answers(specs[name])}
        for name in sorted(embed_only | named):
            message = f"'{name}' only computes embeddings: use it as an 'embedder', not as a target or judge"
            reading.report.error("bad-value", wanted.get(name) or suite.span, message)


def keyed_models(providers: Registry[Provider], env: Mapping[str, str]) -> tuple[Mapping[str, str], str]:
    """Small models of the built-in providers that need an API key, in the order of the registry.

    Returns:
        Variable that is set → `provider:model`, or "" if no small model of the provider is known; and an example of a
        model for messages: one whose key is set, or else the first provider's.
    """
    keyed: dict[str, str] = {}
    models: list[str] = []
    for name in providers:
        provider = providers.find(name)
        key = shape_of(provider.settings).from_environment.get("api_key") if provider is not None else None
        if provider is None or key is None or not key.required:
            continue
        small = f"{name}:{provider.settings.small_model}" if provider.settings.small_model else ""
        models += [small] if small else []
        variable = next((one for one in key.names if env.get(one, "").strip()), None)
        keyed |= {variable: small} if variable is not None else {}
    return keyed, next(filter(None, keyed.values()), models[0])


def _names_judge(suite: Suite) -> bool:
    covered = bool(suite.targets) and all(target.judge for target in suite.targets)
    return covered or (suite.forced_judge or suite.judge or suite.default_judge) is not None


def _note(entry: AssertionEntry, option: str, named: dict[str, Span | None]) -> bool:
    """Whether an entry names its judge or embedder; if so, record the name in `named`."""
    name: Any = getattr(entry.assertion, option, None)
    if not isinstance(name, str):
        return False
    named.setdefault(name, entry.span)
    return True


def _answers(spec: TargetSpec) -> bool:
    return bool(getattr(spec.settings, "answers", True))
