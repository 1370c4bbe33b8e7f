from __future__ import annotations

import textwrap

from agentv.authoring.convert.fixes import Rename, rewritten
from agentv.model.values.span import Span


def rename(text: str, written: str, canonical: str, number: int = 1) -> Rename:
    """The place of the last part of what is written, as the loader gives it."""
    key = written.rpartition(".")[2]
    at = -1
    for _ in range(number):
        at = text.index(key, at + 1)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return Rename(Span("s.yaml", line, column, line, column + len(key)), written, canonical)


def fixed(text: str, *pairs: tuple[str, str]) -> str:
    text = textwrap.dedent(text).lstrip("\n")
    return rewritten(text, [rename(text, written, canonical) for written, canonical in pairs])


def same(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def test_keys_are_replaced_where_they_stand() -> None:
    found = fixed(
        """
        dataset: a  # the name
        "evaluators" : [ {metric: b, type: matches} ]
        """,
        ("dataset", "name"),
        ("metric", "name"),
        ("matches", "regex"),
    )
    assert found == same(
        """
        name: a  # the name
        "evaluators" : [ {name: b, type: regex} ]
        """
    )


def test_a_quoted_key_keeps_its_quotes() -> None:
    place = Span("s.yaml", 1, 1, 1, 13)
    assert rewritten('"evaluators": []\n', [Rename(place, "evaluators", "assert")]) == '"assert": []\n'


def test_a_place_that_holds_something_else_is_left_alone() -> None:
    place = Span("s.yaml", 1, 1, 1, 5)
    assert rewritten("name: a\n", [Rename(place, "dataset", "name")]) == "name: a\n"


def test_all_of_a_container_moves_out_of_it_with_its_comments() -> None:
    found = fixed(
        """
        tests:
          - id: a
            execution:  # settings
              # strict
              evaluators:
              - contains: x
              # none of the suite's
              skip_defaults: true
            # the question
            input: hi
        """,
        ("execution.evaluators", "assert"),
        ("execution.skip_defaults", "skip_defaults"),
    )
    assert found == same(
        """
        tests:
          - id: a
            # settings
            # strict
            assert:
            - contains: x
            # none of the suite's
            skip_defaults: true
            # the question
            input: hi
        """
    )


def test_what_stays_keeps_the_container() -> None:
    found = fixed(
        """
        execution:
          target: echo
          trials: 2
          threshold: 1
        tests: []
        """,
        ("execution.trials", "run.repeat"),
        ("execution.threshold", "threshold"),
    )
    assert found == same(
        """
        threshold: 1
        run:
          repeat: 2
        execution:
          target: echo
        tests: []
        """
    )


def test_a_block_of_text_keeps_its_lines() -> None:
    found = fixed(
        """
        execution:
          assert:
            - |
              Is polite.

              # and this is text
            - Is short
        """,
        ("execution.assert", "assert"),
    )
    assert found == same(
        """
        assert:
          - |
            Is polite.

            # and this is text
          - Is short
        """
    )


def test_what_cannot_be_moved_is_left() -> None:
    flow = "execution: {threshold: 1}\n"
    assert rewritten(flow, [rename(flow, "execution.threshold", "threshold")]) == flow
    dash = "tests:\n  - execution:\n      threshold: 1\n    id: a\n"
    assert rewritten(dash, [rename(dash, "execution.threshold", "threshold")]) == dash
    both = "run:\n  repeat: 2\nexecution:\n  workers: 3\n"
    assert rewritten(both, [rename(both, "execution.workers", "run.workers")]) == both


def test_line_ends_and_the_byte_order_mark_stay() -> None:
    text = "\ufeffname: a\r\ndataset: b\r\n"
    assert rewritten(text, [rename(text, "dataset", "suite")]) == "\ufeffname: a\r\nsuite: b\r\n"
