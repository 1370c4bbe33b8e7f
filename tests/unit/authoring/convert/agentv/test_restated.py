from __future__ import annotations

import pytest

from agentv.authoring.convert.agentv.restated import restated
from agentv.authoring.convert.fixes import Rename
from agentv.model.values.span import Span


def rewritten(text: str, key: str, written: str, canonical: str) -> str | None:
    at = text.index(key)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return restated(text, Rename(Span("", line, column, line, column + len(key)), written, canonical))


@pytest.mark.parametrize(
    ("text", "written", "canonical", "expected"),
    [
        (
            "execution: {threshold: 0.5, workers: 3} # why\ntests: []\n",
            "execution.threshold",
            "threshold",
            "threshold: 0.5\nexecution: {workers: 3} # why\ntests: []\n",
        ),
        (
            "a: 1\nexecution: {workers: 3} # why\n# next\ntests: []\n",
            "execution.workers",
            "run.workers",
            "a: 1\nrun:\n  workers: 3\n# why\n# next\ntests: []\n",
        ),
        (
            "run: {cache: true}\nexecution: {workers: 3}\n",
            "execution.workers",
            "run.workers",
            "run: {workers: 3, cache: true}\n",
        ),
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
        (
            '{"id": "a", "execution": {"skip_defaults": true}}\n',
            "execution.skip_defaults",
            "skip_defaults",
            '{"id": "a", "skip_defaults": true}\n',
        ),
        ("tests:\n  - mode: conversation\n    id: a\n", "mode: conversation", "turns", "tests:\n  - id: a\n"),
        (
            "tests:\n  - id: a\n    mode: conversation # one by one\n",
            "mode: conversation",
            "aggregation: mean",
            "tests:\n  - id: a\n    aggregation: mean # one by one\n",
        ),
        ("run:\n  trials: {count: 2}  # twice\n  z: 1\n", "trials", "repeat", "run:\n  repeat: 2  # twice\n  z: 1\n"),
        ("run:\n  trials:\n    count: 2\n", "trials", "repeat", "run:\n  repeat: 2\n"),
        ("run:\n  timeout_ms: 1500\n", "timeout_ms", "timeout_s", "run:\n  timeout_s: 1.5\n"),
        ("run:\n  fail_on_error: true\n", "fail_on_error", "max_errors", "run:\n  max_errors: 1\n"),
        ("run:\n  fail_on_error: false\nx: 1\n", "fail_on_error", "max_errors", "x: 1\n"),
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
)
def test_a_key_moves_with_its_value(text: str, written: str, canonical: str, expected: str) -> None:
    key = written.rpartition(".")[2].partition(":")[0]
    quoted = f'"{key}"'
    assert rewritten(text, quoted if quoted in text else key, written, canonical) == expected


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("- mode: conversation\n", "mode: conversation"),  # the item would be left without a key
        ("other: 1\n", "trials"),
    ],
)
def test_what_cannot_be_rewritten_is_left(text: str, written: str) -> None:
    key = written.partition(":")[0] if written.partition(":")[0] in text else "other"
    assert rewritten(text, key, written, "repeat") is None
