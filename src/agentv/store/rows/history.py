"""Rows of a run that newer ones replace: only their cost counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentv.model.run.row import Row
from agentv.store.files.directory import HISTORY, INDEX
from agentv.store.files.lines import read_lines
from agentv.store.rows.reading import is_torn, not_a_row, row_in


def replaced_rows(run: Path) -> Iterator[Row]:
    """The rows of `history.jsonl`, each once, without those that stand in `index.jsonl` too.

    A process that is killed while it moves rows leaves them in both files, and the next one moves them once more.

    Raises:
        StoreError: a file cannot be read, or a line is no row; the text names it.
    """
    path = run / HISTORY
    pending = {hash(line) for _, line in read_lines(path)}
    if not pending:
        return
    pending.difference_update(hash(line) for _, line in read_lines(run / INDEX))
    for number, line in read_lines(path):
        if hash(line) in pending:
            pending.discard(hash(line))
            try:
                yield row_in(line)
            except ValueError as error:
                if is_torn(line):
                    return  # cut off while rows were moved: they still stand in the index
                raise not_a_row(path, number, error) from error
