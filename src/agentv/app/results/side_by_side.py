"""`agentv results show --matrix`: the answers of all targets, prompts and variants to the same cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from msgspec import structs

from agentv.app.compare.gathering import cases_of, planned_names
from agentv.app.results.selecting import checked_index
from agentv.app.results.stored import StoredRun
from agentv.model.run.cases import disagree
from agentv.model.run.compared.side_by_side import CaseAnswers, Place, SideBySide
from agentv.model.run.matrix import Dimension
from agentv.model.run.selection import Selection
from agentv.model.run.trial import Status, TrialResult
from agentv.model.values.values import JsonObject
from agentv.store.files.directory import INDEX
from agentv.store.files.lines import lines_at
from agentv.store.rows.reading import row_in


def side_by_side(
    run: StoredRun, selection: Selection, limit: int | None = None, *, different: bool = False
) -> SideBySide:
    """Cases of a run, at most `limit`, with all their answers, in the order of the eval files.

    `different` selects cases whose verdicts disagree between columns. Statuses select cases: those with such a trial,
    of which every answer is shown. Names select trials.

    Raises:
        UsageError: a given name does not occur in the run.
        StoreError: its rows cannot be read, or one was changed.
    """
    with checked_index(run, selection) as index:
        matching = list(index.case_names(selection))
        if different:
            named = structs.replace(selection, statuses=())
            matching = _different(run, matching, sorted(index.places(named)))
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


def _different(run: StoredRun, names: list[tuple[str, str]], places: Sequence[int]) -> list[tuple[str, str]]:
    """Ids and suites of the cases whose columns disagree."""
    cases = cases_of((place, row_in(line)) for place, line in lines_at(run.path / INDEX, places))
    verdicts: dict[tuple[str, str, str | None], set[Status]] = defaultdict(set)
    for number in range(len(cases)):
        of = cases.place(number)
        verdicts[cases.case_id(number), of.suite, of.path].add(cases.status(number))
    found = {(case_id, suite) for (case_id, suite, _), of_case in verdicts.items() if disagree(of_case)}
    return [name for name in names if name in found]


def _sample(result: TrialResult) -> int:
    return result.trial.sample


def _in_order(record: JsonObject, by: Dimension, names: Iterable[str | None]) -> tuple[str | None, ...]:
    """Names, each once, in the order in which the suites of the run have them; none comes last."""
    used = dict.fromkeys(names)
    planned = [name for name in planned_names(record, by) if name in used]
    others = sorted(name for name in used if name is not None and name not in planned)
    return (*planned, *others, *((None,) if None in used else ()))
