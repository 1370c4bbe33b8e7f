"""Search every byte that a run writes for the keys that it used, including errors (SPEC section 6)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentv.targets.catalogue import PROVIDERS, registry
from agentv.testing import Answer, ModelCall, ModelServer, Status
from e2e.command import Ended, Project
from needs import require

pytestmark = pytest.mark.libraries

FROM_ENVIRONMENT = "sk-environment-0123456789abcdef"
FROM_DOTENV = "sk-dotenv-0123456789abcdef"
FROM_FILE = "sk-written-0123456789abcdef"
FROM_SUITE = "sk-suite-0123456789abcdef"
FROM_HEADER = "header-0123456789abcdef"
PASSWORD = "hunter2-0123456789"
SECRETS = (FROM_ENVIRONMENT, FROM_DOTENV, FROM_FILE, FROM_SUITE, FROM_HEADER, PASSWORD)

MODELS = {
    "openai": ("openai", "OPENAI"),
    "azure": ("azure", "AZURE_OPENAI"),
    "ollama": ("ollama", "OLLAMA"),
    "openrouter": ("openai", "OPENROUTER"),
    "anthropic": ("anthropic", "ANTHROPIC"),
    "gemini": ("gemini", "GEMINI"),
    "litellm": ("openai", "OPENAI"),
    "mistral": ("openai", "MISTRAL"),
}
"""Provider → address of its server and prefix of its variables."""

BEARER = frozenset({"openai", "ollama", "openrouter", "mistral"})
"""Providers that put the key in the same header as a user in the URL; loading refuses a URL with both."""

NO_KEYS = frozenset({"echo", "mock", "replay", "python", "javascript", "cli", "local"})
"""Providers that make no network calls."""

SAME = frozenset({"bedrock", "vertex"})
"""Providers that are `litellm` under another name."""


def is_hosted(name: str) -> bool:
    """Whether a provider is in the same table as `mistral`."""
    return PROVIDERS[name].startswith(PROVIDERS["mistral"].partition(":")[0])


SUITE = """env: {{SUITE_KEY: {from_suite}}}
targets: [tells, of-dotenv, of-suite, refused, unreachable]
judge: {{name: critic, provider: "{provider}judge", base_url: "{url}", api_key: "${{{{ SUITE_KEY }}}}"}}
tests:
  - id: a
    input: Hello
    assert:
      - Tells no secret
      - contains: Hello
"""

BOOK = """targets:
  - {{name: tells, provider: "{provider}tells", base_url: "{url}"{header}}}
  - {{name: of-dotenv, provider: "{provider}tells", base_url: "{url}", api_key: "${{{{ DOTENV_KEY }}}}"}}
  - {{name: of-suite, provider: "{provider}tells", base_url: "{url}", api_key: "${{{{ SUITE_KEY }}}}"}}
  - {{name: refused, provider: "{provider}refused", base_url: "{url}", api_key: {written}}}
  - name: unreachable
    provider: "{provider}m"
    base_url: "http://{user}127.0.0.1:9/v1"
    retry: {{max_retries: 1, retry_initial_delay_ms: 1}}
"""


def told(call: ModelCall) -> Answer | Status:
    """A server that repeats the content of each call: the key in an answer, an error or a header."""
    everything = " ".join(f"{name}: {value}" for name, value in call.headers.items())
    if call.model == "refused":
        return Status(401, f"Incorrect API key provided: {everything}", headers={"x-echo": everything})
    return Answer(f"Hello. You said {everything}", headers={"x-echo": everything})


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(told) as running:
        yield running


def written(project: Project, ended: Ended) -> Iterator[tuple[str, bytes]]:
    """Yield everything that a command wrote, with its location."""
    yield "stdout", ended.stdout.encode()
    yield "stderr", ended.stderr.encode()
    results: Path = project.path / ".agentv" / "results"
    for path in sorted(results.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(results)), path.read_bytes()


def leaks(project: Project, ended: Ended) -> list[tuple[str, str]]:
    return [(place, one) for place, data in written(project, ended) for one in SECRETS if one.encode() in data]


@pytest.fixture
def asking(project: Project, server: ModelServer, request: pytest.FixtureRequest) -> dict[str, str]:
    """Write a project whose targets use one provider, and return the environment to run it in."""
    provider = request.param
    address, prefix = MODELS[provider]
    header = f', headers: {{X-Team-Api-Key: "{FROM_HEADER}"}}' if provider != "anthropic" else ""
    require(*{"litellm"} & {provider})
    beginning = "litellm:openai" if provider == "litellm" else provider
    mark = "/" if provider == "litellm" else ":"
    user = "" if provider in BEARER else f"ann:{PASSWORD}@"
    facts = {"provider": f"{beginning}{mark}", "url": getattr(server, address), "user": user}
    project.write(".agentv/targets.yaml", BOOK.format(**facts, written=FROM_FILE, header=header))
    project.write("a.eval.yaml", SUITE.format(**facts, from_suite=FROM_SUITE))
    project.write(".env", f"DOTENV_KEY={FROM_DOTENV}\n")
    return {f"{prefix}_API_KEY": FROM_ENVIRONMENT}


@pytest.mark.parametrize(
    ("asking", "words"),
    [*((provider, ("--json",)) for provider in MODELS), ("openai", ("--format", "github")), ("openai", ())],
    indirect=["asking"],
)
def test_no_run_writes_a_key(project, server, asking, words):
    before = len(server.calls)
    ended = project.run("eval", "a.eval.yaml", *words, env=asking, status=3)
    rows = {row["target"]: row for row in project.rows()}
    assert rows["unreachable"]["error"]["code"] in ("connection", "target-error")  # LiteLLM accepts no user in a URL
    assert leaks(project, ended) == []
    assert {name: (row["error"] or {}).get("code") for name, row in rows.items() if name != "unreachable"} == {
        "tells": "unreadable-verdict",
        "of-dotenv": "unreadable-verdict",
        "of-suite": "unreadable-verdict",
        "refused": "http-status",
    }
    assert "[redacted]" in rows["tells"]["output"]
    assert "[redacted]" in rows["refused"]["error"]["message"]
    sent = " ".join(value for call in server.calls[before:] for value in call.headers.values())
    assert [one for one in (FROM_ENVIRONMENT, FROM_DOTENV, FROM_SUITE, FROM_FILE) if one not in sent] == []


@pytest.mark.parametrize("asking", MODELS, indirect=True)
def test_no_check_tells_a_key(project, asking):
    ended = project.run("targets", "--check", "--timeout", "20", env={**asking, "SUITE_KEY": FROM_SUITE}, status=3)
    assert leaks(project, ended) == []


def test_every_provider_that_asks_over_a_network_is_tried():
    others = {name for name in PROVIDERS if is_hosted(name)} - MODELS.keys()
    # covered by tests/e2e/test_gateway.py
    agents = {name for name in PROVIDERS if registry().find(name).settings.is_agent}
    tried = set(PROVIDERS) - NO_KEYS - SAME - others - agents - {"http"}
    assert tried == set(MODELS), "add it to MODELS, or to NO_KEYS if it has no key"
