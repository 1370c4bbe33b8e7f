"""Answers to label as a file, and the labels that come back: CSV or JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.stored import open_run
from agentv.errors import UsageError
from agentv.extensions.labels.answers import graded_answers
from agentv.extensions.labels.graded_answers import DrawnAnswer
from agentv.extensions.labels.imported_lines import ImportedLines, written_draw
from agentv.extensions.labels.keeping import LabelFiles
from agentv.extensions.labels.label_rows import checked_form, label_rows
from agentv.extensions.labels.labelling import Draw, LabellingSession, latest
from agentv.model.run.labelled.labels import Label, LabelItem
from agentv.model.values.json_lines import without_breaks
from agentv.reports.export.csv_rows import guarded
from agentv.user_code.os_errors import store_error

COLUMNS = (
    "case",
    "assertion",
    "input",
    "retrieved",
    "reference",
    "output",
    "criteria",
    "label",
    "score",
    "note",
    "person",
    "output_sha256",
    "rubric_sha256",
    "prompt_sha256",
    "draw",
)
"""The columns of an export. None tells the verdict of the judge, as the number of answers with that verdict would."""

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ImportedLabels:
    """What was imported.

    Attributes:
        added: new labels.
        known: labels that were there before.
        empty: lines without a label.
        not_drawn: of the new ones those of answers that were not drawn at random.
    """

    added: int
    known: int
    empty: int
    not_drawn: int = 0


def export_answers(session: LabellingSession, path: Path) -> None:
    """Write the drawn answers, without the judge's verdicts, and with the labels that the person gave before.

    Raises:
        UsageError: the file is neither .csv nor .jsonl, or it exists: it may hold labels that were not imported.
        StoreError: it cannot be written.
    """
    form = checked_form(path)
    rows = [_row(one, session.given.get(one.answer.item), session.draw) for one in session.distinct]
    text = io.StringIO()
    if form == ".jsonl":
        text.writelines(without_breaks(json.dumps(row, ensure_ascii=False).encode()).decode() + "\n" for row in rows)
    else:
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        writer.writerows([guarded(row[name]) for name in COLUMNS] for row in rows)
    try:
        with path.open("x", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text.getvalue())
    except FileExistsError as error:
        raise UsageError(f"{path} exists and may hold labels", "import it first, or choose another name") from error
    except OSError as error:
        raise store_error("write", path, error) from error


def import_labels(named: str, path: Path, person: str) -> ImportedLabels:
    """Add the labels of a file to those of a run. If one is wrong, none is added.

    Args:
        named: the run.
        path: of a file that was exported from it.
        person: who labels where a line does not say.

    Raises:
        UsageError: lines are wrong: the text names each of them.
        StoreError: a file cannot be read or written.
    """
    run = open_run(named, action="label")
    lines = ImportedLines(run.run_id, graded_answers(run))
    kept = LabelFiles(place_holding(RESULTS))
    found: dict[tuple[LabelItem, str], Label] = {}
    problems: list[str] = []
    empty = lines_with_label = 0
    for number, row in label_rows(path):
        if not row.get("label", "").strip() and not row.get("score", "").strip():
            empty += 1
            continue
        labels = lines.labels(row, row.get("person", "").strip() or person)
        if isinstance(labels, str):
            problems.append(f"{path}:{number}: {labels}")
            continue
        lines_with_label += 1
        if any(_is_new(one, found.get((one.item, one.person_key), one)) for one in labels):
            problems.append(f"{path}:{number}: {labels[0].person} says something else of this answer above")
        found.update({(one.item, one.person_key): one for one in labels})
    if problems:
        more = [f"and {len(problems) - _SHOWN} more lines"] if len(problems) > _SHOWN else []
        raise UsageError("\n".join([*problems[:_SHOWN], *more]), "no label was added; correct the lines and try again")
    before = latest(kept.read({one.suite for one in found.values()}))
    new = [one for which, one in found.items() if _is_new(one, before.get(which))]
    kept.add(new)
    added = {(one.item[:-1], one.person_key): one for one in new}  # an answer with both verdicts is labelled once
    not_drawn = sum(one.probability is None for one in added.values())
    return ImportedLabels(len(added), lines_with_label - len(added), empty, not_drawn)


def _is_new(label: Label, before: Label | None) -> bool:
    return before is None or (label.verdict, label.note, label.score) != (before.verdict, before.note, before.score)


def _row(drawn: DrawnAnswer, label: Label | None, how: Draw | None) -> dict[str, str | float]:
    answer = drawn.answer
    points = None if label is None or label.score is None or answer.scale is None else answer.scale.points(label.score)
    return {
        "case": answer.case,
        "assertion": answer.assertion,
        "input": answer.input,
        "retrieved": "\n\n".join(answer.retrieved),
        "reference": answer.reference,
        "output": answer.output,
        "criteria": answer.asked.rubric,
        "label": label.verdict if label else "",
        "score": "" if points is None else points,
        "note": label.note if label else "",
        "person": "",
        "output_sha256": answer.output_sha256,
        "rubric_sha256": answer.asked.rubric_sha256,
        "prompt_sha256": answer.asked.prompt_sha256,
        "draw": "" if how is None else written_draw(how),
    }
