"""A prompt with the inputs of a case filled in (SPEC section 11).

Inputs are text: they are inserted once, and neither placeholders nor tags in them have a meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from agentv.authoring.exams.inputs import Inputs
from agentv.authoring.exams.prompt_text import PromptText, Section
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import Filled, ListNode, MapNode, Node, Scalar, children, plain, span_of
from agentv.authoring.source.report import Report
from agentv.model.values.span import Span
from agentv.model.values.values import Json
from agentv.templating import LITERAL_HINT, RenderError, Scope, has_placeholder, render_text, undeclared

_MOST = 50
"""Missing inputs of one case that are reported."""

_OF_ALL = re.compile(r"\bvars\s*(?:\.\s*(\w+)|\[\s*[\"']([^\"']+)[\"']\s*\])?")
"""An input as one of `vars`, where that is said by name."""


class ExamPrompt(Struct):
    """Fills in one prompt for all cases of its exam.

    Attributes:
        readable: its placeholders can be read.
    """

    text: PromptText
    reading: Reading
    readable: bool = True
    _names: dict[str, frozenset[str] | None] = field(default_factory=dict)

    def check(self) -> None:
        """Report placeholders that nothing could fill in."""
        for section in self.text.sections:
            try:
                undeclared(section.text.text)
            except RenderError as error:
                self.readable = False
                reason = error.message.removesuffix(f"; {LITERAL_HINT}").removesuffix(".")
                self.reading.report.error(error.code, _line_of(section, error.line), reason, hint=LITERAL_HINT)

    def filled(self, inputs: Inputs, fixed: Mapping[str, Json], env: Mapping[str, str]) -> Node | None:
        """The messages of a case; None where its inputs do not do, which is reported.

        Args:
            inputs: of the case.
            fixed: variables of the command line, which win over them.
            env: what `env` means in the prompt.
        """
        values = {**plain(inputs.values), **fixed}
        report = self.reading.report.section()
        scope = Scope(values, env)
        texts = [self._text(section, inputs, scope, report) for section in self.text.sections]
        for section, text in zip(self.text.sections, texts, strict=True):
            if not report.failed and section.role == "user" and not text.strip():
                report.error("missing-value", inputs.at, "with these inputs, the prompt is empty")
        if report.failed:
            return None
        pairs = [pair for pair in zip(self.text.sections, texts, strict=True) if pair[1].strip()]
        if len(pairs) == 1:
            return Filled(pairs[0][1], pairs[0][1], pairs[0][0].text.at)
        return ListNode([_message(section, text) for section, text in pairs], self.text.sections[0].text.at)

    def uses(self, name: str) -> bool:
        """Whether a placeholder of the prompt reads an input."""
        return any(_reads(self.names(section.text.text), name) for section in self.text.sections)

    def names(self, text: str) -> frozenset[str] | None:
        """The inputs that a text reads; None: any of them may be read."""
        if text not in self._names:
            self._names[text] = names_in(text)
        return self._names[text]

    def _text(self, section: Section, inputs: Inputs, scope: Scope, report: Report) -> str:
        missing: list[str] = []
        written = section.text.text
        while True:
            try:
                found = render_text(written, scope)
                break
            except RenderError as error:
                name = error.name or ""
                known = name in scope.vars or name not in (self.names(written) or ())
                if error.code != "undefined-variable" or known or len(missing) >= _MOST:
                    if not missing:
                        self._report(error, section, inputs, report)
                    found = written
                    break
                missing.append(name)
                scope = Scope({**scope.vars, name: ""}, scope.env)  # to see what else is missing
        for name in missing:
            self._report_missing(name, section, inputs, report)
        return found

    def _report_missing(self, name: str, section: Section, inputs: Inputs, report: Report) -> None:
        spare = [key for key in inputs.values.items if not self.uses(key)]
        where = _shown(placeholder_in(section, name))
        message = f"this case lacks the input '{name}', which the prompt uses at {where}"
        near = nearest(name, spare)
        hint = f"found '{near}': did you mean '{name}'?" if near else None
        report.error("undefined-variable", inputs.at, message, hint=hint)

    def _report(self, error: RenderError, section: Section, inputs: Inputs, report: Report) -> None:
        place = placeholder_in(section, error.name)
        if error.code == "unset-environment":
            add = report.error if self.reading.strict_env else report.warning
            suggestion = error.name in inputs.values.items
            hint = f"for the input, write {{{{ {error.name} }}}}, without the $" if suggestion else None
            add(error.code, place, error.message, hint=hint)
            return
        reason = error.message.removesuffix(f"; {LITERAL_HINT}").removesuffix(".").removeprefix("cannot render: ")
        message = f"the prompt at {_shown(place)} cannot be rendered with these inputs: {reason}"
        report.error(error.code, inputs.at, message)


def names_in(text: str) -> frozenset[str] | None:
    """The inputs that the placeholders of a text read; None: any of them may be read, or there is no telling."""
    if not has_placeholder(text):
        return frozenset()
    try:
        names = undeclared(text)
    except RenderError:
        return None
    if "vars" not in names:
        return names
    inside = [first or second for first, second in _OF_ALL.findall(text)]
    return names.union(inside) if all(inside) else None


def reads_in(node: Node, name: str, prompt: ExamPrompt) -> bool:
    """Whether a placeholder of any text in a node reads an input."""
    return any(_reads(prompt.names(text), name) for text in _texts(node))


def placeholder_in(section: Section, name: str | None) -> Span:
    """Position of the first placeholder that reads a name; of the section if that cannot be found."""
    span = span_of(section.text.at)
    if name is None:
        return span
    pattern = r"\$?\{[{%](?:(?!\}\}|%\}).)*?(?<![\w.])(?:\w+\.)*?" + re.escape(name) + r"\b(?:(?!\}\}|%\}).)*[}%]\}"
    found = re.compile(pattern, re.DOTALL).search(section.text.text)
    if found is None:
        return span
    before = section.text.text[: found.start()]
    line = span.line + before.count("\n")
    column = len(before) - before.rfind("\n") + (0 if "\n" in before else span.column - 1)
    first = found[0].partition("\n")[0]
    return Span(span.file, line, column, line, column + len(first))


def _line_of(section: Section, line: int | None) -> Span:
    span = span_of(section.text.at)
    lines = section.text.text.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return span
    text = lines[line - 1]
    start = len(text) - len(text.lstrip()) + (span.column if line == 1 else 1)
    return Span(span.file, span.line + line - 1, start, span.line + line - 1, start + max(len(text.strip()), 1))


def _message(section: Section, text: str) -> MapNode:
    at = section.text.at
    return MapNode(
        {"role": Scalar(section.role, section.role, at), "content": Filled(text, text, at)},
        {"role": at, "content": at},
        at,
    )


def _reads(names: frozenset[str] | None, name: str) -> bool:
    return names is None or name in names


def _shown(span: Span) -> str:
    return f"{shown(span.file)}:{span.line}:{span.column}"


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node, Scalar):
        if isinstance(node.value, str):
            yield node.value
    else:
        for child in children(node):
            yield from _texts(child)
