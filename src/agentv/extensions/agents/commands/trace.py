"""`agentv trace …`: show the steps of agents in a stored run as a tree, and their statistics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from agentv.app.results.selecting import choose
from agentv.cli.lazy import LazyCommands
from agentv.cli.results import selection_of, selection_options
from agentv.cli.values import runs
from agentv.errors import ExitStatus
from agentv.model.values.formatting import duration, money, plural
from agentv.model.values.trace import MessageStep, PermissionStep, Step, ToolCallStep, Trace, UsageStep, depths_of
from agentv.model.values.trace_summary import Spent, summary_of_trace
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json
from agentv.reports.text import TAB, Cell, aligned, one_line, paint, safe
from agentv.stats.samples.distribution import PERCENTILES, RunFigures

COMMANDS = {
    "show": "agentv.extensions.agents.commands.trace:show",
    "stats": "agentv.extensions.agents.commands.trace:stats",
}


@click.group("trace", cls=LazyCommands, places=COMMANDS, epilog="Example: agentv trace show last refund")
def group() -> None:
    """Inspect the traces of a run: messages, tool calls, tokens, cost and errors.

    A RUN is a run id, its directory, or `last`.
    """


@click.command("show", epilog="Example: agentv trace show last refund --full")
@click.argument("run", metavar="RUN", shell_complete=runs)
@click.argument("case", metavar="CASE")
@click.option("--target", metavar="NAME", help="Show the trials of this target only.")
@click.option("--variant", metavar="NAME", help="Show the trials of this variant only.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Show this sample only.")
@click.option("--full", is_flag=True, help="Do not shorten messages, arguments and results.")
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option("--json", "as_json", is_flag=True, help="Print each trace.json to stdout, one a line.")
def show(run: str, case: str, *, full: bool, partial: bool, as_json: bool, **chosen: str | int | None) -> int:
    """Show what the agent did in the trials of a case: a tree of its steps.

    Each step has the time at which it began, how long it took, and what it used. Steps of a sub-agent are below the
    call that started it.

    Exit status 2 if the run has no such case, 3 if a trace cannot be read.
    """
    from agentv.app.results.stored import open_run
    from agentv.cli.printing import width_and_color
    from agentv.extensions.agents.commands.stored_traces import trials_of_case
    from agentv.model.values.response import Failure

    found = trials_of_case(open_run(run, action="show", partial=partial), case, chosen)
    width, color = width_and_color()
    status = ExitStatus.PASSED
    for place, trial in enumerate(found):
        trace = trial.trace
        if isinstance(trace, Failure):
            click.echo(f"error: {one_line(trial.name)}: {one_line(trace.message)}", err=True)
            status = ExitStatus.ERRORED
        elif as_json:
            from agentv.model.values.trace_document import one_line_document

            click.echo(one_line_document(trace))
        else:
            text = render_trace(trial.name, trace, TraceOptions(width, color=color, full=full))
            click.echo(("\n" if place else "") + text, color=color)
    return status


@click.command("stats", epilog="Example: agentv trace stats last --target claude")
@click.argument("run", metavar="[RUN]", default="last", shell_complete=runs)
@selection_options
@click.option("--partial", is_flag=True, help="Include unfinished runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout.")
def stats(run: str, *, partial: bool, as_json: bool, **chosen: Any) -> int:
    """Print figures over the trials of a run (default: the last).

    Mean and percentiles of score, time, cost, tokens and tool calls.

    A trial that does not report a figure is left out of it. The tool calls of a partial trace are not counted.
    Percentiles are interpolated linearly.

    Options of the same kind are ORed; different kinds are ANDed.
    """
    from agentv.app.results.stored import open_run
    from agentv.cli.printing import width_and_color
    from agentv.extensions.agents.commands.stored_traces import figures_of, traced_trials
    from agentv.model.run.runs import Selection

    found = open_run(run, action="show", partial=partial)
    selection = selection_of(chosen)
    if selection != Selection():
        found = choose(found, selection).run
    figures = figures_of(traced_trials(found))
    width, color = width_and_color()
    click.echo(figures_json(figures) if as_json else render_figures(figures, width, color=color), color=color)
    for text in figures.unread:
        click.echo(f"error: {one_line(text)}", err=True)
    return ExitStatus.ERRORED if figures.unread else ExitStatus.PASSED


LONGEST = 200
"""Characters of a text that are shown without `--full`."""

MOST_STEPS = 500
"""Steps that are shown without `--full`."""

DEEPEST = 20
"""Maximum indentation of sub-agents, in levels."""


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How a trace is shown: width in columns, whether to use color, and whether to show everything in full."""

    width: int
    color: bool = False
    full: bool = False


def render_trace(name: str, trace: Trace, options: TraceOptions) -> str:
    """Return the trace of one trial as text.

    Args:
        name: name of the trial.
        trace: its trace; control characters in it are escaped.
        options: how to show it.
    """
    lines = [paint(one_line(name, LONGEST), "bold", color=options.color)]
    lines.append(one_line(", ".join(_facts(trace)), 2 * LONGEST))
    if trace.partial:
        lines.append(paint(f"partial: {one_line(trace.partial, 2 * LONGEST)}", "errored", color=options.color))
    steps = trace.steps if options.full else trace.steps[:MOST_STEPS]
    depths = depths_of(steps, DEEPEST)
    counted = trace.is_counted
    rows = [_row(step, depth, options, counted=counted) for step, depth in zip(steps, depths, strict=True)]
    if rows:
        lines += _lines(rows, options)
    if len(steps) < len(trace.steps):
        lines.append(f"{plural(len(trace.steps) - len(steps), 'more step')}; --full shows them")
    return "\n".join(lines)


def _facts(trace: Trace) -> Iterator[str]:
    summary = summary_of_trace(trace, Spent())
    yield " ".join(filter(None, [trace.agent or "unknown agent", trace.agent_version]))
    yield f"from {trace.source or 'an unknown source'}"
    yield plural(summary.tool_calls, "tool call")
    yield plural(summary.error_count, "error")
    if summary.token_usage is not None and summary.token_usage.total is not None:
        yield f"{summary.token_usage.total:,} tokens"
    if summary.cost_usd is not None:
        yield money(summary.cost_usd)
    if summary.duration_ms is not None:
        yield duration(summary.duration_ms)
    if trace.stop_reason:
        yield f"ended: {trace.stop_reason}"


_Row = tuple[tuple[str, str, str], str, str | None]
"""The columns of a step (start, duration, usage), its text, and its style."""


def _row(step: Step, depth: int, options: TraceOptions, *, counted: bool) -> _Row:
    """Return the row of a step. `counted`: the gateway counted the model calls, so the agent only reports its own."""
    started = "" if step.started_ms is None else f"+{duration(step.started_ms)}"
    indent = TAB * depth
    if isinstance(step, MessageStep):
        thought = f" (thought: {_shown(step.reasoning, options)})" if step.reasoning else ""
        return (started, "", ""), f"{indent}{step.role}: {_shown(step.text, options)}{thought}", None
    if isinstance(step, PermissionStep):
        reason = f": {_shown(step.reason, options)}" if step.reason else ""
        text = f"{indent}permission for {_shown(step.tool, options)} {'allowed' if step.allowed else 'denied'}{reason}"
        return (started, "", ""), text, None if step.allowed else "failed"
    took = "" if step.duration_ms is None else duration(step.duration_ms)
    if isinstance(step, UsageStep):
        error = f": {_shown(step.error, options)}" if step.error else ""
        who = "the agent reports" if counted and step.evidence == "agent" else "model"
        model = step.model or ("" if counted and step.evidence == "agent" else "unknown")
        text = f"{indent}{f'{who} {_shown(model, options)}'.rstrip()}{error}"
        return (started, took, _used(step)), text, "failed" if step.error else "dim"
    return (started, took, ""), indent + _called(step, options), "failed" if step.failed else "tested"


def _used(step: UsageStep) -> str:
    tokens = step.tokens or TokenUsage()
    figures = [] if tokens.input is None else [f"{tokens.input:,} in"]
    figures += [] if tokens.output is None else [f"{tokens.output:,} out"]
    figures += [] if step.cost_usd is None else [money(step.cost_usd)]
    return ", ".join(figures)


def _called(step: ToolCallStep, options: TraceOptions) -> str:
    native = f" [{_shown(step.native_name, options)}]" if step.native_name not in ("", step.name) else ""
    arguments = _shown(_json(step.arguments), options)
    seen = "" if step.evidence == "agent" else f" (seen by {step.evidence})"
    text = f"{_shown(step.name, options)}{native}({arguments}) {step.status}{seen}"
    result = step.error if step.error is not None else step.result
    return text if result is None else f"{text}: {_shown(_json(result), options)}"


def _json(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _shown(text: str, options: TraceOptions) -> str:
    if not options.full:
        return one_line(" ".join(text[: 4 * LONGEST].split()) if text else "", LONGEST)
    return safe(text)


def _lines(rows: Sequence[_Row], options: TraceOptions) -> Iterator[str]:
    """Align the rows in columns, and leave out columns that are empty in all rows."""
    filled = [at for at in range(3) if any(facts[at] for facts, *_ in rows)]
    if not options.full:
        cells: list[list[Cell]] = [
            [*((facts[at], "dim") for at in filled), (text, style)] for facts, text, style in rows
        ]
        yield from aligned(cells, options.width, color=options.color)
        return
    for facts, text, style in rows:
        first, *rest = text.split("\n")
        yield "  ".join([*filter(None, facts), paint(first, style, color=options.color)])
        yield from (f"{TAB}{line}" for line in rest)


_TITLES = {"score": "score", "duration_ms": "time", "cost_usd": "cost", "tokens": "tokens", "tool_calls": "tool calls"}


def render_figures(figures: RunFigures, width: int, *, color: bool = False) -> str:
    """Return a table with a row for each measure, where `n` is the number of trials that report it."""
    head: list[Cell] = [(title, "dim") for title in ("", "n", "mean", *(f"P{percent}" for percent in PERCENTILES))]
    rows = [head]
    for name, title in _TITLES.items():
        found = figures.measures.get(name)
        if found is None:
            rows.append([(title, None), ("0", None), *([("", None)] * (1 + len(PERCENTILES)))])
        else:
            values = (found.mean, *found.percentiles)
            rows.append([(title, None), (str(found.count), None), *((_value(name, one), None) for one in values)])
    lines = [plural(figures.trials, "trial"), *aligned(rows, width, color=color)]
    if figures.partial:
        lines.append(f"{plural(figures.partial, 'trace')} partial: tool calls not counted")
    return "\n".join(lines)


def _value(name: str, value: float) -> str:
    if name == "duration_ms":
        return duration(value)
    if name == "cost_usd":
        return money(value)
    return f"{value:.3f}" if name == "score" else f"{value:,.1f}".removesuffix(".0")


def figures_json(figures: RunFigures) -> str:
    """Return the figures as JSON."""
    measures: dict[str, Json] = {}
    for name, found in figures.measures.items():
        if found is None:
            measures[name] = None
            continue
        percentiles = {f"p{percent}": value for percent, value in zip(PERCENTILES, found.percentiles, strict=True)}
        measures[name] = {"n": found.count, "mean": found.mean, **percentiles}
    return json.dumps({"trials": figures.trials, "partial_traces": figures.partial, "measures": measures}, indent=2)
