import pytest

from agentv.store.files.directory import RunDirectory
from agentv.store.journal.journal import Journal
from doubles.trials import NOW, ROOT


@pytest.fixture
def directory(tmp_path):
    with RunDirectory.create(tmp_path, NOW, out=tmp_path / "run") as made:
        yield made


@pytest.fixture
def journal(directory):
    with Journal(directory, ROOT) as opened:
        yield opened
