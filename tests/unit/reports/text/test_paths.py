from __future__ import annotations

import pytest

from agentv.reports.text.paths import shown_from


@pytest.mark.parametrize(
    ("path", "here", "shown"),
    [
        ("/repo/evals/a.yaml", "/repo", "evals/a.yaml"),
        ("/repo/a.yaml", "/repo/evals", "../a.yaml"),
        ("/etc/a.yaml", "/home/ann/repo/evals", "/etc/a.yaml"),
        ("relative.yaml", "/repo", "relative.yaml"),
        ("", "/repo", ""),
    ],
)
def test_a_path_is_shown_as_a_person_would_type_it(path, here, shown):
    assert shown_from(path, here) == shown
