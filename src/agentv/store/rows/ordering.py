"""The order of the eval files, for rows that were written as trials ended."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct as Packed
from typing import Any

from agentv.model.run.row import Row
from agentv.model.values.values import JsonObject, objects_in
from agentv.store.files.lines import lines_at
from agentv.store.rows.reading import read_placed_rows, row_in

_PACKED = Packed(">6I")
_PLACE = Packed(">Q")


class FileOrder:
    """Orders rows by eval file, case, prompt, target, variant and sample, each as the suites of a run have them.

    Args:
        record: `run.json` of the run.
        root: absolute path of the repository root, which paths in it are relative to; empty: all paths are.
    """

    def __init__(self, record: JsonObject, root: str = "") -> None:
        self._root = f"{root}/"
        suites = objects_in(record.get("suites"))
        self._suites = _ranks((one.get("path") or None, one.get("name")) for one in suites)
        self._prompts = _ranks(_names(suites, "prompts", "id"))
        self._targets = _ranks(_names(suites, "targets", "name"))
        self._variants = _ranks(_names(suites, "variants", "name"))

    def key(self, row: Row) -> bytes:
        """A key to sort by. Rows of older versions, which do not know their case's position, have one in common."""
        suite = self.suite(row.eval_path, row.suite)
        if not row.position:
            return _PACKED.pack(suite, 0, 0, 0, 0, 0)
        column = self.column(row.prompt_id, row.target, row.variant)
        return _PACKED.pack(suite, row.position, *column, row.sample)

    def suite(self, path: str | None, name: str) -> int:
        """What to sort a suite by."""
        return _rank(self._suites, (path and path.removeprefix(self._root), name))

    def column(self, prompt: str | None, target: str, variant: str | None) -> tuple[int, int, int]:
        """What to sort the prompts, targets and variants of a case by."""
        return _rank(self._prompts, prompt), _rank(self._targets, target), _rank(self._variants, variant)


def places_in_order(index: Path, record: JsonObject, without: Container[int] = ()) -> array[int]:
    """Where the rows of an `index.jsonl` begin, in bytes, in the order of the eval files.

    Args:
        index: the file; a missing file has no rows.
        record: `run.json` of the run.
        without: numbers of lines, from 1, that are left out.

    Raises:
        StoreError: a line is not a row, or a newer agentv wrote it.
    """
    order = FileOrder(record)
    keys = [order.key(row) + _PLACE.pack(place) for place, row in read_placed_rows(index, without)]
    keys.sort()
    return array("q", (_PLACE.unpack_from(key, _PACKED.size)[0] for key in keys))


def variable_names(index: Path, places: Iterable[int]) -> list[str]:
    """The names of the variables of rows, in the order in which they appear.

    Args:
        index: the `index.jsonl`.
        places: where the rows begin, in bytes.
    """
    return list(dict.fromkeys(name for _, line in lines_at(index, places) for name in row_in(line).vars))


def _names(suites: Iterable[Mapping[str, Any]], kind: str, name: str) -> Iterator[Any]:
    return (one.get(name) for suite in suites for one in objects_in(suite.get(kind)))


def _ranks(names: Iterable[Any]) -> dict[Any, int]:
    return {name: rank for rank, name in enumerate(dict.fromkeys(names))}


def _rank(ranks: dict[Any, int], name: Any) -> int:
    """The rank of a name; of one that is new, after all others."""
    return ranks.setdefault(name, len(ranks))
