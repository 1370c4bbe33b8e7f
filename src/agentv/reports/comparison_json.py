"""`agentv compare --json`: a comparison, or a matrix of them, as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from math import isfinite
from typing import TypeAlias

from msgspec import to_builtins

from agentv.model.run.comparison import (
    CaseKey,
    CasePair,
    Comparison,
    Judgement,
    Matrix,
    RunComparison,
    RunLabel,
)
from agentv.model.run.matrix import Interval
from agentv.model.values.values import Json
from agentv.reports.text import shown_from

Piecewise: TypeAlias = "Json | Iterator[Json] | Mapping[str, Piecewise]"
"""A JSON value in which an array may be an iterator, whose items are created when they are written."""


def indented(value: Piecewise, indent: str = "") -> Iterator[str]:
    """Pieces of the indented JSON text, in ASCII."""
    inner = f"{indent}  "
    if isinstance(value, Iterator):
        items = ((_whole(one, inner),) for one in value)
        yield from _enclosed("[]", items, indent)
    elif isinstance(value, Mapping):
        named = (chain((f"{json.dumps(key)}: ",), indented(one, inner)) for key, one in value.items())
        yield from _enclosed("{}", named, indent)
    else:
        yield _whole(value, indent)


def _whole(value: Json, indent: str) -> str:
    return json.dumps(value, indent=2).replace("\n", f"\n{indent}")  # line ends inside strings are escaped


def _enclosed(brackets: str, items: Iterable[Iterable[str]], indent: str) -> Iterator[str]:
    """Items between brackets, each on its own line."""
    before = brackets[0]
    for pieces in items:
        yield f"{before}\n{indent}  "
        yield from pieces
        before = ","
    yield f"\n{indent}{brackets[1]}" if before == "," else brackets


def comparison_json(found: Comparison | Matrix | RunComparison, *, here: str) -> Iterator[str]:
    """Pieces of the JSON text of one object, whose keys are described in `docs/reference/results.md`.

    Args:
        found: the comparison or comparisons.
        here: absolute path of the directory that paths are relative to.
    """
    if isinstance(found, RunComparison):
        comparisons: list[Json] = [  # with the keys of `matrix` in `summary.json`
            {**to_builtins(one), "lost": [{**key._asdict(), "status": loss} for key, loss in lost.items()]}
            for one, lost in zip(found.comparisons, found.lost, strict=True)
        ]
        question = {"margin": found.question.margin, "alpha": found.question.alpha, "tests": found.tests}
        return indented({"run": _run(found.run, here), **question, "comparisons": comparisons})
    shown = _matrix(found, here) if isinstance(found, Matrix) else _comparison(found, here)
    return indented(shown)  # ASCII, so that it cannot contain terminal escape sequences


def _comparison(found: Comparison, here: str) -> dict[str, Piecewise]:
    return {
        "base": _run(found.base, here),
        "candidate": _run(found.candidate, here),
        "same_run": found.same,
        "margin": found.question.margin,
        "alpha": found.question.alpha,
        **_judgement(found.whole),
        **_plan(found.whole),
        "notes": list(found.notes),
        **(
            {f"by_{found.question.by}": {one.name: _judgement(one.judgement) for one in found.groups}}
            if found.groups
            else {}
        ),
        "moved": [
            {
                **_pair(one.pair),
                "base": to_builtins(one.before),
                "candidate": to_builtins(one.after),
                "changed_checks": [to_builtins(change) for change in one.changes],
            }
            for one in found.moved
        ],
        "moved_omitted": sum(pair.moved for pair in found.pairs) - len(found.moved),
        "matched": map(_pair, found.pairs),
        "edited_compared": found.edited,
        "lost": ({**_key(key), "status": what} for key, what in found.lost.items()),
        "left_out": {
            "only_base": map(_key, found.left_out.only_base),
            "only_candidate": map(_key, found.left_out.only_candidate),
            "edited": ({**_key(key), "changed": list(what)} for key, what in found.left_out.edited.items()),
            "errored": map(_key, found.left_out.errored),
            "unfinished": map(_key, found.left_out.unfinished),
        },
    }


def _matrix(found: Matrix, here: str) -> dict[str, Piecewise]:
    """The matrix as JSON; comparisons refer to runs by their index in the list, from 0."""
    return {
        "runs": [_run(run, here) for run in found.runs],
        "comparisons": [
            {"base": base, "candidate": candidate, "same_run": one.same, **_judgement(one.whole)}
            for (base, candidate), one in found.comparisons.items()
        ],
        "cases": [{**_key(key), "scores": list(scores)} for key, scores in found.scores.items()],
        "cases_omitted": found.omitted,
    }


def _run(run: RunLabel, here: str) -> Json:
    return {
        "run_id": run.run_id,
        "results": shown_from(run.path, here),
        "targets": list(run.targets),
        **({"variants": list(run.variants)} if run.variants else {}),
        **({"prompts": list(run.prompts)} if run.prompts else {}),
        "cases": run.cases,
        "missing": run.missing,
    }


def _judgement(one: Judgement | None) -> dict[str, Json]:
    if one is None:
        return {"verdict": None, "cases": 0}
    shown, (low, high) = one.deciding, one.deciding.interval
    # if scores are verdicts, there is one measure; if the settings differ, the rate is not tested
    rate = one.rate or (one.score if one.rates_compare else None)
    return {
        "verdict": one.verdict,
        "difference": shown.delta,
        "interval": [low, high],
        "p": shown.p,
        "measure": shown.measure,
        "plain_interval": _interval(shown.plain),
        "withheld": one.withheld,
        "cases": one.pairs,
        "clusters": one.clusters,
        "errored": one.errored,
        "mean_score": [one.before.score, one.after.score],
        "pass_rate": [one.before.rate, one.after.rate] if one.rates_compare else None,
        "passed": [one.before.passed, one.after.passed],
        "mean_delta": one.score.delta,
        "delta_interval": _interval(one.score.interval),
        "delta_bounds": _interval(one.score.bounds),
        "confidence": one.score.level,
        "p_value": one.score.p,
        "p_value_of_verdict": one.p_of_claim,
        "pass_rate_delta": rate.delta if rate else None,
        "pass_rate_interval": _interval(rate.interval) if rate else None,
        "pass_rate_bounds": _interval(rate.bounds) if rate else None,
        "pass_rate_confidence": rate.level if rate else None,
        "pass_rate_p_value": rate.p if rate else None,
        "shown_by": list(one.shown_by),
        "tests": one.tested,
        "wins": one.moves.wins,
        "losses": one.moves.losses,
        "ties": one.moves.ties,
        "now_pass": one.moves.fixed if one.moves.same_rule else None,
        "now_fail": one.moves.broken if one.moves.same_rule else None,
        "usage": to_builtins(one.usage),
        "could_still": {"lower": low, "upper": high} if one.verdict == "inconclusive" else None,
    }


def _plan(one: Judgement | None) -> dict[str, Json]:
    """Power of a single comparison; comparisons made together have none."""
    if one is None:
        return {}
    least = one.detectable
    return {
        "cases_needed": one.needed,
        "detectable_difference": least if least is not None and isfinite(least) else None,
    }


def _interval(interval: Interval | None) -> Json:
    return None if interval is None else list(interval)


def _pair(pair: CasePair) -> dict[str, Json]:
    base = pair.before_key
    return {
        **_key(pair.after_key),
        "base_target": base.target,
        "base_prompt_id": base.prompt,
        **({} if base.variant is None else {"base_variant": base.variant}),
        "status": [pair.before.status, pair.after.status],
        "score": [pair.before.score, pair.after.score],
        "delta": pair.delta,
        "outcome": pair.outcome,
    }


def _key(key: CaseKey) -> dict[str, Json]:
    found: dict[str, Json] = {"suite": key.suite, "test_id": key.case_id, "prompt_id": key.prompt, "target": key.target}
    return found if key.variant is None else {**found, "variant": key.variant}
