"""Changes to an answer, or to how a judge is asked about it, that leave its content as it is.

A judge whose verdict changes judges something else than the content. Sources: L. Zheng et al., "Judging LLM-as-a-Judge
with MT-Bench and Chatbot Arena" (2023), section 3.3, for order, length and self-preference; J. Ye et al., "Justice or
prejudice? Quantifying biases in LLM-as-a-judge" (2024), for tone and authority.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from agentv.model.run.rubric import Rubric
from agentv.model.values.lazy_pattern import lazy_pattern

_OPENING = "Thank you for your question. Here is my answer, which I have written as clearly as I can."
_CLOSING = (
    "I hope that this answer is helpful to you. If anything in it is unclear, please let me know. You are welcome to"
    " ask as many further questions as you like, at any time. Thank you again for getting in touch."
)
_CERTAIN = "I am absolutely certain of the following."
_NO_DOUBT = "There is no doubt whatsoever about any of this."
_MODEL = "GPT-5"

_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s+(?=[A-Z\"'(\[])")
_MARKDOWN = lazy_pattern(r"^\s*(?:[-*+]|\d+\.|#{1,6}|>|\|)\s|```", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Probe:
    """One way to ask a judge about the same content.

    Attributes:
        description: what is done, for `--help` and the documentation.
        answer: the changed text, from the text and the judge's model; None: it does not fit.
        rubric: the changed rubric; None: it does not fit. Without either function the judge is asked the same again.
    """

    name: str
    description: str
    answer: Callable[[str, str], str | None] | None = None
    rubric: Callable[[Rubric], Rubric | None] | None = None


def longer(output: str, _model: str) -> str | None:
    """The answer between courtesies that say nothing."""
    return _around(output, _OPENING, _CLOSING)


def confident(output: str, _model: str) -> str | None:
    """The answer, sure of itself."""
    return _around(output, _CERTAIN, _NO_DOUBT)


def markdown(output: str, _model: str) -> str | None:
    """The sentences as a list under a heading. Text that has Markdown already is left alone."""
    if not _is_prose(output) or _MARKDOWN.search(output) is not None:
        return None
    sentences = [one for line in output.splitlines() if line.strip() for one in _SENTENCE_END.split(line.strip())]
    return "\n".join(("## Answer", "", *(f"- {one}" for one in sentences)))


def other_model(output: str, _model: str) -> str | None:
    """The answer, said to be by a well-known model."""
    return _around(output, f"This answer was written by {_MODEL}.", "")


def own_model(output: str, model: str) -> str | None:
    """The answer, said to be by the judge's own model."""
    name = model.partition(":")[2] or model
    return _around(output, f"This answer was written by {name}.", "")


def reversed_items(rubric: Rubric) -> Rubric | None:
    """The items of a list in the opposite order."""
    return replace(rubric, items=rubric.items[::-1]) if len(rubric.items) > 1 else None


def _around(output: str, before: str, after: str) -> str | None:
    if not _is_prose(output):
        return None
    return "\n\n".join(one for one in (before, output, after) if one)


def _is_prose(output: str) -> bool:
    """Whether text can be put around it: around JSON or a number it would change what the answer is."""
    text = output.strip()
    if not text or text.startswith(("```", "<")):
        return False
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


_MADE = (
    Probe("repeat", "the same question asked again"),
    Probe("order", "the items of the rubric in the opposite order", rubric=reversed_items),
    Probe("longer", "courtesies around the answer", longer),
    Probe("markdown", "the sentences as a Markdown list", markdown),
    Probe("confident", "sentences that claim certainty", confident),
    Probe("other-model", f"a sentence that names {_MODEL} as the author", other_model),
    Probe("own-model", "a sentence that names the judge's own model as the author", own_model),
)

PROBES: Mapping[str, Probe] = {one.name: one for one in _MADE}
