import pytest

from doubles.viewed_project import viewed


@pytest.fixture
def client(root):
    with viewed(root) as found:
        yield found
