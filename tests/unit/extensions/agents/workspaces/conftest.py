from pathlib import Path

import pytest

from doubles.opened_workspaces import SANDBOXES, Place


@pytest.fixture(params=SANDBOXES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for each sandbox available on this machine."""
    return Place(tmp_path, request.param)


@pytest.fixture
def plain(tmp_path: Path) -> Place:
    """A place without a sandbox, for tests that do not depend on one."""
    return Place(tmp_path)
