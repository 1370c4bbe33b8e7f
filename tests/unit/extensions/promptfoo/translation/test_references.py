from __future__ import annotations

from pathlib import Path

import pytest

from doubles.translations import translated_text


@pytest.mark.parametrize(
    "text",
    [
        "prompts: [x]\nproviders: [file://a.yaml]\ntests: [{assert: [{type: equals, value: x}]}]\n",
        "prompts: [x]\nproviders: [echo]\ntests: [{assert: [file://a.yaml]}]\n",
        "prompts: [x]\nproviders: [echo]\nscenarios: [file://a.yaml]\n",
    ],
)
def test_a_file_that_names_itself_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- file://b.yaml\n")
    (tmp_path / "b.yaml").write_text("- file://a.yaml\n")
    _, told = translated_text(text, tmp_path)
    assert any("names itself" in one for one in told)


def test_references_that_double_at_each_step_end(tmp_path: Path) -> None:
    steps = "".join(f"  a{n}: {{b: {{$ref: '#/x/a{n + 1}'}}, c: {{$ref: '#/x/a{n + 1}'}}}}\n" for n in range(29))
    text = f"prompts: [x]\nproviders: [echo]\nx:\n{steps}  a29: {{}}\ntests: [{{metadata: {{$ref: '#/x/a0'}}}}]\n"
    _, told = translated_text(text, tmp_path)
    assert told[0] == "the references stand for more than 10,000 others"
