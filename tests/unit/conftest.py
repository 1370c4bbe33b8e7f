import pytest


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with nothing in it, which is the working directory."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path
