"""`similar` through a model API, from the eval file to the row."""

from agentv.sdk import evaluate
from agentv.testing import ModelServer, Status

SUITE = """target: "mock:The refund takes five days"
judge:
  name: api
  provider: openai
  model: gpt-5-mini
  embedding_model: text-embedding-3-small
  base_url: "{url}"
  api_key: sk-test-key-1234
default_test:
  assert: [{{type: similar, value: The refund takes five days}}]
tests:
  - {{id: a, input: x}}
  - {{id: b, input: y}}
  - {{id: c, input: z}}
"""


def results(tmp_path, server):
    (tmp_path / ".git").mkdir()
    (tmp_path / "suite.eval.yaml").write_text(SUITE.format(url=server.openai))
    return evaluate(str(tmp_path / "suite.eval.yaml")).results


def test_an_api_that_refuses_errs_the_grade(tmp_path):
    with ModelServer(Status(401, "no such key")) as server:
        found = results(tmp_path, server)
    assert {one.status for one in found} <= {"errored", "skipped"}
    error = found[0].scores[0].grade.error
    assert error.code == "embedder-http-status"
    assert "sk-test-key-1234" not in error.message
