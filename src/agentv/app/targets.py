"""`agentv targets`: configured targets, their keys, and test calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import NODEFAULT
from msgspec.structs import replace

from agentv.app.checking import CheckedTarget, check_all
from agentv.app.registries import registries
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.loading.inventory import Inventory, InventoryEntry, inventory
from agentv.authoring.targets.target import how_to_set
from agentv.errors import Diagnostic, LoadError
from agentv.model.suite.configured import CheckOutcome, KeyFact, ListedProvider, ListedTarget, TargetsListing
from agentv.model.suite.suite import TargetSpec, Variable
from agentv.registry.extensions import PORTS, loaded, registered
from agentv.registry.fields import FromEnvironment, options_of
from agentv.registry.types import Provider
from agentv.work_ports import Sandboxes

_EXTRA = "missing-extra"


@dataclass(frozen=True, slots=True)
class TargetsRequest:
    """Options of `agentv targets`.

    Attributes:
        names: targets; empty: all configured ones.
        check: call each target.
        timeout_s: time limit of a call, in seconds.
    """

    names: tuple[str, ...]
    check: bool
    timeout_s: float
    process_env: Mapping[str, str]
    env_file: str | None = None


@dataclass(frozen=True, slots=True)
class TargetsFound:
    """The listing, and the warnings of the files that it is out of."""

    listing: TargetsListing
    diagnostics: tuple[Diagnostic, ...]


def list_targets(wanted: TargetsRequest, announce: Callable[[int, tuple[str, ...]], None]) -> TargetsFound:
    """The targets, with the results of test calls if requested.

    Args:
        wanted: what to list.
        announce: called before the calls, with the number of models and the names of the agents that are called.

    Raises:
        LoadError: a file is invalid, or a name is not a target.
    """
    request = LoadRequest((), process_env=wanted.process_env, env_file=wanted.env_file, for_run=False)
    known = registries()
    found = inventory(str(Path.cwd()), wanted.names, request, known)
    if any(one.severity == "error" for one in found.diagnostics):
        raise LoadError(one for one in found.diagnostics if one.severity != "hint")
    targets = tuple(_listed(entry, found) for entry in found.entries)
    if wanted.check:
        targets = _checked(targets, found, wanted, announce)
    providers = [one for name in known.providers.names if (one := known.providers.find(name)) is not None]
    models = tuple(_provider(one, found.env) for one in providers if one.of_models)
    others = tuple(_provider(one, found.env) for one in providers if not one.of_models)
    warnings = tuple(one for one in found.diagnostics if one.severity == "warning")
    sandboxes = _sandboxes() if wanted.check else ()
    return TargetsFound(TargetsListing(found.path, targets, models, others, sandboxes), warnings)


def _sandboxes() -> tuple[str, ...]:
    """What can confine agents on this machine; nothing, where no extension makes them work."""
    if "Sandboxes" not in registered(PORTS):
        return ()
    sandboxes: Sandboxes = loaded(PORTS, "Sandboxes")()  # only a check pays for this
    return sandboxes.lines()


def _listed(entry: InventoryEntry, found: Inventory) -> ListedTarget:
    lacks = next((one for one in (*entry.problems, *entry.lacks) if one in entry.problems or one.code == _EXTRA), None)
    secrets = shape_of(type(entry.spec.settings)).secrets if entry.spec else frozenset()
    return ListedTarget(
        name=entry.name,
        provider=entry.provider,
        model=entry.model,
        place=(entry.span.file, entry.span.line) if entry.span else None,
        marks=tuple(_marks(entry.name, found)),
        keys=(*(_fact(one) for one in _open(entry.spec)), *entry.named),
        written=not entry.named and bool(secrets & entry.settings),
        finds_keys=entry.spec is not None and getattr(type(entry.spec.settings), "finds_keys", False),
        problem_code=lacks.code if lacks else None,
        problem=lacks.message if lacks else None,
        fix=lacks.hint if lacks else None,
    )


def _open(spec: TargetSpec | None) -> Iterator[Variable]:
    """What the environment gives, or would have to: not what the author gives, nor what may be missing."""
    return (one for one in (spec.variables if spec else ()) if one.found or one.missing)


def _fact(variable: Variable) -> KeyFact:
    return KeyFact(variable.names, variable.found, variable.missing or variable.found is not None)


def _marks(name: str, found: Inventory) -> Iterator[str]:
    if name == found.default_target:
        yield "default target"
    if name == found.default_judge:
        yield "default judge"
    for entry in found.entries:
        if entry.judge == name:
            yield f"judge of {entry.name}"


def _checked(
    targets: tuple[ListedTarget, ...],
    found: Inventory,
    request: TargetsRequest,
    announce: Callable[[int, tuple[str, ...]], None],
) -> tuple[ListedTarget, ...]:
    specs = [entry.spec if not entry.spec or not entry.spec.missing else None for entry in found.entries]
    called = [CheckedTarget(spec, _key_of(target)) for spec, target in zip(specs, targets, strict=True) if spec]
    agents = tuple(one.spec.name for one in called if one.spec.is_agent)
    models = sum(not one.spec.is_agent and one.spec.calls != "nothing" for one in called)
    if models or agents:
        announce(models, agents)
    outcomes = iter(check_all(called, found.env, request.timeout_s))
    return tuple(
        replace(target, check=next(outcomes) if spec else _impossible(target, entry))
        for target, spec, entry in zip(targets, specs, found.entries, strict=True)
    )


def _key_of(target: ListedTarget) -> str | None:
    return next((key.found for key in target.keys if key.found), None)


def _impossible(target: ListedTarget, entry: InventoryEntry) -> CheckOutcome:
    """Why a target cannot be called at all."""
    if target.problem is not None:
        return CheckOutcome("failed", None, target.problem_code or _EXTRA, target.problem, target.fix)
    if entry.spec is not None:
        first = entry.spec.missing[0]
        return CheckOutcome("failed", None, "no-api-key", f"{first.names[0]} is not set", how_to_set(first))
    lacking = next((key for key in target.keys if key.found is None), KeyFact(("a variable",)))
    name = lacking.names[0]
    return CheckOutcome("failed", None, "unset-environment", f"{name} is not set", how_to_set(Variable("", (name,))))


def _provider(provider: Provider, env: Mapping[str, str]) -> ListedProvider:
    facts = tuple(
        _would_take(one, env) for one in shape_of(provider.settings).from_environment.values() if one.required
    )
    extra = _extra_of(provider) if provider.of_models else None
    return ListedProvider(provider.name, provider.summary, provider.shown, facts, provider.settings.finds_keys, extra)


def _would_take(source: FromEnvironment, env: Mapping[str, str]) -> KeyFact:
    return KeyFact(source.names, next((name for name in source.names if env.get(name, "").strip()), None))


def _extra_of(provider: Provider) -> str | None:
    """How to get the library that a provider needs and that is not here; its settings say so, whatever they are."""
    needed = {name: "x" for name, default in options_of(provider.settings).items() if default is NODEFAULT}
    issues = provider.settings(**needed).validate()
    return next((issue.hint for issue in issues if issue.code == "missing-extra"), None)
