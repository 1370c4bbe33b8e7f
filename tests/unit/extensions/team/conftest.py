"""One team server for all tests of a module."""

import pytest

from doubles.team_servers import team_server_in, with_project


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with team_server_in(tmp_path_factory.mktemp("server")) as found:
        with_project(found.state.database, "support")
        yield found
