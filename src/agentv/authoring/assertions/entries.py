"""Reads the entries of `assert:` lists in each of their five forms (SPEC section 7), and templates (section 7.3)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from agentv.authoring.assertions.typed_entries import (
    EXTRA_KEYS,
    RUBRIC,
    SETTING_KEYS,
    AssertionTypes,
    NamedType,
    TypedForm,
    key_node,
)
from agentv.authoring.fields.reading import Chain, ExtraKeys, Reading, notes_of, sibling
from agentv.authoring.fields.spellings import TEMPLATE
from agentv.authoring.fields.translation import translated
from agentv.authoring.source.files import exists, is_file, shown, templates_in, upwards
from agentv.authoring.source.nearest import did_you_mean, nearest
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, holds_placeholder, is_empty, kind_of, span_of
from agentv.authoring.source.report import Report, Result
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.values.formatting import shorten
from agentv.model.values.values import Span, lazy_pattern

_RUBRICS = replace(EXTRA_KEYS, called={"value": "rubrics"})
_WORD = lazy_pattern(r"[\w:-]+")


class AssertionReader:
    """Reads the assertion lists of one suite.

    Attributes:
        types: the available assertion types.
        renders: whether a template contains placeholders, so that its entries depend on a case's variables.
    """

    def __init__(self, types: AssertionTypes) -> None:
        self.types = types
        self.renders = False
        self._templates: dict[str, tuple[ListNode | None, tuple[Diagnostic, ...]]] = {}
        self._extra_keys: dict[str, ExtraKeys] = {}

    def entries(self, node: Node, reading: Reading) -> Result[tuple[AssertionEntry, ...]]:
        """The assertions of a list, with includes expanded in place. Invalid entries are reported and omitted.

        Raises:
            RuntimeError: an entry would be omitted without an error, so that a case could pass. This is a bug.
        """
        report = reading.report
        if not isinstance(node, ListNode):
            hint = "start each entry with '- '" if not is_empty(node) else None
            report.unfit(node, "'assert' must be a list of assertions", hint=hint)
            return Result((), valid=False)
        found: list[AssertionEntry] = []
        valid = True
        sentences: list[Scalar] = []
        place = 0
        for item in node.items:
            if isinstance(item, Scalar):
                if self._is_sentence(item, reading):
                    place = len(found) if not sentences else place
                    sentences.append(item)
                else:
                    valid = False
            elif isinstance(item, MapNode) and "include" in item.items:
                included = self._included(item, reading)
                found += included.value
                valid = valid and included.valid
            elif (entry := self._entry(item, reading)) is not None:
                found.append(entry)
            else:
                valid = False
        if sentences:
            entry = self.rubric_entry(ListNode(list(sentences), sentences[0].at), sentences[0], reading)
            judged = entry and replace(entry, settings=replace(entry.settings, weight=float(len(sentences))))
            valid = valid and judged is not None
            found[place:place] = [judged] if judged is not None else []
        if not valid and report.valid:
            raise RuntimeError(f"an entry was dropped: {span_of(node.at)}")
        return Result(tuple(found), valid)

    def rubric_entry(self, node: Node | None, at: Node, reading: Reading) -> AssertionEntry | None:
        """An llm-rubric with a text or a list as its value, or with the case's criteria if `node` is None."""
        pairs: dict[str, Node] = {} if node is None else {"value": node}
        extra = _RUBRICS if isinstance(node, ListNode) else EXTRA_KEYS
        item = MapNode(pairs, dict.fromkeys(pairs, at.at), at.at)
        return self.types.read(TypedForm(RUBRIC, item, pairs, extra=extra), reading)

    def _entry(self, item: ListNode | MapNode, reading: Reading) -> AssertionEntry | None:
        """The assertion of an entry that is not a sentence, or None after reporting what is wrong."""
        if isinstance(item, ListNode):
            reading.report.error("bad-assertion", item, "an assertion is a sentence or a mapping, found a list")
            return None
        kind = item.items.get("type")
        if kind is None:
            form = self._one_key(item, reading)
            return None if form is None else self.types.read(form, reading)
        if type(kind) is not Scalar or type(kind.value) is not str:
            reading.report.unfit(kind, "'type' must name an assertion type")
            return None
        return self.types.read(TypedForm(kind.value, item, item.items, kind), reading)

    def _included(self, item: MapNode, reading: Reading) -> Result[tuple[AssertionEntry, ...]]:
        extra = [key for key in item.items if key != "include" and not key.startswith("x-")]
        for key in extra:
            message = f"an 'include' entry takes no other keys, found '{key}'"
            reading.report.error("bad-include", item.keys[key], message)
        found = self._template(item.items["include"], reading)
        if found is None:
            return Result((), valid=False)
        entries = self.entries(*found)
        return entries._replace(valid=entries.valid and not extra)

    def _is_sentence(self, item: Scalar, reading: Reading) -> bool:
        """Whether a text is a sentence for the judge; if not, this is reported."""
        text = item.value
        if not isinstance(text, str) or not text.strip():
            reading.report.unfit(item, "an assertion is a sentence or a mapping", "bad-assertion")
            return False
        # only a single word can be the name of a type; looking up anything else is slow
        if _WORD.fullmatch(text.strip()) and self.types.knows(text):
            message = f"'{text}' is the name of an assertion type, not a sentence to grade"
            reading.report.error("bare-type", item, message, hint=f"write 'type: {text}'")
            return False
        found = colon_forgotten(text, self.types.knows)
        if found is not None:
            name, rest = found
            after = text.strip().removeprefix(name)
            spaced = "in quotes" if after[1:2].isspace() else "without a space after its colon"
            why = spaced if after.startswith(":") else "without its colon"
            message = f"'{name}' is an assertion type, but {why} this is a sentence for the judge"
            reading.report.warning("nearly-an-assertion", item, message, hint=f"for the assertion, write {rest}")
        return True

    def _one_key(self, item: MapNode, reading: Reading) -> TypedForm | None:
        """A one-key entry with its type written out, or None after reporting that it names no type or several."""
        candidates = [key for key in item.items if key not in SETTING_KEYS and not key.startswith("x-")]
        known = [key for key in candidates if self.types.knows(key)]
        if len(known) == 1 and len(candidates) == 1:
            key = known[0]
            value = item.items[key]
            named = self.types.find(key)
            kind, schema = named.type, named.schema
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
            found = self._extra_keys.get(key)
            if found is None:
                found = self._extra_keys[key] = replace(EXTRA_KEYS, called={option: key})
            return TypedForm(key, written, pairs, extra=found)
        if len(known) > 1:
            message = f"{' and '.join(repr(key) for key in known)} are both assertion types; write one entry for each"
            reading.report.error("bad-assertion", item.keys[known[1]], message)
        elif known:
            other = next(key for key in candidates if key not in known)
            takes = self.types.takes(known[0], other)
            hint = f"write 'type: {known[0]}', and its options one by one" if takes else None
            reading.unknown_key(other, item, (), f"the short form of '{known[0]}'", EXTRA_KEYS, hint=hint)
        else:
            self._report_unknown(candidates, item, reading)
        return None

    def _report_unknown(self, candidates: list[str], item: MapNode, reading: Reading) -> None:
        if not candidates:
            reading.report.error("missing-key", item, "an assertion needs 'type'")
            return
        key = candidates[0]
        at = key_node(key, item)
        if (own := nearest(key, _OWN_FORMS)) and not nearest(key, self.types.names):
            reading.unknown_key(key, item, _OWN_FORMS, "an assertion", ExtraKeys(hinted=(own,)))
            return
        if "input" in item.items:
            hint = "this looks like a case, which belongs under 'tests'"
            reading.report.error("bad-assertion", item, "an assertion has no 'input'", hint=hint)
            return
        value = item.items[key]
        is_prose = isinstance(value, Scalar) and (" " in key.strip() or " " in value.text.strip())
        if isinstance(value, Scalar) and is_prose and len(item.items) == 1 and not did_you_mean(key, self.types.names):
            prose = f"{key}: {value.text}".replace('"', '\\"')
            message = f"no assertion type '{key}'; YAML reads a sentence with ': ' as a mapping"
            reading.report.error("unknown-assertion", item.keys[key], message, hint=f'quote it: "{prose}"')
            return
        self.types.report_unknown(key, at, reading)

    def _template(self, node: Node, reading: Reading) -> tuple[ListNode, Reading] | None:
        """The entries of an included template and the context to read them in, or None after reporting errors."""
        if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
            reading.report.unfit(node, "'include' takes a name or a path", "bad-include")
            return None
        path = _path_of(node, reading)
        if path is None:
            return None
        chain = reading.chain.through(node, path)
        if not _can_be_included(chain, reading):
            return None
        if path not in self._templates:
            own = Report(hints=reading.report.hints)
            loaded = load_template(path, node, replace(reading, report=own))
            self._templates[path] = loaded, tuple(one for one in own.diagnostics if one.severity == "error")
            for found in own.diagnostics:
                reading.report.add(found)
        entries, errors = self._templates[path]
        for found in errors:
            reading.report.add(found)  # again at every include: each omitted entry needs an error
        if entries is None:
            return None
        placeholders = holds_placeholder(entries)
        self.renders |= placeholders
        renders = reading.renders or (placeholders and not chain.alone)
        # a template in .agentv belongs to the project, even if data includes it
        data = reading.data and NAME.fullmatch(node.text.strip()) is None
        return entries, replace(reading, chain=chain, renders=renders, data=data)


_BEGIN = lazy_pattern(r"(?P<name>[A-Za-z][\w-]*)(?P<colon>:)?\s*(?<=[\s:])(?P<value>\S.*)", re.DOTALL)
_VALUE = lazy_pattern(r"\"[^\"]*\"|'[^']*'|[+-]?\d+(?:\.\d+)?")
"""A quoted text or a number with nothing after it: `Contains 3 reasons` is a sentence."""

_VERBS = frozenset({"contains", "equals", "icontains", "regex"})
"""Names of types after which a single word is a value, as in `contains hello`."""

_LONGEST = 61
"""Maximum number of characters of the value that the hint shows."""


def colon_forgotten(sentence: str, known: Callable[[str], bool]) -> tuple[str, str] | None:
    """The type at the start of a sentence and the entry that was probably meant, or None if it is a real sentence.

    An English word such as `contains` is not enough: a quoted text, a number or a single last word must follow, as in
    `contains hello`. No sentence starts with `not_contains`, or with a type and a colon.

    Args:
        sentence: as authored.
        known: whether a text is the name of an assertion type.
    """
    found = _BEGIN.fullmatch(sentence.strip())
    if found is None:
        return None
    name, value = found["name"], found["value"]
    is_short = name in _VERBS and " " not in value
    is_meant = found["colon"] or "-" in name or "_" in name or is_short or _VALUE.fullmatch(value)
    if not is_meant or not known(name):
        return None
    value = " ".join(value.split())
    return name, f"- {name}: {shorten(value, _LONGEST)}"


_OWN_FORMS = ("type", "include")


def _spells_options(value: MapNode, named: NamedType) -> bool:
    """Whether a mapping contains the options of a type, as opposed to the value of its main option."""
    if named.schema is not None:
        return not named.schema.takes_json and value.items.keys() <= (named.schema.rules.keys() | SETTING_KEYS)
    options = getattr(named.type, "options", None)
    return bool(value.items) and isinstance(options, tuple) and value.items.keys() <= set(options)


DEPTH = 3
"""Maximum number of nested includes; the one in the eval file is the first."""

_SUFFIXES = (".yaml", ".yml")

NAME = lazy_pattern(r"[^./\\][^/\\]*|(?:[^./\\][^/\\]*/)+[^./\\][^/\\]*(?<!\.yaml)(?<!\.yml)")
"""A template's name: no slash, or folders in `.agentv/templates` and no suffix. Everything else is a path."""

_URL = lazy_pattern(r"\w[\w+.-]*://")


def _can_be_included(chain: Chain, reading: Reading) -> bool:
    """Whether a template may be included; cycles and too many levels are reported at the include in the eval file."""
    path = chain.paths[-1]
    trail = " → ".join(f"{name} ({shown(at)})" for name, at in zip(chain.names, chain.paths, strict=True))
    if path in chain.paths[:-1]:
        reading.report.error("include-cycle", chain.origin, f"these templates include each other: {trail}")
        return False
    if len(chain.paths) > DEPTH:
        message = f"templates are nested {len(chain.paths)} levels deep; the limit is {DEPTH}: {trail}"
        reading.report.error("include-depth", chain.origin, message)
        return False
    return True


def load_template(path: str, node: Scalar | None, reading: Reading) -> ListNode | None:
    """The list of entries in a template file, or None after reporting that the file is invalid."""
    text = reading.text_of(path, node or Scalar(path, shown(path), Span.start_of(path)))
    if text is None:
        return None
    report = reading.report.section()
    reading = reading.reporting_to(report)
    root, valid = read_yaml(path, text.encode(), report)
    if root is None and not valid:
        return None
    if not isinstance(root, MapNode):
        found = kind_of(root) if root is not None else "nothing"
        message = f"a template is a mapping with a list 'assert', found {found}"
        report.error("bad-template-file", root or Span.start_of(path), message)
        return None
    entries = translated(root, TEMPLATE, reading, "a template").get("assert")
    if not isinstance(entries, ListNode) or not entries.items:
        if entries is not None or not report.failed:
            found = "none" if entries is None else kind_of(entries)
            message = f"a template needs a list of assertions under 'assert', found {found}"
            report.error("bad-template-file", entries or root, message)
        return None
    return entries


def _path_of(node: Scalar, reading: Reading) -> str | None:
    written = node.text.strip()
    if _URL.match(written.removeprefix("file://")):
        hint = "copy it into .agentv/templates, or include a path of this repository"
        reading.report.error("bad-include", node, "a template cannot be a URL", hint=hint)
        return None
    above = upwards(reading.places.suite, reading.places.root)
    homes = [Path(directory, ".agentv", "templates") for directory in above]
    if not NAME.fullmatch(written):
        own = replace(reading, places=reading.places.without_climbing())
        found, tried = own.places.find(written, span_of(node.at).file)
        if found is not None and is_file(found):
            own.note_found(written, node, found)
            return found
        expected = own.expected(node)
        if found is not None or expected is not None or not own.refuse_outside(node, "template"):
            _missing(node, tried, expected or sibling(written, tried) or _nearest(written, homes), reading)
        return None
    names = (written,) if written.endswith(_SUFFIXES) else tuple(f"{written}{suffix}" for suffix in _SUFFIXES)
    for home in homes:
        found_here = [str(home / name) for name in names if is_file(str(home / name))]
        if len(found_here) > 1:
            message = f"'{written}' is read from {shown(found_here[0])}; {shown(found_here[1])} is ignored"
            reading.report.warning("unused-template", node, message, hint="delete one of them")
        if found_here:
            return found_here[0]
    _missing(node, tuple(str(home / name) for home in homes for name in names), _nearest(written, homes), reading)
    return None


def _nearest(written: str, homes: Iterable[Path]) -> str | None:
    """A hint with the most similar template name, or None."""
    name = os.path.splitext(written)[0]  # noqa: PTH122
    return did_you_mean(name, [one for home in homes for one in templates_in(str(home))])


def _missing(node: Scalar, tried: tuple[str, ...], hint: str | None, reading: Reading) -> None:
    other = next((path for path in tried if exists(path)), None)
    hint = f"{shown(other)} is not a file" if other is not None else hint
    reading.report.error(
        "missing-template", node, f"no template '{node.text.strip()}'", hint=hint, notes=notes_of(tried)
    )
