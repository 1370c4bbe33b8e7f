import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.app.authored.convert import convert_document, format_of
from agentv.app.registries import registries
from agentv.authoring.convert.emit import yaml_text
from agentv.authoring.dialects.recognition import Surroundings
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.loading.suite_builder import SuiteContext
from agentv.authoring.source.nodes import MapNode
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import ExitStatus
from agentv.extensions.promptfoo.dialect import PROMPTFOO
from agentv.extensions.promptfoo.tables import ABSENT
from agentv.model.run.trial import TrialResult
from agentv.sdk import evaluate
from doubles.thorough import examples
from doubles.translations import translated
from doubles.translations import translated_text as converted
from doubles.validation import validate

SAMPLES = Path(__file__).parent / "promptfoo"


def sample(name: str, tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES / name, tmp_path, dirs_exist_ok=True)
    return tmp_path / "promptfooconfig.yaml"


def write(tmp_path: Path, text: str) -> Path:
    source = tmp_path / "promptfooconfig.yaml"
    source.write_text(text)
    return source


def entries(text: str, tmp_path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the translation of a list of assertions, and its messages."""
    document, told = converted(
        f"prompts: hello\nproviders: echo\ntests: [{{threshold: 1, assert: [{text}]}}]\n", tmp_path
    )
    return document["tests"][0]["assert"], [one for one in told if not one.startswith("in a test with a threshold")]


@pytest.mark.parametrize("name", ["echo", "files"])
def test_a_configuration_without_models_is_converted_whole_and_runs(name: str, tmp_path: Path) -> None:
    path = sample(name, tmp_path)
    assert translated(path)[1] == ()
    assert not any(one.severity == "error" for one in validate((str(path),), {}))
    outcome = evaluate(str(path))
    assert outcome.status == ExitStatus.PASSED


H, E, Z = (f"{{type: contains, value: {letter}}}" for letter in "hez")
GRADED = "{type: python, value: '0.6'}"
TWO = f"{{description: a, assert: [{GRADED}]}}, {{description: b, threshold: 0.5, assert: [{E}]}}"


@pytest.mark.parametrize(
    ("shared", "tests", "statuses"),
    [
        ("", f"{{assert: [{', '.join([E] * 19)}, {Z}]}}", ["failed"]),
        (H, f"{{assert: [{GRADED}, {E}]}}", ["passed"]),
        (H, f"{{assert: [{GRADED.replace('0.6', '0.2')}, {E}]}}", ["passed"]),
        (H, f"{{assert: [{GRADED.replace('0.6', '0.0')}, {E}]}}", ["failed"]),
        (H, f"{{assert: [{GRADED}, {Z}]}}", ["failed"]),
        (Z, f"{{assert: [{GRADED}, {H}]}}", ["failed"]),
        (H, TWO, ["passed", "passed"]),
        (Z, TWO, ["failed", "passed"]),
    ],
)
def test_a_test_passes_where_it_passes_in_promptfoo(shared, tests, statuses, tmp_path):
    text = f"prompts: hello\nproviders: echo\ndefaultTest: {{assert: [{shared}]}}\ntests: [{tests}]\n"
    found = {one.trial.case.id: one.status for one in evaluate(str(write(tmp_path, text))).results}
    assert [status for _, status in sorted(found.items())] == statuses


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"id": "anthropic:claude-agent-sdk", "config": {"working_dir": "./ws", "max_turns": 3}}, {"provider": "claude", "permissions": "deny", "cwd": "./ws", "max_turns": 3}),
        ({"id": "anthropic:claude-code", "config": {"permission_mode": "acceptEdits", "custom_system_prompt": "Be brief"}}, {"provider": "claude", "system_prompt": "Be brief"}),
        ({"id": "openai:codex-sdk:gpt-5", "config": {"model_reasoning_effort": "high", "skip_git_repo_check": True}}, {"provider": "codex", "model": "gpt-5", "reasoning_effort": "high"}),
        ({"id": "openai:codex-sdk", "config": {"sandbox_mode": "read-only"}}, {"provider": "codex", "permissions": "deny"}),
        ("opencode", "opencode"),
        ({"id": "anthropic:messages:m", "config": {"apiKeyEnvar": "TEAM_KEY", "apiHost": "gateway.example"}}, {"provider": "anthropic:m", "api_key": "{{ env.TEAM_KEY }}", "base_url": "https://gateway.example/v1"}),
        ("openai:gpt-4.1", "openai:gpt-4.1"),
        ("openai:chat:ft:gpt-4o:me", "openai:ft:gpt-4o:me"),
        ("openai:embedding:text-embedding-3-small", "openai:text-embedding-3-small"),
        ("azureopenai:chat:my-deployment", "azure:my-deployment"),
        ("ollama:chat:llama3.3:70b", "ollama:llama3.3:70b"),
        ("openrouter:meta-llama/llama-4", "openrouter:meta-llama/llama-4"),
        ("anthropic:messages:claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("google:gemini-3.8-flash", "gemini:gemini-3.8-flash"),
        ("groq:llama-4", "groq:llama-4"),
        ("togetherai:meta/llama-4", "together:meta/llama-4"),
        ("bedrock:converse:us.amazon.nova-pro-v1:0", "bedrock:us.amazon.nova-pro-v1:0"),
        ("docker:ai/llama3.2",
         {"provider": "openai:ai/llama3.2", "base_url": "{{ env.DOCKER_MODEL_RUNNER_BASE_URL | default('http://localhost:12434') }}/engines/v1"}),
        ({"id": "truefoundry:a/b", "config": {"temperature": 0}},
         {"provider": "openai:a/b", "base_url": "https://llm-gateway.truefoundry.com", "api_key": "{{ env.TRUEFOUNDRY_API_KEY }}", "temperature": 0}),
        ({"id": "llama:x", "config": {"temperature": 0}},
         {"provider": "http", "url": "{{ env.LLAMA_BASE_URL | default('http://localhost:8080') }}/completion", "method": "POST", "output": "$.content", "body": {"prompt": "{{ prompt }}", "n_predict": 512, "temperature": 0}}),
        ({"id": "sagemaker:jumpstart:e", "config": {"region": "r", "maxTokens": 5, "responseFormat": {"path": "json.generated_text"}}},
         {"provider": "litellm:sagemaker/e", "max_tokens": 5, "temperature": 0.7, "top_p": 1, "extra": {"aws_region_name": "r"}}),
        ({"id": "bedrock:m", "config": {"toolConfig": {"toolChoice": {"any": {}}, "tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]}}},
         {"provider": "bedrock:m", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}], "tool_choice": "required"}),
        ({"id": "vertex:m", "config": {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}, "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}]}},
         {"provider": "vertex:m", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}], "tool_choice": "auto"}),
        ({"id": "bedrock:m", "config": {"region": "us-east-1", "inferenceConfig": {"maxTokens": 5}, "top_k": 3}},
         {"provider": "bedrock:m", "region": "us-east-1", "max_tokens": 5, "extra": {"top_k": 3}}),
        ({"id": "vertex:m", "config": {"region": "r", "projectId": "p", "generationConfig": {"temperature": 0}}},
         {"provider": "vertex:m", "location": "r", "project": "p", "temperature": 0}),
        ({"id": "cerebras:llama-4", "config": {"max_completion_tokens": 5}},
         {"provider": "openai:llama-4", "base_url": "https://api.cerebras.ai/v1", "api_key": "{{ env.CEREBRAS_API_KEY }}", "max_tokens": 5}),
        ("file://p.py", {"provider": "python", "function": "p.py:call_api"}),
        ({"id": "file://p.py:ask", "label": "mine", "config": {"a": 1, "pythonExecutable": "python3"}},
         {"name": "mine", "provider": "python", "function": "p.py:ask", "config": {"a": 1}}),
        ({"id": "file://p.ts", "config": {"a": 1}}, {"provider": "javascript", "function": "p.ts", "config": {"a": 1}}),
        ({"id": "exec:./ask", "config": {"a": 1, "basePath": "."}},
         {"name": "exec:./ask", "provider": "cli", "command": "./ask {PROMPT} {OPTIONS} {CONTEXT}", "cwd": ".", "options": {"a": 1}}),
        ({"id": "https://support.example.com/ask", "config": {"method": "post", "headers": {"A": "{{ env.T }}"}, "body": {"q": "{{ prompt }}"}, "transformResponse": "json.choices[0].text"}},
         {"provider": "http", "url": "https://support.example.com/ask", "method": "POST", "headers": {"A": "{{ env.T }}"}, "body": {"q": "{{ prompt }}"}, "template": "nunjucks", "output": "$.choices[0].text"}),
        ("webhook:https://a.example/b",
         {"provider": "http", "url": "https://a.example/b", "method": "POST", "body": {"prompt": "{{ prompt }}"}, "template": "nunjucks", "output": "$.output"}),
        ({"id": "openai:m", "delay": 500, "env": {"A": "b"}}, {"provider": "openai:m", "rate": {"requests_per_minute": 120}, "env": {"A": "b"}}),
        ("litellm:mistral/mistral-small", "litellm:mistral/mistral-small"),
        ({"id": "google:m", "config": {"maxOutputTokens": 5, "topP": 0.5, "stopSequences": ["END"]}},
         {"provider": "gemini:m", "max_tokens": 5, "top_p": 0.5, "stop": ["END"]}),
        ({"id": "azure:responses:d", "config": {"apiVersion": "v", "max_output_tokens": 5, "passthrough": {"a": 1}}},
         {"provider": "azure:d", "api": "responses", "api_version": "v", "max_tokens": 5, "extra": {"a": 1}}),
        ({"id": "openai:chat:m", "config": {"apiBaseUrl": "http://localhost/v1", "apiKey": "{{ env.KEY }}"}},
         {"provider": "openai:m", "base_url": "http://localhost/v1", "api_key": "{{ env.KEY }}"}),
        ({"id": "openai:chat:m", "config": {"max_tokens": 1, "max_completion_tokens": 2}}, {"provider": "openai:m", "max_tokens": 1, "max_completion_tokens": 2}),
    ],
)  # fmt: skip
def test_a_model_is_named_as_ours(theirs: Any, ours: Any, tmp_path: Path) -> None:
    text = f"prompts: hi\nproviders: [{json.dumps(theirs)}]\ntests: [{{assert: [{{type: contains, value: a}}]}}]\n"
    document, _ = converted(text, tmp_path)
    assert document["targets"] == [{**(ours if isinstance(ours, dict) else {"provider": ours}), "thoughts": "keep"}]


@pytest.mark.parametrize("of_test", [False, True])
def test_thoughts_are_part_of_the_answer_as_in_promptfoo(of_test: bool, tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(
        "def call_api(prompt, options, context): return {'output': '<think>maybe 41?</think>42'}\n"
    )
    text = "prompts: hello\nproviders: [{id: 'file://answers.py', label: mine}, echo]\ntests:\n"
    text += f"- {{{'provider: mine, ' if of_test else ''}assert: [{{type: contains, value: '41'}}]}}\n"
    converted(text, tmp_path)
    found = evaluate(str(tmp_path / "promptfooconfig.yaml"))
    assert {one.trial.target.name: one.status for one in found.results}["mine"] == "passed"


@pytest.mark.parametrize(
    ("theirs", "instead"),
    [
        ("google:live:gemini-live", "any program works with provider: cli"),
        ("openai:image:dall-e-3", "any program works with provider: cli"),
        ("promptfoo:redteam:goat", "agentv does not generate attacks; write them as cases"),
        ("file://provider.rb", "run it as a command: a target with provider: cli"),
    ],
)
def test_a_model_that_is_reached_otherwise_is_told_and_how(theirs: str, instead: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"prompts: [hi]\nproviders: [{json.dumps(theirs)}]\ntests: [{TEST}]\n")
    (told,) = validate((str(path),), {})
    assert (told.severity, told.message) == ("error", f"the provider '{theirs}' has no equivalent")
    assert told.span.line == 2
    assert instead in str(told.hint)


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_a_type_that_is_absent_stays_and_is_refused(name: str, tmp_path: Path) -> None:
    _, told = entries(f'{{type: "not-{name}", value: x}}', tmp_path)
    assert told == [f"'{name}' has no equivalent"]
    assert any(one.severity == "error" for one in validate((str(tmp_path / "promptfooconfig.yaml"),), {}))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{type: contains-any, value: 'a, \"b, c\"'}", {"type": "contains-any", "value": ["a", "b, c"]}),
        ("{type: not-icontains, value: a, metric: m}", {"type": "not-icontains", "value": "a", "name": "m"}),
        ("{type: latency, threshold: 5}", {"type": "latency", "threshold": 5}),
        ("{type: llm-rubric, value: a, threshold: 0.5}", {"type": "llm-rubric", "value": "a", "min_score": 0.5}),
        ("{type: model-graded-closedqa, value: a}", {"type": "closed-qa", "value": "a"}),
        ("{type: context-recall, value: a, threshold: 0.9}", {"type": "context-recall", "value": "a", "threshold": 0.9}),
        ("{type: answer-relevance}", {"type": "answer-relevance", "threshold": 0.5}),
        ("{type: context-relevance, threshold: 0.3, contextTransform: output.docs}", {"type": "context-relevance", "threshold": 0.3, "context_transform": "$.docs"}),
        ("{type: model-graded-factuality, value: a}", {"type": "factuality", "value": "a"}),
        ("{type: 'not-trajectory:goal-success', value: a}", {"type": "not-trajectory:goal-success", "value": "a"}),
        ("{type: python, value: file://c.py}", {"type": "python", "value": "c.py:get_assert"}),
        ("{type: python, value: 'file://c.py:f'}", {"type": "python", "value": "c.py:f"}),
        ("{type: assert-set, weight: 3, assert: [{type: equals, value: a}]}", {"type": "equals", "value": "a", "weight": 3}),
        ("{type: contains, value: 1.50}", {"type": "contains", "value": 1.5}),
        ("{type: contains-any, value: 'a,,b, '}", {"type": "contains-any", "value": ["a", "b"]}),
        ("{type: contains-any, value: '\"x, y\" , \"say \"\"hi\"\"\"'}", {"type": "contains-any", "value": ["x, y", 'say "hi"']}),
        ("{type: contains-any, value: \"one\\ntwo, it's\"}", {"type": "contains-any", "value": ["one\ntwo", "it's"]}),
        ("{type: not-trajectory:tool-used, value: [a, b]}", {"type": "not-trajectory:tool-used", "value": ["a", "b"], "match": "any"}),
        ("{type: trajectory:tool-used, value: [a, b]}", {"type": "trajectory:tool-used", "value": ["a", "b"]}),
        ("{type: skill-used, value: {name: pdf, max: 2}}", {"type": "skill-used", "value": {"name": "pdf", "max": 2, "min": 0}}),
        ("{type: similar, value: a, threshold: 0.8, provider: 'openai:embedding:e'}", {"type": "similar", "value": "a", "threshold": 0.8, "embedder": "openai:e"}),
        ("{type: not-similar:dot, value: [a, b]}", {"type": "not-similar", "value": ["a", "b"], "measure": "dot"}),
        ("{type: similar:euclidean, value: a, threshold: 2}", {"type": "similar", "value": "a", "threshold": 2, "measure": "euclidean"}),
        ("{type: context-recall, value: x, contextTransform: context.metadata.c}", {"type": "context-recall", "value": "x", "threshold": 0.5, "context_transform": "javascript:context.metadata.c"}),
    ],
)  # fmt: skip
def test_an_assertion_is_written_as_ours(written: str, meant: dict[str, Any], tmp_path: Path) -> None:
    assert entries(written, tmp_path) == ([meant], [])


@pytest.mark.parametrize("template", ["{% asyncEach x in a %}{% endeach %}", "{% if a %}"])
def test_a_template_that_cannot_be_read_is_an_error_at_its_place(template: str, tmp_path: Path) -> None:
    test = "{vars: {a: b}, assert: [{type: contains, value: b}]}"
    path = write(tmp_path, f"prompts: ['{template}']\nproviders: echo\ntests: [{test}]\n")
    found = [one for one in validate((str(path),), {}) if one.severity == "error"]
    assert [(one.code, one.span and one.span.line) for one in found] == [("bad-template", 1)]


@pytest.mark.parametrize(
    ("text", "status"),
    [("", "passed"), ("{{ nowhere.at.all }}", "passed"), ("{{ list }}", "failed"), ("{{ list | dump }}", "failed")],
)
def test_a_file_means_the_same_when_it_is_converted(text: str, status: str, tmp_path: Path) -> None:
    checks = (
        "[{type: equals, value: 'Ann '}, {type: regex, value: '^\\w+ $'}, {type: javascript, value: 'output.length'}]"
    )
    source = write(
        tmp_path,
        f"prompts: ['{{{{ name }}}} {text}']\nproviders: [echo]\ndefaultTest: {{vars: {{list: [1, 2]}}}}\n"
        f"tests: [{{vars: {{name: Ann}}, assert: {checks}}}, {{vars: {{name: Ann}}, threshold: 0.5, assert: {checks}}}]\n",
    )
    made = convert_document(source, "promptfoo", None, {}).path
    ran, ran_converted = ([facts(one) for one in evaluate(str(path)).results] for path in (source, made))
    assert ran == ran_converted
    assert {one[1] for one in ran if one[0] == "test-1"} == {status}


def facts(result: TrialResult) -> tuple[Any, ...]:
    return result.trial.case.id, result.status, result.score, result.output


@pytest.mark.parametrize("name", ["a.py", "a.cjs"])
def test_a_variable_is_computed_when_the_suite_runs(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "def get_var(name, prompt, others):\n    return {'output': f'{name}-{others[\"b\"]}\\n'}\n"
    )
    (tmp_path / "a.cjs").write_text("module.exports = (name, prompt, others) => ({output: `${name}-${others.b}`});\n")
    text = "prompts: '{{ a }}'\nproviders: echo\n"
    text += f"tests: [{{vars: {{b: c, a: file://{name}}}, assert: [{{type: equals, value: a-c}}]}}]\n"
    path = write(tmp_path, text)
    assert translated(path)[0]["tests"][0]["vars"] == {"b": "c", "a": "a-c"}
    document, found = translated(path, calls=False)
    assert (document["tests"][0]["vars"]["a"], [one.severity for one in found]) == ("", ["hint"])


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ("{a: file://nowhere.py}", "nowhere.py does not exist"),
        ("{a: file://a.rb}", "the variable 'a' is computed by 'file://a.rb'"),
        ("{a: file://bad.py}", "bad.py returns no 'output'"),
    ],
)
def test_a_variable_that_cannot_be_computed_is_an_error(variables: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("def get_var(name, prompt, others):\n    return {'error': 'no'}\n")
    text = f"prompts: '{{{{ a }}}}'\nproviders: echo\ntests: [{{vars: {variables}, assert: [{{type: contains, value: x}}]}}]\n"
    (told,) = converted(text, tmp_path)[1]
    assert told.endswith(message)


def test_settings_of_models_among_the_default_options_are_those_of_the_providers(tmp_path: Path) -> None:
    text = f"prompts: a\nproviders: [openai:gpt-5, echo]\ndefaultTest: {{options: {{temperature: 0.5}}}}\ntests: [{TEST}]\n"
    document, told = converted(text, tmp_path)
    assert (document["targets"][0]["temperature"], told) == (0.5, [])
    own = TEST.replace("{vars", "{options: {temperature: 0}, vars")
    _, told = converted(f"prompts: a\nproviders: [openai:gpt-5]\ntests: [{own}]\n", tmp_path)
    assert told == ["the option 'temperature' has no equivalent"]
    _, told = converted(f"prompts: a\nproviders: [echo]\ntests: [{own}]\n", tmp_path)
    assert told == ["the option 'temperature' is omitted: it is a setting of models, and none is asked"]


def test_rows_among_other_tests_stay_in_their_file(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("name,__expected\nAnn,contains: Ann\n")
    text = "prompts: 'Hello {{name}}'\nproviders: echo\n"
    text += "tests: [rows.csv, {vars: {name: Bob}, assert: [{type: contains, value: Bob}]}]\n"
    document, told = converted(text, tmp_path)
    assert told == []
    assert document["tests"][0] == "rows.csv"
    assert document["prompts"] == ["Hello {{name}}"]
    assert evaluate(str(tmp_path / "promptfooconfig.yaml")).status == ExitStatus.PASSED


def test_an_eval_file_is_not_taken_for_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "suite.eval.yaml"
    path.write_text("targets: [echo]\nprompts: [a]\ntests: [{id: a, input: a, assert: [contains: a]}]\n")
    assert format_of(path) == "agentv"


KEYS = ["type", "value", "assert", "vars", "options", "provider", "id", "config", "tests", "prefix", "threshold", "raw"]

NODES = st.recursive(
    st.sampled_from([None, True, 1.5, "", "a", "file://a.js", "file://none.txt", "{{ a", "json.a", "exec:x", "*.csv"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
TOP = [
    "prompts", "providers", "targets", "defaultTest", "tests", "scenarios", "evaluateOptions", "env", "tags", "x",
    "redteam",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(TOP), NODES, max_size=6))
@settings(max_examples=examples(300, 100))
def test_no_shape_of_a_configuration_is_too_much(document: dict[str, Any]) -> None:
    path = Path("/nowhere/promptfooconfig.yaml")
    root = read_yaml(str(path), msgspec.json.encode(document), Report()).value
    if isinstance(root, MapNode):
        report = Report(hints=True)
        reading = SuiteContext.of(str(path), LoadRequest(()), registries(), report).reading
        made = PROMPTFOO.translate(str(path), root, reading, Surroundings(calls=False, agents=bool))
        assert isinstance(yaml.safe_load(yaml_text(made.root.items)), dict)
        for key in document.keys() & {"x", "redteam"}:
            assert report.count or document[key] in (None, "", [], {})


HEAD = "providers: [echo]\n"
TEST = "{vars: {a: b}, assert: [{type: contains, value: b}]}"


def test_labels_and_files_of_prompts_stay(tmp_path: Path) -> None:
    (tmp_path / "ask.txt").write_text("Ask {{ a }}\n")
    (tmp_path / "two.txt").write_text("One {{ a }}\n---\nTwo {{ a }}\n")
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Say {{ a }}"}]')
    (tmp_path / "write.py").write_text("def write(context):\n    return 'Write ' + context['vars']['a']\n")
    prompts = "[{id: file://ask.txt, label: cite}, file://two.txt, chat.json, file://write.py:write, "
    prompts += "{raw: 'Tell {{ a }}', label: tell}]"
    document, told = converted(f"prompts: {prompts}\n{HEAD}tests: [{TEST}]\n", tmp_path)
    assert told == []
    document["prompts"][3] = document["prompts"][3].rpartition("{% endset %}")[2]
    assert document["prompts"] == [
        {"label": "cite", "prompt": "file://ask.txt"},
        "One {{ a }}",
        "Two {{ a }}",
        '{{ [{"role": "user", "content": text_1}] | dump(2) }}',
        "write.py:write",
        {"label": "tell", "prompt": "Tell {{ a }}"},
    ]
    outcome = evaluate(str(tmp_path / "promptfooconfig.yaml"))
    assert outcome.status == ExitStatus.PASSED
    assert len(outcome.results) == 6


def test_blocks_of_other_apis_are_written_as_ours(tmp_path: Path) -> None:
    blocks = [
        {"type": "text", "text": "See {{ a }}"},
        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "{{ a }}"}},
        {"type": "video", "url": "b"},
    ]
    (tmp_path / "chat.json").write_text(json.dumps([{"role": "user", "content": blocks}]))
    document, told = converted(f"prompts: [file://chat.json]\nproviders: [openai:gpt-5]\ntests: [{TEST}]\n", tmp_path)
    assert told == ["a 'video' block of a message has no equivalent"]
    assert document["tests"][0]["input"][0]["content"][:3] == [
        {"type": "text", "value": "See {{ a }}"},
        {"type": "image", "value": "https://a.example/b.png"},
        {"type": "image", "value": "data:image/png;base64,{{ a }}"},
    ]


def test_references_lists_and_files_of_assertions_are_taken_apart(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("- {type: contains, value: c}\n")
    text = f"prompts: a\n{HEAD}assertionTemplates: {{a: {{type: contains, value: a}}, b: [{{type: contains, value: b}}]}}\n"
    text += (
        "tests: [{assert: [{$ref: '#/assertionTemplates/a'}, {$ref: '#/assertionTemplates/b'}, file://more.yaml]}]\n"
    )
    document, told = converted(text, tmp_path)
    assert told == []
    assert [one["value"] for one in document["tests"][0]["assert"]] == ["a", "b", "c"]
    _, told = converted(text.replace("Templates/a'", "Templates/z'"), tmp_path)
    assert "the reference '#/assertionTemplates/z' leads nowhere" in told


def test_options_of_tests_and_of_the_default_test(tmp_path: Path) -> None:
    text = f"prompts: a\n{HEAD}defaultTest:\n  assert: [{{type: llm-rubric, value: kind}}]\n  options:\n"
    text += "    provider: {id: 'openai:m', config: {temperature: 0}}\n"
    text += "    rubricPrompt: 'Judge {{ output }} by {{ rubric }} for {{ name }}'\n"
    text += "    transform: output.trim()\n    runSerially: true\n"
    text += f"tests: [{TEST}, {{assert: [{{type: contains, value: a}}], options: {{disableDefaultAsserts: true}}}}]\n"
    document, told = converted(text, tmp_path)
    assert told == ["the option 'runSerially' is omitted: cases do not depend on their order"]
    assert document["judge"] == {"provider": "openai:m", "temperature": 0}
    assert document["default_test"]["options"] == {
        "prompt": "Judge {{ output }} by {{ rubrics }} for {{ vars.name }}",
        "transform": "javascript:output.trim()",
    }
    assert document["tests"][1]["skip_defaults"] is True


def test_a_transform_of_the_one_provider_is_an_option_of_every_test(tmp_path: Path) -> None:
    provider = "{id: echo, transform: output.trim()}"
    document, told = converted(f"prompts: a\nproviders: [{provider}]\ntests: [{TEST}]\n", tmp_path)
    assert told == []
    assert document["targets"] == [{"provider": "echo", "thoughts": "keep"}]
    assert document["default_test"]["options"]["transform"] == "javascript:output.trim()"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("json.a.b", {"output": "$.a.b"}),
        ("json.a || json.b", {"transform": "javascript:json.a || json.b"}),
        ("(json, text) => text", {"transform": "javascript:(json, text) => text"}),
        ("file://shape.js:pick", {"transform": "shape.js:pick"}),
        ("file://shape.mjs", {"transform": "shape.mjs"}),
    ],
)
def test_what_makes_the_answer_of_a_reply_is_kept(theirs: str, ours: dict[str, str], tmp_path: Path) -> None:
    provider = f"{{id: 'https://a.example', config: {{transformResponse: '{theirs}'}}}}"
    document, told = converted(f"prompts: a\nproviders: [{provider}]\ntests: [{TEST}]\n", tmp_path)
    assert told == []
    (target,) = document["targets"]
    assert {key: target[key] for key in ("output", "transform") if key in target} == ours


@pytest.mark.parametrize("name", ["made.py:tests", "made.cjs"])
def test_tests_that_a_function_returns_are_written(name: str, tmp_path: Path) -> None:
    check = "[{'vars': {'a': w}, 'assert': [{'type': 'equals', 'value': 'x'}]} for w in config['words']]"
    (tmp_path / "made.py").write_text(f"def tests(config):\n    return {check}\n")
    code = "words.map((w) => ({ vars: { a: w }, assert: [{ type: 'equals', value: 'x' }] }))"
    (tmp_path / "made.cjs").write_text(f"module.exports = async ({{ words }}) => {code};\n")
    text = f"prompts: ['{{{{ a }}}}']\n{HEAD}tests: [{{path: 'file://{name}', config: {{words: [x, y]}}}}]\n"
    document, told = converted(text, tmp_path)
    assert told == [f"the tests that 'file://{name}' returned are written into the eval file"]
    assert [one["vars"] for one in document["tests"]] == [{"a": "x"}, {"a": "y"}]
    assert document["tests"][0]["assert"] == [{"type": "equals", "value": "x"}]


def test_a_function_that_fails_is_told_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text("def generate_tests():\n    raise ValueError('no rows')\n")
    _, told = converted(f"prompts: [a]\n{HEAD}tests: file://made.py\n", tmp_path)
    assert "raised ValueError: no rows" in told[0]


def test_variables_hold_files_and_other_variables(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("  one\n")
    (tmp_path / "b.yaml").write_text("c: [1]\n")
    given = "{a: file://a.txt, b: file://b.yaml, c: 'see {{ d }}', d: 'the {{ e }}', e: end, f: file://a.pdf}"
    text = f"prompts: ['{{{{ a }}}}']\n{HEAD}tests: [{{vars: {given}, assert: [{{type: contains, value: one}}]}}]\n"
    document, told = converted(text, tmp_path)
    assert told == ["a variable cannot hold the file 'a.pdf'"]
    shown = document["tests"][0]["vars"]
    assert shown == {"a": "one", "b": '{"c":[1]}', "c": "see the end", "d": "the end", "e": "end"}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("prompts: ['langfuse://a:1:chat']", "a prompt of 'langfuse' has no equivalent"),
        ("prompts: ['exec:./write.sh']", "a prompt of 'exec' has no equivalent"),
        ("tests: [{assert: [{type: contains, value: z, threshold: 0}]}]", "'threshold' is omitted: promptfoo does not read it for 'contains'"),
        ("tests: [{assert: [{type: not-contains-any, value: '{{ words }}'}]}]", "promptfoo renders the value of 'contains-any' before it splits it at its commas"),
        ("tests: [{assert: [{type: not-contains-any, value: '\"open, b'}]}]", "a quotation mark in the value of 'contains-any' is not closed"),
        ("tests: [{assert: [{type: similar, value: a, provider: 'huggingface:x:y'}]}]", "this embedding provider has no equivalent"),
        ("tests: [{assert: [{type: is-json, value: {properties: {day: {type: string, format: date}}}}]}]", "agentv does not check the format 'date' of a JSON Schema"),
        ("tests: [{assert: [{type: sparkle, value: yes}]}]", "'sparkle' has no equivalent"),
        ("tests: [{assert: [{type: not-contains, value: file://secret.py}]}]", "the computed value 'file://secret.py' has no equivalent"),
        ("providers: [{id: 'anthropic:messages:m', config: {thinking: {type: enabled}}}]", "promptfoo puts the model's thinking into the answer; agentv does not"),
        ("providers: [{id: 'anthropic:messages:m', config: {thinking: {type: enabled}, showThinking: false}}]", None),
    ],
)  # fmt: skip
def test_what_is_otherwise_in_promptfoo_is_reported(part: str, message: str | None, tmp_path: Path) -> None:
    whole = {"prompts": "prompts: a", "providers": "providers: [echo]", "tests": f"tests: [{TEST}]"}
    whole[part.partition(":")[0]] = part
    assert converted("\n".join(whole.values()), tmp_path)[1] == [message] * (message is not None)


def test_a_judge_that_names_no_provider_is_left_out(tmp_path: Path) -> None:
    head = f"prompts: a\n{HEAD}defaultTest: {{options: {{provider: {{{{}}}}}}}}\ntests: [{TEST}]\n"
    document, told = converted(head.replace("{{}}", "{temperature: 0.1}"), tmp_path)
    assert told == ["the option 'provider' is omitted: it names none, and promptfoo takes its own"]
    assert "default_test" not in document
    (tmp_path / "more.yaml").write_text(f"[{TEST}]")
    head = head.replace(f"[{TEST}]", "file://more.yaml")
    _, told = converted(head.replace("{{}}", "{embedding: 'openai:embedding:e'}"), tmp_path)
    assert told == ["a provider of embeddings for all assertions has no equivalent"]


@pytest.mark.parametrize(("key", "plain"), [("sk-0123456789abcdef", True), ("{{ env.MY_KEY }}", False)])
def test_an_api_key_that_is_copied_is_told_and_never_shown(key: str, *, plain: bool, tmp_path: Path) -> None:
    provider = f"{{id: 'openai:gpt-5', config: {{apiKey: '{key}'}}}}"
    found = translated(write(tmp_path, f"prompts: a\nproviders: [{provider}]\ntests: [{TEST}]\n"))[1]
    assert [one.message for one in found] == ["the API key is copied as plain text"] * plain
    assert not any(key in f"{one.message}{one.hint}" for one in found)


@pytest.mark.parametrize("kind", ["javascript", "not-javascript"])
def test_javascript_of_several_lines_without_return_fails_as_in_promptfoo(kind: str, tmp_path: Path) -> None:
    text = f"prompts: a\nproviders: echo\ntests: [{{assert: [{{type: {kind}, value: \"// is\\noutput == 'a'\"}}]}}]\n"
    _, told = converted(text, tmp_path)
    assert told == [
        "JavaScript of several lines returns nothing without 'return', and always fails, here as in promptfoo"
    ]
    assert evaluate(str(tmp_path / "promptfooconfig.yaml")).status == ExitStatus.FAILED


BLOCKS = """
prompts:
  - '[{"role": "user", "content": [BLOCK]}]'
providers: [openai:gpt-5]
tests: [{vars: {image: file://cat.png}, assert: [{type: contains, value: a}]}]
"""


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ('{"type": "image_url", "image_url": {"url": "data:image/png;base64,{{image}}"}}', False),
        ('{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "{{ image }}"}}', False),
        ('{"image": {"format": "png", "source": {"bytes": "{{image}}"}}}, {"text": "What?"}', False),
        ('{"type": "text", "text": "{{image}}"}', True),
        ('{"type": "image_url", "image_url": {"url": "{{image}}"}}, {"text": "{{image}}"}', True),
    ],
)
def test_a_picture_that_only_blocks_show_is_named_by_its_path(block: str, *, told: bool, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    document, found = converted(BLOCKS.replace("BLOCK", block), tmp_path)
    assert any("cannot hold the file" in one for one in found) == told
    if not told:
        assert found == []
        assert document["tests"][0]["vars"] == {"image": "cat.png"}
        assert {"type": "image", "value": "{{ image }}"} in document["tests"][0]["input"][0]["content"]


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ("{x: 7, l: [1, 2]}", ["7 [1,2]"]),
        ("{x: [a, b], l: [{k: 1}]}", ['a [{"k":1}]', 'b [{"k":1}]']),
        ("{x: [a, b], l: []}", ["a []", "b []"]),
        ("{x: 1.0, l: 1e3}", ["1 1000"]),
        ("{x: null, l: a}", [" a"]),
    ],
)
def test_variables_are_expanded_and_shown_as_in_promptfoo(variables: str, wanted: list[str], tmp_path: Path) -> None:
    shown = "{{ x }} {{ l }}" if "[" not in variables else "{{ x }} {{ l | dump }}"
    text = f"prompts: ['{shown}{{# a note #}}.']\nproviders: [echo]\n"
    text += f"tests: [{{vars: {variables}, assert: [{{type: contains, value: '.'}}]}}]\n"
    _, told = converted(text, tmp_path)
    assert told == []
    rows = evaluate(str(tmp_path / "promptfooconfig.yaml")).results
    assert sorted(str(one.output).replace(" ", "") for one in rows) == [f"{one}.".replace(" ", "") for one in wanted]


@pytest.mark.parametrize(
    ("group", "reported"),
    [
        ("threshold: 0.5, assert: [{type: javascript, value: '0.4'}]", True),
        ("threshold: 0.5, assert: [{type: rouge-n, value: hello}]", True),
        ("threshold: 0.5, assert: [{type: contains, value: h}]", False),
        ("assert: [{type: rouge-n, value: hello}]", False),
        ("assert: [{type: javascript, value: '0.4'}]", False),
    ],
)
def test_a_set_with_a_threshold_of_scores_is_reported(group: str, reported: bool, tmp_path: Path) -> None:
    _, told = converted(
        f"prompts: hello\nproviders: echo\ntests: [{{assert: [{{type: assert-set, {group}}}]}}]\n", tmp_path
    )
    assert [one.startswith("in a set with a threshold") for one in told] == [True] * reported


def test_the_provider_of_embeddings_for_all_is_named_by_each_assertion(tmp_path: Path) -> None:
    text = "prompts: a\nproviders: [echo]\ndefaultTest: {options: {provider: {embedding: 'openai:embedding:e'}}}\n"
    text += "tests: [{assert: [{type: similar, value: b}, {type: assert-set, assert: [{type: similar, value: c}]}]}]\n"
    document, told = converted(text, tmp_path)
    assert told == []
    one, group = document["tests"][0]["assert"]
    assert [one["embedder"], group["assert"][0]["embedder"]] == ["openai:e", "openai:e"]


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ('[{"role": "user", "content": "Say {{ a }}"}]', '[\n  {\n    "role": "user",\n    "content": "Say \\"b\\""\n  }\n]'),
        ('{"ask": "{{ a }}", "n": 1.0}', '{\n  "ask": "\\"b\\"",\n  "n": 1\n}'),
        ('[{"role": "user", "content": {{ a | dump }}}]', '[{"role": "user", "content": "\\"b\\""}]'),
    ],
)  # fmt: skip
def test_a_program_gets_messages_as_json(prompt: str, answer: str, tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(prompt)
    check = json.dumps({"type": "equals", "value": answer})
    text = f"prompts: [file://chat.json]\nproviders: [echo]\ntests: [{{vars: {{a: '\"b\"'}}, assert: [{check}]}}]\n"
    assert evaluate(str(write(tmp_path, text))).status == ExitStatus.PASSED
