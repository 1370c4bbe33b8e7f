"""The names of assertion types in reach of one suite: built-in types, custom ones, and other spellings of both."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from agentv.authoring.fields.agentv.names import ASSERTION_TYPES, type_name
from agentv.authoring.fields.decode import OptionsSchema, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import Node
from agentv.authoring.targets.target import PLUGINS_COMMAND
from agentv.model.values.span import Span
from agentv.registry.table import Registry
from agentv.registry.types import AssertionType, Discovered, OpenAssertionType

AnyType = AssertionType | OpenAssertionType

_ALL, _ANY = "write an 'assert-set'", "write an 'assert-set' whose 'threshold' some of its entries reach"
_RUBRIC = "write what the answer must fulfil as a sentence for the judge: llm-rubric: …"
_OF_OTHERS = {
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
"""What people and other programs call a type → the hint at one that is unknown."""


class NamedType(NamedTuple):
    """Meaning of a type name.

    Attributes:
        type: None if no type has this name.
        inverted: the name starts with `not-`.
        schema: the declared options; None for a custom type.
        better: the name of which this is an older spelling; None: it is no older one.
    """

    type: AnyType | None
    inverted: bool
    schema: OptionsSchema | None
    better: str | None = None


class AssertionTypes(Struct, frozen=True):
    """The assertion types of one suite.

    Attributes:
        built_in: those that come with agentv, and those of plugins.
        custom: those of the project's `.agentv/assertions`.
    """

    built_in: Registry[AssertionType]
    custom: Discovered
    _found: dict[str, NamedType] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Every name of a type that may be written here, older ones and those to come too."""
        return [*self.built_in.names, *self.custom.types, *ASSERTION_TYPES, *sorted(self.built_in.not_yet)]

    def find(self, written: str) -> NamedType:
        """Resolve a name."""
        found = self._found.get(written)
        if found is None:
            found = self._found[written] = self._look_up(written)
        return found

    def knows(self, written: str) -> bool:
        """Whether a text is the name of a type, supported or not."""
        if self.find(written).type is not None:
            return True
        name = type_name(written)[0]
        return name in self.built_in.not_yet or self.built_in.problem(name) is not None

    def takes(self, name: str, option: str) -> bool:
        """Whether a type has an option, under any spelling of the type."""
        named = self.find(name)
        if named.schema is not None:
            return option in named.schema.rules
        return named.type is not None and option in (getattr(named.type, "options", None) or ())

    def short(self, name: str) -> str | None:
        """The option of a type that a lone value fills."""
        named = self.find(name)
        found: str | None = getattr(named.type if named.schema is None else named.schema.cls, "short", None)
        return found and found.rstrip("_")

    def report_unknown(self, written: str, at: Node, reading: Reading) -> None:
        """Report a name that no type has, with the likely fix."""
        if reading.report.crowded:
            reading.report.error("unknown-assertion", at, f"no assertion type '{written}'")
            return
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
                reading.report.error(issue.code, Span(file, 1, 1, 1, 2), issue.message)  # again: it is the reason
                return
        hint = _OF_OTHERS.get(name) or did_you_mean(name, self.names)
        if hint and inverted:
            hint = hint.replace("did you mean '", "did you mean 'not-", 1)
        homes = (shown(folder.removesuffix("/.agentv/assertions")) for folder in self.custom.searched)
        folders = ", ".join(home if home == "." else f"{home}/" for home in homes)
        notes = (f"searched .agentv/assertions in: {folders}",) if folders else ()
        reading.report.error("unknown-assertion", at, f"no assertion type '{written}'", hint=hint, notes=notes)

    def _look_up(self, written: str) -> NamedType:
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
        better = ASSERTION_TYPES.get(bare)
        if kind is None or better != kind.name:
            return NamedType(kind, inverted, schema)
        return NamedType(kind, inverted, schema, f"not-{better}" if bare != own else better)
