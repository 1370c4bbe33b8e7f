"""One case as authored: its keys by canonical name, before their values are read."""

from __future__ import annotations

from msgspec import Struct

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import SHOWN_KEYS, ExtraKeys, Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import MapNode, is_empty
from agentv.authoring.source.other_programs import MEANT
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import CASE, Translated, translate

_SCHEMA = shape_of(AuthoredCase)
_EXTRA_KEYS = ExtraKeys(hinted=tuple(CASE.known), older=CASE.superseded)


class WrittenCase(Struct, frozen=True):
    """A case as authored.

    Attributes:
        keys: by canonical name; if one is invalid, only those that are passed on unread.
        not_missing: keys that are not reported as missing because they were misspelt, or are invalid.
        alone: it has its own input; a row of variables uses the suite's `input`.
        id_suffix: the end of its id, if it is one of several cases of an entry.
    """

    keys: AuthoredCase
    node: MapNode
    translated: Translated
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
                report.error("bad-value", self.translated.map.keys[key], f"'{key}' needs 'turns'")


def read_written(node: MapNode, reading: Reading, *, alone: bool, id_suffix: str) -> WrittenCase:
    """A case by its canonical keys; what is wrong with them is reported.

    Args:
        node: the case.
        reading: of this case alone.
        alone: it brings an input of its own.
        id_suffix: the end of its id.
    """
    report = reading.report
    translated = translate(node, CASE, report, for_run=reading.strict_env)
    items = translated.items
    keys = _SCHEMA.decode(items, translated.map, reading, "a case", extra=_EXTRA_KEYS)
    not_missing = _misspelt(node) if keys is INVALID or report.failed else frozenset[str]()
    if keys is INVALID:
        keys = _SCHEMA.unread(items)
    if is_empty(items.get("id")) and "id" not in not_missing:
        report.error("missing-key", items.get("id") or node, "a case needs 'id'")
    case = WrittenCase(keys, node, translated, not_missing, alone, id_suffix)
    case.check_flow(report)
    return case


def _misspelt(node: MapNode) -> frozenset[str]:
    """The keys that are not really missing: they were misspelt, or are given by what is not built yet."""
    unknown = [key for key in node.items if key not in _SCHEMA.rules and key not in CASE.known][:SHOWN_KEYS]
    near = (nearest(key, CASE.known) or MEANT.get(key) for key in unknown)
    found = {CASE.older.get(key, key) for key in near if key}
    if "turns" in found:
        found |= {"input", "assert"}  # which a case with turns may lack
    return frozenset(found)
