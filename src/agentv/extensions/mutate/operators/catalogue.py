"""The operators by name. A new operator is one function and one line here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv.extensions.mutate.operators import json_answers, sentences, tool_calls, values, whole_answers
from agentv.extensions.mutate.operators.mutant import Answer, Make, Mutant, Operator

_MADE: tuple[tuple[str, str, Make], ...] = (
    ("empty", "the answer is empty", whole_answers.empty),
    ("cut-in-half", "the second half of the answer is missing", whole_answers.cut_in_half),
    ("drop-sentence", "a sentence that holds an expected value is missing", sentences.drop_sentences),
    ("change-number", "a number is twice as large", values.change_numbers),
    ("change-date", "a date is later", values.change_dates),
    ("change-name", "a name is another one", values.change_names),
    ("negate", "a sentence says the opposite", sentences.negate_sentences),
    ("swap-answer", "the answer is that of another case", whole_answers.swap_answer),
    ("refuse", "the answer is a refusal", whole_answers.refuse),
    ("quote-verdict", "the answer only quotes a passing verdict", whole_answers.quote_verdict),
    ("break-json", "the JSON lacks its last bracket", json_answers.break_json),
    ("drop-field", "a field of the JSON is missing", json_answers.drop_fields),
    ("retype-field", "a field of the JSON has another type", json_answers.retype_fields),
    ("drop-call", "a tool call is missing", tool_calls.drop_calls),
    ("repeat-call", "a tool is called once more", tool_calls.repeat_calls),
    ("reorder-calls", "two tool calls changed places", tool_calls.reorder_calls),
    ("change-argument", "an argument of a tool call has another value", tool_calls.change_arguments),
    ("fail-tool", "a tool reports an error", tool_calls.fail_calls),
)

OPERATORS: dict[str, Operator] = {name: Operator(name, text, make) for name, text, make in _MADE}


def mutants_of(answer: Answer, operators: Sequence[Operator]) -> Iterator[tuple[Operator, Mutant]]:
    """The mutants of an answer by each operator, without those that change nothing; each text once."""
    known: set[str] = set()
    for operator in operators:
        for mutant in operator.make(answer):
            if not mutant.is_change_of(answer) or mutant.output in known:
                continue
            if mutant.output is not None:
                known.add(mutant.output)
            yield operator, mutant
