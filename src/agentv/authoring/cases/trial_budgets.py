"""Budgets of trials, which hold only for targets whose model calls pass the gateway or cost nothing."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.source.nodes import MapNode, Node, span_of
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, Severity
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.span import Span

_HINT = "send its calls through the gateway ('gateway: …' of the target), or limit the run: 'run: {budget_usd: …}'"
_NO_KEY = "set its API key, by which the gateway knows where to send its calls"


class TrialBudgets(Struct):
    """Checks the budgets of the cases of one suite. Each place is reported once for each target.

    Attributes:
        request: says whether targets are called.
        shared: position of the suite's `limits.budget_usd`; None: it has none.
    """

    request: LoadRequest
    shared: Span | None = None
    _reported: set[tuple[Span, str]] = field(default_factory=set)

    def check(self, case: MapNode, targets: Iterable[TargetSpec], report: Report) -> None:
        """Report targets for which the budget of a case cannot be enforced; its own wins over the suite's."""
        request = self.request
        place = place_of_budget(case) or self.shared
        if place is None or (request.for_run and not (request.asks and request.asks_targets)):
            return
        for spec in targets:
            if _is_counted(spec) or (place, spec.name) in self._reported:
                continue
            self._reported.add((place, spec.name))
            message = (
                f"model calls of '{spec.name}' do not pass the gateway, so this limit of a trial cannot be enforced"
            )
            lacks_key = _lacks_key(spec)
            severity: Severity = "warning" if lacks_key and not request.for_run else "error"
            report.add(Diagnostic("no-gateway", message, place, severity, _NO_KEY if lacks_key else _HINT))


def place_of_budget(mapping: MapNode) -> Span | None:
    """Position of `limits.budget_usd` in a case or a suite."""
    limits: Node | None = mapping.get("limits")
    at = limits.keys.get("budget_usd") if isinstance(limits, MapNode) else None
    return None if at is None else span_of(at)


def _lacks_key(spec: TargetSpec) -> bool:
    """Whether its calls pass the gateway as soon as its key is known."""
    settings = spec.settings
    return getattr(settings, "model_protocol", None) is not None and getattr(settings, "gateway", None) is not False


def _is_counted(spec: TargetSpec) -> bool:
    return spec.upstream is not None or bool(getattr(spec.settings, "free", False))
