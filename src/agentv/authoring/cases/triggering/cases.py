"""`triggering:` of a suite: which queries should load a prompt by its description alone (SPEC section 11).

Each query becomes a case that asks the judge, YES or NO. The description, the query and the descriptions of the other
prompts are inserted into the question as text, between tags that none of them can contain.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.assertions.judging import Judging
from agentv.authoring.cases.triggering.queries import AuthoredTriggering, Query, read_queries
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Node, node_of, span_of
from agentv.model.run.grade import TOLERANCE
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.suite import Case
from agentv.model.values.message import Message
from agentv.model.values.values import Json

TAG = "triggering"
"""Of every case that is made here, to choose them by or leave them out."""


_PLACEHOLDER = re.compile(r"\{\{ (\w+) \}\}")


def trigger_cases(node: Node, assertions: AssertionReader, judging: Judging, reading: Reading) -> tuple[Case, ...]:
    """The cases of `triggering:`, in its order; none if anything is invalid, which is reported.

    Args:
        node: as authored.
        assertions: reads the check of each query.
        judging: records that a judge is needed.
        reading: of the suite.
    """
    reading = reading.part().rendering(False)
    settings, queries = read_queries(node, reading)
    if settings is None or reading.report.failed:
        return ()
    made = _Maker(settings, assertions, judging, reading)
    return tuple(case for query in queries if (case := made.case(query)) is not None)


class _Maker(Struct, frozen=True):
    """Makes the cases of one prompt."""

    settings: AuthoredTriggering
    assertions: AssertionReader
    judging: Judging
    reading: Reading

    def case(self, query: Query) -> Case | None:
        """The case of a query; None where it cannot be written down, which is reported."""
        span, settings = span_of(query.node.at), self.settings
        others = {} if settings.catalogue is False else {key: str(settings.others[key]) for key in settings.others}
        question = question_of(settings.name, settings.description, dict(sorted(others.items())), query.text)
        entries = self._entries(query)
        metadata: dict[str, Json] = {**query.metadata, "query": query.text, "should_trigger": query.loads}
        facts = [query.name, question, query.loads, mark_of(settings.threshold, query.loads), metadata]
        try:
            written = json.dumps([*facts, settings.runs], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            message = "this query or its prompt contains half of a character (a lone surrogate), which cannot be sent"
            self.reading.report.error("not-unicode", query.node, message)
            return None
        self.judging.ask(span)
        return Case(
            id=f"trigger: {query.name}",
            input=(Message("user", question),),
            assertions=entries,
            description=f"'{settings.name}' should {'' if query.loads else 'not '}be loaded",
            metadata=metadata,
            tags=(TAG,),
            threshold=0.0,  # the gate of its one assertion decides
            repeat=settings.runs,
            sha256=hashlib.sha256(written).hexdigest(),
            span=span,
            asks_judge=True,
        )

    def _entries(self, query: Query) -> tuple[AssertionEntry, ...]:
        entry: dict[str, Json] = {
            "type": TAG,
            "value": query.loads,
            "required": mark_of(self.settings.threshold, query.loads),
        }
        return self.assertions.entries(node_of([entry], span_of(query.node.at)), self.reading).value


def mark_of(threshold: float, loads: bool) -> float:
    """The share of right answers that a query needs to pass.

    A query that should load the prompt passes if YES has a share of `threshold` or more; one that should not passes
    if everything except NO stays below it, so that NO has a share *above* 1 − threshold. This is
    exact for any realistic number of runs: shares with different counts differ by far more than the
    tolerance with which thresholds are compared.
    """
    return threshold if loads else min(1.0, 1.0 - threshold + 2 * TOLERANCE)


def question_of(name: str, description: str, others: Mapping[str, str], query: str) -> str:
    """The question to the judge.

    The same for the same arguments, so that a run can be resumed.

    Args:
        name: the prompt's id.
        description: the prompt's.
        others: id → description of the other prompts; empty: they are not mentioned.
        query: of a user.
    """
    token = _token(name, description, others, query)
    catalogue = "\n\n".join(_entry(one, text) for one, text in others.items())
    shown = f"\nThe other prompts:\n\n{_fenced('others', token, catalogue)}\n" if others else ""
    values = {
        "token": token,
        "prompt": _fenced("prompt", token, _entry(name, description)),
        "others": shown,
        "query": _fenced("query", token, query.strip()),
    }
    return _PLACEHOLDER.sub(lambda found: values[found[1]], _template())  # in one go: no text is looked into


def _entry(name: str, description: str) -> str:
    return f"name: {' '.join(name.split())}\ndescription: {description.strip()}"


def _fenced(what: str, token: str, text: str) -> str:
    return f"<{what}-{token}>\n{text}\n</{what}-{token}>"


def _token(name: str, description: str, others: Mapping[str, str], query: str) -> str:
    """64 bits of a hash over all that is shown."""
    shown = json.dumps([name, description, dict(others), query])
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


@cache
def _template() -> str:
    return Path(__file__).with_name("triggering.md").read_text(encoding="utf-8").strip()
