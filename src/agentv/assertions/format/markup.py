"""The format family, markup: `is-xml`, `contains-xml`, `is-html` and `contains-html` (SPEC section 7.2).

Tags are found in one pass, in any surrounding text. A `<` without a `>`, as in `a < b`, is text. Entities are never
expanded.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from agentv.assertions.evidence import NO_OUTPUT, around, excerpt, listed
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.registry.fields import Alias, Declared, DeclaredAssertion, Doc, FileTexts, Issue, Nonempty, Text

Kind = Literal["open", "close", "alone", "doctype", "comment", "broken"]

MOST_TAGS = 500_000
"""Maximum number of tags per text, which take a second or two."""

_TAG = re.compile(
    r"""<(?: (?P<skip> !-- | !\[CDATA\[ | \? )
          | (?P<doctype> !(?i:doctype)\b[^<>]*+ )>
          | (?P<close>/?) (?P<name>[A-Za-z_:][^\s/<>"'=]*) (?P<rest>(?:[^"'<>]|"[^"]*"|'[^']*')*+) >
        )""",
    re.VERBOSE,
)
"""A tag, or the beginning of a section without tags. Text that only looks like a tag is skipped in one step."""

_SKIPPED = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
"""Beginning of a section without tags → its end."""


class TooManyTagsError(Exception):
    """A text has more tags than the maximum, so that its content is unknown."""


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag, or one section without tags.

    Attributes:
        kind: `alone` is `<a/>`; `broken` is an unclosed comment or similar section, at which parsing stops.
        name: as written; empty for `comment` and `broken`.
        start, end: its position in the text.
    """

    kind: Kind
    name: str
    start: int
    end: int


def tags(text: str, raw: Container[str] = frozenset()) -> Iterator[Tag]:
    """Yield the tags of a text in order.

    Args:
        text: any text.
        raw: lower-case names of elements whose content is text up to the closing tag, such as HTML's `script`.

    Raises:
        TooManyTagsError: there are more than MOST_TAGS; raised after that many tags.
    """
    at = count = 0
    while (match := _TAG.search(text, at)) is not None:
        count += 1
        if count > MOST_TAGS:
            raise TooManyTagsError
        tag = _tag_of(text, match)
        yield tag
        if tag.kind == "broken":
            return
        at = tag.end
        if tag.kind == "open" and tag.name.lower() in raw:
            closing = re.compile(rf"</{re.escape(tag.name)}(?=[\s/>])", re.IGNORECASE).search(text, at)
            if closing is None:
                return
            at = closing.start()


def _tag_of(text: str, match: re.Match[str]) -> Tag:
    at = match.start()
    if match["skip"]:
        end = _SKIPPED[match[0]]
        stop = text.find(end, match.end())
        return Tag("broken", "", at, len(text)) if stop < 0 else Tag("comment", "", at, stop + len(end))
    if match["doctype"]:
        return Tag("doctype", match["doctype"][1:], at, match.end())
    kind: Kind = "close" if match["close"] else "alone" if match["rest"].endswith("/") else "open"
    return Tag(kind, match["name"], at, match.end())


def place(text: str, at: int) -> str:
    """Return a position in a text as `line 2, column 5`, both from 1."""
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"


VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())  # noqa: SIM905  # a word list is easier to read this way
"""Elements without a closing tag."""

OPTIONAL = frozenset(
    "html head body li dt dd p rt rp optgroup option colgroup caption thead tbody tfoot tr td th".split()  # noqa: SIM905
)
"""Elements whose closing tag may be omitted."""

KNOWN = (
    VOID
    | OPTIONAL
    | frozenset(
        """
        a abbr acronym address applet article aside audio b bdi bdo big blockquote button canvas center cite code
        data datalist del details dfn dialog dir div dl em fieldset figcaption figure font footer form frame frameset
        h1 h2 h3 h4 h5 h6 header hgroup i iframe ins kbd label legend main map mark marquee math menu meter nav
        noframes noscript object ol output picture pre progress q ruby s samp script search section select slot small
        span strike strong style sub summary sup svg table template textarea time title tt u ul var video
        """.split()  # noqa: SIM905
    )
)
"""All elements of HTML, including those of older versions."""

RAW = frozenset({"script", "style", "textarea", "title"})
"""Elements whose content is text."""

_FOREIGN = frozenset({"svg", "math"})

_TOO_MANY = Grade.errored("too-long", f"the answer has more than {MOST_TAGS:,} tags, the maximum")


@dataclass(frozen=True, slots=True)
class IsHtml(DeclaredAssertion):
    """The answer as a whole is HTML: a page, or elements with only white space between them."""

    short: ClassVar[str | None] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Match the tags, and look for text outside them."""
        output = context.output
        if output is None:
            return NO_OUTPUT
        try:
            wrong = _HtmlPage(output).first_mistake()
        except TooManyTagsError:
            return _TOO_MANY
        evidence = excerpt(output, 120) if wrong is None else excerpt(f"{wrong}: {excerpt(output, 80)}")
        return Grade.of(wrong is None, "is HTML", evidence)


@dataclass(frozen=True, slots=True)
class ContainsHtml(DeclaredAssertion):
    """The answer contains an HTML element with both its tags, one that needs no closing tag, or a doctype."""

    short: ClassVar[str | None] = None

    def grade(self, context: AssertionContext) -> Grade:
        """Look for the first such element."""
        output = context.output
        if output is None:
            return NO_OUTPUT
        try:
            found = next(_whole_elements(output), None)
        except TooManyTagsError:
            return _TOO_MANY
        evidence = excerpt(output) if found is None else around(output, *found)
        return Grade.of(found is not None, "contains HTML", evidence)


def _whole_elements(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of HTML elements and doctypes in a text. Only the first span is exact."""
    begun: dict[str, int] = {}
    for tag in tags(text, RAW):
        name = tag.name.lower()
        if tag.kind == "doctype":
            if _is_html_doctype(tag):
                yield tag.start, tag.end
        elif tag.kind in {"open", "alone"} and name in VOID:
            yield tag.start, tag.end
        elif tag.kind == "open" and name in KNOWN:
            begun.setdefault(name, tag.start)
        elif tag.kind == "close" and name in begun:
            yield begun[name], tag.end


def _is_html_doctype(tag: Tag) -> bool:
    return tag.name.lower().split()[1:2] == ["html"]


@dataclass(slots=True)
class _HtmlPage:
    """A parser of a text that should be HTML."""

    text: str
    opened: list[Tag] = field(default_factory=list)
    foreign: int = 0
    elements: int = 0

    def first_mistake(self) -> str | None:
        """Return the first error that makes a text invalid HTML, with its position, or None if it is valid."""
        at = 0
        for tag in tags(self.text, RAW):
            wrong = self._text_outside(at, tag.start) or self._problem_of(tag)
            if wrong is not None:
                return wrong
            at = tag.end
        wrong = self._unclosed(self.opened) or self._text_outside(at, len(self.text))
        return wrong or (None if self.elements else "contains no HTML element")

    def _text_outside(self, start: int, end: int) -> str | None:
        if self.opened or not self.text[start:end].strip():
            return None
        inside = self.text[start:end]
        at = start + len(inside) - len(inside.lstrip())
        return f"text outside all elements at {place(self.text, at)}"

    def _problem_of(self, tag: Tag) -> str | None:
        if tag.kind == "broken":
            return f"unclosed comment at {place(self.text, tag.start)}"
        if tag.kind == "doctype":
            return None if _is_html_doctype(tag) else f"<!{tag.name}> is not an HTML doctype"
        if tag.kind == "comment":
            # `<?xml …?>` begins XML; HTML has no such declaration
            is_comment = self.foreign or self.text.startswith("<!--", tag.start)
            return None if is_comment else f"XML at {place(self.text, tag.start)}"
        return self._close(tag) if tag.kind == "close" else self._open(tag)

    def _open(self, tag: Tag) -> str | None:
        name = tag.name.lower()
        if not self.foreign and name not in KNOWN and "-" not in name:
            return f"<{tag.name}> at {place(self.text, tag.start)} is not an HTML element"
        self.elements += 1
        # `<circle/>` is complete inside SVG, but browsers read `<div/>` as an opening tag
        if name in VOID or (tag.kind == "alone" and (self.foreign or name in _FOREIGN)):
            return None
        self.opened.append(tag)
        self.foreign += name in _FOREIGN
        return None

    def _close(self, tag: Tag) -> str | None:
        name = tag.name.lower()
        since: list[Tag] = []
        while self.opened:
            last = self.opened.pop()
            self.foreign -= last.name.lower() in _FOREIGN
            if last.name.lower() == name:
                return self._unclosed(since)
            since.append(last)
            if last.name.lower() not in OPTIONAL:
                break
        if since and since[-1].name.lower() not in OPTIONAL:
            return self._unclosed(since)
        return f"</{tag.name}> at {place(self.text, tag.start)} closes no element"

    def _unclosed(self, opened: list[Tag]) -> str | None:
        for tag in opened:
            if tag.name.lower() not in OPTIONAL:
                return f"<{tag.name}> at {place(self.text, tag.start)} is not closed"
        return None


MOST_FRAGMENTS = 10_000
"""Maximum number of fragments per answer that are parsed."""

_MOST_READ = 20_000_000
"""Maximum number of characters parsed in total: the parts of a malformed fragment are parsed again."""


@dataclass(frozen=True, slots=True)
class XmlRules(Declared):
    """Requirements for the XML, nested as in promptfoo."""

    required_elements: Annotated[
        FileTexts | Annotated[Text, Nonempty()],
        Alias(("requiredElements",)),
        Doc("required elements, by path: order.item.price"),
    ]

    def validate(self) -> Iterable[Issue]:
        """Report invalid element paths."""
        return _path_issues(self.required_elements, "required_elements")


@dataclass(frozen=True, slots=True)
class NotXml:
    """The reason why a text is not an XML document, with line and column from 1.

    `has_entities` is set if it declares entities. They are not expanded, so that the document cannot be judged.
    """

    reason: str
    has_entities: bool = False


RequiredElements = Annotated[
    FileTexts | XmlRules | Annotated[Text, Nonempty()] | None,
    Doc("required elements, by path: a list, or text with commas"),
]


class _WithElements(DeclaredAssertion):
    """Base class of the types that take the paths of elements."""

    __slots__ = ()

    value: RequiredElements

    @property
    def required(self) -> tuple[str, ...]:
        """The paths of the required elements."""
        given = self.value.required_elements if isinstance(self.value, XmlRules) else self.value
        return () if given is None else _paths_in(given)

    def label(self) -> str:
        """The required elements."""
        return listed(self.required) if self.required else ""

    def validate(self) -> Iterable[Issue]:
        """Report invalid element paths."""
        if self.value is not None and not isinstance(self.value, XmlRules):
            yield from _path_issues(self.value, "value")


def _paths_in(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path.strip() for path in given.split(",")) if isinstance(given, str) else given


def _path_issues(given: str | tuple[str, ...], option: str) -> Iterator[Issue]:
    """Report paths with an empty step or surrounding white space."""
    for place, path in enumerate(_paths_in(given)):
        if any(not step or step != step.strip() for step in path.split(".")):
            at: tuple[str | int, ...] = (option,) if isinstance(given, str) else (option, place)
            yield Issue(at, f"'{path}' is not an element path; write root.child")


@dataclass(frozen=True, slots=True)
class IsXml(_WithElements):
    """The answer as a whole is a well-formed XML document, and contains the required elements."""

    value: RequiredElements = None

    def grade(self, context: AssertionContext) -> Grade:
        """Parse the document, and look for the required elements."""
        if context.output is None:
            return NO_OUTPUT
        document = context.output.strip()
        found = elements(document, self.required)
        if isinstance(found, NotXml):
            if found.has_entities:
                return Grade.errored("xml-entities", f"the answer {found.reason}")
            return Grade.of(False, "is XML", excerpt(f"{found.reason}: {excerpt(document, 100)}"))
        return _elements_grade("is XML", self.required, found, document)


@dataclass(frozen=True, slots=True)
class ContainsXml(_WithElements):
    """The answer contains well-formed XML with the required elements."""

    value: RequiredElements = None

    def grade(self, context: AssertionContext) -> Grade:
        """Parse the outermost fragments. Each required element may be in any of them."""
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
        except TooManyTagsError:
            return Grade.errored("xml-limit", "the answer has more XML nodes than the maximum")
        if first is None:
            return Grade.of(False, "contains XML", f"contains no well-formed element: {excerpt(output, 120)}")
        return _elements_grade("contains XML", self.required, found, first)


def elements(document: str, wanted: Iterable[str] = ()) -> set[str] | NotXml:
    """Return the wanted paths that lead to an element of an XML document, or why the text is not one.

    Args:
        document: the text. The encoding that it declares is ignored.
        wanted: paths from the root element, such as `order.item`; names as written, including prefixes.
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
    parser.specified_attributes = True  # else a long default value in a DTD is copied for every element
    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _name: inside.pop()
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(document.encode(), True)
    except _EntityError:
        return NotXml("declares entities, which are never expanded", has_entities=True)
    except UnicodeEncodeError:
        return NotXml("contains half of a character (a lone surrogate)")
    except ExpatError as error:
        return NotXml(_parser_message(error, document))
    return found


class _EntityError(Exception):
    """The document declares an entity."""


def _parser_message(error: Exception, document: str) -> str:
    """Return expat's message with the column in characters, from 1: expat counts bytes, from 0."""
    line, offset = error.lineno, error.offset  # type: ignore[attr-defined]  # every ExpatError has them
    lines = document.encode().split(b"\n")
    before = lines[line - 1][:offset].decode(errors="replace") if line <= len(lines) else ""
    message = str(error).rpartition(": line ")[0]
    return f"{message} at line {line}, column {len(before) + 1}"


def fragments(text: str, wanted: Iterable[str] = ()) -> Iterator[tuple[str, set[str]]]:
    """Yield the outermost well-formed elements in a text, each with the wanted paths that it contains.

    Raises:
        TooManyTagsError: the text exceeds the maximum number of tags, fragments or characters.
    """
    read = 0
    done = 0
    tried = 0
    for start, end in _closed_elements(text):
        if start < done:
            continue  # inside a well-formed fragment
        tried += 1
        read += end - start
        if tried > MOST_FRAGMENTS or read > _MOST_READ:
            raise TooManyTagsError
        found = elements(text[start:end], wanted)
        if isinstance(found, set):
            done = end
            yield text[start:end], found


def _closed_elements(text: str) -> list[tuple[int, int]]:
    """Return the spans of closed elements, outer elements before inner ones."""
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
            while order[-1][1] >= start:  # elements opened since then are never closed
                name, _ = order.pop()
                open_at[name].pop()
                if not order:
                    break
    return sorted(pairs, key=lambda pair: (pair[0], -pair[1]))


def _elements_grade(text: str, required: tuple[str, ...], found: set[str], document: str) -> Grade:
    missing = tuple(path for path in required if path not in found)
    whole = f"{text} with {listed(required)}" if required else text
    return Grade.of(not missing, whole, f"no element {listed(missing)}" if missing else excerpt(document, 120))
