import textwrap

import pytest

from agentv.authoring.convert.rewriting import Rename, rewritten, without_key
from agentv.model.values.values import Span


def rename(text: str, written: str, canonical: str, key: str | None = None) -> Rename:
    """Return the position of a key, or of the last part of the path, as the loader gives it."""
    key = key or written.rpartition(".")[2]
    at = text.index(key)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return Rename(Span("s.yaml", line, column, line, column + len(key)), written, canonical)


def same(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def test_a_place_that_holds_something_else_is_left_alone() -> None:
    assert rewritten("name: a\n", [Rename(Span("s.yaml", 1, 1, 1, 5), "dataset", "name")]) == "name: a\n"


def test_all_of_a_container_moves_out_of_it_with_its_comments() -> None:
    text = same(
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
        """
    )
    pairs = (("execution.evaluators", "assert"), ("execution.skip_defaults", "skip_defaults"))
    assert rewritten(text, [rename(text, *pair) for pair in pairs]) == same(
        """
        tests:
          - id: a
            # strict
            assert:
            - contains: x
            # none of the suite's
            skip_defaults: true
            # settings
            # the question
            input: hi
        """
    )


@pytest.mark.parametrize(
    "text",
    [
        "execution: &e\n  threshold: 1\nx: *e\n",
        "tests:\n  - &a {execution: {threshold: 1}, id: a}\n  - {<<: *a, id: b}\n",
        "tests: [\nexecution: {threshold: 1}\n",
        "- execution:\n    threshold: |\n      1\n\n      # more\n- b\n",
    ],
)
def test_what_is_written_in_another_way_is_rewritten_or_left(text: str) -> None:
    done = rewritten(text, [rename(text, "execution.threshold", "threshold")])
    assert done.count("#") == text.count("#")
    assert "execution" not in done or done == text


def test_line_ends_and_the_byte_order_mark_stay() -> None:
    text = "\ufeffname: a\r\ndataset: b\r\n"
    assert rewritten(text, [rename(text, "dataset", "suite")]) == "\ufeffname: a\r\nsuite: b\r\n"


@pytest.mark.parametrize(
    ("text", "written", "canonical", "expected"),
    [
        ("execution: {threshold: 0.5, workers: 3} # why\ntests: []\n", "execution.threshold", "threshold", "threshold: 0.5\nexecution: {workers: 3} # why\ntests: []\n"),
        ("a: 1\nexecution: {workers: 3} # why\n# next\ntests: []\n", "execution.workers", "run.workers", "a: 1\nrun:\n  workers: 3\n# why\n# next\ntests: []\n"),
        ("run: {cache: true}\nexecution: {workers: 3}\n", "execution.workers", "run.workers", "run: {workers: 3, cache: true}\n"),
        (
            "run:\n  # here\n  cache: true\nexecution:\n  workers: 3\n  trials: 2\n",
            "execution.workers",
            "run.workers",
            "run:\n  # here\n  workers: 3\n  cache: true\nexecution:\n  trials: 2\n",
        ),
        (
            "tests:\n  - id: a\n    execution: {skip_defaults: true}\n    input: x\n",
            "execution.skip_defaults",
            "skip_defaults",
            "tests:\n  - id: a\n    skip_defaults: true\n    input: x\n",
        ),
        (
            "tests:\n  - {id: a, execution: {skip_defaults: true}, input: 'x, {'}\n",
            "execution.skip_defaults",
            "skip_defaults",
            "tests:\n  - {id: a, skip_defaults: true, input: 'x, {'}\n",
        ),
        ('{"id": "a", "execution": {"skip_defaults": true}}\n', "execution.skip_defaults", "skip_defaults", '{"id": "a", "skip_defaults": true}\n'),
        ("tests:\n  - mode: conversation\n    id: a\n", "mode: conversation", "turns", "tests:\n  - id: a\n"),
        ("tests:\n  - id: a\n    mode: conversation # one by one\n", "mode: conversation", "aggregation: mean", "tests:\n  - id: a\n    aggregation: mean # one by one\n"),
        ("run:\n  trials: {count: 2}  # twice\n  z: 1\n", "trials", "repeat", "run:\n  repeat: 2  # twice\n  z: 1\n"),
        ("run:\n  trials:\n    count: 2\n", "trials", "repeat", "run:\n  repeat: 2\n"),
        ("execution:\n  trials: {count: 2}\n", "execution.trials", "run.trials", "run:\n  trials: {count: 2}\n"),
        ("run:\n  timeout_ms: 1500\n", "timeout_ms", "timeout_s", "run:\n  timeout_s: 1.5\n"),
        ("run:\n  fail_on_error: true\n", "fail_on_error", "max_errors", "run:\n  max_errors: 1\n"),
        ("run:\n  fail_on_error: false\n  x: 1\n", "fail_on_error", "max_errors", "run:\n  x: 1\n"),
        (
            "targets:\n  - name: a\n    max_retries: 1 # once\n    z: 2\n",
            "max_retries",
            "retry.max_retries",
            "targets:\n  - name: a\n    retry:\n      max_retries: 1 # once\n    z: 2\n",
        ),
        (
            "targets:\n  - name: a\n    max_retries: 2\n    retry:\n      rate: 1\n  - name: b\n",
            "max_retries",
            "retry.max_retries",
            "targets:\n  - name: a\n    retry:\n      max_retries: 2\n      rate: 1\n  - name: b\n",
        ),
    ],
)  # fmt: skip
def test_a_key_moves_with_its_value(text: str, written: str, canonical: str, expected: str) -> None:
    key = written.rpartition(".")[2].partition(":")[0]
    quoted = f'"{key}"'
    place = rename(text, written, canonical, quoted if quoted in text else key)
    assert rewritten(text, [place]) == expected


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("- mode: conversation\n", "mode: conversation"),  # the item would be left without a key
        ("other: 1\n", "trials"),
    ],
)
def test_what_cannot_be_rewritten_is_left(text: str, written: str) -> None:
    key = written.partition(":")[0] if written.partition(":")[0] in text else "other"
    assert rewritten(text, [rename(text, written, "repeat", key)]) == text


def test_a_block_goes_with_all_that_is_in_it() -> None:
    text = "dashboard:\n  # how\n  theme: dark\n\n  tabs:\n  - a\n# of results\nresults: x\n"
    assert list(without_key(text, "dashboard")) == ["# of results\nresults: x\n"]
