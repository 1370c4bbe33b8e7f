"""Keys that are no options of a type and that its author's own code reads, such as the `config` of a script."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agentv.authoring.fields.decode import OptionsSchema
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import MapNode, Node
from agentv.authoring.source.other_programs import MEANT

_TIME_LIMIT = "timeout"
_PASS_MARKS = ("threshold", "passthreshold", "minimumscore")
"""Keys that are a mark to reach in other types, and only data for the author's code here."""


def with_extra_option(
    pairs: Mapping[str, Node], item: MapNode, schema: OptionsSchema, settings: Collection[str], reading: Reading
) -> Mapping[str, Node] | None:
    """The options of an entry, with unknown keys moved into the mapping that the type declares for them.

    A key that is close to an option stays, to be reported: a misspelt `required` must not disappear. None if a key is
    in both places, which is reported.

    Args:
        pairs: the keys of the entry.
        item: the entry as authored.
        schema: of the options of its type.
        settings: keys that every assertion accepts.
        reading: of the case.
    """
    option = getattr(schema.cls, "extra_option", None)
    if option is None:
        return pairs
    known = {*schema.rules, *settings, "type"}
    extra = {key: node for key, node in pairs.items() if _is_extra(key, known)}
    given = pairs.get(option)
    if not extra or not (given is None or isinstance(given, MapNode)):
        return pairs
    inside = MapNode({}, {}, item.at) if given is None else given
    clash = sorted(extra.keys() & inside.items.keys())
    for key in clash:
        message = f"'{key}' is set both here and in '{option}'; keep one of them"
        reading.report.error("two-spellings", item.keys[key], message)
    if clash:
        return None
    for key in extra:
        if any(_one_edit(_joined(key), mark) for mark in _PASS_MARKS):
            message = f"'{key}' is passed on in '{option}'; this assertion does not compare its score with it"
            hint = f"write 'min_score', or put '{key}' under '{option}'"
            reading.report.warning("no-effect", item.keys[key], message, hint=hint)
    keys = {**{key: item.keys[key] for key in extra}, **inside.keys}
    merged = MapNode({**extra, **inside.items}, keys, inside.at)
    return {**{key: node for key, node in pairs.items() if key not in extra}, option: merged}


def _is_extra(key: str, known: Collection[str]) -> bool:
    """Whether a key is neither known nor one edit away from a known one, however its words are joined."""
    if key in known or key.startswith("x-") or MEANT.get(key) in known:
        return False
    joined = _joined(key)
    return not joined.startswith(_TIME_LIMIT) and not any(_one_edit(joined, _joined(one)) for one in known)


def _one_edit(one: str, other: str) -> bool:
    """Whether two names are the same, or one edit away from each other."""
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other) <= 1


def _joined(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()
