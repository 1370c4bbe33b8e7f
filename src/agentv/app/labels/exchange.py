"""Answers to label as a file, and the labels that come back: CSV or JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentv.app.labels.answers import graded_answers
from agentv.app.labels.labelling import LabellingSession, label_of, latest, now
from agentv.app.results.place import RESULTS, place_holding
from agentv.app.results.stored import open_run
from agentv.errors import StoreError, UsageError
from agentv.lazy_dataclass import dataclass
from agentv.model.run.labels import LABEL_VERDICTS, DrawnAnswer, GradedAnswer, Label, LabelKey
from agentv.reports.export.csv_rows import guarded
from agentv.store.labels.label_files import append_labels, labels_file, read_labels
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
    "note",
    "person",
    "output_sha256",
    "rubric_sha256",
    "prompt_sha256",
    "probability",
    "drawn_from",
)
_NEEDED = ("case", "assertion", "label", "output_sha256", "rubric_sha256")
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ImportedLabels:
    """How many labels of a file were new, were known before, and were left empty."""

    added: int
    known: int
    empty: int


def export_answers(session: LabellingSession, path: Path) -> None:
    """Write the drawn answers, without the judge's verdicts, and with the labels that the person gave before.

    Raises:
        UsageError: the file is neither .csv nor .jsonl.
        StoreError: it cannot be written.
    """
    form = _form(path)
    rows = [_row(one, session.given.get(one.answer.item)) for one in session.drawn]
    text = io.StringIO()
    if form == ".jsonl":
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        writer.writerows([guarded(row[name]) for name in COLUMNS] for row in rows)
    try:
        path.write_text(text.getvalue(), encoding="utf-8", errors="replace", newline="")
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
    answers = {(one.assertion, one.key, one.asked.prompt_sha256): one for one in graded_answers(run)}
    root = place_holding(RESULTS)
    found: list[Label] = []
    problems: list[str] = []
    empty = 0
    for number, row in _rows(path):
        verdict = (row.get("label") or "").strip().lower()
        if not verdict:
            empty += 1
            continue
        label = _imported(row, answers, run.run_id, (row.get("person") or "").strip() or person)
        if isinstance(label, Label):
            found.append(label)
        else:
            problems.append(f"{path}:{number}: {label}")
    if problems:
        more = [f"and {len(problems) - _SHOWN} more lines"] if len(problems) > _SHOWN else []
        raise UsageError("\n".join([*problems[:_SHOWN], *more]), "no label was added; correct the lines and try again")
    files = {labels_file(root, one.suite) for one in found}
    before = latest(read_labels(sorted(files)))
    new = [one for one in found if _is_new(one, before.get((one.item, one.person)))]
    for file in sorted(files):
        append_labels(file, [one for one in new if labels_file(root, one.suite) == file])
    return ImportedLabels(len(new), len(found) - len(new), empty)


def _is_new(label: Label, before: Label | None) -> bool:
    return before is None or (label.verdict, label.note) != (before.verdict, before.note)


def _row(drawn: DrawnAnswer, label: Label | None) -> dict[str, str | float]:
    answer = drawn.answer
    return {
        "case": answer.case,
        "assertion": answer.assertion,
        "input": answer.input,
        "retrieved": "\n\n".join(answer.retrieved),
        "reference": answer.reference,
        "output": answer.output,
        "criteria": answer.asked.rubric,
        "label": label.verdict if label else "",
        "note": label.note if label else "",
        "person": "",
        "output_sha256": answer.output_sha256,
        "rubric_sha256": answer.asked.rubric_sha256,
        "prompt_sha256": answer.asked.prompt_sha256,
        "probability": drawn.probability,
        "drawn_from": drawn.drawn_from,
    }


def _imported(
    row: Mapping[str, str], answers: Mapping[tuple[str, LabelKey, str], GradedAnswer], run_id: str, person: str
) -> Label | str:
    """The label of a line, or what is wrong with it."""
    verdict = next((one for one in LABEL_VERDICTS if one == row["label"].strip().lower()), None)
    if verdict is None:
        return f"unknown label {row['label']!r}; write pass, fail or unsure"
    case = row.get("case", "").removeprefix("'")
    hashes = (row.get("output_sha256", "").strip(), row.get("rubric_sha256", "").strip())
    wanted = row.get("prompt_sha256", "").strip()
    matching = [
        one
        for (_, key, prompt), one in answers.items()
        if key[1:] == hashes and key[0].removeprefix("'") == case and wanted in ("", prompt)
    ]
    if not matching:
        return f"the run {run_id} has no answer of case {case!r} with these hashes; it is of another run or rubric"
    probability, drawn_from = _drawn(row)
    if isinstance(probability, str):
        return probability
    drawn = DrawnAnswer(matching[0], probability or 1.0, drawn_from or 1)
    label = label_of(drawn, run_id, person, verdict, row.get("note") or "", now())
    return replace(label, probability=probability, drawn_from=drawn_from)


def _drawn(row: Mapping[str, str]) -> tuple[float | str | None, int | None]:
    """The probability of being drawn and of how many, or what is wrong with them."""
    written = (row.get("probability") or "").strip()
    if not written:
        return None, None
    try:
        probability, drawn_from = float(written), int(float(row.get("drawn_from") or 0))
    except ValueError:
        return f"the probability {written!r} or what it was drawn from is no number", None
    if not 0 < probability <= 1:
        return f"the probability {written} is not above 0 and at most 1", None
    return probability, drawn_from if drawn_from > 0 else None


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a file, each with its number from 1."""
    form = _form(path)
    try:
        text = path.read_text(encoding="utf-8-sig", errors="strict")
    except UnicodeDecodeError as error:
        raise StoreError(f"cannot read {path}: it is not UTF-8; save it as CSV in UTF-8") from error
    except OSError as error:
        raise store_error("read", path, error) from error
    if form == ".jsonl":
        yield from _json_rows(path, text)
        return
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    csv.field_size_limit(1 << 28)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    _check_columns(path, reader.fieldnames or ())
    try:
        for row in reader:
            yield reader.line_num, {name: cell or "" for name, cell in row.items() if isinstance(name, str)}
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not CSV: {error}") from error


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise UsageError(f"{path}:{number}: expected an object")
        if number == 1:
            _check_columns(path, list(row))
        yield number, {str(name): "" if cell is None else str(cell) for name, cell in row.items()}


def _check_columns(path: Path, names: Sequence[str]) -> None:
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        hint = "export again with 'agentv label RUN --export FILE', and keep its columns"
        raise UsageError(f"{path}: no column {', '.join(missing)}", hint)


def _form(path: Path) -> str:
    form = path.suffix.lower()
    if form not in (".csv", ".jsonl"):
        raise UsageError(f"cannot tell the format of {path}", "name it .csv or .jsonl")
    return form
