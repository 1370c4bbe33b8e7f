"""Validate values from a model, which may be hostile, against JSON Schemas of any draft.

The `jsonschema` library does the work. This module replaces the keywords that a hostile answer could make hang (those
that search get a time limit, and `uniqueItems` compares by hash instead of pair by pair), those that Python implements
differently from the specification (patterns are ECMA's, `multipleOf` is exact for decimals) and `format`, which is
checked. Nothing is ever fetched over the network: callers pass in the documents of other files.
Import this module only when a schema is in use: the import takes 0.1 s.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from time import monotonic
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from jsonschema import (
    Draft3Validator,
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it comes with jsonschema
from msgspec import Struct
from referencing import Registry, Resource, Specification
from referencing import jsonschema as specifications
from referencing.exceptions import NoSuchResource, Unresolvable

from agentv.matching.formats import FORMATS
from agentv.matching.patterns import JAVASCRIPT, TIMEOUT_S, PatternError, compiled, search
from agentv.matching.spelling import nearest
from agentv.model.values.formatting import LIMIT, excerpt
from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.registry.fields import Issue

NEWEST = "2020-12"
"""Draft of schemas that declare none."""

NO_FILES: Mapping[str, Json] = MappingProxyType({})

SHOWN = 3
"""Maximum number of errors of one answer that are shown."""

_MISSPELT = 0.75
"""Similarity to a known keyword, 0..1, from which an unknown one counts as misspelt."""

_ANNOTATIONS = frozenset(
    {"$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$schema", "$vocabulary", "definitions"}
    | {"default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
    | {"contentEncoding", "contentMediaType", "contentSchema", "else", "format", "maxContains", "minContains", "then"}
    | {"discriminator", "example", "externalDocs", "nullable", "xml"}
)
"""Keywords that assert nothing by themselves, including those of OpenAPI."""

MAX_STEPS = 300_000
"""Maximum number of keywords applied to the parts of one value, which takes some seconds."""


class _Budget(Struct):
    """Limits of one validation: the time by `time.monotonic()` until which it may search, and the keywords left."""

    until: float
    steps: int


_budget: ContextVar[_Budget] = ContextVar("of the validation under way")


class _Draft(Struct, frozen=True):
    """A draft of JSON Schema: its validator, and the rules by which its documents refer to each other."""

    name: str
    validator: Any
    specification: Specification[Any]


class Schema:
    """A JSON Schema that values can be checked against.

    Args:
        document: the schema as plain data.
        base: URI that its references are relative to.
        files: URI → document, for other files that the schema refers to.
    """

    def __init__(self, document: Json, base: str = "", files: Mapping[str, Json] = NO_FILES) -> None:
        self._document = document
        self._draft = draft_of(document) or _DRAFTS[NEWEST]
        # a document that is no schema accepts nothing; `validate` reports it
        usable = document if isinstance(document, bool | Mapping) else False
        self._documents = {base: usable, **files}
        self._registry: Registry[Any] = REGISTRY.with_resources(
            (uri, _resource(one, self._draft)) for uri, one in self._documents.items()
        )
        self._validator = self._draft.validator(usable, registry=self._registry, _resolver=self._resolver(base))

    def _resolver(self, uri: str) -> Any:
        resource = _resource(self._documents[uri], self._draft)
        return self._registry.resolver(uri).in_subresource(resource)

    def errors(self, value: Json) -> tuple[str, ...] | Failure:
        """Return the errors of a value, as `$.items[0]: 'x' is not of type 'integer'`, or a Failure.

        The failure's code is `regex-timeout` if the searches took too long, and `schema-limit` if a value is too deeply
        nested, a number is too large, or there are too many values to check.
        """
        token = _budget.set(_Budget(monotonic() + TIMEOUT_S, MAX_STEPS))
        try:
            found = islice(self._validator.iter_errors(value), SHOWN)
            return tuple(excerpt(f"{excerpt(one.json_path, LIMIT // 2)}: {one.message}") for one in found)
        except _StepsError:
            message = f"applying the schema to the value takes more than {MAX_STEPS:,} keywords"
            return Failure("schema-limit", f"the JSON Schema cannot be applied: {message}")
        except TimeoutError:
            return Failure("regex-timeout", f"the patterns of the JSON Schema took more than {TIMEOUT_S:g} s")
        except RecursionError:
            message = "the schema refers to itself without end, or the value is nested too deeply"
            return Failure("schema-limit", f"the JSON Schema cannot be applied: {message}")
        except (ArithmeticError, Unresolvable) as error:
            return Failure("schema-limit", f"the JSON Schema cannot be applied: {type(error).__name__}: {error}")
        finally:
            _budget.reset(token)

    def validate(self, option: str) -> Iterator[Issue]:
        """Yield problems of the schema itself, for reports when an eval file is loaded.

        Args:
            option: name of the option that holds the schema.
        """
        if not isinstance(self._document, bool | Mapping):
            yield Issue(
                (option,), "a JSON Schema is an object, or the path of a JSON file that contains one", "bad-schema"
            )
        elif self._document is False:
            yield Issue((option,), "the JSON Schema 'false' accepts no answer", "bad-schema")
        else:
            for uri, document in self._documents.items():
                yield from self._issues_of(uri, document, option)

    def _issues_of(self, uri: str, document: Json, option: str) -> Iterator[Issue]:
        draft = draft_of(document, self._draft)
        named = f" of {uri.rpartition('/')[2]}" if document is not self._document else ""
        if draft is None and isinstance(document, Mapping):
            message = f"the JSON Schema{named} declares {excerpt(repr(document['$schema']))}, which is no known draft"
            yield Issue(
                (option, "$schema"),
                message,
                "bad-schema",
                f"known drafts: {', '.join(_DRAFTS)}; the newest is {_URIS[NEWEST]}",
            )
            return
        draft = draft or self._draft
        try:
            # formats are not checked: patterns are compiled below, the way they will be used
            draft.validator.check_schema(document, format_checker=None)
        except SchemaError as error:
            message = f"not a valid JSON Schema{named} ({draft.name}): {excerpt(error.message)}"
            yield Issue((option, *error.path), message, "bad-schema")
            return
        for place, inner in _subschemas(_resource(document, self._draft), self._resolver(uri)):
            if isinstance(place.contents, Mapping):
                yield from _keyword_issues(place.contents, inner, draft_of(place.contents, draft) or draft, option)


def schema_from(document: Json, base: str = "", files: Mapping[str, Json] = NO_FILES) -> Schema:
    """Return the schema for a document, cached by content."""
    return _schema_from_text(json.dumps([document, base, dict(files)], sort_keys=True))


@lru_cache(maxsize=256)
def _schema_from_text(text: str) -> Schema:
    document, base, files = json.loads(text)
    return Schema(document, base=base, files=files)


def draft_of(document: Json, default: _Draft | None = None) -> _Draft | None:
    """Return the draft that a schema declares, or the default if it declares none; None for an unknown draft."""
    declared = document.get("$schema") if isinstance(document, Mapping) else None
    if not isinstance(declared, str):
        return default or _DRAFTS[NEWEST]
    plain = declared.removesuffix("#").replace("https://", "http://", 1)
    return next((_DRAFTS[name] for name, uri in _URIS.items() if uri.replace("https://", "http://", 1) == plain), None)


def files_of(document: Json, base: str, read: Callable[[str], Json | None]) -> dict[str, Json]:
    """Return URI → document for all files that a schema refers to, directly or through other files.

    Args:
        document: the schema.
        base: URI of its own file.
        read: returns the document of a file, or None if the file is missing; paths are from the root of all URIs.
    """
    draft = draft_of(document) or _DRAFTS[NEWEST]
    found: dict[str, Json] = {}
    homes = {base: urlsplit(base).path}
    left = {base: document}

    def retrieve(uri: str) -> Resource[Any]:
        if uri not in found:
            path = next((path for path in _candidates(uri, homes) if (given := read(path)) is not None), None)
            if path is None:
                raise NoSuchResource(uri)
            left[uri] = found[uri] = given
            homes[uri] = path
        return _resource(found[uri], draft)

    registry = Registry(retrieve=retrieve).with_resources(REGISTRY.items())  # type: ignore[call-arg]  # as documented
    while left:
        uri, one = left.popitem()
        resource = _resource(one, draft)
        if (own := resource.id()) is not None:
            homes[urljoin(uri, own)] = homes[uri]
        outer = registry.with_resource(uri, resource).resolver(uri)
        # references may be relative to the URI of the document's file, or to the URI that it declares
        for resolver in (outer, outer.in_subresource(resource)):
            for place, inner in _subschemas(resource, resolver):
                reference = place.contents.get("$ref") if isinstance(place.contents, Mapping) else None
                if isinstance(reference, str):
                    with suppress(Unresolvable):  # `validate` reports it
                        inner.lookup(reference)
    return found


def _candidates(uri: str, homes: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths that a URI may mean: relative to each known file as the URI is relative to that file's URI."""
    wanted = urlsplit(uri)
    for known, path in homes.items():
        own = urlsplit(known)
        if (own.scheme, own.netloc) == (wanted.scheme, wanted.netloc):
            away = posixpath.relpath(unquote(wanted.path) or "/", posixpath.dirname(unquote(own.path)) or "/")
            yield posixpath.normpath(posixpath.join(posixpath.dirname(path), away))


def _resource(document: Json, default: _Draft) -> Resource[Any]:
    draft = draft_of(document, default) or default
    try:
        draft.validator.check_schema(document, format_checker=None)
    except SchemaError:  # its ids and subschemas cannot be found
        return Specification.OPAQUE.create_resource(document)
    return draft.specification.create_resource(document)


def _subschemas(resource: Resource[Any], resolver: Any) -> Iterator[tuple[Resource[Any], Any]]:
    yield resource, resolver
    for inner in resource.subresources():
        yield from _subschemas(inner, resolver.in_subresource(inner))


def _keyword_issues(schema: Mapping[str, Any], resolver: Any, draft: _Draft, option: str) -> Iterator[Issue]:
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema and keyword in draft.validator.VALIDATORS:
            yield from _reference_issues(keyword, schema[keyword], resolver, option)
    if "$ref" in schema and draft.name in _REF_ALONE:
        ignored = sorted((schema.keys() & draft.validator.VALIDATORS.keys()) - {"$ref"})
        if ignored:
            message = f"beside '$ref', {draft.name} ignores {', '.join(map(repr, ignored))}"
            hint = "put both into 'allOf', or declare a later draft"
            yield Issue((option,), message, "bad-schema", hint, warning=True)
        return
    for pattern in (schema.get("pattern"), *schema.get("patternProperties", ())):
        try:
            compiled(pattern or "", JAVASCRIPT)
        except PatternError as error:
            yield Issue((option,), f"the pattern {excerpt(repr(pattern))} does not compile: {error}", "bad-regex")
    named = schema.get("format")
    if isinstance(named, str) and named not in FORMATS:
        message = f"the format {excerpt(named)!r} is not known, and is not checked"
        near = nearest(named, FORMATS, _MISSPELT)
        hint = f"did you mean '{near}'?" if near else f"checked formats: {', '.join(FORMATS)}"
        yield Issue((option,), message, "bad-schema", hint, warning=True)
    known = {*draft.validator.VALIDATORS}
    if draft.name in _REF_ALONE:  # later meta-schemas also list keywords that were dropped
        known |= {*draft.validator.META_SCHEMA["properties"]}
    for keyword in sorted(schema.keys() - known - _ANNOTATIONS):
        yield from _unknown_keyword(keyword, draft, option)


def _reference_issues(keyword: str, reference: Any, resolver: Any, option: str) -> Iterator[Issue]:
    try:
        resolver.lookup(reference)
    except Unresolvable:
        message = f"'{keyword}: {excerpt(reference)}' refers to nothing in this schema, and to no file"
        remote = "schemas are not fetched over the network: put the file beside this one, and name its path"
        yield Issue((option,), message, "bad-schema", remote if "://" in reference else None)


def _unknown_keyword(keyword: str, draft: _Draft, option: str) -> Iterator[Issue]:
    others = [one.name for one in _DRAFTS.values() if keyword in one.validator.VALIDATORS]
    if others:
        message = f"'{keyword}' is a keyword of {', '.join(others)}; {draft.name} ignores it"
        hint = f"declare the draft in '$schema': {_URIS[others[-1]]}"
        yield Issue((option,), message, "bad-schema", hint, warning=True)
    elif near := nearest(keyword, [*draft.validator.VALIDATORS, *_ANNOTATIONS], _MISSPELT):
        message = f"JSON Schema has no keyword '{keyword}', and ignores it"
        yield Issue((option,), message, "bad-schema", f"did you mean '{near}'?", warning=True)


def _matches(pattern: str, text: str) -> bool:
    return search(compiled(pattern, JAVASCRIPT), text, max(_budget.get().until - monotonic(), 0.001)) is not None


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield ValidationError(f"{excerpt(instance)!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        for pattern, subschema in patterns.items():
            for key, value in instance.items():
                if _matches(pattern, key):
                    yield from validator.descend(value, subschema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        named, patterns = schema.get("properties", {}), tuple(schema.get("patternProperties", ()))
        others = (key for key in instance if key not in named and not any(_matches(one, key) for one in patterns))
        yield from _of_others(validator, allowed, instance, others)


def _of_others(validator: Any, allowed: Any, instance: Any, keys: Iterable[str]) -> Iterator[ValidationError]:
    """Yield the errors of keys that no other keyword covers."""
    for key in keys:
        if allowed is False:
            yield ValidationError(f"the key {excerpt(key)!r} is not allowed")
        else:
            yield from validator.descend(instance[key], allowed, path=key)


def _format(validator: Any, name: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    check = FORMATS.get(name) if validator.is_type(instance, "string") else None
    if check is not None and not check(instance):
        yield ValidationError(f"{excerpt(instance)!r} is not of the format {name!r}")


def _multiple_of(validator: Any, divisor: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "number") and _exact(instance) % _exact(divisor):
        yield ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


def _exact(number: float) -> Fraction:
    """Return the exact value of a number's decimal notation: 0.01 is a hundredth."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _unevaluated_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        evaluated = _evaluated(validator, instance, schema)
        yield from _of_others(validator, allowed, instance, (key for key in instance if key not in evaluated))


def _evaluated(validator: Any, instance: Mapping[str, Any], schema: Any) -> set[str]:
    """Return the object's keys that are evaluated by the schema, or by its subschemas that accept the object."""
    if not isinstance(schema, Mapping):
        return set()
    keys = {*schema.get("properties", ())} & {*instance}
    for pattern in schema.get("patternProperties", ()):
        keys |= {key for key in instance if _matches(pattern, key)}
    rest = [schema[name] for name in ("additionalProperties", "unevaluatedProperties") if name in schema]
    keys |= {key for key in instance for one in rest if _accepts(validator, instance[key], one)}
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            found = validator._resolver.lookup(schema[keyword])  # noqa: SLF001  # as the library's own keywords do
            inner = validator.evolve(schema=found.contents, _resolver=found.resolver)
            keys |= _evaluated(inner, instance, found.contents)
    parts = [one for keyword in ("allOf", "anyOf", "oneOf") for one in schema.get(keyword, ())]
    parts += [one for key, one in schema.get("dependentSchemas", {}).items() if key in instance]
    if "if" in schema:
        holds = _accepts(validator, instance, schema["if"])
        parts += [schema["if"]] if holds else []
        parts.append(schema.get("then" if holds else "else", True))
    for one in parts:
        if _accepts(validator, instance, one):
            keys |= _evaluated(validator, instance, one)
    return keys


def _accepts(validator: Any, instance: Any, schema: Any) -> bool:
    return next(iter(validator.descend(instance, schema)), None) is None


def _unique_items(validator: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if wanted and validator.is_type(instance, "array") and len(set(map(_identity, instance))) < len(instance):
        yield ValidationError("the array has the same item twice")


def _identity(value: Json) -> Hashable:
    """Return a hashable that is the same for values that JSON Schema calls equal: 1 and 1.0, but not 1 and true."""
    if isinstance(value, Mapping):
        return "object", frozenset((key, _identity(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "array", tuple(map(_identity, value))
    return isinstance(value, bool), value


class _StepsError(Exception):
    """Too many keywords had to be applied to a value."""


def _counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a keyword so that each application uses up one step of the budget."""

    def check(*given: Any) -> Any:
        budget = _budget.get()
        budget.steps -= 1
        if budget.steps < 0:
            raise _StepsError
        return keyword(*given)

    return check


_KEYWORDS: Mapping[str, Callable[..., Any]] = {
    "additionalProperties": _additional_properties,
    "divisibleBy": _multiple_of,
    "format": _format,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}


def _evolved(self: Any, **changes: Any) -> Any:
    """Return the validator of a subschema: of the draft that it declares, with the keywords of this module."""
    schema = changes.get("schema", self.schema)
    declares = draft_of(schema) if isinstance(schema, Mapping) and "$schema" in schema else None
    made = declares.validator if declares is not None else type(self)
    return made(schema, registry=self._registry, _resolver=changes.get("_resolver", self._resolver))


def _make_draft(name: str, base: Any, specification: Specification[Any]) -> _Draft:
    keywords = {one: _counted(_KEYWORDS.get(one, keyword)) for one, keyword in base.VALIDATORS.items()}
    validator = extend(base, keywords)  # type: ignore[no-untyped-call]  # the stubs leave it open
    validator.evolve = _evolved
    return _Draft(name, validator, specification)


_DRAFTS: Mapping[str, _Draft] = {
    one.name: one
    for one in (
        _make_draft("draft-03", Draft3Validator, specifications.DRAFT3),
        _make_draft("draft-04", Draft4Validator, specifications.DRAFT4),
        _make_draft("draft-06", Draft6Validator, specifications.DRAFT6),
        _make_draft("draft-07", Draft7Validator, specifications.DRAFT7),
        _make_draft("2019-09", Draft201909Validator, specifications.DRAFT201909),
        _make_draft(NEWEST, Draft202012Validator, specifications.DRAFT202012),
    )
}
_URIS = {
    **{name: f"http://json-schema.org/{name}/schema" for name in ("draft-03", "draft-04", "draft-06", "draft-07")},
    **{name: f"https://json-schema.org/draft/{name}/schema" for name in ("2019-09", NEWEST)},
}
_REF_ALONE = frozenset({"draft-03", "draft-04", "draft-06", "draft-07"})
"""Drafts that ignore other keywords next to `$ref`."""
