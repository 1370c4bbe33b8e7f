from textwrap import dedent

from agentv.extensions.mutate.mutants import named_by, phrases_of
from doubles.loading import case_of


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
