from __future__ import annotations

import pytest

from agentv.reports.text.paths import without_directories


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("cannot read /home/ann/p/.agentv/results/r/run.json: x", "cannot read .agentv/results/r/run.json: x"),
        ("cannot use the database '/var/lib/agentv/team.sqlite'", "cannot use the database 'team.sqlite'"),
        ("/srv/a.yaml:3:1: wrong, see (/srv/b.yaml), /srv/c.yaml.", "a.yaml:3:1: wrong, see (b.yaml), c.yaml."),
        ("[Errno 2] No such file: '/srv/x'", "[Errno 2] No such file: 'x'"),
        ("give --remote https://example.org/projects/x", "give --remote https://example.org/projects/x"),
        ("evals/a.yaml, ./b/c.yaml and 1/2 of all", "evals/a.yaml, ./b/c.yaml and 1/2 of all"),
        ("/home/ann/two words/.agentv/labels/s.jsonl", "two words/.agentv/labels/s.jsonl"),
        ("a / b", "a / b"),
    ],
)
def test_a_message_for_others_says_no_directory_of_this_machine(message, shown):
    assert without_directories(message) == shown
