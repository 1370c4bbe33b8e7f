import json
import sys
import time

import pytest

from agentv.model.suite.tools import GatewayAccess
from agentv.model.values.message import FileBlock, Message, TextBlock
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import Command
from agentv.targets.cli import PROMPT_LIMIT, Cli, arguments_of, format_issues
from agentv.targets.http.preparation import Healthcheck
from doubles.asking import answer, answers, failure_code, request
from doubles.misbehaving_server import misbehaving_server


def line(text: str, **others) -> Cli:
    return Cli(Command(shell=text, cwd=others.pop("at", "")), **others)


def words(*argv: str, **others) -> Cli:
    return Cli(Command(argv=argv), **others)


def python(text: str, *argv: str, **others) -> Cli:
    return words(sys.executable, "-c", text, *argv, **others)


def test_the_prompt_is_on_stdin_and_the_answer_on_stdout():
    assert answer(words("tr", "a-z", "A-Z"), request("yes\n")) == TargetResponse("YES")
    assert answer(line("tr a-z A-Z"), request("yes")) == TargetResponse("YES")


@pytest.mark.parametrize("target", [words("echo", "{{ gateway.openai }}", "k={{ gateway.key }}"), line("echo {{ gateway.openai }} k={{ gateway.key }}")])  # fmt: skip
def test_the_address_of_the_gateway_is_filled_in(target):
    access = GatewayAccess("http://127.0.0.1:9", "token")
    assert answer(target, request(gateway=access)).output == "http://127.0.0.1:9/openai/v1 k=token"


@pytest.mark.parametrize(
    "printed", ['{"answer": "yes"}', '{"output": "cut', '["output"]', '"text"', "{}", "[" * 99_999]
)
def test_json_that_is_no_answer_object_is_plain_text(printed):
    assert answer(words("cat"), request(printed)) == TargetResponse(printed)


def test_an_answer_object_says_more():
    row = {"output": "yes", "token_usage": {"input": 1, "output": 2}, "cost_usd": 0.5}
    assert answer(words("cat"), request(json.dumps(row))) == TargetResponse("yes", (), TokenUsage(1, 2, 3), 0.5)
    assert answer(words("cat"), request(' {"text": "yes"}\n')) == TargetResponse("yes")
    assert answer(words("cat"), request('{"output": null}')) == TargetResponse(None)
    assert answer(words("cat"), request("null")) == TargetResponse(None)
    found = answer(words("cat"), request('{"output": [{"role": "assistant", "content": "yes"}]}'))
    assert (found.output, len(found.messages)) == ("yes", 1)


@pytest.mark.parametrize("printed", ['{"output": 5}', '{"output": {"a": 1}}', '{"text": ["a"]}', '{"output": ["a"]}'])
def test_an_answer_object_of_the_wrong_type_is_not_graded_as_text(printed):
    assert answer(words("cat"), request(printed)).code == "bad-answer"


def test_every_placeholder(tmp_path):
    show = python("import sys, json; print(json.dumps(sys.argv[1:]))", "{PROMPT}", "{EVAL_ID}", "{ATTEMPT}", "{FILES}")
    blocks = (TextBlock("x"), FileBlock("a.md", "/docs/a b.md", ""), FileBlock("a.md", "/docs/a b.md", ""))
    one = request("the prompt", "the-case", attempt=3, messages=(Message("user", blocks),))
    assert json.loads(answer(show, one).output) == ["the prompt", "the-case", "3", "/docs/a b.md"]
    shell = line("printf '<%s>' {PROMPT} {EVAL_ID} {ATTEMPT} {FILES}")
    assert answer(shell, one).output == "<the prompt><the-case><3></docs/a b.md>"


@pytest.mark.parametrize(
    "settings",
    [
        line("sh -c 'cat {PROMPT_FILE} > {OUTPUT_FILE}'"),
        line('sh -c "cat {PROMPT_FILE}" > "{OUTPUT_FILE}"'),
        line("sh <<EOF\ncat {PROMPT_FILE} > {OUTPUT_FILE}\nEOF"),
        words("sh", "-c", "cat {PROMPT_FILE} > {OUTPUT_FILE}"),
    ],
)
def test_a_file_of_agentv_is_named_inside_quotes_and_scripts_too(settings):
    assert answer(settings, request("$(exit 1) 'x'")).output == "$(exit 1) 'x'"


def test_a_command_that_writes_no_output_file_has_not_answered():
    assert answer(line("echo here >/dev/stdout; true {OUTPUT_FILE}")).code == "no-output-file"
    assert answer(line("mkdir {OUTPUT_FILE}")).code == "no-output-file"
    started = time.monotonic()
    assert answer(line("mkfifo {OUTPUT_FILE}")).code == "no-output-file"
    assert time.monotonic() - started < 2


def test_a_prompt_too_long_for_an_argument_is_refused_and_says_what_to_do():
    for settings in (words("echo", "{PROMPT}"), line("echo {PROMPT}")):
        assert len(answer(settings, request("a" * PROMPT_LIMIT)).output) == PROMPT_LIMIT
        found = answer(settings, request("ä" * (PROMPT_LIMIT // 2) + "a"))
        message = "a prompt with 100,001 bytes cannot be an argument; read it from stdin, or use {PROMPT_FILE}"
        assert found == Failure("prompt-too-long", message)
        assert answer(settings, request("a\0b")).code == "prompt-too-long"
    assert answer(words("cat"), request("a\0b")).output == "a\0b"
    assert len(answer(line("cat {PROMPT_FILE}"), request("a" * 200_000)).output) == 200_000


def test_what_no_program_can_be_given_is_a_failure():
    assert failure_code(words("cat"), request("half \ud83d")) == "not-utf-8"
    assert failure_code(words("echo", "{EVAL_ID}"), request(case_id="a\0b")) == "cannot-start"


def test_a_status_other_than_0_is_a_failure_with_the_end_of_stderr():
    found = answer(line("echo answer; printf 'a%.0s' $(seq 600) >&2; printf '\\033[31mno\\007\\n' >&2; exit 3"))
    assert found.code == "exit-status"
    assert found.message.startswith("exit 3: … aaa")
    assert found.message.endswith("aano")
    assert answer(line("echo on stdout; exit 1")).message == "exit 1: on stdout"
    assert answer(line("exit 1")).message == "exit 1: no message"
    assert answer(line("kill -9 $$")).message == "killed by SIGKILL: no message"
    assert "no-such-program" in answer(line("no-such-program")).message


def test_a_healthcheck_is_made_once_before_the_first_call(tmp_path):
    settings = line("cat checks", at=str(tmp_path), healthcheck=Command(shell="echo x >>checks", cwd=str(tmp_path)))
    found = answers(settings, request(), request(), request())
    assert [one.output for one in found] == ["x"] * 3


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (Healthcheck(Command(argv=("no-such-program",))), "cannot start no-such-program"),
        (Healthcheck(Command(shell="exit 3")), "exit 3: it printed nothing"),
        (Healthcheck(Command(shell="sleep 9"), timeout_s=0.05), "the command did not exit within 0.05 s"),
        (Healthcheck(url="http://127.0.0.1:1/"), "cannot connect to 127.0.0.1:1"),
        (Command(shell="http://127.0.0.1:1/"), "cannot connect to 127.0.0.1:1"),
    ],
)
def test_every_way_to_be_unhealthy(check, says):
    found = answer(words("cat", healthcheck=check))
    assert found.code == "unhealthy"
    assert says in found.message


def test_a_healthcheck_by_url():
    with misbehaving_server() as server:
        assert answer(words("cat", healthcheck=Command(shell=server.url("text/up")))).output == "hello"
        shown = answer(words("cat", healthcheck=Healthcheck(url=server.url("500")))).message
        assert shown == "healthcheck failed: HTTP 500"


@pytest.mark.parametrize(
    ("check", "codes"),
    [
        (Healthcheck(), ["missing-key"]),
        (Healthcheck(Command(shell="true"), url="http://x"), ["missing-key"]),
        (Healthcheck(url="localhost:80"), ["bad-value"]),
        (Healthcheck(url="http://localhost"), []),
    ],
)
def test_what_is_wrong_with_a_healthcheck(check, codes):
    assert [fault.code for fault in check.validate()] == codes


def test_a_context_that_is_too_long_for_an_argument_is_refused():
    found = answer(python("pass", "{CONTEXT}"), request(vars={"x": "a" * 100_000}))
    assert (found.code, "{CONTEXT}" in found.message) == ("prompt-too-long", True)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("{path}", ("/a b/c.md", "/d.md")),
        ("--file {path}", ("--file", "/a b/c.md", "--file", "/d.md")),
        ("--file={path}", ("--file=/a b/c.md", "--file=/d.md")),
        ("-f '{basename}' as {path}", ("-f", "c.md", "as", "/a b/c.md", "-f", "d.md", "as", "/d.md")),
    ],
)
def test_a_path_stays_one_word_in_every_form(form, words):
    assert arguments_of(form, ["/a b/c.md", "/d.md"]) == words


@pytest.mark.parametrize("form", ["--file", "'{path}", "{file}"])
def test_a_form_that_names_no_file_is_refused(form):
    assert [one.path for one in format_issues(form)] == [("files_format",)]
