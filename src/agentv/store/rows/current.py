"""Current rows of an `index.jsonl`: of several rows of one trial, the last (SPEC section 13)."""

from __future__ import annotations

from pathlib import Path

from agentv.model.values.hashes import NumberedHashes, text_hash
from agentv.store.files.lines import read_lines
from agentv.store.rows.reading import key_in


def replaced_lines(path: Path) -> frozenset[int]:
    """The numbers, from 1, of the lines whose trial has a row further down. They are few: reruns move them away.

    Raises:
        StoreError: the file cannot be read.
    """
    numbers = NumberedHashes()
    last: list[int] = []
    replaced: set[int] = set()
    for number, line in read_lines(path):
        key = key_in(line)
        if key is None:
            continue  # whoever reads the row says what is wrong with it
        place = numbers.number(text_hash(key.trial))
        if place == len(last):
            last.append(number)
        else:
            replaced.add(last[place])
            last[place] = number
    return frozenset(replaced)
