import pytest

from doubles.browser_pages import Watched, launched_pages
from e2e.command import Project


@pytest.fixture
def project(request, tmp_path) -> Project:
    (tmp_path / ".git").mkdir()
    return Project(tmp_path, libraries=request.node.get_closest_marker("libraries") is not None)


@pytest.fixture(scope="module")
def pages():
    """The pages of one browser for a module; longer, and its event loop would be in the way of others."""
    with launched_pages() as found:
        yield found


@pytest.fixture
def watched(pages):
    """Lends pages; at the end nobody else may have been asked, and nothing may have gone wrong."""
    found = Watched(pages)
    yield found
    hacked = pages.take_back()
    assert (found.wrong, hacked) == ([], [None] * len(hacked))


@pytest.fixture
def tab(pages):
    """An empty page."""
    yield pages.lend()
    pages.take_back()
