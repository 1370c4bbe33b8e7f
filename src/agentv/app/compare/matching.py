"""Which cases of two runs belong together, and which are in no number, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agentv.model.comparison import CaseKey, CaseOutcome, Change, LeftOut, Loss, Pair

Cases = Mapping[CaseKey, CaseOutcome]

_Fate = Literal["compared", "edited", "errored", "unfinished"]


@dataclass(frozen=True, slots=True)
class Matched:
    """The pairs of two runs.

    Attributes:
        pairs: cases that both of them judged.
        common: how many cases both of them hold.
        edited: how many of the pairs differ in their text.
        lost: the cases that passed in the base and do not pass in the candidate: edited and missing ones, too.
    """

    pairs: tuple[Pair, ...]
    common: int
    edited: int
    left_out: LeftOut
    lost: Mapping[CaseKey, Loss] = field(default_factory=dict)


def match(base: Cases, candidate: Cases, *, edited: bool = False) -> Matched:
    """Match two runs by suite and case, and by target and prompt where a run holds several.

    Where both hold one target each, cases are matched across them, whatever they are called; so is the one prompt of a
    suite. A case whose text differs is left out unless `edited`: its two scores answer different questions.
    """
    before, after = _by_name(base, candidate)
    fates: dict[_Fate, list[Pair]] = defaultdict(list)
    for name, key in before.items():
        if name in after:
            pair = _paired(key, after[name], base[key], candidate[after[name]])
            fates[_fate(pair, edited=edited)].append(pair)
    left_out = LeftOut(
        only_base=tuple(key for name, key in before.items() if name not in after),
        only_candidate=tuple(key for name, key in after.items() if name not in before),
        edited={pair.after_key: tuple(_changes(pair)) for pair in fates["edited"]},
        errored=tuple(pair.after_key for pair in fates["errored"]),
        unfinished=tuple(pair.after_key for pair in fates["unfinished"]),
    )
    pairs = tuple(fates["compared"])
    held = [pair for fate in fates.values() for pair in fate]
    lost = {pair.after_key: loss for pair in held if (loss := _loss(pair)) is not None}
    gone: dict[CaseKey, Loss] = {key: "missing" for key in left_out.only_base if base[key].status == "passed"}
    return Matched(pairs, len(held), sum(map(_is_edited, pairs)), left_out, {**lost, **gone})


def _paired(before_key: CaseKey, after_key: CaseKey, before: CaseOutcome, after: CaseOutcome) -> Pair:
    """The pair, with verdicts in the place of scores where one side was sampled until decided."""
    pair = Pair(before_key, after_key, before, after)
    return replace(pair, before=_by_verdict(before), after=_by_verdict(after)) if pair.by_verdict else pair


def _by_verdict(case: CaseOutcome) -> CaseOutcome:
    return replace(case, score=float(case.status == "passed")) if case.judged else case


def _loss(pair: Pair) -> Loss | None:
    status = pair.after.status
    return None if pair.before.status != "passed" or status == "passed" else status


def _fate(pair: Pair, *, edited: bool) -> _Fate:
    if _is_edited(pair) and not edited:
        return "edited"
    if pair.before.judged and pair.after.judged:
        return "compared"
    return "errored" if "errored" in (pair.before.status, pair.after.status) else "unfinished"


def _is_edited(pair: Pair) -> bool:
    return pair.before.sha256 != pair.after.sha256


def _changes(pair: Pair) -> Iterator[Change]:
    """What an edit touched, as far as rows can say. An errored sample may lack its grades, so it says nothing."""
    before, after = pair.before, pair.after
    judged = before.judged and after.judged
    touched: dict[Change, bool] = {
        "input": before.input != after.input,
        "checks": judged and before.checks != after.checks,
        "threshold": before.threshold != after.threshold,
    }
    yield from [what for what, differs in touched.items() if differs] or ["text"]


def _by_name(base: Cases, candidate: Cases) -> tuple[dict[CaseKey, CaseKey], dict[CaseKey, CaseKey]]:
    """Both runs as name → key, where what need not match is no part of the name."""
    targets = ({key.target for key in base}, {key.target for key in candidate})
    across = all(len(found) == 1 for found in targets)
    prompts = (_prompts(base), _prompts(candidate))
    lone = {suite for suite in prompts[0] if all(len(found.get(suite, ())) == 1 for found in prompts)}

    def named(keys: Iterable[CaseKey]) -> dict[CaseKey, CaseKey]:
        return {_name(key, across=across, lone=key.suite in lone): key for key in keys}

    return named(base), named(candidate)


def _name(key: CaseKey, *, across: bool, lone: bool) -> CaseKey:
    return key._replace(target="" if across else key.target, prompt=None if lone else key.prompt)


def _prompts(cases: Iterable[CaseKey]) -> dict[str, set[str | None]]:
    """Suite → the prompts that its cases have."""
    found: dict[str, set[str | None]] = defaultdict(set)
    for key in cases:
        found[key.suite].add(key.prompt)
    return found
