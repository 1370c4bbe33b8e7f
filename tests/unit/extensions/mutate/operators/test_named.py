from __future__ import annotations

from textwrap import dedent

from agentv.extensions.mutate.operators.named import named_by, phrases_of, words_of
from agentv.model.suite.suite import Case
from agentv.model.values.message import Message
from doubles.loading import case_of


def test_words_are_small_numbers_whole_and_common_words_left_out():
    assert words_of("The 1,200 Days of Ann's is 2024-05-01") == {"1,200", "days", "ann's", "2024-05-01"}


def test_what_a_case_names(tmp_path):
    case = case_of(
        tmp_path,
        dedent("""\
        id: a
        input: hi
        criteria: Says that refunds end after 30 days
        expected_output: Within thirty days.
        assert:
          - contains: Berlin
          - not-contains: password
          - type: assert-set
            assert: [{regex: 'Ann|Bob'}, {type: is-json}]
          - llm-rubric: Is polite
        """),
    )
    named = named_by(case, case.assertions)
    assert {"30", "thirty", "days", "berlin", "ann", "bob", "json"} <= named.values
    assert {"refunds", "polite"} <= named.words
    assert not {"password", "contains"} & (named.values | named.words)
    assert {"contains", "not-contains", "is-json", "llm-rubric"} <= named.types
    assert "Berlin" in phrases_of(case, case.assertions)


def test_a_case_may_name_nothing():
    named = named_by(Case("a", (Message("user", "hi"),), ()), ())
    assert not named.holds_value("30 days")
    assert not named.is_stated_in("It is 30 days.")
    assert not named.lost("30 days", "")
