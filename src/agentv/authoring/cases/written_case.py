"""One case as authored: its keys by canonical name, before their values are read."""

from __future__ import annotations

from msgspec import Struct

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.source.nodes import Canonical, is_empty
from agentv.authoring.source.report import Report

_SCHEMA = shape_of(AuthoredCase)


class WrittenCase(Struct, frozen=True):
    """A case by its canonical keys.

    Attributes:
        keys: by canonical name; if one is invalid, only those that are passed on unread.
        not_missing: keys that are not reported as missing because they were misspelt, or are invalid.
        alone: it has its own input; a row of variables uses the suite's `input`.
        id_suffix: the end of its id, if it is one of several cases of an entry.
    """

    keys: AuthoredCase
    node: Canonical
    not_missing: frozenset[str]
    alone: bool
    id_suffix: str = ""

    @property
    def linked(self) -> bool:
        """Whether it is linked to other cases."""
        return self.keys.conversation_id is not None or self.keys.depends_on is not None

    @property
    def has_turns(self) -> bool:
        """Whether it has several turns, or a key for them."""
        return self.scripted or self.keys.user is not None

    @property
    def scripted(self) -> bool:
        """Whether its turns are written down, or the key for them."""
        return self.keys.turns is not None or self.keys.mode is not None

    def check_flow(self, report: Report) -> None:
        """Report keys about turns in a case that has none."""
        for key in ("aggregation", "on_turn_failure", "window_size"):
            asked = self.has_turns if key == "window_size" else self.scripted
            if getattr(self.keys, key) is not None and not asked and "turns" not in self.not_missing:
                report.error("bad-value", self.node.keys[key], f"'{key}' needs 'turns'")


def read_written(node: Canonical, reading: Reading, *, alone: bool, id_suffix: str) -> WrittenCase:
    """A case by its canonical keys; what is wrong with them is reported.

    Args:
        node: the case.
        reading: of this case alone.
        alone: it brings an input of its own.
        id_suffix: the end of its id.
    """
    report = reading.report
    keys = _SCHEMA.decode(node.items, node, reading, "a case")
    if keys is INVALID:
        keys = _SCHEMA.unread(node.items)
    if is_empty(node.get("id")) and "id" not in node.not_missing:
        report.error("missing-key", node.get("id") or node, "a case needs 'id'")
    case = WrittenCase(keys, node, node.not_missing, alone, id_suffix)
    case.check_flow(report)
    return case
