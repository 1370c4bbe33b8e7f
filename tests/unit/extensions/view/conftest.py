import pytest

from doubles.viewed_project import viewed


@pytest.fixture
def client(root):
    """A client of a project's pages."""
    with viewed(root) as found:
        yield found
