import pytest


@pytest.fixture(autouse=True)
def _there(tmp_path, monkeypatch):
    """Each test works in its own directory."""
    monkeypatch.chdir(tmp_path)
