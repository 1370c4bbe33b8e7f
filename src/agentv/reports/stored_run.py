"""Output of `agentv results show`: a past run and the details of its trials."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import islice

from msgspec import Struct

from agentv.model.run.matrix import Counts
from agentv.model.run.runs import ListedRun
from agentv.model.run.trial import Score, StoredWork, TrialResult
from agentv.model.values.formatting import duration, plural
from agentv.model.values.message import Message, reference_text
from agentv.reports.run.totals import outcomes, totals
from agentv.reports.run.trial_view import STATUS_WORDS, case_words, costs_of, cut_words, needed
from agentv.reports.runs import suites_and_targets
from agentv.reports.text import TAB, distinct_decimals, one_line, paint, safe, shown_from

LONGEST_DIFF = 200_000
"""Total characters above which two texts are not compared, since the time is quadratic in their lines."""


def text_diff(reference: str, answer: str) -> list[str] | None:
    """Return a unified diff of reference (`-`) and answer (`+`), or None if only surrounding white space differs.

    Return a single line that says so if the texts are too long to compare. All lines are safe to show.
    """
    before, after = reference.strip(), answer.strip()
    if before == after:
        return None
    if len(before) + len(after) > LONGEST_DIFF:
        return [f"too long to compare: {len(before):,} and {len(after):,} characters"]
    found = unified_diff(before.split("\n"), after.split("\n"), lineterm="")
    return [safe(line) for line in islice(found, 2, None)]


LONGEST = 2000
"""Characters shown of a text without `--full`."""

LINES = 40
"""Lines shown of a text without `--full`."""

NAME = 200
"""Characters shown of a name."""

STYLES = {"passed": "passed", "failed": "failed", "errored": "errored", "skipped": "tested", "shown": "tested"}


class ShowOptions(Struct, frozen=True):
    """Options of the output.

    Attributes:
        here: absolute path of the directory that paths are relative to.
        color: use ANSI colors.
        full: show every text completely.
        width: width of the terminal.
    """

    here: str
    color: bool = False
    full: bool = False
    width: int = 100


def render_head(run: ListedRun, options: ShowOptions) -> str:
    """The id and state of the run, what it ran, and its totals."""
    head = f"run {one_line(run.run_id, NAME)}, {run.state}: {suites_and_targets(run)}"
    lines = [paint(head, "bold", color=options.color)]
    where = shown_from(run.directory, options.here)
    if run.summary is None:
        of = "" if run.planned is None else f" of {run.planned}"
        return "\n".join([*lines, f"{run.done}{of} trials are finished", f"results: {one_line(where)}"])
    return "\n".join([*lines, *totals(run.summary, 0, where, options.width)])


def render_rest(counts: Counts, shown: int) -> str:
    """How many of the matching trials are shown, or an empty string if all are."""
    if not counts.total:
        return "no matching trials in this run"
    if shown == counts.total:
        return ""
    return f"{shown} of {plural(counts.total, 'trial')} shown ({outcomes(counts)}); --limit N shows more"


def render_trial(result: TrialResult, options: ShowOptions) -> str:
    """A trial in sections: verdict, facts, input, answer, retrieved texts, error, checks and reference."""
    return "\n".join(_trial(result, options))


def _trial(result: TrialResult, options: ShowOptions) -> Iterator[str]:
    word = paint(STATUS_WORDS[result.status], STYLES[result.status], color=options.color)
    yield f"{word} {paint(_label(result), 'bold', color=options.color)}: {_verdict(result)}"
    yield from _section("", [", ".join(_facts(result, options))])
    yield from _section("input", _transcript(result.input, options))
    if result.output is not None:
        yield from _section("thoughts (not graded)", _text(result.thoughts.strip(), options) if result.thoughts else ())
        yield from _section("answer", _text(result.output, options))
    yield from _section("retrieved", _retrieved(result, options))
    if result.error is not None:
        yield from _section("error", [f"{one_line(result.error.code)}:", *_text(result.error.message, options)])
    yield from _section("checks", (line for score in result.scores for line in _score(score, options)))
    yield from _section("reference", _reference(result, options))


def _retrieved(result: TrialResult, options: ShowOptions) -> Iterator[str]:
    """The retrieved texts, each below its number, source and score."""
    for number, one in enumerate(result.context, 1):
        facts = [one_line(one.source, NAME)] if one.source is not None else []
        facts += [f"score {one.score:g}"] if one.score is not None else []
        yield f"[{number}] {', '.join(facts)}".rstrip()
        yield from (f"  {line}" for line in _text(one.text, options))


def _label(result: TrialResult) -> str:
    trial = result.trial
    sample = f" (sample {trial.sample} of {trial.repeat})" if trial.repeat > 1 else ""
    return f"{case_words(trial.case.id, trial.case.prompt_id, trial.target.name, trial.variant_name, NAME)}{sample}"


def _verdict(result: TrialResult) -> str:
    if result.error is not None:
        return one_line(result.error.code)
    if result.score is None:
        return "not checked" if result.status == "shown" else "no score"
    score, needed = distinct_decimals(result.score, result.trial.threshold)
    return f"score {score}, needs {needed}"


def _facts(result: TrialResult, options: ShowOptions) -> Iterator[str]:
    """Known facts about a trial: its suite and tags, usage, agent work and notes."""
    trial = result.trial
    suite = f"suite {one_line(trial.suite.name, NAME)}"
    yield f"{suite} ({one_line(shown_from(trial.suite.path, options.here))})" if trial.suite.path else suite
    if trial.case.tags:
        yield f"tags {' '.join(one_line(tag, NAME) for tag in trial.case.tags)}"
    yield duration(result.duration_ms)
    if result.time_to_first_token_ms is not None:
        yield f"first token after {duration(result.time_to_first_token_ms)}"
    yield from costs_of(result)
    if result.token_usage is not None:
        usage = result.token_usage
        counted = f"{usage.input or 0:,} tokens in, {usage.output or 0:,} out"
        if usage.input is None and usage.output is None:
            counted = f"{usage.total:,} tokens" if usage.total is not None else "tokens unknown"
        yield counted
    if result.attempts > 1:
        yield plural(result.attempts, "attempt")
    if result.stored is not None:
        yield from _work(result.stored)
    if result.reused:
        yield "reused from an earlier run or a recording"
    if result.timestamp:
        yield one_line(result.timestamp, NAME)
    yield from map(one_line, result.notes)
    cut = cut_words(result)
    if cut is not None:
        yield one_line(cut)


def _work(stored: StoredWork) -> Iterator[str]:
    """The sandbox and version of an agent, and the paths of its stored files."""
    if stored.sandbox is not None:
        yield f"sandbox {stored.sandbox}"
    if stored.agent_version:
        yield f"agent version {one_line(stored.agent_version, NAME)}"
    places = {"diff": stored.diff_path, "trace": stored.trace_path, "workspace": stored.workspace_path}
    for name, path in places.items():
        if path is not None:
            yield f"{name} {one_line(path)}"


def _section(title: str, lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    """A title and its indented lines, or nothing if there are no lines."""
    first = True
    for line in lines:
        if first and title:
            yield f"  {title}"
        first = False
        yield (f"{TAB}{line}" if title else f"  {line}").rstrip()


def _text(text: str, options: ShowOptions) -> list[str]:
    """The lines of a text, or its beginning followed by how much is left out."""
    if options.full:
        return safe(text).split("\n")
    text_shown = "\n".join(text[:LONGEST].split("\n")[:LINES])
    lines = safe(text_shown).split("\n")
    left = len(text) - len(text_shown)
    return [*lines, f"… and {plural(left, 'more character')}; use --full to show all"] if left else lines


def _transcript(messages: Sequence[Message], options: ShowOptions) -> Iterator[str]:
    """The input: the text of a single user message, otherwise each message below its role."""
    if len(messages) == 1 and messages[0].role == "user":
        yield from _text(messages[0].text, options)
        return
    for message in messages:
        name = f" ({one_line(message.name, NAME)})" if message.name else ""
        yield f"{message.role}{name}:"
        if message.text:
            yield from (f"  {line}" for line in _text(message.text, options))
        for call in message.tool_calls:
            yield f"  calls {one_line(call.name, NAME)}({one_line(_json(call.arguments), 2 * NAME)})"


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _score(score: Score, options: ShowOptions) -> Iterator[str]:
    """The verdict and name of an assertion, then its checks, reason and details."""
    grade, entry = score.grade, score.entry
    state = "errored" if grade.error is not None else "passed" if grade.passed else "failed"
    place = f"  {one_line(shown_from(entry.span.file, options.here))}:{entry.span.line}" if entry.span else ""
    verdict = paint(state, STYLES[state], color=options.color)
    yield f"{verdict} {one_line(entry.name, NAME)}{_score_note(score)}{paint(place, 'dim', color=options.color)}"
    if grade.error is not None:
        lines = _text(f"{grade.error.code}: {grade.error.message}", options)
        yield from (f"  {line}" for line in lines)
    for check in grade.checks:
        # a single check may only repeat its assertion's name: `contains: 'x'` and `contains 'x'`
        if len(grade.checks) > 1 or check.text not in (entry.name, entry.name.replace(": ", " ", 1)):
            mark = (
                paint("+", "passed", color=options.color) if check.passed else paint("-", "failed", color=options.color)
            )
            first, *rest = _text(check.text, options)
            yield f"  {mark} {first}"
            yield from (f"    {line}" for line in rest)
        if check.evidence:
            yield from _labelled("evidence: ", check.evidence, options)
    if grade.reason and grade.error is None:
        yield from _labelled("reason: ", grade.reason, options)
    if grade.details and options.full:
        yield from _labelled("details: ", _json(grade.details), options)


def _labelled(word: str, text: str, options: ShowOptions) -> Iterator[str]:
    first, *rest = _text(text, options)
    yield f"    {word}{first}"
    yield from (f"    {' ' * len(word)}{line}" for line in rest)


def _score_note(score: Score) -> str:
    """The score unless it is 0 or 1 like the verdict, and `required` and `weight` unless they have their defaults."""
    grade, settings = score.grade, score.entry.settings
    needs = needed(grade)
    plain = grade.error is not None or grade.score == (1.0 if grade.passed else 0.0)
    parts = [] if plain else [f"score {grade.score:.2f}{f', {needs}' if needs else ''}"]
    if settings.required is not False:
        parts.append("required" if settings.required is True else f"required {settings.required:g}")
    if settings.weight != 1:
        parts.append(f"weight {settings.weight:g}")
    return f" ({', '.join(parts)})" if parts else ""


def _reference(result: TrialResult, options: ShowOptions) -> Iterator[str]:
    """The diff between the reference and the answer, or only the reference if there is no answer."""
    expected = reference_text(result.trial.case.expected_output)
    if not expected:
        return
    if result.output is None:
        yield from _text(expected, options)
        return
    lines = text_diff(expected, result.output)
    if lines is None:
        yield "the answer is the same"
        return
    yield "- reference, + answer"
    shown = lines if options.full else lines[:LINES]
    for line in shown:
        yield paint(line, {"-": "failed", "+": "passed", "@": "dim"}.get(line[:1]), color=options.color)
    if len(lines) > len(shown):
        yield f"… and {plural(len(lines) - len(shown), 'more line')}; use --full to show all"
