"""The targets available in a directory: those of `.agentv/targets.yaml`, and `provider:rest` strings (section 12)."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs
from msgspec.structs import replace

from agentv.authoring.fields.kinds import refuse_data, refuses_provider, refuses_target
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.fields.spellings import TARGET
from agentv.authoring.fields.translation import canonical_provider, translated_target, without_wrapper
from agentv.authoring.source.files import Places, shown
from agentv.authoring.source.nearest import did_you_mean, nearest, provider_name
from agentv.authoring.source.nodes import NOWHERE, Canonical, MapNode, Node, Scalar, is_empty, kind_of, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.targets.target import PLUGINS_COMMAND, USE_TARGET, read_target, report_not_yet
from agentv.errors import Diagnostic
from agentv.model.suite.suite import DEFAULT_RETRY, Retry, TargetSpec
from agentv.registry.types import Provider, Registry

_KEYS = frozenset({"name", USE_TARGET, "hooks"})
_VERDICT_KEYS = frozenset({"provider", "judge", "env", "allow_empty", "thoughts"})
"""Keys of a target that can change an answer or its verdict."""


def refers(node: MapNode, names: Container[str]) -> bool:
    """Whether a mapping in a suite refers to a target, by `use_target`, or by a known name without a provider."""
    if USE_TARGET in node.items:
        return True
    name = node.get("name")
    return isinstance(name, Scalar) and name.text in names and "provider" not in node.items


def check_alias(node: Canonical, reading: Reading) -> bool:
    """Report the keys next to `use_target` that have no effect there, and return whether none is an error."""
    report = reading.report.section()
    for key, at in node.keys.items():
        if key == "hooks":
            add = report.error if reading.strict_env else report.warning
            add("not-yet", at, "'hooks' is recognized but not supported yet")
        elif key in TARGET.canonical and key not in _KEYS:
            message = f"'{node.spelled.get(key, key)}' has no effect beside '{USE_TARGET}'"
            if key in _VERDICT_KEYS:
                report.warning("no-effect", at, message, hint=f"set it on the target that '{USE_TARGET}' names")
            else:
                report.remark("no-effect", at, message)
        elif key not in _KEYS and not key.startswith("x-"):
            extra = ExtraKeys(hinted=tuple(TARGET.known), older=TARGET.superseded)
            reading.reporting_to(report).unknown_key(key, node, sorted(_KEYS), f"a target with '{USE_TARGET}'", extra)
    return not report.failed


def written_target(node: Node, reading: Reading) -> str | None:
    """The name in `use_target`, or None after reporting that it is missing or invalid."""
    found = reading.rendered(node)
    if found is None:
        return None
    if is_empty(found):
        message = f"'{USE_TARGET}' is empty; it needs the name of a target"
        reading.report.error("missing-value", node, message)
        return None
    if isinstance(found, Scalar) and isinstance(found.value, str):
        return found.value.strip()
    reading.report.error("bad-value", node, f"'{USE_TARGET}' must be the name of a target, found {kind_of(found)}")
    return None


PASTE = """write a .agentv/targets.yaml such as
  targets:
    - name: my-agent
      provider: cli
      command: ./my-agent {PROMPT}
  defaults:
    target: my-agent
or name one on the command line: --target 'cli:./my-agent {PROMPT}'"""

DEFAULT = "default"
"""The name that means the project's default target, unless a target has this name."""


class _ReadTarget(Struct, frozen=True):
    """Result of reading a target of a file.

    Attributes:
        spec: the target; None if it cannot be used.
        found: all diagnostics about it.
        unrendered: whether a placeholder could not be filled in.
        alias_of: the name to which `use_target` refers.
    """

    spec: TargetSpec | None
    found: tuple[Diagnostic, ...]
    unrendered: bool
    alias_of: str | None = None


class TargetRegistry(Struct):
    """The targets available in one directory.

    A target of a file is read when it is first named, and its errors are reported there. Errors in a target that is
    never named do not fail the suite.

    Attributes:
        path: the `targets.yaml` in effect, or else the `providers.yaml`; None if there is neither.
        default_target, default_judge, default_user: names from its `defaults`.
        retry: retry settings of the suite, overridden by a target's.
        entries: name → target of a file.
        homes: name → context in which it is read, with a report of its own.
        first_reading: context of the first file of targets, for paths of strings in `defaults`.
        unreadable: a file of targets is not valid YAML, which was reported, so that unknown names are not errors.
        own: name → target that the eval file defines, and its context.
        default_provider: provider for unknown names, which are then ids of models; None if unknown names are errors.
    """

    providers: Registry[Provider]
    path: str | None = None
    default_target: Scalar | None = None
    default_judge: Scalar | None = None
    default_user: Scalar | None = None
    retry: Retry = DEFAULT_RETRY
    default_provider: str | None = None
    unreadable: bool = False
    entries: dict[str, Canonical] = field(default_factory=dict)
    homes: dict[str, Reading] = field(default_factory=dict)
    first_reading: Reading | None = None
    own: dict[str, tuple[MapNode, Reading]] = field(default_factory=dict)
    _read: dict[str, _ReadTarget] = field(default_factory=dict)
    _specs: dict[tuple[str, str, bool], TargetSpec] = field(default_factory=dict)
    _uses: list[tuple[str, Report]] = field(default_factory=list)
    _pending: list[tuple[str, Report]] = field(default_factory=list)

    def resolve(
        self, written: str, at: Node | None, reading: Reading, *, later: Report | None = None
    ) -> TargetSpec | None:
        """The target for a name or a `provider:rest` string, or None after reporting an unknown or invalid one.

        Args:
            written: the name, or the string.
            at: the node that names it; None on the command line.
            reading: context of the suite.
            later: receives errors of the target while it is not known whether a case uses it.
        """
        if written in self.own:
            return self._of_suite(written, reading if later is None else reading.reporting_to(later))
        if written in self.entries:
            return self._named(written, at, reading, later)
        if reading.data and refuses_target(
            Scalar(written, written, at.at if at is not None else NOWHERE), self.providers, reading.report
        ):
            return None
        default = self.default_target
        if written == DEFAULT and default is not None and default.text != DEFAULT:
            return self.resolve(default.text, at or default, self.first_reading or reading, later=later)
        key = (written, reading.places.suite, reading.places.typed)  # paths depend on these places
        if key not in self._specs:
            meant = _with_provider(self, written) if ":" not in written else written
            found = (
                self._from_string(written, at, reading.rendering(False))
                if meant == written
                else self.resolve(meant, at, reading, later=later)
            )
            if found is None:
                return None  # not cached, so that the error is reported at every place that names it
            self._specs[key] = found
        return self._specs[key]

    def typed(self, name: str, reading: Reading) -> TargetSpec | None:
        """A target named on the command line, whose paths are relative to the working directory."""
        places = reading.places
        here = Places(str(Path.cwd()), places.root, alone=True, typed=True, boundary=places.boundary)
        return self.resolve(name, None, structs.replace(reading, places=here, renders=False))

    def inline(self, node: Node, reading: Reading, *, later: Report | None = None) -> TargetSpec | None:
        """The target for a node: a string to resolve, a mapping that refers to a target, or one with settings."""
        found = reading.rendered(node) if isinstance(node, Scalar) else node
        if isinstance(found, Scalar) and isinstance(found.value, str) and found.value.strip():
            return self.resolve(found.value.strip(), found, reading, later=later)
        if isinstance(found, MapNode):
            reading = reading.part().rendering(reading.renders or "settings" in found.items)
            made = translated_target(found, self.providers, reading)
            if refers(made, self.entries):
                return self._referred(made, reading, later)
            if reading.data and _refuses_settings(made, self.providers, reading):
                return None
            spec = read_target(made, self.providers, reading, self.retry)
            return None if reading.report.failed else spec
        if found is not None:
            reading.report.unfit(found, "a target must be a name or a mapping")
        return None

    def judge_of(self, name: str) -> Node | None:
        """The node in a target of the files that names its judge, or None."""
        entry = self.entries.get(name)
        return entry.get("judge") if entry is not None else None

    def check(self, report: Report) -> None:
        """Read the unused targets of the files, and report their mistakes as warnings, for `validate`."""
        used = {name for name, _ in self._uses}
        for name in self.entries:
            for one in self._read_of(name).found if name not in used else ():
                unused = as_unused(one)
                if unused is not None and (unused.severity != "hint" or report.hints):
                    report.add(unused)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the targets in the eval file, then of those in files of targets."""
        return tuple(dict.fromkeys([*self.own, *self.entries]))

    def enter_own(self, name: str, made: Canonical, node: MapNode, home: Reading) -> None:
        """Enter a target that the eval file defines, with its context. It hides one with the same name in the files."""
        if not (name in self.entries and refers(made, self.entries)):
            self.own.setdefault(name, (node, home))

    def read_alone(self, name: str, report: Report) -> TargetSpec | None:
        """A target of the files, or None. Its diagnostics are added to `report`."""
        read = self._read_of(name)
        for one in read.found:
            report.add(one)
        return read.spec

    def _of_suite(self, name: str, reading: Reading) -> TargetSpec | None:
        """A target that the eval file defines, or None. Its name is unknown while it is read: it cannot name itself."""
        key = (name, "", False)
        if key not in self._specs:
            node, home = self.own.pop(name)
            found = self.inline(node, home.reporting_to(reading.report))
            self.own[name] = node, home
            if found is None:
                return None
            self._specs[key] = found
        return self._specs[key]

    def _named(self, name: str, at: Node | None, reading: Reading, later: Report | None) -> TargetSpec | None:
        """A target of a file, or None. Its errors are reported where it is first used."""
        read, report = self._read_of(name), later or reading.report
        if read.unrendered:
            report.leave_unrendered()
        if not any(name == used and to.findings is report.findings for used, to in self._uses):
            for one in read.found:
                report.add(at_use(one, name, at))
        if later is None:
            self._use(name, report)
        else:
            self._pending.append((name, later))
        return read.spec

    def settle(self, later: Report, reading: Reading, *, used: bool) -> None:
        """Add the diagnostics in `later` to the report, if a case uses the targets."""
        if not used:
            return
        for one in later.diagnostics:
            reading.report.add(one)
        for name, to in self._pending:
            if to is later:
                self._use(name, reading.report)

    def _use(self, name: str, report: Report) -> None:
        """Record that a target is used, and the targets to which it refers."""
        chain: str | None = name
        while chain is not None and not any(
            chain == used and to.findings is report.findings for used, to in self._uses
        ):
            self._uses.append((chain, report))
            chain = self._read_of(chain).alias_of

    def _read_of(self, name: str, chain: tuple[str, ...] = ()) -> _ReadTarget:
        """The result of reading a target of the files, which is done once. `chain`: the targets that refer to it."""
        if name not in self._read:
            entry, reading, alias_of = self.entries[name], self.homes[name], None
            if USE_TARGET in entry.items:
                spec, alias_of = self._alias_target(entry, reading, (*chain, name))
            else:
                spec = read_target(entry, self.providers, reading, self.retry)
            report = reading.report
            usable = None if report.failed else spec
            self._read[name] = _ReadTarget(usable, report.diagnostics, report.unrendered, alias_of)
        return self._read[name]

    def _alias_target(
        self, entry: Canonical, reading: Reading, chain: tuple[str, ...]
    ) -> tuple[TargetSpec | None, str | None]:
        """The target to which `use_target` refers, and its name if it is in the files."""
        check_alias(entry, reading)
        node = entry.items[USE_TARGET]
        written = written_target(node, reading)
        if written is None:
            return None, None
        if written in chain:
            circle = " → ".join((*chain, written))
            reading.report.error("target-cycle", node, f"targets refer to each other in a circle: {circle}")
            return None, None
        if written not in self.entries:
            return self._from_string(written, node, reading.rendering(False)), None
        read = self._read_of(written, chain)
        for one in read.found:
            reading.report.add(one)
        if read.unrendered:
            reading.report.leave_unrendered()
        return read.spec, written

    def _referred(self, node: Canonical, reading: Reading, later: Report | None) -> TargetSpec | None:
        """The target to which a mapping of a suite refers, under the mapping's own name if it has one."""
        if not check_alias(node, reading):
            return None
        own = node.get("name")
        name = reading.render_text(own) if isinstance(own, Scalar) else None
        if name is not None and name in self.entries:
            return self.resolve(name, own, reading, later=later)
        at = node.items[USE_TARGET]
        written = written_target(at, reading)
        spec = self.resolve(written, at, reading, later=later) if written is not None else None
        return spec if spec is None or name is None else structs.replace(spec, name=name)

    def _from_string(self, written: str, at: Node | None, reading: Reading) -> TargetSpec | None:
        written = without_wrapper(written)
        spelled = f"http:{written}" if written.startswith(("http://", "https://")) else written
        canonical = canonical_provider(spelled, at, reading.report)
        name, colon, _ = canonical.partition(":")
        if name in self.providers.not_yet:
            report_not_yet(name, at, reading.report)
            return None
        provider = self.providers.find(name)
        if provider is None or (not colon and not provider.bare):
            _report_unknown(self, written, at, reading, provider)
            return None
        place: Any = at.at if at is not None else NOWHERE
        pairs: dict[str, Node] = {
            "name": Scalar(written, written, place),
            "provider": Scalar(canonical, canonical, place),
        }
        made = Canonical(pairs, dict.fromkeys(pairs, place), place)
        return read_target(made, self.providers, reading, self.retry)


def _refuses_settings(node: Canonical, providers: Registry[Provider], reading: Reading) -> bool:
    """Whether data defines a target that it must not define, which is then reported."""
    provider = node.get("provider")
    name = provider_name(provider.text) if isinstance(provider, Scalar) else ""
    if not refuses_provider(name, providers, alone=False):
        return False
    refuse_data(node, reading.report, "write a name: a target in .agentv/targets.yaml, or 'provider:model'")
    return True


def _provider_of_model(written: str, providers: Registry[Provider]) -> str | None:
    """The provider whose models have such names, or None."""
    name = written.strip().lower()
    known = (found for one in providers if (found := providers.find(one)) is not None)
    return next((one.name for one in known if name.startswith(one.settings.model_names)), None)


def _with_provider(registry: TargetRegistry, written: str) -> str:
    """The `provider:model` string for the id of a model. A name similar to that of a target is returned unchanged."""
    if registry.default_provider is None or written == DEFAULT or provider_name(written) in registry.providers.not_yet:
        return written
    known = (*registry.names, *registry.providers.names)
    is_name = (
        _provider_of_model(written, registry.providers) is None and nearest(provider_name(written), known) is not None
    )
    return written if is_name else f"{registry.default_provider}:{written}"


def _report_unknown(
    registry: TargetRegistry, written: str, at: Node | None, reading: Reading, bare: Provider | None
) -> None:
    if registry.unreadable:
        return
    looked = f"looked in {'the eval file and ' if registry.own else ''}{shown(registry.path)}" if registry.path else ""
    notes = [looked or "no .agentv/targets.yaml was found"]
    problem = registry.providers.problem(provider_name(written))
    if problem is not None:
        reading.report.error(problem.code, at, problem.message, hint=problem.hint, notes=(PLUGINS_COMMAND,))
        return
    named = registry.names
    hint = did_you_mean(written.partition(":")[0].strip(), [*named, *registry.providers.names])
    provider = _provider_of_model(written, registry.providers)
    if provider is not None and not (named and nearest(written, named)):
        hint = f"for the model, write the provider in front: {provider}:{written}"
    if hint is None and ".py" in written:
        hint = f"for a function of a file, write python:{written}"
    if bare is not None:
        hint = f"as a provider, it needs a setting: write '{bare.name}:…'" if bare.settings.short else None
    elif hint is None:
        notes += [f"there are {', '.join(named)}"] if named else []
        hint = "write provider:model, such as openai:gpt-5-mini; 'agentv targets' lists what you can use"
    if written == DEFAULT:
        hint = None
        notes += [] if registry.entries else PASTE.splitlines()
    message = f"no target '{written}'"
    if written == DEFAULT and not reading.strict_env:  # a default or --target can still define it
        reading.report.warning("unknown-target", at, message, hint=hint, notes=notes)
    else:
        reading.report.error("unknown-target", at, message, hint=hint, notes=notes)


MACHINE_CODES = frozenset({"unset-environment", "no-api-key", "missing-extra"})
"""Codes of diagnostics about the machine, not the file; they are not reported for unused targets."""


def at_use(found: Diagnostic, name: str, at: Node | None) -> Diagnostic:
    """The diagnostic, at the place that names the target, with a note of the original position.

    It is unchanged if it is not an error, or if the target is named on the command line.
    """
    if found.severity != "error" or at is None or at.at is NOWHERE:
        return found
    notes = found.notes
    if found.span is not None:
        place = found.span
        notes = (f"at {shown(place.file)}:{place.line}:{place.column}", *notes)
    message = f"target '{name}' cannot be used: {found.message}"
    return replace(found, span=span_of(at.at), message=message, notes=notes)


def as_unused(found: Diagnostic) -> Diagnostic | None:
    """The diagnostic for a target that no case uses: at most a warning; None if it is not reported."""
    if found.code in MACHINE_CODES:
        return None
    if found.severity != "error":
        return found
    return replace(found, severity="hint" if found.code == "not-yet" else "warning")
