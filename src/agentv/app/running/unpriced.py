"""Models without a known price: reported once per run, since a cost of null looks like zero (SPEC section 9)."""

from __future__ import annotations

from collections.abc import Iterator

from agentv.model.run.trial import Trial, TrialResult
from agentv.model.secrets.redaction import Redactor
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.formatting import plural
from agentv.registry.types import ProviderSettings
from agentv.reports.text.escaping import one_line


class Unpriced:
    """Trials whose calls reported tokens but no price, and their models."""

    def __init__(self) -> None:
        self._models: dict[str, None] = {}
        self._trials = {"cost_usd": 0, "judge_cost_usd": 0}

    def add(self, result: TrialResult) -> None:
        """Add one finished trial."""
        free = getattr(result.trial.target.settings, "free", False)  # a replay calls no model
        if result.cost_usd is None and result.token_usage is not None and not free:
            self._count("cost_usd", result.trial.target)
        if result.judge_cost_usd is None and result.judge_token_usage is not None:
            self._count("judge_cost_usd", *_judges_of(result.trial))

    def _count(self, key: str, *specs: TargetSpec) -> None:
        self._trials[key] += 1
        self._models |= dict.fromkeys(map(_model_of, specs))

    def notes(self) -> Iterator[str]:
        """`the price of tiny-model is not known, so cost_usd is null for 12 trials`; nothing where all are known."""
        parts = [f"{key} is null for {plural(count, 'trial')}" for key, count in self._trials.items() if count]
        if parts:
            names = ", ".join(one_line(name) for name in self._models)
            begin = f"the price of {names} is" if len(self._models) == 1 else f"prices among {names} are"
            yield f"{begin} not known, so {' and '.join(parts)}"


def _judges_of(trial: Trial) -> list[TargetSpec]:
    """Judges and embedders that the assertions of a trial may have called."""
    forced = trial.suite.forced_judge
    if forced is not None:
        return [forced]
    return [one for one in (trial.judge, *trial.suite.judges.values()) if one is not None]


def _model_of(spec: TargetSpec) -> str:
    """The model, and where it is asked if that is not at its provider's: most likely that is why it has no price."""
    settings = spec.settings
    model = getattr(settings, "model", None)
    name = model if isinstance(model, str) else spec.name
    place = settings.elsewhere() if isinstance(settings, ProviderSettings) else None
    return name if place is None else f"{name} at {Redactor(spec.secrets).redact(place)}"
