import subprocess
import sys

import pytest

from agentv.model.values.message import DocumentBlock, ImageBlock, Message, TextBlock, ToolCall
from agentv.model.values.response import Failure
from agentv.model.values.usage import Ceiling, TokenUsage
from agentv.ports import TargetRequest
from agentv.targets.anthropic.target import MAX_TOKENS, Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.model_api import content
from agentv.targets.model_api.content import Attached, document_of, functions_in, picture_of, tool_steps
from agentv.targets.model_api.prices import MESSAGE, PICTURE, cost_of, tokens_at_most
from agentv.targets.model_api.settings import format_issues, schema_in
from agentv.targets.openai_api.hosted import OpenRouter
from agentv.targets.openai_api.providers import OpenAI
from doubles.documents import pdf
from needs import needs

HI = TargetRequest("case", "hi", (Message("user", "hi"),))
ASKED = 2 + MESSAGE


def test_the_question_is_counted_from_above_and_the_answer_by_its_limit():
    found = OpenAI(model="gpt-4o-mini", max_tokens=100).ceiling(HI)
    assert found.tokens == ASKED + 100
    assert found.usd == cost_of("openai", "gpt-4o-mini", TokenUsage(ASKED, 100))


@pytest.mark.parametrize(
    ("settings", "longest"),
    [
        (OpenAI(model="gpt-4o-mini"), 16_384),
        (OpenAI(model="gpt-4.1"), 32_768),
        (OpenAI(model="gpt-4"), 8_192),
        (OpenAI(model="gpt-5-mini"), 128_000),
        (OpenAI(model="o3"), 100_000),
        (OpenAI(model="gpt-4o", extra={"max_completion_tokens": 50}), 50),
        (OpenAI(model="gpt-4o", max_tokens=10, extra={"n": 3}), 30),
        (OpenRouter(model="openai/gpt-4o"), 16_384),
        (Anthropic(model="claude-haiku-4-5"), MAX_TOKENS),
        (Anthropic(model="claude-haiku-4-5", thinking=2000), MAX_TOKENS + 2000),
        (Gemini(model="gemini-2.5-flash"), 65_536),
        (LiteLLM(model="anthropic/claude-haiku-4-5", max_tokens=7), 7),
    ],
)
def test_how_long_an_answer_can_be(settings, longest):
    found = settings.ceiling(HI)
    assert found.tokens == ASKED + longest
    assert found.usd is not None
    assert found.usd > 0


def test_pictures_documents_and_calls_of_tools_count(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"x" * 5000)
    picture, paper = ImageBlock("p.png"), DocumentBlock("a.pdf", str(tmp_path / "a.pdf"), "")
    text = Message("user", (TextBlock("hi"), picture, paper))
    assert tokens_at_most(TargetRequest("c", "", (text,))) == len(text.text) + MESSAGE + PICTURE + 5000
    calls = Message("assistant", "", tool_calls=(ToolCall("find", {"q": "x" * 100}),))
    assert tokens_at_most(TargetRequest("c", "", (calls,))) > 100
    gone = DocumentBlock("b.pdf", str(tmp_path / "b.pdf"), "")
    assert tokens_at_most(TargetRequest("c", "", (Message("user", (gone,)),))) < 100


def test_vectors_cost_by_the_list_and_take_no_answer():
    found = OpenAI(model="gpt-4o").ceiling_of_vectors(["four", "more"])
    assert found == Ceiling(cost_of("openai", "text-embedding-3-small", TokenUsage(8, 0)), 8)
    assert Gemini(model="gemini-2.5-flash").ceiling_of_vectors(["four"]).tokens == 4
    assert OpenAI(model="m", base_url="http://localhost/v1").ceiling_of_vectors(["four"]) == Ceiling(0.0, 4)


def test_a_pdf_that_is_gone_or_too_large_is_a_failure(tmp_path, monkeypatch):
    block = pdf(tmp_path, "gone.pdf")
    (tmp_path / "gone.pdf").unlink()
    assert document_of(block) == Failure("bad-document", "'./gone.pdf' cannot be read: No such file or directory")
    monkeypatch.setattr(content, "LARGEST", 5)
    assert document_of(pdf(tmp_path, "large.pdf")) == Failure("bad-document", "'./large.pdf' is larger than 5e-06 MB")


def local(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    return ImageBlock(f"./{name}", str(tmp_path / name))


def test_a_data_url_is_taken_apart():
    assert picture_of(ImageBlock("data:image/gif;base64,R0lG\nODlh")) == Attached("image/gif", "R0lGODlh")


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "is not a supported picture"), (b"%PDF-1.7", "is not a supported picture")]
)
def test_what_is_no_picture_is_not_sent(data, message, tmp_path):
    found = picture_of(local(tmp_path, "file.dat", data))
    assert found.code == "bad-picture"
    assert message in found.message
    assert "./file.dat" in found.message
    assert not found.retryable


def test_a_huge_one_is_not_read(tmp_path):
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(50_000_001)
    assert "larger than 50 MB" in picture_of(ImageBlock("huge.png", str(tmp_path / "huge.png"))).message


@pytest.mark.parametrize("url", ["data:text/html,<b>", "data:image/png,raw", "data:image/png;base64,"])
def test_a_data_url_of_another_form_is_refused(url):
    assert isinstance(picture_of(ImageBlock(url)), Failure)


USAGE = TokenUsage(input=1_000_000, output=1_000_000, total=2_000_000)


def test_cached_tokens_are_cheaper():
    cached = TokenUsage(input=1_000_000, output=0, cached=1_000_000)
    full = TokenUsage(input=1_000_000, output=0)
    assert 0 < (cost_of("openai", "gpt-4o", cached) or 0) < (cost_of("openai", "gpt-4o", full) or 0)


@pytest.mark.parametrize(
    ("provider", "model", "usage"),
    [
        ("openai", "no-such-model", USAGE),
        ("ollama", "llama3.3", USAGE),
        ("http://localhost:8000/v1", "gpt-4o", USAGE),
        ("openai", "gpt-4o", None),
        ("openai", "gpt-4o", TokenUsage(output=3)),
    ],
)
def test_what_is_not_known_is_none_and_never_0(provider, model, usage):
    assert cost_of(provider, model, usage) is None


def test_the_price_list_is_read_at_the_first_answer_only():
    code = "import sys, agentv.targets.model_api.prices; print('genai_prices' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_price_list_that_breaks_costs_no_answer(monkeypatch):
    def broken(*_, **__):
        raise OSError(24, "Too many open files")

    # a third-party package that fails where files cannot be opened
    monkeypatch.setattr("genai_prices.calc_price", broken)
    assert cost_of("openai", "gpt-4o", USAGE) is None


def test_the_price_list_is_there_before_the_first_answer():
    code = (
        "import sys; from agentv.targets.model_api.prices import cost_of, load_prices; from agentv.model.values.response import TokenUsage\n"
        "load_prices(); before = set(sys.modules); cost_of('openai', 'gpt-4o', TokenUsage(input=1, output=1))\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("said", ["json_object", {"type": "json_object"}])
def test_any_json_has_no_schema_which_not_every_api_can_promise(said):
    assert schema_in(said) is None
    assert not list(format_issues(said))
    assert list(format_issues(said, only_schemas=True))


@pytest.mark.parametrize("said", ["xml", 1, ["json_object"], {"type": "json_schema", "json_schema": "x"}])
def test_anything_else_is_told(said):
    (fault,) = format_issues(said)
    assert fault.path == ("response_format",)


ALL = pytest.mark.parametrize("kind", [OpenAI, Anthropic, Gemini, pytest.param(LiteLLM, marks=needs("litellm"))])


@ALL
@pytest.mark.parametrize(
    ("extra", "wrong"),
    [
        ({"stream": True}, "stream"),
        ({"stream": False, "n": 1, "user": "ann"}, None),
        ({"background": True}, "background"),
        ({"n": 2}, "n"),
    ],
)
def test_extra_may_not_ask_for_what_is_not_read(kind, extra, wrong):
    assert [fault.path for fault in kind("m", extra=extra).validate()] == ([("extra", wrong)] if wrong else [])


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (OpenAI("m", extra={"messages": []}), "messages"),
        (OpenAI("m", api="responses", extra={"input": []}), "input"),
        (OpenAI("m", extra={"model": "another"}), "model"),
        (Anthropic("m", extra={"system": "x"}), "system"),
        (Gemini("m", extra={"contents": []}), "contents"),
        pytest.param(LiteLLM("m", extra={"messages": []}), "messages", marks=needs("litellm")),
    ],
)
def test_extra_may_not_replace_what_the_case_says(settings, key):
    (fault,) = settings.validate()
    shown = (fault.path, "' cannot be set here: the target and the case set it" in fault.message)
    assert shown == (("extra", key), True)


@ALL
def test_a_tool_is_an_object(kind):
    assert [fault.path for fault in kind("m", tools=({}, "weather")).validate()] == [("tools", 1)]


def results(*messages: Message) -> list[str | None]:
    """Return the tools whose calls the results answer."""
    return [step.result_of and step.result_of.name for step in tool_steps(messages) if step.message.role == "tool"]


def test_functions_of_openai_are_told_from_tools_of_a_providers_own():
    own, strange = {"google_search": {}}, {"type": "function", "function": "no object"}
    function = {"name": "find"}
    shown = functions_in([own, {"type": "function", "function": function}, strange, "text"])
    assert shown == ([function], [own, strange, "text"])
