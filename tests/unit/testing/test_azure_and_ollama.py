"""Azure's paths and errors through OpenAI's SDK, and Ollama's errors."""

from functools import partial

import openai
import pytest

from agentv.testing import Status

HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def azure(opened):
    def client_of(server):
        return openai.AzureOpenAI(azure_endpoint=server.azure, api_key="k", api_version="2024-10-21", max_retries=0)

    return partial(opened, client_of)


@pytest.mark.parametrize(
    ("status", "code"), [(401, "401"), (404, "DeploymentNotFound"), (429, "429"), (500, "InternalServerError")]
)
def test_azures_errors(azure, status, code):
    _, client = azure(Status(status, retry_after=3))
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="d", messages=HI)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert "retry after 3 seconds" in caught.value.message
