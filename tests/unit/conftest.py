import pytest


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty repository as the working directory."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path
