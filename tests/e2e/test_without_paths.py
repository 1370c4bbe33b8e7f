"""`eval` and `validate` without a path (SPEC section 12)."""

import json

SUITE = "target: echo\ntests:\n  - {id: a, input: hello, assert: [contains: hello]}\n"


def test_evals_is_taken_and_said(project):
    project.write("evals/one.eval.yaml", SUITE)
    project.run("eval", status=0, says="note: no path given: using evals/\n")
    assert [row["test_id"] for row in project.rows()] == ["a"]
    checked = project.run("validate", "--json")
    assert (checked.status, json.loads(checked.stdout)) == (0, [])
    assert "using evals/" in checked.stderr


def test_nothing_found_is_an_error_that_says_what_to_do(project):
    for command in ("eval", "validate"):
        ended = project.run(command, status=2, says="there is no evals/")
        assert "list patterns of eval files as 'eval_patterns' in .agentv/config.yaml" in ended.stderr
    project.write_files({".agentv/config.yaml": "eval_patterns: ['evals/**/*.yml']\n", "evals/one.eval.yaml": SUITE})
    project.run("eval", status=2, says="matches no eval file: 'evals/**/*.yml'")
    project.write_files({".agentv/config.yaml": "", "evals/one.eval.yaml": ""})
    (project.path / "evals/one.eval.yaml").unlink()
    assert "evals contains no eval files" in project.run("validate").stderr
    assert not project.ran


def test_patterns_stay_in_the_repository(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "private.yaml").write_text(SUITE)
    project.write("evals/x.txt", "")
    (project.path / "evals" / "link.yaml").symlink_to(outside / "private.yaml")
    for pattern in (f"{outside}/*.yaml", "../**/*.yaml", "evals/../../*.yaml", "evals/*/../../*.yaml", "evals/*.yaml"):
        project.write(".agentv/config.yaml", f"eval_patterns: ['{pattern}']\n")
        ended = project.run("validate", status=2, says="error[outside-repository]")
        assert "hello" not in ended.stderr, pattern
    project.run("validate", "--allow-outside", status=0)
