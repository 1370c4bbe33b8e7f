"""Screens of `agentv label`: one answer each, and the key that labels it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import click

from agentv.app.labels.labelling import LabellingSession
from agentv.lazy_dataclass import dataclass
from agentv.model.run.labels import DrawnAnswer, Label, LabelVerdict
from agentv.reports.text.escaping import one_line, safe

VERDICTS: dict[str, LabelVerdict] = {"p": "pass", "f": "fail", "u": "unsure"}
KEYS = "p pass · f fail · u unsure · n note · b back · q quit"


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where answers are shown and keys are read; tests give another one."""

    show: Callable[[str], None] = click.echo
    clear: Callable[[], None] = click.clear
    key: Callable[[], str] = click.getchar
    line: Callable[[str], str] = field(default=lambda text: str(click.prompt(text, default="", show_default=False)))


def label_all(session: LabellingSession, terminal: Terminal | None = None) -> None:
    """Show the answers that have no label yet, until all have one or the person quits."""
    terminal = terminal or Terminal()
    order = [one for one in session.drawn if one.answer.item not in session.given]
    place, last = 0, ""
    notes: dict[int, str] = {}
    while place < len(order):
        drawn = order[place]
        terminal.clear()
        earlier = session.given.get(drawn.answer.item)
        note = notes.get(place, earlier.note if earlier else "")
        terminal.show(screen(drawn, (place + 1, len(order)), last, note))
        key = _key(terminal)
        if key == "q":
            return
        if key == "b":
            place = max(0, place - 1)
            last = ""
        elif key == "n":
            notes[place] = terminal.line("note").strip()
        else:
            last = saved(session.label(drawn, VERDICTS[key], note))
            place += 1
    if last:
        terminal.show(last)


def _key(terminal: Terminal) -> str:
    """One of the keys; end of input quits."""
    while True:
        try:
            key = terminal.key().lower()
        except EOFError:
            return "q"
        if key in ("\x03", ""):
            raise KeyboardInterrupt
        if key in ("\x04", "q"):
            return "q"
        if key in VERDICTS or key in ("b", "n"):
            return key
        terminal.show(f"no such key: {one_line(key)}; {KEYS}")


def screen(drawn: DrawnAnswer, place: tuple[int, int], last: str, note: str) -> str:
    """An answer and what it is judged by. Nothing of it shows what the judge said."""
    answer = drawn.answer
    parts = [last, f"{place[0]} of {place[1]} · {one_line(answer.case)} · {one_line(answer.assertion)}"]
    texts = [("input", answer.input), *(("retrieved", text) for text in answer.retrieved)]
    texts += [("reference", answer.reference), ("answer", answer.output), ("criteria", answer.asked.rubric)]
    parts += [f"{name.upper()}\n{_indented(text)}" for name, text in texts if text]
    parts.append(f"note: {one_line(note)}" if note else "")
    parts.append(f"Does the answer meet the criteria?\n{KEYS}")
    return "\n\n".join(part for part in parts if part)


def saved(label: Label) -> str:
    """What was saved. What the judge said stays hidden, since the person may still go back."""
    return f"saved {one_line(label.case)}: {label.verdict}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in safe(text).split("\n"))
