"""A run as a Markdown comment on a pull request: totals, failures, and collapsed answers.

Text of models and files is never parsed as Markdown or HTML. It is always formatted as code, in which GitHub and GitLab
do not look for links, images, tags, mentions or issues. Source: CommonMark 0.31, GitHub Flavored Markdown 0.29.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import islice

from agentv.model.run.matrix import Counts, GroupTotals, RunMatrix
from agentv.model.run.summary import Activation, Summary
from agentv.model.values.formatting import duration, money, plural
from agentv.reports.run import activation, trial_view
from agentv.reports.run.failures import FailureGroup
from agentv.reports.run.matrix import COLUMNS, COMPARED, ROWS, compared_heading, grid_of
from agentv.reports.run.paired import details, sentence
from agentv.reports.run.rates import certainty, judged_words, mean_words, of_all_words, rule_words
from agentv.reports.run.totals import corrected_lines, gate_line, outcomes, partial_words, unchecked_words
from agentv.reports.run.trial_view import LONGEST, OUTPUT_KEPT, Finding, Kind, TrialView, check, label, reason, source
from agentv.reports.run.view import FailureWords, RunView
from agentv.reports.text import one_line, percent, safe

_BACKTICKS = re.compile("`+")


def fenced(text: str, language: str = "text") -> str:
    """The text as a fenced code block, with a fence longer than any in the text."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{safe(text)}\n{fence}"


def code(text: str, longest: int) -> str:
    """The text as inline code on one line, cut to `longest` characters."""
    line = one_line(text, longest) or " "
    fence = "`" * (_longest_run(line) + 1)
    room = " " if line[0] in "` " or line[-1] in "` " else ""  # Markdown strips one space at each end
    return f"{fence}{room}{line}{room}{fence}"


def cell(text: str, longest: int) -> str:
    r"""The text as inline code in a table cell, with each `|`, which would end the cell, escaped."""
    return re.sub(r"\\+(?=\|)", lambda found: f"{found[0]} ", code(text, longest)).replace("|", "\\|")


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


LONGEST_COMMENT = 65_000
"""Largest size of a comment in bytes. GitHub allows 65,536 characters; the rest is for text around the comment."""

_TABLE_ENDS = LONGEST_COMMENT // 2
"""Bytes after which no more trials are listed, so that half of the comment is left for answers."""

_CLOSING = 500
"""Bytes reserved for the end of the report, such as the number of omitted trials."""

COMMANDS = 20
"""Rerun commands that are listed."""

GROUPS = 20
"""Suites, targets and prompts that get their own line; `summary.json` has all of them."""

_NAME, _WHY = 80, 200
"""Characters of a name and of a reason in a table."""

_LISTED: tuple[Kind, ...] = ("failed", "errored", "skipped", "shown")

_COMMAND = re.compile(r"^(?P<indent>[^\S\n]*):(?=:)|#(?=#\[)", re.MULTILINE)
"""Workflow commands for a GitHub Actions job that prints the comment: `::` after white space, `##[` anywhere.

Source: `ActionCommand.TryParseV2` and `TryParse` of github.com/actions/runner.
"""


def render_markdown(view: RunView, summary: Summary, *, here: str, results: str) -> str:
    """The comment, at most `LONGEST_COMMENT` bytes of UTF-8; trials that do not fit are counted.

    Args:
        view: view of the run.
        summary: summary of the run.
        here: absolute path of the repository, which paths are relative to.
        results: path of the run's directory, relative to the repository.
    """
    page = _MarkdownPage(LONGEST_COMMENT - _CLOSING)
    page.add(
        f"### agentv: {plural(summary.cases.total, 'case')}: {outcomes(summary.cases)}\n\n{_totals_sentence(summary)}\n"
    )
    if summary.partial is not None:
        page.add(f"\n{code(partial_words(summary.partial), _WHY)}\n")
    page.add("".join(_corrected(summary)))
    page.add("".join(_totals(summary)))
    if summary.activation:
        page.add("".join(piece for one in summary.activation for piece in activation_markdown(one)))
    if summary.matrix is not None:
        page.add("".join(matrix_markdown(summary.matrix)))
    words = FailureWords.of(view)
    _add_failures(page, view, words)
    if shown := view.trials("shown"):
        page.add("\n| case | what happened | check |\n| --- | --- | --- |\n")
        listed = page.fill((_row(trial, words) for trial in shown), _TABLE_ENDS)
        _add_omitted(page, len(shown) - listed + view.omitted("shown"), "more")
    page.add("\n")
    trials = [trial for kind in _LISTED for trial in view.trials(kind)]
    answered = [one for one in (*trials, *view.trials("noted")) if one.findings or one.output is not None]
    sections = page.fill((_details(trial, here, words) for trial in answered), page.room)
    _add_omitted(page, len(answered) - sections, "more with their answers")
    return f"{page.text}\nResults: {code(results, _WHY)}\n"


def _add_failures(page: _MarkdownPage, view: RunView, words: FailureWords) -> None:
    """Add a table of causes, then the commands that rerun their cases."""
    groups = view.failure_groups()
    if not groups:
        return
    page.add("\n| | what happened | cases |\n| --- | --- | --- |\n")
    listed = page.fill((_cause_row(group, words) for group in groups), _TABLE_ENDS)
    _add_omitted(page, len(groups) - listed, "more causes" if len(groups) - listed > 1 else "more cause")
    options = view.rerun
    commands = [found for group in groups if options is not None and (found := options.rerun(group)) is not None]
    lines = [f"{found.command}\n" for found in commands[:COMMANDS]]
    every = options.rerun_all() if options is not None else None
    if every is not None and len(groups) > 1:
        lines.append(f"{every.command}  # all of them\n")
    if lines:
        page.add(
            "\n<details><summary>Run them again</summary>\n\n"
            + fenced("".join(lines).rstrip(), "sh")
            + "\n\n</details>\n"
        )


def _cause_row(group: FailureGroup, words: FailureWords) -> str:
    """A table row for a cause: number of cases, the cause, and their names."""
    why = reason(group.example) if group.trials == 1 else group.cause
    first = next(iter(group.example.findings), None) if group.trials == 1 else None
    found = "" if first is None else f": {cell(check(first), _WHY)}"
    names = [label(group.example, targets=words.targets, suites=words.suites)]
    names += [others] if group.trials > 1 and (others := words.others(group)) else []
    number = f"{plural(group.cases, 'case', ',')}" + (
        f", {group.trials:,} trials" if group.trials > group.cases else ""
    )
    happened = f"{trial_view.STATUS_WORDS[group.status].capitalize()}: {cell(why, _WHY)}{found}"
    return f"| {number} | {happened} | {cell('; '.join(names), _WHY)} |\n"


class _MarkdownPage:
    """Text with a size limit in bytes."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.text = ""
        self._size = 0

    def add(self, piece: str) -> bool:
        """Add a piece of whole lines if it fits, and return whether it did. Workflow commands of GitHub are escaped."""
        piece = _COMMAND.sub(_escaped_command, piece)
        size = len(piece.encode("utf-8", "replace"))
        if self._size + size > self.room:
            return False
        self.text += piece
        self._size += size
        return True

    def fill(self, pieces: Iterable[str], end: int) -> int:
        """Add pieces until one does not fit or the text is longer than `end`, and return how many were added."""
        added = 0
        for piece in pieces:
            if self._size > end or not self.add(piece):
                break
            added += 1
        return added


def _add_omitted(page: _MarkdownPage, number: int, what: str) -> None:
    if number:
        page.add(f"\nand {number:,} {what}, in the results\n")


def _totals_sentence(summary: Summary) -> str:
    spent, cost = summary.spent_usd, "cost unknown" if summary.unpriced else ""
    if spent is not None:
        shown = money(spent).replace("$", r"\$").replace("<", r"\<")
        cost = f"cost {'at least ' if summary.unpriced else ''}{shown}"
    took = duration(summary.duration_ms) if summary.duration_ms else ""  # a killed run has no duration
    ended = ", ".join(one for one in (cost, took) if one)
    if summary.pass_rate is None:
        return f"Nothing was graded{'; ' * bool(ended)}{ended}."
    sure = certainty(summary, lambda key: code(key, _NAME))
    rate = f"**Pass rate {percent(summary.pass_rate)}** {judged_words(summary)} ({sure})"
    numbers = ", ".join(one for one in (rate, mean_words(summary)) if one)
    more = (f" {one[0].upper()}{one[1:]}." for one in (of_all_words(summary), rule_words(summary)) if one)
    return f"{numbers}{'; ' * bool(ended)}{ended}.{''.join(more)}"


def _corrected(summary: Summary) -> Iterator[str]:
    """Rates corrected by labels, results of gates, and a note on unchecked judges; names are formatted as code."""
    if summary.corrected is not None:
        lines = list(corrected_lines(summary.corrected))
        if summary.corrected.run is not None:
            yield f"\n{lines[0][0].upper()}{lines[0][1:]}.\n"
        else:
            yield from (f"\n{code(line.strip(), _WHY)}\n" for line in lines)
    yield from (f"\n{code(gate_line(gate), 2 * _WHY)}\n" for gate in summary.gates)
    unchecked = unchecked_words(summary.corrected)
    if unchecked and not summary.gates:
        yield f"\n{code(unchecked, _WHY)}\n"


def _totals(summary: Summary) -> Iterator[str]:
    """A table of suites, targets, prompts and variants, or nothing if there is only one of each."""
    groups = [*_groups("suite", summary.by_suite)]
    if summary.matrix is None:
        groups += _groups("target", summary.by_target)
        groups += [*_groups("prompt", summary.by_prompt), *_groups("variant", summary.by_variant)]
    if not groups:
        return
    yield "\n| | cases | passed | failed | errored | not run | pass rate | 95% CI | mean score |\n"
    yield "| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n"
    yield _group("all", GroupTotals(summary.cases, summary.pass_rate, summary.mean_score, summary.pass_rate_interval))
    yield from groups


def _groups(what: str, groups: Mapping[str, GroupTotals]) -> Iterator[str]:
    if len(groups) < 2:
        return
    for name, group in islice(groups.items(), GROUPS):
        yield _group(f"{what} {cell(name, _NAME)}", group)
    if len(groups) > GROUPS:
        yield f"| and {plural(len(groups) - GROUPS, f'more {what}')} | | | | | | | | |\n"


def _group(name: str, group: GroupTotals) -> str:
    cases: Counts = group.cases
    interval = " to ".join(map(percent, group.pass_rate_interval or ()))
    rate = "" if group.pass_rate is None else percent(group.pass_rate)
    mean = "" if group.mean_score is None else f"{group.mean_score:.2f}"
    numbers = (cases.total, cases.passed, cases.failed, cases.errored, cases.skipped)
    return f"| {' | '.join([name, *map(str, numbers), rate, interval, mean])} |\n"


def _row(trial: TrialView, words: FailureWords) -> str:
    first = next(iter(trial.findings), None)
    found = "" if first is None else cell(check(first), _WHY)
    more = len(trial.findings) - 1
    checks = f"{found} and {more} more" if more > 0 else found
    happened = f"{trial_view.STATUS_WORDS[trial.kind].capitalize()}: {cell(reason(trial), _WHY)}"
    name = label(trial, targets=words.targets, suites=words.suites)
    return f"| {cell(name, _NAME)} | {happened} | {checks} |\n"


def _details(trial: TrialView, here: str, words: FailureWords) -> str:
    """A collapsed trial: its checks, then its answer. Empty lines end the HTML, so that Markdown is parsed again."""
    name, why = label(trial, targets=words.targets, suites=words.suites), reason(trial)
    summary = f"<code>{escape(one_line(name, LONGEST))}</code>: <code>{escape(one_line(why, LONGEST))}</code>"
    parts = [f"<details><summary>{trial_view.STATUS_WORDS[trial.kind].capitalize()}: {summary}</summary>"]
    if trial.findings:
        parts.append("\n".join(_finding(finding, here) for finding in trial.findings))
    if trial.output is not None:
        cut = " (its beginning)" if len(trial.output) >= OUTPUT_KEPT else ""
        parts.append(f"Answer{cut}:\n\n{fenced(trial.output)}")
    return "\n\n".join([*parts, "</details>\n"])


def _finding(finding: Finding, here: str) -> str:
    place = source(finding, here)
    evidence = f": {code(finding.evidence, LONGEST)}" if finding.evidence else ""
    at = f" at {code(place, LONGEST)}" if place else ""
    return f"- {finding.state}: {code(check(finding), LONGEST)}{evidence}{at}"


def _escaped_command(found: re.Match[str]) -> str:
    r"""A workflow command with its first character escaped: `\x3a:error`."""
    indent = found["indent"]
    return r"\x23" if indent is None else rf"{indent}\x3a"


_LONGEST_SENTENCE = 500
"""Characters of a sentence about a comparison."""


def matrix_markdown(matrix: RunMatrix) -> Iterator[str]:
    """The matrix as Markdown lines, with names formatted as code."""
    grid = grid_of(matrix)
    columns = [" as ".join(_named(name) for name in names) for names in grid.columns[:COLUMNS]]
    yield f"\n| | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}\n"
    prompts = [row for row in grid.rows if row.is_prompt]
    for row in (*prompts[:ROWS], *(row for row in grid.rows if not row.is_prompt)):
        name = _named(row.name) if row.is_prompt else row.name or ""
        yield f"| {name} | {' | '.join(map(_plain, row.cells[:COLUMNS]))} |\n"
    for number, most, what in ((len(prompts), ROWS, "prompt"), (len(grid.columns), COLUMNS, "column")):
        if number > most:
            yield f"\nand {plural(number - most, f'more {what}')}, in `summary.json`\n"
    heading, found = compared_heading(matrix), matrix.comparisons or ()
    yield f"\n{heading[0].upper()}{heading[1:]}\n\n"
    for one in found[:COMPARED]:
        shown = ("-", sentence(one)), ("  -", details(one))
        yield from (f"{sign} {code(text, _LONGEST_SENTENCE)}\n" for sign, text in shown if text)
    if len(found) > COMPARED:
        yield f"- and {len(found) - COMPARED} more, in `summary.json`\n"


def activation_markdown(found: Activation) -> Iterator[str]:
    """A sentence, the measures of each skill, and the confusion matrix, as Markdown lines."""
    yield f"\n{code(activation.sentence(found), _LONGEST_SENTENCE)}\n"
    yield "\n| skill | precision | recall | F1 |\n| --- | --- | --- | --- |\n"
    for skill in found.skills:
        words = (one.partition(" ")[2] for one in activation.measure_words(skill))
        yield f"| {cell(skill.skill, _NAME)} | {' | '.join(words)} |\n"
    header, *rows = activation.matrix(found)
    yield f"\n| should load | {' | '.join(cell(one, _NAME) for one in header[1:])} |\n| --- |{' --: |' * len(rows)}\n"
    yield from (f"| {cell(row[0], _NAME)} | {' | '.join(row[1:])} |\n" for row in rows)


def _named(name: str | None) -> str:
    return "no prompt" if name is None else cell(name, _NAME)


def _plain(text: str) -> str:
    return text.replace("$", r"\$").replace("<", r"\<")
