import pytest

from agentv.testing import ModelServer


@pytest.fixture
def opened():
    """Return a function that starts a server with given replies and connects an SDK client; both are closed after the
    test."""
    closing = []

    def opened(client_of, told, **options):
        server = ModelServer(told, **options).start()
        client = client_of(server)
        closing.extend([client.close, server.stop])
        return server, client

    yield opened
    for close in closing:
        close()
