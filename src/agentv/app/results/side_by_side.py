"""`agentv results show --matrix`: the answers of all targets, prompts and variants to the same cases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from msgspec import structs

from agentv.app.compare.records import planned_names
from agentv.app.results.selecting import checked_index
from agentv.app.results.stored import StoredRun
from agentv.model.run.compared.side_by_side import CaseAnswers, Place, SideBySide
from agentv.model.run.matrix import Dimension
from agentv.model.run.selection import Selection
from agentv.model.run.trial import TrialResult
from agentv.model.values.values import JsonObject


def side_by_side(
    run: StoredRun, selection: Selection, limit: int | None = None, *, different: bool = False
) -> SideBySide:
    """Cases of a run, at most `limit`, with all their answers, in the order of the eval files.

    `different` selects cases whose results differ. Statuses select cases: those with such a trial, of which every
    answer is shown. Names select trials.

    Raises:
        UsageError: a given name does not occur in the run.
        StoreError: its rows cannot be read, or one was changed.
    """
    with checked_index(run, selection) as index:
        matching = list(index.case_names(selection, different=different))
        wanted = set(matching[:limit])
        named = structs.replace(selection, statuses=(), cases=tuple(dict.fromkeys(case_id for case_id, _ in wanted)))
        places = sorted(index.places(named)) if wanted else []
    found: dict[tuple[str, str, str], dict[Place, list[TrialResult]]] = {}
    for result in replace(run, places=places).results():
        trial = result.trial
        if (trial.case.id, trial.suite.name) in wanted:
            answers = found.setdefault((trial.suite.name, trial.suite.path, trial.case.id), {})
            answers.setdefault((trial.target.name, trial.case.prompt_id, trial.variant_name), []).append(result)
    order = {name: number for number, name in enumerate(matching)}
    cases = [
        CaseAnswers(*key, {place: tuple(sorted(of, key=_sample)) for place, of in answers.items()})
        for key, answers in sorted(found.items(), key=lambda one: (order[one[0][2], one[0][0]], one[0][1]))
    ]
    used = [place for case in cases for place in case.answers]
    return SideBySide(
        tuple(cases),
        len(matching),
        tuple(name for name in _in_order(run.record, "target", (place[0] for place in used)) if name is not None),
        _in_order(run.record, "prompt", (place[1] for place in used)),
        _in_order(run.record, "variant", (place[2] for place in used)),
    )


def _sample(result: TrialResult) -> int:
    return result.trial.sample


def _in_order(record: JsonObject, by: Dimension, names: Iterable[str | None]) -> tuple[str | None, ...]:
    """Names, each once, in the order in which the suites of the run have them; none comes last."""
    used = dict.fromkeys(names)
    planned = [name for name in planned_names(record, by) if name in used]
    others = sorted(name for name in used if name is not None and name not in planned)
    return (*planned, *others, *((None,) if None in used else ()))
