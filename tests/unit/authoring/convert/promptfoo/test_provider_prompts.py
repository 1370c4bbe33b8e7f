from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentv.app.authored.from_promptfoo import from_promptfoo

ALL = "[{label: one, raw: 'A {{ x }}'}, {label: 'two:b', raw: 'B {{ x }}'}]"


def converted(providers: str, tmp_path: Path) -> tuple[dict[str, Any], list[str]]:
    source = tmp_path / "promptfooconfig.yaml"
    tests = "[{vars: {x: 1}, assert: [{type: contains, value: A}]}]"
    source.write_text(f"prompts: {ALL}\nproviders: {providers}\ntests: {tests}\n")
    found = from_promptfoo(source, None)
    assert found is not None
    return yaml.safe_load(found.path.read_text()), [one.message for one in found.left]


@pytest.mark.parametrize(
    ("providers", "labels"),
    [
        ("[{id: echo, prompts: [one, two]}]", ["one", "two:b"]),
        ("[{id: echo, prompts: ['*']}, {id: echo, label: b}]", ["one", "two:b"]),
        ("[{id: echo, prompts: [one]}, {id: echo, label: b, prompts: ['on*']}]", ["one"]),
        ("[{echo: {prompts: [two]}}]", ["two:b"]),
    ],
)
def test_prompts_that_all_providers_get_are_those_of_the_suite(
    providers: str, labels: list[str], tmp_path: Path
) -> None:
    document, told = converted(providers, tmp_path)
    assert told == []
    assert [one["label"] for one in document["prompts"]] == labels
    assert "unconverted" not in document


@pytest.mark.parametrize(
    "providers",
    [
        "[{id: echo, prompts: [one]}, {id: echo, label: b, prompts: [two]}]",
        "[{id: echo, prompts: [one]}, {id: echo, label: b}]",
        "[{id: echo, prompts: [nothing]}]",
        "[{id: echo, prompts: []}]",
    ],
)
def test_prompts_of_one_provider_keep_the_file_invalid(providers: str, tmp_path: Path) -> None:
    document, told = converted(providers, tmp_path)
    assert "'prompts' of a provider has no equivalent" in told
    assert document["unconverted"]
