"""The format family, XML: `is-xml` and `contains-xml` (SPEC section 7.2).

Read by expat, which is part of Python. Nothing is loaded from anywhere, and no entity is expanded: an answer that
declares one ("billion laughs") is not read any further.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

from agentv.assertions.evidence import NO_OUTPUT, excerpt, listed
from agentv.assertions.format.markup import TooManyTagsError, tags
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.registry.fields import Alias, Declared, DeclaredAssertion, Doc, FileTexts, Issue, Nonempty, Text

MOST_FRAGMENTS = 10_000
"""Fragments of one answer that are read."""

_MOST_READ = 20_000_000
"""Characters that are read in all: a fragment that is not well-formed is read again by its parts."""

Paths = FileTexts


@dataclass(frozen=True, slots=True)
class XmlRules(Declared):
    """Requirements for the XML, nested as in promptfoo."""

    required_elements: Annotated[
        Paths | Annotated[Text, Nonempty()],
        Alias(("requiredElements",)),
        Doc("required elements, by path: order.item.price"),
    ]

    def validate(self) -> Iterable[Issue]:
        """Reports paths that no element can have."""
        return _path_issues(self.required_elements, "required_elements")


@dataclass(frozen=True, slots=True)
class NotXml:
    """Why a text is no XML document, and where: line and column, both from 1."""

    reason: str


@dataclass(frozen=True, slots=True)
class Entities:
    """A text declares entities, which are not expanded, so that it cannot be judged."""


class _WithElements(DeclaredAssertion):
    """Base class of the types that take the paths of elements."""

    __slots__ = ()

    value: Paths | XmlRules | Text | None

    @property
    def required(self) -> tuple[str, ...]:
        """The paths of the required elements."""
        given = self.value.required_elements if isinstance(self.value, XmlRules) else self.value
        return () if given is None else _paths_in(given)

    def label(self) -> str:
        """The elements."""
        return listed(self.required) if self.required else ""

    def validate(self) -> Iterable[Issue]:
        """Reports paths that no element can have."""
        if self.value is not None and not isinstance(self.value, XmlRules):
            yield from _path_issues(self.value, "value")


def _paths_in(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path.strip() for path in given.split(",")) if isinstance(given, str) else given


def _path_issues(given: str | tuple[str, ...], option: str) -> Iterator[Issue]:
    """Paths with an empty step."""
    for place, path in enumerate(_paths_in(given)):
        if any(not step or step != step.strip() for step in path.split(".")):
            at: tuple[str | int, ...] = (option,) if isinstance(given, str) else (option, place)
            yield Issue(at, f"'{path}' is not an element path; write root.child")


@dataclass(frozen=True, slots=True)
class IsXml(_WithElements):
    """The answer as a whole is a well-formed XML document, and contains the required elements."""

    value: Annotated[
        Paths | XmlRules | Annotated[Text, Nonempty()] | None,
        Doc("required elements, by path: a list, or text with commas"),
    ] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Read the document."""
        if context.output is None:
            return NO_OUTPUT
        document = context.output.strip()
        found = elements(document, self.required)
        if isinstance(found, Entities):
            return Grade.errored("xml-entities", "the answer declares entities, which are never expanded")
        if isinstance(found, NotXml):
            return Grade.of(False, "is XML", excerpt(f"{found.reason}: {excerpt(document, 100)}"))
        return _judged("is XML", self.required, found, document)


@dataclass(frozen=True, slots=True)
class ContainsXml(_WithElements):
    """The answer contains well-formed XML with the required elements."""

    value: Annotated[
        Paths | XmlRules | Annotated[Text, Nonempty()] | None,
        Doc("required elements, by path: a list, or text with commas"),
    ] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Read the outermost fragments; required elements may be in any of them."""
        output = context.output
        if output is None:
            return NO_OUTPUT
        found: set[str] = set()
        first = None
        try:
            for fragment, inside in fragments(output, self.required):
                found |= inside
                first = first or fragment
                if found.issuperset(self.required):
                    break
        except (FragmentsError, TooManyTagsError):
            return Grade.errored("xml-limit", "the answer has more XML nodes than the maximum")
        if first is None:
            return Grade.of(False, "contains XML", f"contains no well-formed element: {excerpt(output, 120)}")
        return _judged("contains XML", self.required, found, first)


def elements(document: str, wanted: Iterable[str] = ()) -> set[str] | NotXml | Entities:
    """The paths that lead to an element of an XML document.

    Args:
        document: the text. Whatever encoding it declares, it is text already.
        wanted: paths from the root element, `order.item`; names as written, prefixes included.
    """
    from xml.parsers.expat import ExpatError, ParserCreate

    paths = frozenset(wanted)
    deepest = max((path.count(".") + 1 for path in paths), default=0)
    inside: list[str] = []
    found: set[str] = set()

    def begin(name: str, _attributes: object) -> None:
        inside.append(name)
        if len(inside) <= deepest:
            path = ".".join(inside)
            if path in paths:
                found.add(path)

    def refuse(*_declaration: object) -> None:
        raise _EntityError

    parser = ParserCreate(encoding="utf-8")
    parser.specified_attributes = True  # a long default of a DTD would be copied for every element
    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _name: inside.pop()
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(document.encode(), True)
    except _EntityError:
        return Entities()
    except UnicodeEncodeError:
        return NotXml("contains half of a character (a lone surrogate)")
    except ExpatError as error:
        return NotXml(_parser_message(error, document))
    return found


class FragmentsError(Exception):
    """A text holds more fragments than are read."""


class _EntityError(Exception):
    """An entity is declared."""


def _parser_message(error: Exception, document: str) -> str:
    """What expat says, with the column in characters: it counts bytes, from 0."""
    line, offset = error.lineno, error.offset  # type: ignore[attr-defined]  # every ExpatError has them
    lines = document.encode().split(b"\n")
    before = lines[line - 1][:offset].decode(errors="replace") if line <= len(lines) else ""
    message = str(error).rpartition(": line ")[0]
    return f"{message} at line {line}, column {len(before) + 1}"


def fragments(text: str, wanted: Iterable[str] = ()) -> Iterator[tuple[str, set[str]]]:
    """The outermost well-formed elements in a text, each with those of the wanted paths that it has.

    Raises:
        FragmentsError, TooManyTagsError: there are more than are read.
    """
    read = 0
    done = 0
    tried = 0
    for start, end in _pairs(text):
        if start < done:
            continue  # inside a fragment that was well-formed
        tried += 1
        read += end - start
        if tried > MOST_FRAGMENTS or read > _MOST_READ:
            raise FragmentsError
        found = elements(text[start:end], wanted)
        if isinstance(found, set):
            done = end
            yield text[start:end], found


def _pairs(text: str) -> list[tuple[int, int]]:
    """Where elements with both their tags stand; those around others come first."""
    pairs: list[tuple[int, int]] = []
    open_at: dict[str, list[int]] = {}
    order: list[tuple[str, int]] = []
    for tag in tags(text):
        if tag.kind == "alone":
            pairs.append((tag.start, tag.end))
        elif tag.kind == "open":
            open_at.setdefault(tag.name, []).append(tag.start)
            order.append((tag.name, tag.start))
        elif tag.kind == "close" and open_at.get(tag.name):
            start = open_at[tag.name][-1]
            pairs.append((start, tag.end))
            while order[-1][1] >= start:  # what was opened since then is never closed
                name, _ = order.pop()
                open_at[name].pop()
                if not order:
                    break
    return sorted(pairs, key=lambda pair: (pair[0], -pair[1]))


def _judged(text: str, required: tuple[str, ...], found: set[str], document: str) -> Grade:
    missing = tuple(path for path in required if path not in found)
    whole = f"{text} with {listed(required)}" if required else text
    return Grade.of(not missing, whole, f"no element {listed(missing)}" if missing else excerpt(document, 120))
