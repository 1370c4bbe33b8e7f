"""Lines of a table of labels, and the answers of a run that they are of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agentv.extensions.labels.answers import draw
from agentv.extensions.labels.graded_answers import DrawnAnswer, GradedAnswer, PointScale
from agentv.extensions.labels.labelling import Draw, Said, label_of, now
from agentv.model.run.labelled.labels import LABEL_VERDICTS, Label, LabelKey
from agentv.reports.export.csv_rows import unguarded
from agentv.reports.text.escaping import one_line


def written_draw(how: Draw) -> str:
    """The column `draw` of an export."""
    return f"sample {how.sample} seed {how.seed}" + (" of one assertion" if how.one_assertion else "")


_DRAW = re.compile(r"sample (\d{1,9}) seed (-?\d{1,18})( of one assertion)?")


class ImportedLines:
    """Lines of an import, and the answers of the run that they are of."""

    def __init__(self, run_id: str, answers: Sequence[GradedAnswer]) -> None:
        self._run_id = run_id
        self._answers = answers
        self._by_key: dict[LabelKey, list[GradedAnswer]] = {}
        for one in answers:
            key = (_plain(one.case), one.output_sha256, one.asked.rubric_sha256)
            self._by_key.setdefault(key, []).append(one)
        self._draws: dict[tuple[Draw, str | None], dict[GradedAnswer, DrawnAnswer]] = {}

    def labels(self, row: Mapping[str, str], person: str) -> list[Label] | str:
        """The labels of a line, one for each verdict of the judge on its answer, or what is wrong with it."""
        case = _plain(row.get("case", ""))
        hashes = (row.get("output_sha256", "").strip(), row.get("rubric_sha256", "").strip())
        if not all(hashes):
            return "the line has no output_sha256 or no rubric_sha256: it was cut off, or these columns were emptied"
        wanted = row.get("prompt_sha256", "").strip()
        matching = [one for one in self._by_key.get((case, *hashes), ()) if wanted in ("", one.asked.prompt_sha256)]
        named = [one for one in matching if _plain(one.assertion) == _plain(row.get("assertion", ""))]
        if not (matching := named or matching):
            shown = _quoted(case)
            return (
                f"the run {self._run_id} has no answer of case {shown} with these hashes; "
                "it is of another run or rubric"
            )
        said = _said(row, matching[0].scale)
        if isinstance(said, str):
            return said
        drawn = self._drawn(row.get("draw", "").strip(), matching)
        if isinstance(drawn, str):
            return drawn
        time = now()
        labels = [
            label_of(drawn.get(one) or DrawnAnswer(one, 1.0, 1), self._run_id, person, said, time)
            for one in matching
            if one in drawn or not drawn
        ]
        return labels if drawn else [replace(one, probability=None, drawn_from=None) for one in labels]

    def _drawn(self, written: str, matching: Sequence[GradedAnswer]) -> dict[GradedAnswer, DrawnAnswer] | str:
        """Those of the answers that were drawn."""
        if not written:
            return {}
        found = _DRAW.fullmatch(written)
        if found is None:
            return f"agentv wrote no draw {_quoted(written)}; leave that column as it was exported"
        how = Draw(int(found[1]), int(found[2]), one_assertion=bool(found[3]))
        assertion = matching[0].assertion if how.one_assertion else None
        if (how, assertion) not in self._draws:
            among = [one for one in self._answers if assertion in (None, one.assertion)]
            self._draws[how, assertion] = {one.answer: one for one in draw(among, how.sample, how.seed)}
        drawn = self._draws[how, assertion]
        return {one: drawn[one] for one in matching if one in drawn}


def _quoted(text: str) -> str:
    return f"'{one_line(text, 60)}'"


def _plain(name: str) -> str:
    """A name, whether a spreadsheet shows it guarded or without the guard."""
    return unguarded(name).removeprefix("'")


def _said(row: Mapping[str, str], scale: PointScale | None) -> Said | str:
    """What a line says of an answer, or what is wrong with that."""
    written, points = row.get("label", "").strip().lower(), row.get("score", "").strip()
    verdict = next((one for one in LABEL_VERDICTS if one == written), None)
    if written and verdict is None:
        return f"unknown label {_quoted(row['label'])}; write pass, fail or unsure"
    note = unguarded(row.get("note", ""))
    if not points:
        return Said(verdict, None, note)
    if scale is None:
        return f"the rubric has no scale, so 'score' must be empty, found {_quoted(points)}"
    number = re.fullmatch(r"([+-]?\d{1,9})([.,]0+)?", points)
    if number is None or not scale.low <= int(number[1]) <= scale.high:
        return f"'score' must be a whole number from {scale.low} to {scale.high}, found {_quoted(points)}"
    by_points = scale.verdict(int(number[1]))
    if verdict not in (None, by_points):
        return f"{points} points {'pass' if by_points == 'pass' else 'do not pass'}, but 'label' is {verdict}"
    return Said(by_points, int(number[1]), note)
