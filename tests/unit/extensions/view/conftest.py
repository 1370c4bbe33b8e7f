import pytest

from doubles.viewed_project import viewed


@pytest.fixture
def client(root):
    """A client of the page of a project."""
    with viewed(root) as found:
        yield found
