"""The form that an answer must have."""

from __future__ import annotations

import pytest

from agentv.targets.model_api.settings import format_issues, schema_in


@pytest.mark.parametrize("said", ["json_object", {"type": "json_object"}])
def test_any_json_has_no_schema_which_not_every_api_can_promise(said):
    assert schema_in(said) is None
    assert not list(format_issues(said))
    assert list(format_issues(said, only_schemas=True))


@pytest.mark.parametrize("said", ["xml", 1, ["json_object"], {"type": "json_schema", "json_schema": "x"}])
def test_anything_else_is_told(said):
    (fault,) = format_issues(said)
    assert fault.path == ("response_format",)
