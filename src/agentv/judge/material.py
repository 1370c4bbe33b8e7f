"""Untrusted material of a judge's question besides the answer, and the delimiters around it (SPEC section 9)."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentv.model.run.context import AssertionContext
from agentv.model.run.rubric import MODE_VARIABLES, Rubric

_MARKERS = {"context": "context", "transcript": "transcript", "output": "answer", "results": "grades"}
"""Prompt variable → beginning of its delimiters."""


def material_of(rubric: Rubric, context: AssertionContext) -> Mapping[str, str]:
    """Return the variables that a rubric's mode adds, as plain text; empty for most modes."""
    found: dict[str, str] = {}
    for name in MODE_VARIABLES.get(rubric.mode, ()):
        if name == "transcript":
            found[name] = transcript_of(context)
        elif name == "results":
            found[name] = json.dumps(context.results, ensure_ascii=False, indent=2, default=str)
        elif rubric.mode == "context-relevance":  # each piece is judged separately, under its id
            lines = (f"[{item.id}] {' '.join(item.outcome.split())}" for item in rubric.items)
            found[name] = "\n".join(lines)
        else:
            found[name] = "\n\n".join(rubric.context)
    return found


def delimited(rubric: Rubric, context: AssertionContext, delimiter: Delimiter) -> dict[str, str]:
    """Return the variables of `material_of`, each between delimiters unless it is empty.

    With `context-relevance`, the context is also the list of items to judge (`rubrics`).
    """
    found = {
        name: delimiter.around(_MARKERS[name], text) if text else ""
        for name, text in material_of(rubric, context).items()
    }
    return {**found, "rubrics": found["context"]} if rubric.mode == "context-relevance" else found


def is_shown(name: str, text: str, delimiter: Delimiter, *, whole: bool = False) -> bool:
    """Return whether a text has the opening delimiter of a variable; `whole`: and its closing one."""
    marker = _MARKERS[name]
    return delimiter.shows(marker, text) and (not whole or f"</{marker}-{delimiter.token}>" in text)


def transcript_of(context: AssertionContext) -> str:
    """Return an agent's transcript: its messages and tool calls in order."""
    lines: list[str] = []
    for message in context.messages:
        if message.text.strip():
            lines.append(f"{message.role}: {message.text}")
        for call in message.tool_calls:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=str)
            lines.append(f"{message.role} calls {call.name} {arguments}")
            if call.output is not None:
                lines.append(f"{call.name} gives: {call.output}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Beginning and end of a text, and the number of characters left out between them."""

    head: str
    tail: str = ""
    left_out: int = 0

    @classmethod
    def of(cls, text: str, most: int) -> Excerpt:
        """Create an excerpt of at most the given number of characters, not counting the note on what is left out."""
        left_out = len(text) - most
        if left_out <= 0:
            return cls(text)
        tail = most // 2
        return cls(text[: most - tail], text[len(text) - tail :], left_out)

    @property
    def text(self) -> str:
        """The excerpt with a note on what is left out, on a line of its own."""
        if not self.left_out:
            return self.head
        return f"{self.head}\n[… {self.left_out:,} characters left out …]\n{self.tail}"

    @property
    def joined(self) -> str:
        """The excerpt without that note, as a judge may quote it."""
        return self.head + self.tail


CONFIRM = "confirm"
"""Key of the confirmation word in a verdict. On a scale the word follows it in capitals: `CONFIRM=`."""


def new_word() -> str:
    """Return a random token of 64 bits, as 16 hexadecimal digits."""
    return secrets.token_hex(8)


def replace_words(words: Iterable[str], text: str, instead: str = "") -> str:
    """Return the text with all these words replaced, ignoring case."""
    for word in words:
        text = text.replace(word, instead)
        if word in text.lower():  # rare; compiling a new pattern each time would be slow
            text = re.sub(word, instead, text, flags=re.IGNORECASE)
    return text


_INLINE = 200
"""Maximum length of a line that is shown between delimiters on the same line."""

_TAG = re.compile(r"<(/?)([\w-]+)-(\w+)>")
"""A tag of any delimiter. A pattern for one token would have to be compiled for each question."""


@dataclass(frozen=True, slots=True)
class Delimiter:
    """Tags that end in a random token, so that no earlier text can contain them."""

    token: str

    @classmethod
    def new(cls) -> Delimiter:
        """Create a delimiter with a new random token."""
        return cls(new_word())

    def around(self, what: str, text: str) -> str:
        """Wrap the text in `<what-token>` and `</what-token>`, each on its own line."""
        return f"<{what}-{self.token}>\n{text}\n</{what}-{self.token}>"

    def wrap_data(self, what: str, text: str) -> str:
        """Wrap text that a template shows, unless it has tags of this delimiter; a single short line stays in line.

        If a template filter cut off closing tags, they are added again.
        """
        if self.token not in text.lower():
            end = "\n" if "\n" in text or len(text) > _INLINE else ""
            return f"<{what}-{self.token}>{end}{text}{end}</{what}-{self.token}>"
        tags = [(slash, name) for slash, name, token in _TAG.findall(text) if token.lower() == self.token]
        opened = [name for slash, name in tags if not slash]
        closed = sum(slash == "/" for slash, _ in tags)
        return text + "".join(f"\n</{name}-{self.token}>" for name in reversed(opened[: len(opened) - closed]))

    def shows(self, what: str, text: str) -> bool:
        """Return whether a text has the opening tag for `what`; a template filter may have changed its case."""
        tag = f"<{what}-{self.token}"
        return tag in text or tag in text.lower()
