"""`prompt:` as code: which texts are code, and what can be determined without running it."""

import pytest

from agentv.registry.fields import Document, PromptCode
from doubles.loading import case_of

CASE = "id: a\ninput: hi\nassert:\n  - {{type: closed-qa, value: b, prompt: {prompt}}}"
FILES = {
    "p.py": "def ask(output): pass\nclass Ask: pass\ndef two(first, second): pass\ndef lone(anything): pass\n",
    "sub/p.mts": "export default () => ''",
    "p.js": "",
    "p.md": "{{ output }}",
    "p.ts.md": "{{ output }}",
}


def prompt_of(folder, prompt):
    (entry,) = case_of(folder, CASE.format(prompt=prompt), FILES).assertions
    return entry.assertion.prompt


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("p.py:ask", "p.py:ask"),
        ("./p.py:Ask", "p.py:Ask"),
        ("p.py:lone", "p.py:lone"),
        ("file://p.py:ask", "p.py:ask"),
        ("sub/p.mts", "p.mts"),
        ("./p.js", "p.js"),
        ("p.js:strict", "p.js:strict"),
        ("{command: [node, p.js]}", "node p.js"),
        ("{command: 'node p.js'}", "node p.js"),
        ("{script: [node, p.js]}", "node p.js"),
        *((text, None) for text in ("p.md", "p.ts.md", "'Is p.py:ask right? {{ output }}'", "'{{ output }} p.js'")),
    ],
)
def test_code_is_known_by_its_form_and_all_other_texts_are_templates(tmp_path, prompt, shown):
    found = prompt_of(tmp_path, prompt)
    assert isinstance(found, PromptCode if shown else Document)
    assert getattr(found, "name", None) == shown


@pytest.mark.parametrize(
    "source",
    [
        "import functools\ndef fill(f): return functools.partial(f, secret=1)\n@fill\ndef ask(output, secret): pass",
        "def ask(output, secret=1, *rest, **more): pass",
        "from elsewhere import ask",
        "ask = make()",
        "if True:\n    def ask(output, secret): pass\nelse:\n    ask = None",
    ],
)
def test_what_only_a_run_can_tell_is_left_to_it(tmp_path, source):
    assert case_of(tmp_path, CASE.format(prompt="p.py:ask"), {"p.py": source}).assertions
