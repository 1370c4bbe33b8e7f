"""The format family, HTML: `is-html` and `contains-html` (SPEC section 7.2).

A browser makes something of any text, so that reading alone tells nothing. What counts here: elements that HTML knows,
closed where they have to be. Source: the HTML Living Standard, sections 4 and 13.1.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from agentv.assertions.evidence import NO_OUTPUT, around, excerpt
from agentv.assertions.format.markup import MOST_TAGS, Tag, TooManyTagsError, place, tags
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.registry.fields import DeclaredAssertion

VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())  # noqa: SIM905  # a table reads best as words
"""Elements without a closing tag."""

OPTIONAL = frozenset(
    "html head body li dt dd p rt rp optgroup option colgroup caption thead tbody tfoot tr td th".split()  # noqa: SIM905  # as above
)
"""Elements whose closing tag may be left out."""

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
        """.split()  # noqa: SIM905  # as above
    )
)
"""Every element of HTML, those of older versions included."""

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
        """Look for the first one."""
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
    """Where the tags stand that make up an HTML element: of the first one, and it is enough."""
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
    """One pass over a text that should be HTML."""

    text: str
    opened: list[Tag] = field(default_factory=list)
    foreign: int = 0
    elements: int = 0

    def first_mistake(self) -> str | None:
        """The first error that makes a text invalid HTML, with its position; None if it is valid."""
        at = 0
        for tag in tags(self.text, RAW):
            wrong = self._text_outside(at, tag.start) or self._take(tag)
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

    def _take(self, tag: Tag) -> str | None:
        if tag.kind == "broken":
            return f"unclosed comment at {place(self.text, tag.start)}"
        if tag.kind == "doctype":
            return None if _is_html_doctype(tag) else f"<!{tag.name}> is not an HTML doctype"
        if tag.kind == "comment":
            # `<?xml …?>` is how XML begins, and HTML has no such thing
            is_comment = self.foreign or self.text.startswith("<!--", tag.start)
            return None if is_comment else f"XML at {place(self.text, tag.start)}"
        return self._close(tag) if tag.kind == "close" else self._open(tag)

    def _open(self, tag: Tag) -> str | None:
        name = tag.name.lower()
        if not self.foreign and name not in KNOWN and "-" not in name:
            return f"<{tag.name}> at {place(self.text, tag.start)} is not an HTML element"
        self.elements += 1
        if name in VOID or (tag.kind == "alone" and self._may_stand_alone(name)):
            return None
        self.opened.append(tag)
        self.foreign += name in _FOREIGN
        return None

    def _may_stand_alone(self, name: str) -> bool:
        """`<circle/>` inside of SVG; `<div/>` is an opening tag to every browser."""
        return bool(self.foreign) or name in _FOREIGN

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
