"""Cases that depend on each other: `cluster`, `--cluster` and conversations, as reports count them."""

from __future__ import annotations

import json

import pytest


def lines(number=40, clusters=8, **given):
    """JSON Lines of cases of which those of one customer all pass or all fail."""
    rows = (
        {
            "id": f"c{one}",
            "input": "hello",
            "metadata": {"customer": one % clusters},
            "assert": [{"contains": "hello" if one % clusters < clusters * 3 / 4 else "bye"}],
            **{key: value.format(one % clusters) for key, value in given.items()},
        }
        for one in range(number)
    )
    return "\n".join(map(json.dumps, rows)) + "\n"


def rate(ended):
    return next(line.partition(", mean score")[0] for line in ended.stderr.split("\n") if line.startswith("pass rate"))


@pytest.mark.parametrize(
    ("sidecar", "flags", "said"),
    [
        ("", (), "(95% CI 59.8% to 85.8%)"),
        ("", ("--cluster", "customer"), "(95% CI 34.4% to 94.5%, 8 clusters by 'customer')"),
        ("cluster: customer\n", (), "(95% CI 34.4% to 94.5%, 8 clusters by 'customer')"),
        ("run: {cluster: customer}\n", (), "(95% CI 34.4% to 94.5%, 8 clusters by 'customer')"),
        ("cluster: nothing\n", ("--cluster", "customer"), "(95% CI 34.4% to 94.5%, 8 clusters by 'customer')"),
        (
            'cluster: "of {{ metadata.customer }}"\n',
            (),
            "(95% CI 34.4% to 94.5%, 8 clusters by 'of {{ metadata.customer }}')",
        ),
    ],
)
def test_cases_of_one_cluster_are_not_counted_as_independent(project, sidecar, flags, said):
    project.write("a.jsonl", lines())
    project.write("a.yaml", f"target: echo\n{sidecar}")
    ended = project.run("eval", "a.jsonl", "-q", *flags)
    assert rate(ended) == f"pass rate 75.0% of 40 judged {said}", ended.stderr


def test_one_cluster_has_no_interval(project):
    project.write("a.jsonl", lines(clusters=1))
    project.write("a.yaml", "target: echo\ncluster: customer\n")
    ended = project.run("eval", "a.jsonl", "-q", "-o", "run", "-o", "run.html", "-o", "run.md")
    assert rate(ended) == "pass rate 100.0% of 40 judged (no confidence interval: 1 cluster by 'customer' only)"
    summary = json.loads((project.path / "run" / "summary.json").read_text())
    assert (summary["pass_rate_interval"], summary["mean_score_interval"], summary["interval_clusters"]) == (
        None,
        None,
        1,
    )
    assert "(no confidence interval: 1 cluster by `customer` only)" in (project.path / "run.md").read_text()
    listed = project.run("results", "list")
    assert listed.status == 0


def test_a_run_goes_on_with_the_clusters_that_it_began_with(project):
    project.write("a.jsonl", lines())
    project.write("a.yaml", "target: echo\n")
    begun = project.run("eval", "a.jsonl", "-q", "--cluster", "customer", "-o", "run")
    again = project.run("eval", "a.jsonl", "-q", "-o", "run", "--rerun", "failed")
    assert rate(again) == rate(begun)
    other = project.run("eval", "a.jsonl", "-q", "-o", "run", "--resume", "--cluster", "id")
    assert other.status == 2
    plain = project.run("eval", "a.jsonl", "-q", "-o", "plain")
    assert plain.status == 1
    late = project.run("eval", "a.jsonl", "-q", "-o", "plain", "--resume", "--cluster", "customer")
    assert (late.status, "started without --cluster" in late.stderr) == (2, True)
