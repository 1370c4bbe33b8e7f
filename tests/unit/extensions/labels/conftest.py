import pytest


@pytest.fixture(autouse=True)
def _there(tmp_path, monkeypatch):
    """Run each test in its own directory."""
    monkeypatch.chdir(tmp_path)
