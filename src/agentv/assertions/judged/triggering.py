"""The `triggering` assertion: would a query load a prompt? The judge answers YES or NO (SPEC section 11).

An answer is read strictly: the word must be alone on a line. An answer with both words or neither, or that only
mentions one, is unreadable and fails, even if NO was expected.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.assertions.evidence import LIMIT, NO_OUTPUT, excerpt
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Check, Grade
from agentv.model.values.response import is_cut, spoken
from agentv.registry.fields import DeclaredAssertion, Doc

LONGEST = 20_000
"""Maximum length of an answer, in characters. The answer is one word, and reasoning before it needs no more."""

_WORD = re.compile(r"(?<![\w-])(?:yes|no)(?![\w-])")
_VERDICT = re.compile(
    r"""[\s>#:=()\[\]-]*(?:(?:my |the |final )*(?:answer|verdict)(?: is)?\s*[:=]?\s*)?"""
    r"""(?P<mark>["'“‘«])?(?P<word>yes|no)(?(mark)[.!]?["'”’»])[\s.!)\]]*"""
)
"""A line that is the answer and nothing else."""

_EMPHASIS = str.maketrans("", "", "*_`~")
"""Markdown's marks around a word."""

_INVISIBLE = frozenset({"Cf", "Mn", "Me"})
"""Categories of zero-width characters, direction marks and combining accents, which could hide one of the words."""


@dataclass(frozen=True, slots=True)
class Triggering(DeclaredAssertion):
    """The answer is YES, or NO, and unambiguous: whether a query would load a prompt."""

    value: Annotated[bool, Doc("true: the answer should be YES; false: NO")]

    of_text_alone: ClassVar[bool] = True

    def label(self) -> str:
        """The expected word."""
        return _answer_word(self.value)

    def grade(self, context: AssertionContext) -> Grade:
        """Read the answer. An unreadable answer fails, even if the assertion is negated."""
        output = context.output
        if output is None:
            return NO_OUTPUT
        text = f"answers {_answer_word(self.value)}"
        found = (
            "unreadable: it was cut off at its length limit" if is_cut(context.finish_reason) else read_answer(output)
        )
        if isinstance(found, str):
            evidence = f"{found}: {excerpt(output, LIMIT - len(found) - 2)}"
            return Grade(0.0, False, (Check(text, False, evidence),), found, undecided=True)
        return Grade.of(found is self.value, text, excerpt(output))


def read_answer(text: str) -> bool | str:
    """Return True for YES, False for NO, or why the answer is unreadable.

    The judge's thinking is ignored. The word must be alone on the first or the last line of the rest; case, quotation
    marks and Markdown do not matter.
    """
    reply = spoken(text)
    if len(reply) > LONGEST:
        return f"unreadable: {len(reply):,} characters instead of one word"
    if not reply.isascii():
        reply = "".join(
            one for one in unicodedata.normalize("NFKC", reply) if unicodedata.category(one) not in _INVISIBLE
        )
    words = reply.translate(_EMPHASIS).casefold().strip()
    answers = set(_WORD.findall(words))
    if len(answers) > 1:
        return "unreadable: it says YES and NO"
    if not answers:
        return "unreadable: it says neither YES nor NO" if words else "unreadable: it is empty"
    lines = words.splitlines()
    if any(_VERDICT.fullmatch(line) for line in (lines[0], lines[-1])):
        return "yes" in answers
    return f"unreadable: it mentions {answers.pop().upper()} without answering"


def _answer_word(yes: bool) -> str:
    return "YES" if yes else "NO"
