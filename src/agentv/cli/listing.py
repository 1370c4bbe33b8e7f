"""`agentv eval --list`: the cases that would run, their estimated cost, and how both are printed."""

from __future__ import annotations

import json
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import click
from msgspec import to_builtins
from msgspec.structs import replace

from agentv.app.planning.preparation import Prepared, prepare, results_of
from agentv.app.results.stored import find_run
from agentv.app.settings import EvalSettings
from agentv.app.wiring import redactor_for
from agentv.cli.printing import print_diagnostics, print_pieces, print_sample, redacted
from agentv.errors import ExitStatus, StoreError, UsageError
from agentv.model.run.runs import ListedCase, ListedTotals
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.formatting import money, plural
from agentv.model.values.hashes import NumberedHashes, text_hash
from agentv.model.values.usage import total_cost
from agentv.model.values.values import Json
from agentv.registry.fields import DeclaredAssertion
from agentv.reports.text import one_line, shown_from
from agentv.store.files.directory import INDEX, results_directory
from agentv.store.rows.reading import finished_keys, read_rows


def show_listing(settings: EvalSettings, *, as_json: bool, quiet: bool) -> int:
    """List what would run: cases on stdout and totals on stderr, or everything as JSON on stdout."""
    if sys.stdout is None:
        raise UsageError("--list cannot write to stdout: it is closed")
    prepared = prepare(replace(settings, asks=False))
    with redacted(redactor_for(prepared.suites)):
        print_diagnostics([one for one in prepared.diagnostics if one.severity == "warning"])
        print_sample(prepared)
        totals = ListedTotals()
        cases = listed_cases(prepared, totals)
        if as_json:
            print_pieces(listed_json(cases, totals, str(Path.cwd())))
            return ExitStatus.PASSED
        if quiet:
            deque(cases, maxlen=0)
        else:
            print_pieces(f"{listed_line(case)}\n" for case in cases)
        click.echo("\n".join(listed_totals(totals)), err=True)
        return ExitStatus.PASSED


def listed_cases(prepared: Prepared, totals: ListedTotals) -> Iterator[ListedCase]:
    """Yield every case on every target that would run. Only one is in memory at a time, as there may be a million.

    Args:
        prepared: the run.
        totals: totals to which each case is added.

    Raises:
        UsageError: the run to resume does not exist.
        StoreError: its rows cannot be read.
    """
    plan, cases = prepared.plan, NumberedHashes()
    totals.at_most = plan.ends_early
    totals.generators = tuple(name for suite in prepared.suites for name in suite.generators)
    done = _finished(prepared)
    prices: dict[tuple[str, str], float] | None = None
    for suite, case, target, variant in plan.planned_cases():
        trials = repeat = plan.repeat(suite, case.repeat)
        if done is not None:
            keys = (trial.key for trial in plan.samples(suite, case, target, variant))
            trials = sum(key not in done and (prepared.chosen is None or key in prepared.chosen) for key in keys)
        if not trials:
            continue
        judged, scripted = _judge_calls(case.assertions)
        listed = ListedCase(
            test_id=case.id,
            suite=suite.name,
            eval_path=suite.path or None,
            place=(case.span.file, case.span.line) if case.span and suite.path else None,
            target=target.name,
            prompt_id=case.prompt_id,
            repeat=repeat,
            trials=trials,
            judge_calls=judged * trials,
            script_calls=scripted * trials,
            variant=None if variant is None else variant.name,
        )
        cases.number(text_hash(f"{suite.path}\0{suite.name}\0{case.id}"))
        totals.cases = len(cases)
        totals.trials += trials
        totals.target_calls += trials
        totals.judge_calls += listed.judge_calls
        totals.script_calls += listed.script_calls
        if prices is None:
            prices = _prices(results_directory(results_of(prepared.suites)))
        price = prices.get((suite.name, target.name))
        if price is None and getattr(target.settings, "free", False) and not judged and not scripted:
            price = 0.0
        if price is None:
            totals.unpriced += trials
        else:
            totals.cost_usd = (totals.cost_usd or 0.0) + price * trials
        yield listed


def _finished(prepared: Prepared) -> frozenset[str] | None:
    """Return the keys of the trials that a resumed run does not repeat; None if the run is new."""
    settings = prepared.settings
    if settings.resume_run is None:
        return None
    index = find_run(settings.resume_run, results_of(prepared.suites), settings.out) / INDEX
    return frozenset(finished_keys(index)) - {row.key for row in read_rows(index) if row.status == settings.rerun}


def _judge_calls(entries: tuple[AssertionEntry, ...]) -> tuple[int, int]:
    """Return how many verdicts of judges a list of assertions needs, and how many calls its scripts may make."""
    verdicts = calls = 0
    for entry in entries:
        assertion = entry.assertion
        if entry.inner:
            nested, more = _judge_calls(entry.inner)
            verdicts, calls = verdicts + nested, calls + more
        elif isinstance(assertion, DeclaredAssertion) and assertion.needs_judge:
            access = getattr(assertion, "judge_access", None)
            most = getattr(access, "max_calls", None)
            if most is None:
                verdicts += getattr(assertion, "votes", 1)
            else:
                calls += most
    return verdicts, calls


RUNS_READ = 5
"""Maximum number of earlier runs that are read, newest first."""

ROWS_READ = 2_000
"""Maximum number of rows that are read of each run, which is enough for a mean."""


def _prices(results: Path) -> dict[tuple[str, str], float]:
    """Return (suite, target) → mean cost of a trial in US dollars, with judges, in the newest run with costs for it."""
    try:
        runs = sorted(path for path in results.iterdir() if (path / INDEX).is_file())
    except OSError:
        return {}
    means: dict[tuple[str, str], float] = {}
    for run in runs[: -RUNS_READ - 1 : -1]:
        spent: dict[tuple[str, str], list[float]] = defaultdict(list)
        try:
            for row in islice(read_rows(run / INDEX), ROWS_READ):
                if row.cost_usd is not None:
                    cost = total_cost(row.cost_usd, row.judge_cost_usd, row.user_cost_usd)
                    spent[row.suite, row.target].append(cost or 0.0)
        except (StoreError, OSError):
            continue  # only an estimate depends on it; commands that open this run report the error
        for key, costs in spent.items():
            means.setdefault(key, sum(costs) / len(costs))
    return means


def listed_line(case: ListedCase) -> str:
    """Return the line of a case, such as `support: refund with brief on gpt, 3 trials`."""
    prompt = "" if case.prompt_id is None else f" with {one_line(case.prompt_id)}"
    variant = "" if case.variant is None else f" as {one_line(case.variant)}"
    trials = "" if case.trials == case.repeat == 1 else f", {plural(case.trials, 'trial')}"
    if case.trials < case.repeat:
        trials += f" of {case.repeat}"
    return f"{one_line(case.suite)}: {one_line(case.test_id)}{prompt} on {one_line(case.target)}{variant}{trials}"


def listed_totals(totals: ListedTotals) -> list[str]:
    """Return the lines of the totals."""
    calls = [plural(totals.target_calls, "call") + " of targets", plural(totals.judge_calls, "call") + " of judges"]
    if totals.script_calls:
        calls.append(f"up to {totals.script_calls} more by scripts")
    most = "up to " if totals.at_most else ""
    cost = []  # stays empty if the trials are known to be free
    if totals.cost_usd is None:
        cost = ["cost unknown: no earlier run has costs for these trials"]
    elif totals.unpriced or totals.cost_usd:
        unknown = f"; unknown for {plural(totals.unpriced, 'trial')}" if totals.unpriced else ""
        cost = [f"about {money(totals.cost_usd)}, from the cost of earlier runs{unknown}"]
    return [
        f"{plural(totals.cases, 'case')}, {most}{plural(totals.trials, 'trial')}: {', '.join(calls)}",
        *cost,
        *(f"{one_line(name)} ran to list its cases" for name in totals.generators),
        "no target and no judge was called, and nothing was written",
    ]


def listed_json(cases: Iterable[ListedCase], totals: ListedTotals, here: str) -> Iterator[str]:
    """Yield pieces of a JSON object with `cases`, one per line with the keys of rows, and `totals`."""
    yield '{"cases": ['
    between = "\n"
    for case in cases:
        row: dict[str, Json] = to_builtins(case)
        del row["place"]
        if case.variant is None:
            del row["variant"]
        row["eval_path"] = shown_from(case.eval_path, here) if case.eval_path else None
        row["source"] = f"{shown_from(case.place[0], here)}:{case.place[1]}" if case.place else None
        yield f"{between}{json.dumps(row)}"
        between = ",\n"
    yield f'\n], "totals": {json.dumps(to_builtins(totals))}}}\n'
