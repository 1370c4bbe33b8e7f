"""The entries of an `assert:` list, in each of their five forms, as assertions ready to grade (SPEC section 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from agentv.authoring.assertions.includes import Templates
from agentv.authoring.fields.decode import INVALID, OptionsSchema, report_fault, shape_of
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.fields.schema import AuthoredSettings
from agentv.authoring.fields.trust import refuse as refuse_data
from agentv.authoring.source.files import shown
from agentv.authoring.source.forgotten_colon import colon_forgotten
from agentv.authoring.source.masking import secrets_in
from agentv.authoring.source.nearest import did_you_mean, nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, plain, span_of
from agentv.authoring.source.spellings import ASSERTION_TYPES, type_name
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry, AssertionSettings
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.model.values.span import Span
from agentv.registry.table import Registry
from agentv.registry.types import AssertionType, Discovered, OpenAssertionType

JUDGED = "llm-rubric"
"""The type that plain sentences, `rubrics:` and bare criteria stand for."""

HINTED = 200
"""Errors of a file after which an unknown type is reported without a hint."""

_SETTINGS = shape_of(AuthoredSettings)
_OWN = frozenset(_SETTINGS.rules)
_OTHERS = ExtraKeys(listed=tuple(_SETTINGS.names), hinted=tuple(_OWN), passed="type")
_RUBRICS = replace(_OTHERS, called={"value": "rubrics"})
_ALL, _ANY = "write an 'assert-set'", "write an 'assert-set' whose 'threshold' some of its entries reach"
_OF_OTHERS = {
    **dict.fromkeys(("and", "all", "all-of"), _ALL),
    **dict.fromkeys(("or", "any", "any-of"), _ANY),
    "not": "write 'not-' before a type, or 'negate: true' next to it",
    **dict.fromkeys(("exact", "exact-match", "is", "eq"), "did you mean 'equals'?"),
    **dict.fromkeys(("includes", "include-text", "has", "substring"), "did you mean 'contains'?"),
    **dict.fromkeys(("length", "words", "max-words", "min-length", "max-length"), "did you mean 'word-count'?"),
    **dict.fromkeys(("judge", "llm", "model-graded", "model-graded-qa"), "did you mean 'llm-rubric'?"),
    **dict.fromkeys(("pattern", "re"), "did you mean 'regex'?"),
}
"""What people and other programs call a type → the hint at one that is unknown."""

_OWN_FORMS = ("type", "include")
_WORD = lazy_pattern(r"[\w:-]+")
_PASSED_ON = frozenset({"type", "config"})

AnyType = AssertionType | OpenAssertionType


@dataclass(frozen=True, slots=True)
class AssertionReader:
    """Reads assertion lists for one suite: knows its custom types and its templates."""

    registry: Registry[AssertionType]
    custom: Discovered
    templates: Templates = field(default_factory=Templates)
    _called: dict[str, ExtraKeys] = field(default_factory=dict)
    _named: dict[str, tuple[AnyType | None, bool, OptionsSchema | None]] = field(default_factory=dict)

    def entries(self, node: Node, reading: Reading) -> tuple[AssertionEntry, ...]:
        """The assertions of a list, includes expanded in place. What is wrong is reported and left out."""
        report = reading.report
        if not isinstance(node, ListNode):
            hint = "start each entry with '- '" if not is_empty(node) else None
            message = f"'assert' must be a list of assertions, found {kind_of(node)}"
            report.error("bad-value", node, message, hint=hint)
            return ()
        told = report.errors + report.unrendered
        found: list[AssertionEntry | None] = []
        sentences: list[Scalar] = []
        place = 0
        for item in node.items:
            if isinstance(item, Scalar):
                if self._is_sentence(item, reading):
                    place = len(found) if not sentences else place
                    sentences.append(item)
            elif isinstance(item, ListNode):
                report.error("bad-assertion", item, "an assertion is a sentence or a mapping, found a list")
            elif "include" in item.items:
                found += self._included(item, reading)
            else:
                found.append(self._mapping(item, reading))
        if sentences:
            found.insert(place, self._sentences(sentences, reading))
        kept = tuple(entry for entry in found if entry is not None)
        if len(kept) < len(found) and report.errors + report.unrendered == told:
            raise RuntimeError(f"an entry was dropped: {span_of(node.at)}")  # a bug: never a green one
        return kept

    def judged(self, node: Node | None, at: Node, reading: Reading) -> AssertionEntry | None:
        """One llm-rubric over a value (a text or a list), or over the case's criteria where there is none."""
        pairs: dict[str, Node] = {} if node is None else {"value": node}
        others = _RUBRICS if isinstance(node, ListNode) else _OTHERS
        return self._typed(JUDGED, MapNode(pairs, dict.fromkeys(pairs, at.at), at.at), pairs, reading, others=others)

    @property
    def names(self) -> list[str]:
        """Every name of a type that may be written here, older ones and those to come too."""
        return self._known()

    def takes(self, name: str, option: str) -> bool:
        """Whether a type has an option, by any name that the type may be written with."""
        kind, _, shape = self._find(name)
        if shape is not None:
            return option in shape.rules
        return kind is not None and option in (getattr(kind, "options", None) or ())

    def short(self, name: str) -> str | None:
        """The option of a type that a lone value fills."""
        kind, _, shape = self._find(name)
        found: str | None = shape.cls.short if shape is not None else getattr(kind, "short", None)  # type: ignore[attr-defined]
        return found and found.rstrip("_")

    def _sentences(self, sentences: list[Scalar], reading: Reading) -> AssertionEntry | None:
        entry = self.judged(ListNode(list(sentences), sentences[0].at), sentences[0], reading)
        return entry and replace(entry, settings=replace(entry.settings, weight=float(len(sentences))))

    def _is_sentence(self, item: Scalar, reading: Reading) -> bool:
        if not isinstance(item.value, str) or not item.value.strip():
            message = f"an assertion is a sentence or a mapping, found {kind_of(item)}"
            reading.report.error("bad-assertion", item, message)
            return False
        if not _WORD.fullmatch(item.value.strip()):  # no name of a type, so that none is searched for
            self._doubt(item, item.value, reading)
            return True
        if self._is_type(item.value):
            message = f"'{item.value}' is the name of an assertion type, not a sentence to grade"
            reading.report.error("bare-type", item, message, hint=f"write 'type: {item.value}'")
            return False
        self._doubt(item, item.value, reading)
        return True

    def _is_type(self, written: str) -> bool:
        return self._find(written)[0] is not None or type_name(written)[0] in self.registry.not_yet

    def _doubt(self, item: Scalar, text: str, reading: Reading) -> None:
        """A sentence that begins as an entry does goes to the judge, which is seldom meant."""
        found = colon_forgotten(text, self._is_type)
        if found is None:
            return
        name, meant = found
        message = f"'{name}' is an assertion type, but without its colon this is a sentence for the judge"
        reading.report.warning("nearly-an-assertion", item, message, hint=f"for the assertion, write {meant}")

    def _included(self, item: MapNode, reading: Reading) -> tuple[AssertionEntry, ...]:
        for key in item.items:
            if key != "include" and not key.startswith("x-"):
                message = f"an 'include' entry takes no other keys, found '{key}'"
                reading.report.error("bad-include", item.keys[key], message)
        found = self.templates.included(item.items["include"], reading)
        if found is None:
            return ()
        template, inside = found
        return self.entries(template.entries, inside)

    def _mapping(self, item: MapNode, reading: Reading) -> AssertionEntry | None:
        pairs = item.items
        kind = pairs.get("type")
        if kind is None:
            return self._short(item, reading)
        if type(kind) is not Scalar or type(kind.value) is not str:
            reading.report.error("bad-value", kind, f"'type' must name an assertion type, found {kind_of(kind)}")
            return None
        return self._typed(kind.value, item, pairs, reading, type_node=kind)

    def _short(self, item: MapNode, reading: Reading) -> AssertionEntry | None:
        """The one-key form: the key is a type, its value fills the option that the type says."""
        candidates = [key for key in item.items if key not in _OWN and not key.startswith("x-")]
        known = [key for key in candidates if self._find(key)[0] or type_name(key)[0] in self.registry.not_yet]
        if len(known) == 1 and len(candidates) == 1:
            return self._one_key(known[0], item, reading)
        if len(known) > 1:
            message = f"{' and '.join(repr(key) for key in known)} are both assertion types; write one entry for each"
            reading.report.error("bad-assertion", item.keys[known[1]], message)
        elif known:
            other = next(key for key in candidates if key not in known)
            if not self._beside_short(known[0], other, item, reading):
                reading.unknown_key(other, item, (), f"the short form of '{known[0]}'", _OTHERS)
        else:
            self._unknown_short(candidates, item, reading)
        return None

    def _beside_short(self, key: str, other: str, item: MapNode, reading: Reading) -> bool:
        """Report an option that stands beside a lone value: the typed form takes both. False where it is no option."""
        kind, inverted, shape = self._find(key)
        short: str | None = None if shape is None else shape.cls.short  # type: ignore[attr-defined]  # a Declared
        if kind is None or shape is None or short is None or other not in shape.rules:
            return False
        name = f"not-{kind.name}" if inverted else kind.name
        message = f"'{other}' cannot be combined with the short form of '{key}'"
        hint = f"write 'type: {name}', '{short.rstrip('_')}: …' and '{other}: …'"
        reading.report.error("unknown-key", item.keys[other], message, hint=hint)
        return True

    def _unknown_short(self, candidates: list[str], item: MapNode, reading: Reading) -> None:
        if not candidates:
            reading.report.error("missing-key", item, "an assertion needs 'type'")
            return
        key = candidates[0]
        value = item.items[key]
        if reading.report.errors > HINTED:
            self._unknown(key, Scalar(key, key, item.keys[key]), reading)
            return
        if (own := nearest(key, _OWN_FORMS)) and not nearest(key, self._known()):
            reading.unknown_key(key, item, _OWN_FORMS, "an assertion", ExtraKeys(hinted=(own,)))
            return
        if "input" in item.items:
            hint = "this looks like a case, which belongs under 'tests'"
            reading.report.error("bad-assertion", item, "an assertion has no 'input'", hint=hint)
            return
        prose = len(item.items) == 1 and (
            " " in key.strip() or (isinstance(value, Scalar) and " " in value.text.strip())
        )
        if prose and isinstance(value, Scalar) and not did_you_mean(key, self._known()):
            text = f"{key}: {value.text}".replace('"', '\\"')
            message = f"no assertion type '{key}'; YAML reads a sentence with ': ' as a mapping"
            reading.report.error("unknown-assertion", item.keys[key], message, hint=f'quote it: "{text}"')
            return
        self._unknown(key, Scalar(key, key, item.keys[key]), reading)

    def _one_key(self, key: str, item: MapNode, reading: Reading) -> AssertionEntry | None:
        value = item.items[key]
        kind, _, shape = self._find(key)
        if kind is None:
            self._unknown(key, Scalar(key, key, item.keys[key]), reading)
            return None
        rest = {name: node for name, node in item.items.items() if name != key}
        if isinstance(value, MapNode) and self._spells_options(value, kind, shape):
            clash = rest.keys() & value.items.keys()
            if not clash:
                keys = {**item.keys, **value.keys}
                return self._typed(
                    key, MapNode({**value.items, **rest}, keys, item.at), {**value.items, **rest}, reading
                )
        short: str | None = shape.cls.short if shape is not None else kind.short  # type: ignore[attr-defined, union-attr]
        if isinstance(value, Scalar) and value.value is None:
            return self._typed(key, item, rest, reading)
        if short is None:
            message = f"'{key}' has no short form with a single value; write 'type: {key}' and its options"
            reading.report.error("bad-assertion", item.keys[key], message)
            return None
        option = short.rstrip("_")
        pairs = {option: value, **rest}
        keys = {**item.keys, option: item.keys[key]}
        return self._typed(key, MapNode(pairs, keys, item.at), pairs, reading, others=self._others(key, option))

    def _others(self, key: str, option: str) -> ExtraKeys:
        """Beside the options, with the one that a lone value fills called by the type's name."""
        found = self._called.get(key)
        if found is None:
            found = self._called[key] = replace(_OTHERS, called={option: key})
        return found

    def _spells_options(self, value: MapNode, kind: AnyType | None, shape: OptionsSchema | None) -> bool:
        if shape is not None:
            return not shape.takes_json and value.items.keys() <= (shape.rules.keys() | _OWN)
        options = getattr(kind, "options", None)
        return bool(value.items) and isinstance(options, tuple) and value.items.keys() <= set(options)

    def _typed(
        self,
        written: str,
        item: MapNode,
        pairs: Mapping[str, Node],
        reading: Reading,
        *,
        type_node: Node | None = None,
        others: ExtraKeys = _OTHERS,
    ) -> AssertionEntry | None:
        kind, inverted, shape = self._find(written)
        if kind is None:
            self._unknown(written, type_node or Scalar(written, written, item.keys.get(written, item.at)), reading)
            return None
        if reading.data and shape is not None and getattr(shape.cls, "runs_code", False):
            at = type_node or Scalar(written, written, item.keys.get(written, item.at))
            refuse_data(at, reading, f"run code, as '{kind.name}' does")
            return None
        if reading.report.hints:
            self._suggest(
                written, kind, type_node or Scalar(written, written, item.keys.get(written, item.at)), reading
            )
        settings: AssertionSettings | None = DEFAULTS
        options = pairs
        if not pairs.keys() <= _TWO:  # most entries are no more than a type and its value
            settings = self._settings(pairs, item, shape, reading)
            options = pairs if shape is None else _options(pairs, shape)
        if inverted and settings is not None:
            settings = _INVERTED if settings is DEFAULTS else replace(settings, negate=not settings.negate)
        if shape is None:
            assertion = self._open(kind, pairs, item, reading)  # type: ignore[arg-type]
        else:
            assertion = shape.decode(options, item, reading, f"'{kind.name}'", others=others)
        if assertion is INVALID or assertion is None or settings is None:
            return None
        if shape is not None and getattr(assertion, "runs_code", False):
            reading.secrets.update(_secrets_of(assertion))
        return AssertionEntry(kind.name, assertion, settings, span_of(item.at))

    def _suggest(self, written: str, kind: AnyType, at: Node, reading: Reading) -> None:
        name = written.strip().replace("_", "-")
        bare = name.removeprefix("not-")
        if ASSERTION_TYPES.get(bare) == kind.name:
            reading.report.older(written, f"not-{kind.name}" if bare != name else kind.name, at)

    def _settings(
        self, pairs: Mapping[str, Node], item: MapNode, shape: OptionsSchema | None, reading: Reading
    ) -> AssertionSettings | None:
        taken = shape.rules if shape is not None else ()
        own = {key: node for key, node in pairs.items() if key in _OWN and key not in taken}
        if not own:
            return DEFAULTS
        read = _SETTINGS.decode(own, item, reading, "an assertion")
        if read is INVALID:
            return None
        return AssertionSettings(**{one.name: getattr(read, one.name) for one in fields(read)})

    def _open(self, kind: OpenAssertionType, pairs: Mapping[str, Node], item: MapNode, reading: Reading) -> Any:
        """The assertion of a custom type: its author's own keys, with those under `config` merged in."""
        own = {key: reading.rendered(node) for key, node in pairs.items() if _is_own_option(key)}
        nodes = {key: node for key, node in own.items() if node is not None}
        keys = item.keys
        config = reading.rendered(pairs["config"]) if "config" in pairs else None
        if len(nodes) < len(own) or (config is None and "config" in pairs):
            return INVALID
        if config is not None:
            if not isinstance(config, MapNode):
                reading.report.error("bad-value", config, f"'config' must be a mapping, found {kind_of(config)}")
                return INVALID
            clash = sorted(nodes.keys() & config.items.keys())
            for key in clash:
                message = f"'{key}' is set both here and in 'config'; keep one of them"
                reading.report.error("two-spellings", keys.get(key, item.at), message)
            if clash:
                return INVALID
            nodes |= config.items
            keys = {**keys, **config.keys}
        options = {key: plain(node) for key, node in nodes.items()}
        reading.secrets.update(secrets_in(options))
        built = kind.build(options)
        if not isinstance(built, list):
            return built
        for fault in built:
            report_fault(fault, None, nodes, MapNode(nodes, keys, item.at), reading)
        return INVALID

    def _find(self, written: str) -> tuple[AnyType | None, bool, OptionsSchema | None]:
        found = self._named.get(written)
        if found is None:
            found = self._named[written] = self._look_up(written)
        return found

    def _look_up(self, written: str) -> tuple[AnyType | None, bool, OptionsSchema | None]:
        own = written.strip().replace("_", "-")
        custom = self.custom.types.get(own)
        name, inverted = type_name(written)
        if custom is None:
            custom = self.custom.types.get(name)
        else:
            inverted = False
        if custom is not None:
            return custom, inverted, None
        built_in = self.registry.find(name)
        if built_in is None:
            return None, inverted, None
        return built_in, inverted, shape_of(built_in.options)

    def _known(self) -> list[str]:
        return [*self.registry, *self.custom.types, *ASSERTION_TYPES, *sorted(self.registry.not_yet)]

    def _unknown(self, written: str, at: Node, reading: Reading) -> None:
        if reading.report.errors > HINTED:  # one mistake of the program that wrote them, and hints take their time
            reading.report.error("unknown-assertion", at, f"no assertion type '{written}'")
            return
        name, inverted = type_name(written)
        if name in self.registry.not_yet:
            reading.report.error("not-yet", at, f"the assertion type '{name}' is recognized but not supported yet")
            return
        for file, fault in self.custom.faults:
            if fault.code == "ambiguous-assertion" and Path(file).stem.replace("_", "-") == name:
                reading.report.error(fault.code, Span(file, 1, 1, 1, 2), fault.message)  # again: it is the reason
                return
        hint = did_you_mean(name, self._known())
        if hint and inverted:
            hint = hint.replace("'", "'not-", 1)
        hint = hint or _OF_OTHERS.get(written.replace("_", "-"))
        homes = (shown(folder.removesuffix("/.agentv/assertions")) for folder in self.custom.searched)
        folders = ", ".join(home if home == "." else f"{home}/" for home in homes)
        notes = (f"searched .agentv/assertions in: {folders}",) if folders else ()
        reading.report.error("unknown-assertion", at, f"no assertion type '{written}'", hint=hint, notes=notes)


def _options(pairs: Mapping[str, Node], shape: OptionsSchema) -> dict[str, Node]:
    """What the type declares, without the keys that every assertion takes."""
    return {key: node for key, node in pairs.items() if key == "type" or key not in _OWN or key in shape.rules}


def _secrets_of(assertion: Any) -> Iterator[str]:
    """What an assertion with code or a server of the user's must keep to itself: headers, arguments, an address."""
    for one in fields(assertion) if is_dataclass(assertion) else ():
        value = getattr(assertion, one.name)
        if isinstance(value, (str, list, tuple, Mapping)):
            yield from secrets_in({one.name: list(value) if isinstance(value, tuple) else value})


def _is_own_option(key: str) -> bool:
    return key not in _OWN and key not in _PASSED_ON and not key.startswith("x-")


_TWO = frozenset({"type", "value"})
_INVERTED = AssertionSettings(negate=True)
