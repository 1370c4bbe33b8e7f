"""The assertion types that a suite can use, by all their names, and entries with `type:` (SPEC section 7)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field, structs
from msgspec.structs import asdict

from agentv.authoring.fields.decode import INVALID, OptionsSchema, report_issue, shape_of
from agentv.authoring.fields.kinds import names_file, refuse_data
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.fields.schema import AuthoredSettings
from agentv.authoring.source.files import shown
from agentv.authoring.source.masking import secrets_in
from agentv.authoring.source.nearest import ASSERTION_TYPES, MEANT, did_you_mean, type_name
from agentv.authoring.source.nodes import MapNode, Node, Scalar, kind_of, plain, span_of
from agentv.authoring.targets.target import PLUGINS_COMMAND
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry, AssertionSettings
from agentv.model.values.values import Span
from agentv.registry.fields import is_declared, options_of
from agentv.registry.plugins import Plugin, PluginCode
from agentv.registry.types import AssertionType, Discovered, OpenAssertionType, Registry
from agentv.user_code.guard import ForeignError, foreign_code

AnyType = AssertionType | OpenAssertionType

_ALL, _ANY = "write an 'assert-set'", "write an 'assert-set' whose 'threshold' some of its entries reach"
_RUBRIC = "write what the answer must fulfil as a sentence for the judge: llm-rubric: …"
_UNKNOWN_TYPE_HINTS = {
    **dict.fromkeys(("and", "all", "all-of"), _ALL),
    **dict.fromkeys(("or", "any", "any-of"), _ANY),
    "not": "write 'not-' before a type, or 'negate: true' next to it",
    **dict.fromkeys(("exact", "exact-match", "is", "eq"), "did you mean 'equals'?"),
    **dict.fromkeys(("includes", "include-text", "has", "substring"), "did you mean 'contains'?"),
    **dict.fromkeys(("length", "words", "max-words", "min-length", "max-length"), "did you mean 'word-count'?"),
    **dict.fromkeys(("judge", "llm", "model-graded", "model-graded-qa"), "did you mean 'llm-rubric'?"),
    **dict.fromkeys(("json", "valid-json", "is-valid-json"), "did you mean 'is-json'?"),
    **dict.fromkeys(("has-json", "includes-json", "json-contains"), "did you mean 'contains-json'?"),
    **dict.fromkeys(("schema", "matches-schema", "matches-json-schema"), "did you mean 'json-schema'?"),
    **dict.fromkeys(("pattern", "re"), "did you mean 'regex'?"),
    **dict.fromkeys(("code", "exec"), "did you mean 'script'?"),
    **dict.fromkeys(("faithfulness", "groundedness"), "did you mean 'context-faithfulness'?"),
    "hallucination": "write 'context-faithfulness': it passes if the context supports the answer",
    **dict.fromkeys(("answer-relevancy", "response-relevancy", "relevancy"), "did you mean 'answer-relevance'?"),
    **dict.fromkeys(("contextual-recall", "retrieval-recall"), "did you mean 'context-recall'?"),
    **dict.fromkeys(
        ("contextual-relevancy", "contextual-precision", "context-precision"), "did you mean 'context-relevance'?"
    ),
    **dict.fromkeys(("answer-correctness", "correctness", "factual-correctness"), "did you mean 'factuality'?"),
    **dict.fromkeys(("semantic-similarity", "embedding-similarity"), "did you mean 'similar'?"),
    **dict.fromkeys(("tool-correctness", "tool-call-accuracy"), "did you mean 'tool-trajectory'?"),
    **dict.fromkeys(("toxicity", "bias", "moderation", "pii", "harmful", "summarization", "g-eval"), _RUBRIC),
}
"""Name that other tools or authors use for a type → hint for this unknown name."""


class NamedType(NamedTuple):
    """Meaning of a type name.

    Attributes:
        type: None if no type has this name.
        inverted: whether the name starts with `not-`.
        schema: the declared options; None for a custom type.
        canonical: the canonical name, if this is an older spelling; otherwise None.
    """

    type: AnyType | None
    inverted: bool
    schema: OptionsSchema | None
    canonical: str | None = None


class AssertionTypes(Struct, frozen=True):
    """The assertion types of one suite; also reads entries with `type:`.

    Attributes:
        built_in: types from agentv and from plugins.
        custom: types from the project's `.agentv/assertions`.
    """

    built_in: Registry[AssertionType]
    custom: Discovered
    _found: dict[str, NamedType] = field(default_factory=dict)
    _shared: dict[tuple[type, str | None], Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Every type name that can be written, including older spellings and types that are not supported yet."""
        return [*self.built_in.names, *self.custom.types, *ASSERTION_TYPES, *sorted(self.built_in.not_yet)]

    def find(self, written: str) -> NamedType:
        """Resolve a name."""
        found = self._found.get(written)
        if found is None:
            own = written.strip().replace("_", "-")
            custom = self.custom.types.get(own)
            name, inverted = type_name(written)
            if custom is None:
                custom = self.custom.types.get(name)
            else:
                inverted = False
            kind: AnyType | None = custom
            schema = None
            if custom is None and (built_in := self.built_in.find(name)) is not None:
                kind, schema = built_in, shape_of(built_in.options)
            bare = own.removeprefix("not-")
            canonical = ASSERTION_TYPES.get(bare)
            if kind is None or canonical != kind.name:
                canonical = None
            elif bare != own:
                canonical = f"not-{canonical}"
            found = self._found[written] = NamedType(kind, inverted, schema, canonical)
        return found

    def knows(self, written: str) -> bool:
        """Whether a text is the name of a type, even of one that cannot be used."""
        if self.find(written).type is not None:
            return True
        name = type_name(written)[0]
        return name in self.built_in.not_yet or self.built_in.problem(name) is not None

    def takes(self, name: str, option: str) -> bool:
        """Whether a type, by any of its names, has an option."""
        named = self.find(name)
        if named.schema is not None:
            return option in named.schema.rules
        return named.type is not None and option in (getattr(named.type, "options", None) or ())

    def short(self, name: str) -> str | None:
        """The option that the value sets in the short form of a type, or None."""
        named = self.find(name)
        found: str | None = getattr(named.type if named.schema is None else named.schema.cls, "short", None)
        return found and found.rstrip("_")

    def report_unknown(self, written: str, at: Node, reading: Reading) -> None:
        """Report an unknown type name, or one that cannot be used, with the likely fix."""
        name, inverted = type_name(written)
        if name in self.built_in.not_yet:
            reading.report.error("not-yet", at, f"the assertion type '{name}' is recognized but not supported yet")
            return
        problem = self.built_in.problem(name) or self.built_in.problem(written)
        if problem is not None:
            reading.report.error(problem.code, at, problem.message, hint=problem.hint, notes=(PLUGINS_COMMAND,))
            return
        for file, issue in self.custom.issues:
            if issue.code == "ambiguous-assertion" and Path(file).stem.replace("_", "-") == name:
                reading.report.error(issue.code, Span.start_of(file), issue.message)  # again, as the cause
                return
        hint = _UNKNOWN_TYPE_HINTS.get(name) or did_you_mean(name, self.names)
        if hint and inverted:
            hint = hint.replace("did you mean '", "did you mean 'not-", 1)
        homes = (shown(folder.removesuffix("/.agentv/assertions")) for folder in self.custom.searched)
        folders = ", ".join(home if home == "." else f"{home}/" for home in homes)
        notes = (f"searched .agentv/assertions in: {folders}",) if folders else ()
        reading.report.error("unknown-assertion", at, f"no assertion type '{written}'", hint=hint, notes=notes)

    def read(self, form: TypedForm, reading: Reading) -> AssertionEntry | None:
        """The assertion, or None after reporting what is wrong with it."""
        kind, inverted, schema, canonical = self.find(form.written)
        if kind is None:
            self.report_unknown(form.written, form.at, reading)
            return None
        if reading.data and schema is not None and getattr(schema.cls, "runs_code", False):
            refuse_data(form.at, reading.report, f"run code, as '{kind.name}' does")
            return None
        if canonical is not None:
            reading.report.older(form.written, canonical, form.at)
        form = _completed(form, kind, schema, reading)
        pairs = form.pairs
        settings: AssertionSettings | None = DEFAULTS
        options: Mapping[str, Node] | None = pairs
        if not pairs.keys() <= _TYPE_AND_VALUE:  # most entries have no other keys: keep them fast
            settings = _settings(pairs, form.item, schema, reading)
            options = pairs if schema is None else _options(form, schema, reading)
        if inverted and settings is not None:
            settings = _INVERTED if settings is DEFAULTS else structs.replace(settings, negate=not settings.negate)
        if options is None:
            return None
        plugin = kind.plugin if isinstance(kind, AssertionType) else None
        assertion = self._assertion(kind, schema, options, form, reading)
        if assertion is INVALID or assertion is None or settings is None:
            return None
        entry = AssertionEntry(kind.name, assertion, settings, span_of(form.item.at), plugin.identity if plugin else "")
        for one in (entry, *entry.inner) if schema is not None else ():  # an inner aggregator can have secrets, too
            if one.plugin or getattr(one.assertion, "runs_code", False):
                reading.secrets.update(_secrets_of(one.assertion))
        return entry

    def _assertion(
        self,
        kind: AnyType,
        schema: OptionsSchema | None,
        options: Mapping[str, Node],
        form: TypedForm,
        reading: Reading,
    ) -> Any:
        """The assertion made from the options, or INVALID after reporting what is wrong with them."""
        if schema is None:
            warn_of_shadowed_plugin(self.built_in.plugin(kind.name), getattr(kind, "path", None), reading)
            return _custom_assertion(kind, form.pairs, form.item, reading)  # type: ignore[arg-type]
        plugin = kind.plugin if isinstance(kind, AssertionType) else None
        if plugin is not None:
            return made_by_plugin(schema, plugin, options, form.item, reading, form.extra)
        key = None if reading.renders or reading.vars_are_data else _shared_key(schema, options)
        if key in self._shared:
            return self._shared[key]
        before = reading.report.added
        assertion = schema.decode(options, form.item, reading, f"'{kind.name}'", extra=form.extra)
        if key is not None and reading.report.added == before and len(self._shared) < _MOST_SHARED:
            self._shared[key] = assertion
        return _with_shared_preprocessors(assertion, reading) if reading.rubric else assertion


_TIME_LIMIT = "timeout"
_PASS_MARKS = ("threshold", "passthreshold", "minimumscore")
"""Keys that set a pass mark in other types, but are passed on to user code by a type with an `extra_option`."""


def with_extra_option(
    pairs: Mapping[str, Node], item: MapNode, schema: OptionsSchema, settings: Collection[str], reading: Reading
) -> Mapping[str, Node] | None:
    """The options of an entry, with unknown keys moved into the mapping that the type declares for them.

    A key similar to an option stays, so that it is reported: a misspelt `required` must not disappear.

    Args:
        pairs: the keys of the entry.
        item: the entry as authored.
        schema: schema of the type's options.
        settings: keys that every assertion accepts.
        reading: context of the case.

    Returns:
        The options, or None after reporting a key that is in both places.
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
        if any(_one_edit(_without_dashes(key), mark) for mark in _PASS_MARKS):
            message = f"'{key}' is passed on in '{option}'; this assertion does not compare its score with it"
            hint = f"write 'min_score', or put '{key}' under '{option}'"
            reading.report.warning("no-effect", item.keys[key], message, hint=hint)
    keys = {**{key: item.keys[key] for key in extra}, **inside.keys}
    merged = MapNode({**extra, **inside.items}, keys, inside.at)
    return {**{key: node for key, node in pairs.items() if key not in extra}, option: merged}


def _is_extra(key: str, known: Collection[str]) -> bool:
    """Whether a key is neither known nor, ignoring `-`, `_` and case, within one edit of a known key."""
    if key in known or key.startswith("x-") or MEANT.get(key) in known:
        return False
    joined = _without_dashes(key)
    return not joined.startswith(_TIME_LIMIT) and not any(_one_edit(joined, _without_dashes(one)) for one in known)


def _one_edit(one: str, other: str) -> bool:
    """Whether two names are equal or differ by one edit."""
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other) <= 1


def _without_dashes(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


_SETTINGS = shape_of(AuthoredSettings)
SETTING_KEYS = frozenset(_SETTINGS.rules)
"""Keys that every assertion accepts."""

EXTRA_KEYS = ExtraKeys(listed=tuple(_SETTINGS.names), hinted=tuple(SETTING_KEYS), passed="type")
"""Keys that are allowed next to the options of a type."""

RUBRIC = "llm-rubric"
"""The type to which a suite's or case's judge prompt and other options for rubrics apply."""

_TYPE_AND_VALUE = frozenset({"type", "value"})
_INVERTED = AssertionSettings(negate=True)
_NOT_OWN = SETTING_KEYS | {"type", "config"}


class TypedForm(Struct, frozen=True):
    """An entry with its type written out: the canonical form, to which the others are converted.

    Attributes:
        written: the name of the type, as authored.
        item: the authored mapping, for positions.
        pairs: options by key.
        type_node: value of `type`; None if a key is the type's name.
        extra: further keys that are allowed.
    """

    written: str
    item: MapNode
    pairs: Mapping[str, Node]
    type_node: Node | None = None
    extra: ExtraKeys = EXTRA_KEYS

    @property
    def at(self) -> Node:
        """The node that names the type, for positions."""
        return self.type_node or key_node(self.written, self.item)


def key_node(key: str, item: MapNode) -> Scalar:
    """A key of a mapping as a node."""
    return Scalar(key, key, item.keys.get(key, item.at))


_MOST_SHARED = 1000
"""Maximum number of assertions kept to share with equal entries; most files repeat some entries in every case."""


def _shared_key(schema: OptionsSchema, options: Mapping[str, Node]) -> tuple[type, str | None] | None:
    """A key that is equal for entries with equal assertions; None if they depend on more than text, such as a file."""
    if not getattr(schema.cls, "of_text_alone", False) or not options.keys() <= _TYPE_AND_VALUE:
        return None
    value = options.get("value")
    if value is None:
        return schema.cls, None
    if not isinstance(value, Scalar) or type(value.value) is not str or names_file(value):
        return None
    return (schema.cls, value.value) if schema.rules["value"].kind.from_file else None


def _id_as_name(form: TypedForm, reading: Reading) -> TypedForm:
    """The entry with its `id`, as assertions in AgentV's files have, renamed to `name`."""
    at, pairs = form.item.keys["id"], {**form.pairs}
    if form.pairs.keys() & {"name", "metric"}:
        del pairs["id"]
        reading.report.remark("no-effect", at, "'id' has no effect beside 'name'")
        return structs.replace(form, pairs=pairs)
    reading.report.older("id", "name", at)
    pairs = {"name" if key == "id" else key: node for key, node in form.pairs.items()}
    return structs.replace(
        form, pairs=pairs, item=MapNode(form.item.items, {**form.item.keys, "name": at}, form.item.at)
    )


def _completed(form: TypedForm, kind: AnyType, schema: OptionsSchema | None, reading: Reading) -> TypedForm:
    """The entry with `options` and `id` translated, and with the suite's options for its type as defaults."""
    if schema is not None and "options" in form.pairs and "options" not in schema.rules:
        inner, report = form.pairs["options"], reading.report
        pairs = {key: node for key, node in form.pairs.items() if key != "options"}
        if not isinstance(inner, MapNode):
            report.error("bad-value", inner, f"'options' must be a mapping, found {kind_of(inner)}")
            form = structs.replace(form, pairs=pairs)
        else:
            for key, at in inner.keys.items():
                if key == "transform" and key in pairs:
                    message = "'transform' is set both here and in 'options'; keep one of them"
                    report.error("two-spellings", at, message)
                elif key == "transform":
                    report.older("options.transform", "transform", at)
                    pairs[key] = inner.items[key]
                elif not key.startswith("x-"):
                    reading.unknown_key(key, inner, ("transform",), "'options' of an assertion")
            places = {**{key: form.item.keys[key] for key in form.item.keys if key != "options"}, **inner.keys}
            form = structs.replace(form, pairs=pairs, item=MapNode(pairs, places, form.item.at))
    if schema is not None and "id" in form.pairs and not {"id", "name", "metric"} & schema.rules.keys():
        form = _id_as_name(form, reading)
    if kind.name in reading.given:
        form = structs.replace(form, pairs={**reading.given[kind.name], **form.pairs})
    if kind.name != RUBRIC or not reading.rubric:
        return form
    given = {key: value for key, (value, _) in reading.rubric.items() if key not in form.pairs}
    places = {key: at for key, (_, at) in reading.rubric.items()}
    item = MapNode(form.item.items, {**places, **form.item.keys}, form.item.at)
    return structs.replace(form, item=item, extra=structs.replace(form.extra, given={**form.extra.given, **given}))


def _with_shared_preprocessors(assertion: Any, reading: Reading) -> Any:
    """The rubric with the suite's preprocessors after its own: the first one for a media type is used."""
    shared, _ = reading.rubric.get("preprocessors", ((), None))
    own = getattr(assertion, "preprocessors", None)
    if not own or not shared or own is shared:
        return assertion
    from dataclasses import replace

    return replace(assertion, preprocessors=(*own, *shared))


def _settings(
    pairs: Mapping[str, Node], item: MapNode, schema: OptionsSchema | None, reading: Reading
) -> AssertionSettings | None:
    taken = schema.rules if schema is not None else ()
    own = {key: node for key, node in pairs.items() if key in SETTING_KEYS and key not in taken}
    if not own:
        return DEFAULTS
    read = _SETTINGS.decode(own, item, reading, "an assertion")
    if read is INVALID:
        return None
    return AssertionSettings(**asdict(read))


def _custom_assertion(kind: OpenAssertionType, pairs: Mapping[str, Node], item: MapNode, reading: Reading) -> Any:
    """The assertion of a custom type, from all its keys and those under `config`; INVALID after reporting errors."""
    own = {
        key: reading.rendered(node) for key, node in pairs.items() if key not in _NOT_OWN and not key.startswith("x-")
    }
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
        if getattr(built, "runs_javascript", False):
            reading.note_javascript(item)
        return built
    for issue in built:
        report_issue(issue, None, nodes, MapNode(nodes, keys, item.at), reading)
    return INVALID


def _options(form: TypedForm, schema: OptionsSchema, reading: Reading) -> dict[str, Node] | None:
    """The type's own options, without settings of every assertion, or None after reporting a key that is set twice."""
    pairs = with_extra_option(form.pairs, form.item, schema, SETTING_KEYS, reading)
    if pairs is None:
        return None
    return {key: node for key, node in pairs.items() if key == "type" or key not in SETTING_KEYS or key in schema.rules}


def _secrets_of(assertion: Any) -> Iterator[str]:
    """Secrets in the options of an assertion that runs user code or calls a user's server, such as in headers."""
    for name in options_of(assertion) if is_declared(assertion) else ():
        value = getattr(assertion, name)
        if isinstance(value, (str, list, tuple, Mapping)):
            yield from secrets_in({name: list(value) if isinstance(value, tuple) else value})


def made_by_plugin(
    shape: OptionsSchema,
    plugin: PluginCode,
    options: Mapping[str, Node],
    item: MapNode,
    reading: Reading,
    extra: ExtraKeys,
) -> Any:
    """The assertion made by a plugin's type, or INVALID after reporting bad options or an exception of its code."""
    try:
        with foreign_code("bad-plugin", plugin.title):
            made = shape.decode(options, item, reading, plugin.title, extra=extra)
            label = "" if made is INVALID else made.label()
    except ForeignError as error:
        reading.report.error(error.failure.code, item, error.failure.message, notes=(PLUGINS_COMMAND,))
        return INVALID
    if not isinstance(label, str):
        message = f"{plugin.title} is broken: label() must return text, returned {type(label).__name__}"
        reading.report.error("bad-plugin", item, message, notes=(PLUGINS_COMMAND,))
        return INVALID
    return made


def warn_of_shadowed_plugin(plugin: Plugin | None, file: object, reading: Reading) -> None:
    """Warn that a file of the project replaces a plugin of the same name, if there is such a plugin."""
    if plugin is None or not isinstance(file, str):
        return
    message = f"{plugin.title} is not used: {shown(file)} has this name and is used instead"
    at = Span.start_of(file)
    reading.report.warning("shadowed-plugin", at, message, hint="rename the file to use the plugin")
