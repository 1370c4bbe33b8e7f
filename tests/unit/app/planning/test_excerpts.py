"""What of authored files may be shown in an excerpt."""

from __future__ import annotations

import pytest

from agentv.app.planning.excerpts import source_of


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("API-KEY=sk-123", "API-KEY=…"),
        ("export TOKEN = 'abc", "export TOKEN =…"),
        ("sk-123 is the key", "…"),
        ("AKIAIOSFODNN7", "…"),
        ("bGV0bWVpbg==", "…"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("name", [".env", ".env.local"])
def test_of_a_dotenv_only_names_are_shown(tmp_path, name, line, shown):
    (tmp_path / name).write_text(f"A=1\n{line}\nB=2\n", encoding="utf-8")
    assert source_of(str(tmp_path / name)).split("\n") == ["A=…", shown, "B=…", ""]
