"""The format family: JSON and refusals (SPEC section 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from agentv.assertions.evidence import NO_OUTPUT, excerpt
from agentv.matching.json_text import NotJson, UnsearchableError, containers, parse
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.registry.fields import Alias, DeclaredAssertion, Doc, Issue, LoadedSchema

if TYPE_CHECKING:
    from agentv.matching.json_schema import Schema

MOST_CONTAINERS = 10_000
"""Maximum number of objects and arrays of one answer that are validated against a schema."""


class _WithSchema(DeclaredAssertion):
    """Base class of the types that take a JSON Schema, which is prepared once rather than for every answer."""

    reads_json: ClassVar[bool] = True

    __slots__ = ("_schema",)

    value: LoadedSchema | None

    of_text_alone: ClassVar[bool] = True

    @property
    def schema(self) -> Schema | None:
        """The prepared schema; None if any JSON is valid."""
        if self.value is None:
            return None
        schema: Schema | None = getattr(self, "_schema", None)
        if schema is None:
            from agentv.matching.json_schema import schema_from

            schema = schema_from(self.value.value, self.value.base, self.value.files)
            # the dataclass is frozen, but this is only a cache of what an option gives
            object.__setattr__(self, "_schema", schema)
        return schema

    def label(self) -> str:
        """File name or title of the schema."""
        if self.value is None:
            return ""
        if self.value.path:
            return self.value.path.rpartition("/")[2]
        title = self.value.value.get("title") if isinstance(self.value.value, Mapping) else None
        return excerpt(title, 60) if isinstance(title, str) else "schema"

    def validate(self) -> Iterable[Issue]:
        """Report problems of the schema."""
        return self.schema.validate("value") if self.schema is not None else ()


@dataclass(frozen=True, slots=True)
class IsJson(_WithSchema):
    """The answer as a whole is JSON, and matches a JSON Schema if one is given."""

    value: Annotated[LoadedSchema | None, Alias(("schema",)), Doc("a JSON Schema, inline or a path")] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Parse the answer, then validate it against the schema."""
        return _whole_json(context.output, self.schema)


@dataclass(frozen=True, slots=True)
class JsonSchema(_WithSchema):
    """The answer as a whole is JSON that matches a JSON Schema."""

    value: Annotated[LoadedSchema, Alias(("schema",)), Doc("the JSON Schema, inline or a path")]

    def grade(self, context: AssertionContext) -> Grade:
        """Parse the answer, then validate it against the schema."""
        return _whole_json(context.output, self.schema)


@dataclass(frozen=True, slots=True)
class ContainsJson(_WithSchema):
    """The answer contains a JSON object or array that matches a JSON Schema if one is given."""

    value: Annotated[LoadedSchema | None, Alias(("schema",)), Doc("a JSON Schema, inline or a path")] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Look for objects and arrays, in prose and in fenced blocks, until one matches."""
        if context.output is None:
            return NO_OUTPUT
        found = containers(context.output)
        try:
            if self.schema is not None:
                return _one_matches(self.schema, found, context.output)
            first = next(found, None)
        except UnsearchableError as error:
            return Grade.errored("too-long", f"cannot tell whether the answer contains JSON: it contains {error}")
        evidence = f"found {_shape(first)}" if first is not None else excerpt(context.output)
        return Grade.of(first is not None, "contains a JSON object or array", evidence)


@dataclass(frozen=True, slots=True)
class IsRefusal(DeclaredAssertion):
    """The answer refuses, in English, and gives nothing else: "I'm sorry, but I can't help with that"."""

    short: ClassVar[str | None] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the first clauses with common refusals. An answer in another language gives an errored grade."""
        from agentv.assertions.text.refusal import is_english, refusal_in

        if context.output is None:
            return NO_OUTPUT
        refusal = refusal_in(context.output)
        if refusal is None and not is_english(context.output):
            message = (
                f"the answer is not English, and refusals are known in English alone: {excerpt(context.output, 60)}"
            )
            return Grade.errored("unjudged-language", message)
        return Grade.of(refusal is not None, "opens with a refusal", excerpt(refusal or context.output))


def _whole_json(output: str | None, schema: Schema | None) -> Grade:
    if output is None:
        return NO_OUTPUT
    text = "is JSON" if schema is None else "is JSON that matches the schema"
    value = parse(output)
    if isinstance(value, NotJson):
        return Grade.of(False, text, f"{value.reason}: {excerpt(output, 120)}")
    if schema is None:
        return Grade.of(True, text, _shape(value))
    complaints = schema.errors(value)
    if isinstance(complaints, Failure):
        return Grade.errored(complaints.code, complaints.message)
    return Grade.of(not complaints, text, excerpt("; ".join(complaints)) if complaints else _shape(value))


def _one_matches(schema: Schema, found: Iterable[Json], output: str) -> Grade:
    text = "contains JSON that matches the schema"
    closest = ""
    for place, value in enumerate(found):
        if place == MOST_CONTAINERS:
            return Grade.errored(
                "schema-limit", f"none of the first {place:,} JSON values matches; the others were not checked"
            )
        complaints = schema.errors(value)
        if isinstance(complaints, Failure):
            return Grade.errored(complaints.code, complaints.message)
        if not complaints:
            return Grade.of(True, text, f"found {_shape(value)}")
        closest = closest or f"{_shape(value)}: {'; '.join(complaints)}"
    return Grade.of(False, text, excerpt(closest or f"contains no JSON: {output[:100]}"))


def _shape(value: Json) -> str:
    if isinstance(value, dict):
        return excerpt(f"an object with {', '.join(map(repr, list(value)[:5]))}") if value else "an object without keys"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"an array of {len(value)}"
    return {bool: "true or false", type(None): "null", str: "a string"}.get(type(value), "a number")
