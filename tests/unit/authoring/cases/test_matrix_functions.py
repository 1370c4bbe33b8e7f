"""Prompts and cases that functions of users make: what goes wrong."""

import pytest

from doubles.loading import outcome, repository

SUITE = """target: echo
prompts: ["{prompt}"]
tests: [{{id: a, vars: {{x: 1}}, assert: [{{contains: a}}]}}, {{id: b, vars: {{x: 2}}, assert: [{{contains: a}}]}}]
"""


def told(folder, prompt, **files):
    """What is wrong with a suite of one prompt: code and message."""
    written = {name.replace("_", ".", 1): text for name, text in files.items()}
    path = repository(folder, {"suite.eval.yaml": SUITE.format(prompt=prompt), **written}) / "suite.eval.yaml"
    return [(one.code, one.message) for one in outcome(path)[1]]


@pytest.mark.parametrize(
    ("prompt", "text", "code", "said"),
    [
        ("p.py:f", "def f(context): raise ValueError('no')", "bad-prompt", "p.py:f raised ValueError: no"),
        ("p.py:f", "def f(context): return None", "bad-prompt", "returned nothing"),
        ("p.py:f", "raise ValueError('at import')\ndef f(context): pass", "cannot-load", "at import"),
        ("p.py:f", "def f(one, two): return 'a'", "bad-signature", "one, two"),
        ("p.py:f", "def f(vars): return {'prompt': 'a', 'config': {'t': 1}}", "bad-prompt", "a prompt cannot set"),
        ("p.py", "def f(context): return 'a'", "bad-prompt", "through a function"),
        ("p.py:g", "def f(context): return 'a'", "missing-function", "no function 'g'"),
        ("p.mjs", "export default () => { throw new Error('no'); };", "bad-prompt", "raised Error: no"),
        ("p.mjs:g", "export const f = () => 'a';", "cannot-load", "exports no function 'g'"),
        ("p.mjs", "export default (;", "cannot-load", "p.mjs cannot be loaded"),
    ],
)
def test_a_function_that_writes_no_prompt_is_an_error(tmp_path, prompt, text, code, said):
    name = prompt.partition(":")[0].replace(".", "_", 1)
    found = told(tmp_path, prompt, **{name: text})
    assert [one for one, _ in found] == [code], found
    assert said in found[0][1]


def test_a_function_is_called_once_for_the_same_variables(tmp_path):
    code = "calls = []\ndef f(context):\n    calls.append(1)\n    return f'a {len(calls)} {context}'\n"
    suite = """target: echo
repeat: 1
prompts: [p.py:f]
assert: [{contains: a}]
tests: [{id: a, vars: {x: 1}}, {id: b, vars: {x: 1}}, {id: c, vars: {x: 2}}]
""".replace("repeat: 1\n", "")
    path = repository(tmp_path, {"suite.eval.yaml": suite, "p.py": code}) / "suite.eval.yaml"
    suites, found = outcome(path)
    assert found == ()
    said = [case.input[0].text for case in suites[0].cases]
    assert [one.split()[1] for one in said] == ["1", "1", "2"]
    assert suites[0].generators == ("p.py:f",)


def test_validating_calls_nothing(tmp_path):
    suite = SUITE.format(prompt="p.py:f").replace("tests: [", "tests: [cases.mjs, ")
    files = {"p.py": "raise ValueError\ndef f(context): return 1", "cases.mjs": "throw new Error('ran');"}
    path = repository(tmp_path, {"suite.eval.yaml": suite, **files}) / "suite.eval.yaml"
    assert {one.code for one in outcome(path, for_run=False)[1]} <= {"unchecked-cases"}


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("export default () => { throw new Error('no'); };", "bad-generator", "cases.mjs raised Error: no"),
        ("throw new Error('at import');", "cannot-load", "at import"),
        ("export default { id: 'a' };", "bad-generator", "must return a list of cases, not a single dict"),
        ("export default [];", "no-tests", "returns no cases"),
        ("export default [{ id: 'a', assert: [{ contians: 'a' }] }];", "unknown-assertion", "case 1"),
    ],
)
def test_a_file_that_gives_no_cases_is_an_error(tmp_path, text, code, said):
    suite = "target: echo\ninput: hi\nassert: [{contains: a}]\ntests: cases.mjs\n"
    path = repository(tmp_path, {"suite.eval.yaml": suite, "cases.mjs": text}) / "suite.eval.yaml"
    found = outcome(path)[1]
    assert code in [one.code for one in found], found
    assert any(said in one.message for one in found), found
