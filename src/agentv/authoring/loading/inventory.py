"""The targets available in a directory. Each is read separately, so that errors in one do not hide others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.loading.suite import SuiteReader
from agentv.authoring.source.nodes import Canonical, Node, Scalar, children, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.targets.registry import MACHINE_CODES, TargetRegistry
from agentv.authoring.targets.target import USE_TARGET
from agentv.errors import Diagnostic
from agentv.model.suite.configured import KeyVariables
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.values import Span
from agentv.templating import environment_names, has_placeholder

_ENVIRONMENT = re.compile(r"\benv\.([A-Za-z_]\w*)")


class InventoryEntry(Struct, frozen=True):
    """One target, usable or not.

    Attributes:
        provider, model: as authored, if there is no spec.
        spec: the target; None if it cannot be used.
        judge: the name of its own judge.
        settings: the authored keys.
        named: environment variables in its placeholders.
        lacks: diagnostics about what this machine lacks, and warnings.
        problems: mistakes in the file, because of which it cannot be used.
    """

    name: str
    provider: str
    model: str | None
    spec: TargetSpec | None
    span: Span | None
    judge: str | None = None
    settings: frozenset[str] = frozenset()
    named: tuple[KeyVariables, ...] = ()
    lacks: tuple[Diagnostic, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


class Inventory(Struct, frozen=True):
    """The targets available in a directory.

    Attributes:
        path: the `targets.yaml` in effect; None if none exists.
        env: the environment of the process and of `.env` files.
        default_target, default_judge: names.
        diagnostics: errors in the files as a whole, unknown names, and warnings.
    """

    path: str | None
    entries: tuple[InventoryEntry, ...]
    env: Mapping[str, str]
    default_target: str | None
    default_judge: str | None
    diagnostics: tuple[Diagnostic, ...]


def inventory(directory: str, names: Sequence[str], request: LoadRequest, registries: Registries) -> Inventory:
    """The targets with these names, or all targets of the project if no names are given.

    Args:
        directory: absolute path; `.agentv` is searched for in it and above.
        names: names of targets, or `provider:rest` strings.
        request: provides the environment; its paths are ignored.
        registries: meaning of names.
    """
    report = Report()
    registry, reading = SuiteReader(str(Path(directory) / "eval.yaml"), request, registries, report).project()
    found = [_entry(name, registry, reading) for name in (names or registry.entries)]
    found_once = {(one.code, one.span, one.message): one for one in report.diagnostics}
    found_once |= {(one.code, one.span, one.message): one for entry in found for one in entry.lacks}
    return Inventory(
        path=registry.path,
        entries=tuple(found),
        env=reading.scope.env,
        default_target=registry.default_target.text if registry.default_target else None,
        default_judge=registry.default_judge.text if registry.default_judge else None,
        diagnostics=tuple(one for one in found_once.values() if one.code not in MACHINE_CODES),
    )


def _entry(name: str, registry: TargetRegistry, reading: Reading) -> InventoryEntry:
    own = Report()
    node = registry.entries.get(name)
    spec = registry.read_alone(name, own) if node is not None else registry.typed(name, replace(reading, report=own))
    broken = () if node is None else tuple(one for one in own.diagnostics if one.severity == "error")
    problems = tuple(one for one in broken if one.code not in MACHINE_CODES)
    if node is None:
        node = Canonical({}, {}, Span("", 1, 1, 1, 1))
    provider, _, rest = _text(node.get("provider")).partition(":")
    model = getattr(spec.settings, "model", None) if spec else None
    env = {**reading.scope.env, **(spec.env if spec else {})}
    return InventoryEntry(
        name=name,
        provider=spec.provider if spec else provider,
        model=(model if isinstance(model, str) else None) or _text(node.get("model")) or rest or None,
        spec=spec,
        span=spec.span if spec and USE_TARGET not in node.items else span_of(node.at),
        judge=_text(registry.judge_of(name)) or None,
        settings=frozenset(node.items),
        named=tuple(KeyVariables((one,), one if env.get(one) else None) for one in dict.fromkeys(_mentioned(node))),
        lacks=tuple(one for one in own.diagnostics if one not in problems),
        problems=problems,
    )


def _text(node: Node | None) -> str:
    return node.text if isinstance(node, Scalar) else ""


def _mentioned(node: Node) -> Iterator[str]:
    for child in children(node):
        yield from _mentioned(child)
    if isinstance(node, Scalar) and isinstance(node.value, str) and has_placeholder(node.value):
        yield from environment_names(node.value)
        yield from _ENVIRONMENT.findall(node.value)
