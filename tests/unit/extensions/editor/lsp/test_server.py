"""The log of the language server, which editors show to people."""

import logging

import pytest
from pygls.exceptions import JsonRpcException

from agentv.extensions.editor.lsp.server import create_server


def test_a_refused_request_is_not_logged_and_a_failure_is(caplog: pytest.LogCaptureFixture) -> None:
    create_server().threads.shutdown()
    log = logging.getLogger("pygls.protocol.json_rpc")
    for error in (JsonRpcException("a name cannot be empty", -32803), ValueError("broken")):
        try:
            raise error
        except (JsonRpcException, ValueError):
            log.exception("Exception occurred")
    assert [str(record.exc_info[1]) for record in caplog.records] == ["broken"]
