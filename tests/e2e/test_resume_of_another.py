from __future__ import annotations

SUITE = "name: {name}\ntarget: echo\ntests:\n  - id: a\n    input: hello\n    assert: [{{contains: {needle}}}]\n"


def test_a_run_does_not_go_on_with_another_suite(project):
    project.write("one.eval.yaml", SUITE.format(name="one", needle="bye"))
    project.write("two.eval.yaml", SUITE.format(name="two", needle="hello"))
    assert project.run("eval", "one.eval.yaml").status == 1
    ended = project.run("eval", "two.eval.yaml", "--resume")
    assert ended.status == 2
    assert "is one of one.eval.yaml" in ended.stderr


def test_a_run_does_not_go_on_with_a_part_of_its_suites(project):
    """The failures of the others would be gone from its totals."""
    project.write("evals/one.eval.yaml", SUITE.format(name="one", needle="hello"))
    project.write("evals/two.eval.yaml", SUITE.format(name="two", needle="bye"))
    assert project.run("eval", "evals", "--out", "r").status == 1
    for words in (["--resume"], ["--rerun=failed"]):
        ended = project.run("eval", "evals/one.eval.yaml", "--out", "r", *words)
        assert ended.status == 2
        assert "and this command leaves out evals/two.eval.yaml" in ended.stderr
        assert "give all of them: evals" in ended.stderr
    assert len(project.rows("r")) == 2
    (project.path / "evals" / "two.eval.yaml").unlink()
    ended = project.run("eval", "evals", "--out", "r", "--resume")
    assert ended.status == 2
    assert "restore evals/two.eval.yaml to resume, or start a new run" in ended.stderr


def test_a_suite_that_is_new_to_a_run_is_told(project):
    project.write("evals/one.eval.yaml", SUITE.format(name="one", needle="hello"))
    assert project.run("eval", "evals", "--out", "r").status == 0
    project.write("evals/two.eval.yaml", SUITE.format(name="two", needle="hello"))
    ended = project.run("eval", "evals", "--out", "r", "--resume")
    assert ended.status == 0
    assert "note: 1 suite is new to the run, now included in its totals: evals/two.eval.yaml" in ended.stderr


def test_rows_that_are_left_out_of_the_totals_are_told(project):
    project.write("one.eval.yaml", SUITE.format(name="one", needle="bye"))
    assert project.run("eval", "one.eval.yaml").status == 1
    ended = project.run("eval", "one.eval.yaml", "--resume", "--target", "mock:bye")
    assert ended.status == 0
    assert "moved 1 outdated row to history.jsonl: its case was edited, " in ended.stderr
