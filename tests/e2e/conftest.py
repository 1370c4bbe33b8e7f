import pytest

from doubles.browser_pages import WatchedPages, launched_pages
from e2e.command import Project


@pytest.fixture
def project(request, tmp_path) -> Project:
    (tmp_path / ".git").mkdir()
    return Project(tmp_path, libraries=request.node.get_closest_marker("libraries") is not None)


@pytest.fixture(scope="module")
def pages():
    """Yield the pages of one browser per module; in a longer scope, its event loop would disturb other tests."""
    with launched_pages() as found:
        yield found


@pytest.fixture
def watched(pages):
    """Yield a pool of pages; afterwards check for requests to other servers and errors."""
    found = WatchedPages(pages)
    yield found
    hacked = pages.take_back()
    assert (found.wrong, hacked) == ([], [None] * len(hacked))


@pytest.fixture
def tab(pages):
    """Return an empty page."""
    yield pages.lend()
    pages.take_back()
