"""Output of `agentv prompt list`, `show`, `diff` and `promote`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from textwrap import wrap

from agentv.model.suite.exam import DESCRIPTION
from agentv.model.suite.library import ListedPrompt, Promotion, PromptDiff, ShownPrompt, TextDifference, display_name
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json
from agentv.reports.run.exam_attempts import (
    exam_row_json,
    exam_rows_heading,
    gate_json,
    gate_lines,
    reason_lines,
    result,
    when,
)
from agentv.reports.text import GAP, Cell, aligned, cells, listed, one_line, paint, safe, shown_from

SHOWN_ROWS = 10
"""Latest exam attempts that are shown."""

NAMED = 3
"""Changed texts that the list names; `diff` shows all of them."""

_HEADINGS = ("ID", "STATUS", "LAST EXAM", "WHEN (UTC)", "CHANGED")


def render_list(prompts: Sequence[ListedPrompt], *, width: int, color: bool = False) -> str:
    """A table of prompts, with totals below.

    Args:
        prompts: prompts in the order of the rows.
        width: width of the terminal; only the last column is cut to fit.
        color: use ANSI colors.
    """
    if not prompts:
        return "no prompt"
    headings: list[Cell] = [(name, "bold") for name in _HEADINGS]
    rows = [headings, *map(_row, prompts)]
    if not any(row[-1][0] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    lines = aligned(rows, width, color=color)
    return "\n".join([*lines, "", totals(prompts)])


def _row(prompt: ListedPrompt) -> list[Cell]:
    last = prompt.last
    return [
        (one_line(prompt.id), None),
        (status_of(prompt), _style(prompt)),
        (result(last), None if last is None or last.all_passed else "wrong"),
        (when(last), "dim"),
        changed(prompt),
    ]


def status_of(prompt: ListedPrompt) -> str:
    """`ready`, `ready (edited)`."""
    return f"{prompt.status} (edited)" if prompt.edited else prompt.status


def _style(prompt: ListedPrompt) -> str | None:
    if prompt.edited:
        return "edited"
    return prompt.status if prompt.status != "draft" else None


def changed(prompt: ListedPrompt) -> Cell:
    """What changed since the last exam."""
    if prompt.wrong:
        return ("partly unreadable: see doctor", "wrong")
    if prompt.last is not None and not prompt.compared:
        return ("unknown", "dim")
    return (listed([display_name(change.path) for change in prompt.changes], NAMED), None)


def totals(prompts: Sequence[ListedPrompt]) -> str:
    """`12 prompts: 7 ready (1 edited), 3 tested, 2 draft`."""
    parts = []
    for status in ("ready", "tested", "draft"):
        own = [one for one in prompts if one.status == status]
        edited = sum(one.edited for one in own)
        if own:
            parts.append(f"{len(own)} {status}" + (f" ({edited} edited)" if edited else ""))
    return f"{plural(len(prompts), 'prompt')}: {', '.join(parts)}"


def listed_data(prompt: ListedPrompt, here: str) -> dict[str, Json]:
    """An entry of the list as a JSON object."""
    return {
        "id": prompt.id,
        "path": shown_from(prompt.directory, here),
        "status": prompt.status,
        "edited": prompt.edited,
        "last": exam_row_json(prompt.last),
        "changes": [{"path": display_name(one.path), "kind": one.kind} for one in prompt.changes]
        if prompt.compared
        else None,
        "unreadable": prompt.wrong,
    }


def render_prompt(shown: ShownPrompt, *, here: str, width: int = 80, color: bool = False) -> str:
    """The details of a prompt, in paragraphs.

    Args:
        shown: the prompt.
        here: absolute path of the directory that paths are relative to.
        width: width of the terminal.
        color: use ANSI colors.
    """
    listed = shown.listed
    head = f"{paint(one_line(listed.id), 'bold', color=color)}: "
    head += paint(status_of(listed), _style(listed), color=color)
    description = ["(no description)"]
    if shown.description is not None:
        description = wrap(one_line(shown.description), max(width, 20)) or [""]
    parts = [[head], description, list(_facts(shown, here, width)), list(_exam_rows(shown, color=color))]
    end = list(gate_lines(listed.id, shown.gate))
    if shown.findings:
        number = plural(shown.findings, "thing")
        end.append(f"doctor finds {number} to fix: agentv prompt doctor {one_line(listed.id)}")
    return "\n\n".join("\n".join(part) for part in (*parts, end) if part)


def _facts(shown: ShownPrompt, here: str, width: int) -> Iterator[str]:
    queries = ""
    if shown.queries:
        should = sum(shown.queries.values())
        queries = f"{should} that should trigger it, {len(shown.queries) - should} that should not"
    rest = {key: text for key, text in shown.others.items() if isinstance(text, str | int | float)}
    facts: dict[str, str] = {
        "owner": shown.owner or "",
        "tags": ", ".join(shown.tags),
        **{key: str(text) for key, text in rest.items()},
        "place": shown_from(shown.listed.directory, here),
        "rests on": ", ".join(map(display_name, shown.texts)),
        "cases": ", ".join(shown.cases),
        "queries": queries,
        "changed": ", ".join(f"{display_name(one.path)} ({one.kind})" for one in shown.listed.changes),
    }
    names = {name: one_line(name, 20) for name, text in facts.items() if text}
    column = max(map(cells, names.values()))
    for name, label in names.items():
        lines = wrap(one_line(facts[name]), max(width - column - 2, 20), break_on_hyphens=False) or [""]
        yield f"{label}{' ' * (column - cells(label))}{GAP}{lines[0]}"
        yield from (f"{' ' * column}{GAP}{line}" for line in lines[1:])


def _exam_rows(shown: ShownPrompt, *, color: bool) -> Iterator[str]:
    if not shown.exam_rows:
        yield f"never examined: agentv prompt eval {one_line(shown.listed.id)}"
        return
    last = shown.exam_rows[-SHOWN_ROWS:]
    yield f"{exam_rows_heading(len(shown.exam_rows), len(last))}:"
    wide = max(len(result(one)) for one in last)
    for one in reversed(last):
        style = None if one.all_passed else "wrong"
        padded = paint(result(one), style, color=color) + " " * (wide - len(result(one)))
        judge = f", judged by {one_line(one.judge)}" if one.judge else ""
        of = f"{one_line(one.model)}{judge}" if one.model else judge.removeprefix(", ")
        yield f"  {when(one)}  {padded}  {of}".rstrip()
        if one.failed_cases:
            yield f"    not passed: {one_line(', '.join(one.failed_cases), 300)}"


def prompt_data(shown: ShownPrompt, here: str) -> dict[str, Json]:
    """The details of a prompt as a JSON object."""
    return {
        **listed_data(shown.listed, here),
        "description": shown.description,
        "owner": shown.owner,
        "tags": list(shown.tags),
        "others": dict(shown.others),
        "files": dict(shown.texts),
        "cases": list(shown.cases),
        "queries": [{"query": query, "should_trigger": should} for query, should in shown.queries.items()],
        "sittings": [exam_row_json(one) for one in shown.exam_rows],
        "findings": shown.findings,
        "promotion": gate_json(shown.gate),
    }


def promotion_lines(done: Promotion, *, here: str) -> Iterator[str]:
    """The new status of a prompt, or every reason why it cannot be promoted, and the evidence if requested."""
    name = one_line(done.prompt)
    if done.gate.to is None:
        yield f"{name} is {done.before} already"
    elif done.refused:
        yield f"{name} stays {done.before}: it cannot become {done.gate.to}"
        yield from reason_lines(done.gate)
    elif done.written:
        place = f", written to {one_line(shown_from(done.path, here))}" if done.path else ""
        yield f"{name}: {done.before} → {done.gate.to}{place}"
    else:
        yield f"{name}: {done.before} → {done.gate.to} would be written; nothing was (--dry-run)"
    if done.evidence is not None:
        # each text that the evidence covers, with its digests in the latest exam and now
        exam = "no exam on record" if done.evidence.ts is None else f"exam of {done.evidence.ts}"
        yield f"  evidence: {exam} | now"
        for path in sorted(done.evidence.recorded.keys() | done.evidence.now.keys()):
            before, now = done.evidence.recorded.get(path), done.evidence.now.get(path)
            digests = (one[:12] if one else "-" for one in (before, now))
            yield f"    {' | '.join(f'{one:<12}' for one in digests)}  {one_line(display_name(path))}"


def promotions_data(done: Iterable[Promotion], *, here: str) -> list[Json]:
    """A JSON object for each promotion."""
    return [
        {
            "prompt": one.prompt,
            "path": shown_from(one.path, here) if one.path else None,
            "before": one.before,
            "written": one.written,
            **gate_json(one.gate),
            **({"recorded": one.evidence.recorded, "now": one.evidence.now} if one.evidence is not None else {}),
        }
        for one in done
    ]


_STYLES = (("---", "bold"), ("+++", "bold"), ("@@", "tested"), ("+", "passed"), ("-", "failed"))
_NO_LINE_END = "\\ No newline at end of file"


def render_differences(found: PromptDiff, *, color: bool = False) -> str:
    """Unified diffs of all changed texts; empty if nothing changed."""
    lines = []
    for one in found.differences:
        for line in _lines(one, found):
            style = next((style for start, style in _STYLES if line.startswith(start)), None)
            lines.append(paint(line, style, color=color))
    return "\n".join(lines)


def compared_with(found: PromptDiff) -> str:
    """Label of the recorded exam: `the exam of 2026-11-22 08:35 (3/5)`."""
    return f"the exam of {when(found.exam_row)} ({result(found.exam_row)})"


def _lines(one: TextDifference, found: PromptDiff) -> Iterator[str]:
    """The diff of one text, or a line that says why it cannot be shown."""
    name = one_line(display_name(one.path))
    before = f"{name} ({when(found.exam_row)})" if one.kind != "added" else "/dev/null"
    after = name if one.kind != "removed" else "/dev/null"
    if one.lost:
        yield f"--- {before}"
        yield f"+++ {after}"
        yield f"@@ {one.kind}; the examined text is not stored here @@"
        return
    end = b"\n" if one.path == DESCRIPTION else b""  # a YAML value, which has no final newline that could be missing
    texts = (_text((one.before or b"") + end), _text((one.after or b"") + end))
    if texts[0] is None or texts[1] is None:
        yield f"--- {before}"
        yield f"+++ {after}"
        yield f"@@ {one.kind}; not text @@"
        return
    for line in unified_diff(_split(texts[0]), _split(texts[1]), before, after, lineterm=""):
        text, _, rest = line.partition("\n")
        yield safe(text)
        if rest:
            yield rest


def _text(data: bytes) -> str | None:
    """The bytes as text, or None for binary content."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _split(text: str) -> list[str]:
    """The lines of a text. A missing final newline is marked, so that adding one shows as a change."""
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n{_NO_LINE_END}"]


def differences_data(found: PromptDiff) -> dict[str, Json]:
    """The exam attempt and the changed texts, each with both versions, as a JSON object."""
    return {
        "prompt": found.prompt,
        "sitting": exam_row_json(found.exam_row),
        "differences": [
            {
                "path": display_name(one.path),
                "kind": one.kind,
                "before": _text(one.before) if one.before is not None else None,
                "after": _text(one.after) if one.after is not None else None,
                "kept": not one.lost,
            }
            for one in found.differences
        ],
    }
