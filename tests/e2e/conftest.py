from __future__ import annotations

import pytest

from e2e.command import Project


@pytest.fixture
def project(tmp_path) -> Project:
    (tmp_path / ".git").mkdir()
    return Project(tmp_path)
