"""`triggering:` of an exam: which queries should load a prompt by its description alone (SPEC section 11).

Each query becomes a case that asks the judge, YES or NO. The description, the query and the descriptions of the other
prompts are inserted into the question as text, between tags that none of them can contain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from msgspec import Struct

from agentv.authoring.exams.trigger_queries import FORMS, AuthoredTriggering, Query, check_twice, read_queries
from agentv.authoring.exams.trigger_question import question_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.header.header import Header
from agentv.authoring.source.files import shown
from agentv.authoring.source.nodes import Node, node_of, span_of
from agentv.model.run.grade import TOLERANCE
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.exam import PromptMeta
from agentv.model.suite.suite import Case
from agentv.model.values.message import Message
from agentv.model.values.values import Json

TAG = "triggering"
"""Of every case that is made here, to choose them by or leave them out."""


def trigger_cases(
    node: Node, prompt: PromptMeta, others: Mapping[str, str], header: Header, reading: Reading
) -> tuple[Case, ...]:
    """The cases of `triggering:`, in its order; none if anything is invalid, which is reported.

    Args:
        node: as authored: a mapping, a list of queries, or the path of a file.
        prompt: the prompt whose description is tested.
        others: id → description of the other prompts of the library.
        header: of the suite; records that a judge is needed.
        reading: of the suite.
    """
    return cases_of(node, prompt, others, header, reading.rendering(False))


def cases_of(
    node: Node,
    prompt: PromptMeta,
    others: Mapping[str, str],
    header: Header,
    reading: Reading,
    *,
    of_file: bool = False,
) -> tuple[Case, ...]:
    """The same; `of_file`: the node is a file's outermost list, whose queries are asked several times."""
    reading = reading.part()
    header.cases.notes.seen = True
    settings, queries = read_queries(node, reading, of_file=of_file)
    if not reading.report.failed and not queries:
        reading.report.error("missing-value", node, f"'triggering' contains no queries; it must be {FORMS}")
    check_twice(queries, reading)
    if not (prompt.description or "").strip():
        file = shown(prompt.path) if prompt.path else "a meta.yaml next to the prompt"
        message = f"'{prompt.id}' has no description to decide by whether it is loaded"
        reading.report.error("missing-value", node, message, hint=f"write 'description: …' into {file}")
    if settings is None or reading.report.failed:
        return ()
    made = _Maker(prompt, dict(sorted(others.items())), settings, header, reading)
    return tuple(case for query in queries if (case := made.case(query)) is not None)


class _Maker(Struct, frozen=True):
    """Makes the cases of one prompt."""

    prompt: PromptMeta
    others: Mapping[str, str]
    settings: AuthoredTriggering
    header: Header
    reading: Reading

    def case(self, query: Query) -> Case | None:
        """The case of a query; None where it cannot be written down, which is reported."""
        span = span_of(query.node.at)
        name = self.prompt.id
        others = {} if self.settings.catalogue is False else self.others
        question = question_of(name, self.prompt.description or "", others, query.text)
        entries = self._entries(query)
        metadata: dict[str, Json] = {**query.extra, "query": query.text, "should_trigger": query.loads}
        facts = [query.name, question, query.loads, mark_of(self.settings.threshold, query.loads), metadata]
        try:
            written = json.dumps([*facts, self.settings.runs], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            message = "this query or its prompt contains half of a character (a lone surrogate), which cannot be sent"
            self.reading.report.error("not-unicode", query.node, message)
            return None
        self.header.cases.notes.judging.ask(span)
        return Case(
            id=f"trigger: {query.name}",
            input=(Message("user", question),),
            assertions=entries,
            description=f"'{name}' should {'' if query.loads else 'not '}be loaded",
            metadata=metadata,
            tags=(TAG,),
            threshold=0.0,  # the gate of its one assertion decides
            repeat=self.settings.runs,
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
        return self.header.assertions.entries(node_of([entry], span_of(query.node.at)), self.reading).value


def mark_of(threshold: float, loads: bool) -> float:
    """The share of right answers that a query needs to pass.

    A query that should load the prompt passes if YES has a share of `threshold` or more; one that should not passes
    if everything except NO stays below it, so that NO has a share *above* 1 − threshold. This is
    exact for any realistic number of runs: shares with different counts differ by far more than the
    tolerance with which thresholds are compared.
    """
    return threshold if loads else min(1.0, 1.0 - threshold + 2 * TOLERANCE)
