"""The one-key form of an assertion, `contains: text`: the key is a type, and its value the type's main option."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.assertions.type_names import AssertionTypes, NamedType
from agentv.authoring.assertions.typed_entries import EXTRA_KEYS, SETTING_KEYS, TypedForm, key_node
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.source.nearest import did_you_mean, nearest
from agentv.authoring.source.nodes import MapNode, Node, Scalar

_OWN_FORMS = ("type", "include")


class ShortForms(Struct, frozen=True):
    """Writes out the one-key form of the types of one suite."""

    types: AssertionTypes
    _extra_keys: dict[str, ExtraKeys] = field(default_factory=dict)

    def typed(self, item: MapNode, reading: Reading) -> TypedForm | None:
        """The same entry with its type written out; None where it names no type, or several, which is reported."""
        candidates = [key for key in item.items if key not in SETTING_KEYS and not key.startswith("x-")]
        known = [key for key in candidates if self.types.knows(key)]
        if len(known) == 1 and len(candidates) == 1:
            return self._typed(known[0], item, reading)
        if len(known) > 1:
            message = f"{' and '.join(repr(key) for key in known)} are both assertion types; write one entry for each"
            reading.report.error("bad-assertion", item.keys[known[1]], message)
        elif known:
            other = next(key for key in candidates if key not in known)
            if not self._refuses_beside(known[0], other, item, reading):
                reading.unknown_key(other, item, (), f"the short form of '{known[0]}'", EXTRA_KEYS)
        else:
            self._report_unknown(candidates, item, reading)
        return None

    def _typed(self, key: str, item: MapNode, reading: Reading) -> TypedForm | None:
        value = item.items[key]
        named = self.types.find(key)
        kind, _, schema = named
        if kind is None:
            self.types.report_unknown(key, key_node(key, item), reading)
            return None
        rest = {name: node for name, node in item.items.items() if name != key}
        if isinstance(value, MapNode) and _spells_options(value, named) and not rest.keys() & value.items.keys():
            pairs = {**value.items, **rest}
            return TypedForm(key, MapNode(pairs, {**item.keys, **value.keys}, item.at), pairs)
        if isinstance(value, Scalar) and value.value is None:
            return TypedForm(key, item, rest)
        short: str | None = schema.cls.short if schema is not None else kind.short  # type: ignore[attr-defined, union-attr]
        if short is None:
            message = f"'{key}' has no short form with a single value; write 'type: {key}' and its options"
            reading.report.error("bad-assertion", item.keys[key], message)
            return None
        option = short.rstrip("_")
        pairs = {option: value, **rest}
        written = MapNode(pairs, {**item.keys, option: item.keys[key]}, item.at)
        return TypedForm(key, written, pairs, extra=self._extra(key, option))

    def _extra(self, key: str, option: str) -> ExtraKeys:
        """Beside the options, with the one that a lone value fills called by the type's name."""
        found = self._extra_keys.get(key)
        if found is None:
            found = self._extra_keys[key] = replace(EXTRA_KEYS, called={option: key})
        return found

    def _refuses_beside(self, key: str, other: str, item: MapNode, reading: Reading) -> bool:
        """Report an option that stands beside a lone value: the typed form takes both. False where it is no option."""
        kind, inverted, schema = self.types.find(key)
        short: str | None = None if schema is None else schema.cls.short  # type: ignore[attr-defined]  # a Declared
        if kind is None or schema is None or short is None or other not in schema.rules:
            return False
        name = f"not-{kind.name}" if inverted else kind.name
        message = f"'{other}' cannot be combined with the short form of '{key}'"
        hint = f"write 'type: {name}', '{short.rstrip('_')}: …' and '{other}: …'"
        reading.report.error("unknown-key", item.keys[other], message, hint=hint)
        return True

    def _report_unknown(self, candidates: list[str], item: MapNode, reading: Reading) -> None:
        if not candidates:
            reading.report.error("missing-key", item, "an assertion needs 'type'")
            return
        key = candidates[0]
        at = key_node(key, item)
        if reading.report.crowded:
            self.types.report_unknown(key, at, reading)
            return
        if (own := nearest(key, _OWN_FORMS)) and not nearest(key, self.types.names):
            reading.unknown_key(key, item, _OWN_FORMS, "an assertion", ExtraKeys(hinted=(own,)))
            return
        if "input" in item.items:
            hint = "this looks like a case, which belongs under 'tests'"
            reading.report.error("bad-assertion", item, "an assertion has no 'input'", hint=hint)
            return
        prose = _prose(key, item.items[key], alone=len(item.items) == 1)
        if prose is not None and not did_you_mean(key, self.types.names):
            message = f"no assertion type '{key}'; YAML reads a sentence with ': ' as a mapping"
            reading.report.error("unknown-assertion", item.keys[key], message, hint=f'quote it: "{prose}"')
            return
        self.types.report_unknown(key, at, reading)


def _spells_options(value: MapNode, named: NamedType) -> bool:
    """Whether a mapping holds the options of a type, and is not the value of one of them."""
    if named.schema is not None:
        return not named.schema.takes_json and value.items.keys() <= (named.schema.rules.keys() | SETTING_KEYS)
    options = getattr(named.type, "options", None)
    return bool(value.items) and isinstance(options, tuple) and value.items.keys() <= set(options)


def _prose(key: str, value: Node, *, alone: bool) -> str | None:
    """The sentence that a mapping of one key was most likely meant to be, as it is quoted."""
    if not alone or not isinstance(value, Scalar) or not (" " in key.strip() or " " in value.text.strip()):
        return None
    return f"{key}: {value.text}".replace('"', '\\"')
