"""Twenty secrets are planted wherever a secret may be and repeated by everything that runs. Nothing that any command
writes or prints may contain one as plain text, base64, hex or in a URL.
"""

import base64
import json
import random
import string
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import pytest

from agentv.cli.main import run
from doubles.loading import repository

LETTERS = string.ascii_letters + string.digits

ENVIRONMENT = (
    "SERVICE_API_KEY",
    "DB_PASS",
    "GITHUB_PAT",
    "AUTH",
    "HMAC_SIGNATURE",
    "SIGNING_PRIVATE_KEY",
    "GCP_CREDENTIALS",
)
DOTENV = ("DOTENV_TOKEN",)
SUITE_ENV = ("SECRET_KEY",)
TARGET_ENV = ("SERVICE_PASSWORD",)
PLACED = (  # secret by their position, not by the variable's name
    *("BEARER", "COMPOSITE_A", "COMPOSITE_B", "COOKIE_HEADER", "QUERY", "USERINFO", "BODY", "FLAG", "ARGUMENT"),
    *("WEBHOOK", "OPTION"),
)
NAMES = (*ENVIRONMENT, *DOTENV, *SUITE_ENV, *TARGET_ENV, *PLACED)


def made(name: str) -> str:
    """Return a secret that is the same in every test, with characters that encodings change."""
    chance = random.Random(name)
    said = "".join(chance.choice(LETTERS) for _ in range(37))
    if name == "SIGNING_PRIVATE_KEY":
        lines = ["".join(chance.choice(LETTERS) for _ in range(64)) for _ in range(4)]
        return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    if name in ("AUTH", "BODY"):
        return f'{said[:12]}&<{said[12:20]}"é+/{said[20:]}'
    return f"sk-{said}" if name == "SERVICE_API_KEY" else said


SECRETS = {name: made(name) for name in NAMES}
SECRETS["GCP_CREDENTIALS"] = json.dumps({"type": "service_account", "private_key": made("GCP_CREDENTIALS")})
TOLD = {**SECRETS, "GCP_CREDENTIALS": made("GCP_CREDENTIALS")}
"""The part of each secret that programs print."""


def encodings(secret: str) -> Iterator[str]:
    data = secret.encode()
    yield secret
    for offset in range(3):
        encoded = base64.b64encode(b"." * offset + data).decode()
        inside = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        yield from (inside, inside.replace("+", "-").replace("/", "_"))
    yield from (data.hex(), data.hex().upper(), quote(secret, safe=""), quote(secret))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])


FORMS = {form.encode(): name for name, secret in TOLD.items() for form in encodings(secret)}

AGENT = """
import base64, json, os, sys
from urllib.parse import quote

SECRETS = json.loads(os.environ["PLANTED"])


def told(name, way):
    secret = SECRETS[name]
    data = secret.encode()
    if way.startswith("base64"):
        return base64.b64encode(b"." * int(way[-1]) + data + b"...").decode()
    return {
        "plain": secret,
        "urlsafe": base64.urlsafe_b64encode(data).decode(),
        "hex": data.hex(),
        "HEX": data.hex().upper(),
        "percent": quote(secret, safe=""),
        "json": json.dumps({"a": secret}),
    }[way]


def answer(prompt):
    name, way, pad = prompt.split()
    said = "." * int(pad) + told(name, way) + "." * 300
    return {"output": said, "metadata": {"x-echo": told(name, way), told(name, way): 1}}


def raises(prompt):
    name, way, pad = prompt.split()
    raise ValueError("." * int(pad) + told(name, way))


def critic(prompt):
    for name in SECRETS:
        if f"CRITIC-{name}-" in prompt:
            said = told(name, "plain")
            return json.dumps({"score": 0.1, "reason": f"It says {said}", "assertions": [
                {"text": f"keeps {said}", "passed": False, "evidence": "." * 180 + said}]})
    return "no verdict: " + " ".join(told(name, "plain") for name in os.environ["OF_ALL"].split())


if __name__ == "__main__":
    name, way, pad = sys.argv[1].split()
    print("." * int(pad) + told(name, way))
    print("x" * 20000 + told(name, way) + "." * (int(pad) + 440), file=sys.stderr)
    sys.exit(1 if "fail" in sys.argv else 0)
"""

BOOK = """targets:
  - {name: tells, provider: python, function: "agent.py:answer"}
  - {name: raises, provider: python, function: "agent.py:raises"}
  - {name: critic, provider: python, function: "agent.py:critic"}
  - name: program
    provider: cli
    command: ["{{ env.PYTHON }}", agent.py, "{PROMPT}", fail, "--token={{ env.FLAG }}", --password, "{{ env.ARGUMENT }}"]
    env: {SERVICE_PASSWORD: "{{ env.PASSED_ON }}"}
  - name: server
    provider: http
    url: "http://ann:{{ env.USERINFO }}@127.0.0.1:9/v1?q=1&sig={{ env.QUERY }}"
    headers:
      X-Authorization: "Bearer {{ env.BEARER }}"
      X-Forward: "Token token={{ env.COMPOSITE_A }}, user={{ env.COMPOSITE_B }};n=1"
      Cookie: "session={{ env.COOKIE_HEADER }}"
    body: {key: "{{ env.BODY }}", prompt: "{{ prompt }}"}
"""

CUSTOM = """from agentv import AssertionContext, define_assertion

@define_assertion
def tells(ctx: AssertionContext, *, api_key: str = ""):
    if "raise" in ctx.criteria:
        raise RuntimeError(("." * 150) + (ctx.output or "") + api_key)
    return {"score": 0.2, "assertions": [{"text": ctx.output or api_key, "passed": False, "evidence": ctx.output}],
            "details": {"key": api_key, ctx.output or "": 1}}
"""

WAYS = ("plain", "base640", "base641", "base642", "urlsafe", "hex", "HEX", "percent", "json")


def cases() -> Iterator[dict]:
    number = 0
    for at, name in enumerate(NAMES):
        for way in WAYS[at % 3 :: 3]:  # all ways for each third secret; unit tests cover the encodings
            number += 1
            pad = number * 7 % 230
            prompt = f"{name} {way} {pad}"
            checks = [{"contains": "nothing"}, {"regex": "nothing"}, {"not-regex": "[A-Za-z0-9]{8}"}]
            checks += [{"is-json": True}, {"contains-json": True}, {"starts-with": "nothing"}]
            yield {"id": f"a-{number}", "input": prompt, "target": "tells", "assert": checks}
        yield {"id": f"e-{name}", "input": f"{name} plain 190", "target": "tells", "assert": [{"equals": "nothing"}]}
        yield {"id": f"j-{name}", "input": f"{name} plain 3", "target": "tells", "criteria": f"CRITIC-{name}- good"}
        for place, target in enumerate(("raises", "program", "server")):
            prompt = f"{name} plain {31 * place + number % 60}"
            yield {"id": f"{target}-{name}", "input": prompt, "target": target, "assert": [{"contains": "ok"}]}
        code = [{"type": "tells", "api_key": "{{ env.OPTION }}"}, {"type": "script", "command": SCRIPT % name}]
        code += [{"type": "python", "value": "return int(output)"}]
        if name in ("OPTION", "WEBHOOK"):
            hook = {"value": "http://127.0.0.1:9/?token={{ env.WEBHOOK }}", "headers": {"X-Token": "{{ env.WEBHOOK }}"}}
            code += [{"type": "webhook", **hook}]
        for said in ("raise", "say"):
            checks = code if said == "say" else code[:1]
            yield {
                "id": f"c-{name}-{said}",
                "input": f"{name} plain 9",
                "target": "tells",
                "criteria": said,
                "assert": checks,
            }


SCRIPT = "{{ env.PYTHON }} agent.py '%s plain 5' fail"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        ".git/HEAD": "ref: refs/heads/main\n",
        "agent.py": AGENT,
        ".agentv/targets.yaml": BOOK,
        ".agentv/assertions/tells.py": CUSTOM,
        ".env": "".join(f"{name}={SECRETS[name]}\n" for name in DOTENV),
        "a.eval.yaml": json.dumps(
            {
                "env": {"SECRET_KEY": SECRETS["SECRET_KEY"]},
                "judge": "critic",
                "run": {"retry": {"max_retries": 0}},
                "tests": list(cases()),
            }
        ),
        "wrong.eval.yaml": f"target: {{provider: echo, api_key: {SECRETS['SERVICE_API_KEY']}, modell: x}}\n"
        'tests: [{id: a, input: "{{ env.DB_PASS }}", assert: [{regex: "({{ env.GITHUB_PAT }}"}]}]\n',
    }
    monkeypatch.chdir(repository(tmp_path, files))
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    return tmp_path


def environment() -> dict[str, str]:
    given = {name: SECRETS[name] for name in (*ENVIRONMENT, *PLACED)}
    others = {
        "PLANTED": json.dumps(TOLD),
        "PASSED_ON": SECRETS["SERVICE_PASSWORD"],
        "PYTHON": sys.executable,
        "OF_ALL": " ".join((*ENVIRONMENT, *DOTENV)),
    }
    return {**given, **others, "NO_COLOR": "1"}


AUTHORED = ("agent.py", ".env", "a.eval.yaml", "wrong.eval.yaml")


def leaks(directory: Path, printed: str = "") -> list[tuple[str, str, str]]:
    """Return where each secret is visible, and in which encoding."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    texts = [(str(one.relative_to(directory)), one.read_bytes()) for one in files if one.name not in AUTHORED]
    names = [("a file's name", str(one.relative_to(directory)).encode()) for one in files]
    return [
        (place, name, form.decode())
        for place, data in chain(texts, names, [("printed", printed.encode())])
        for form, name in FORMS.items()
        if form in data
    ]


EXPORTS = ("x.csv", "x.xml", "x.html", "x.md", "x.json", "x.jsonl")


def test_nothing_that_a_run_and_its_views_write_holds_a_secret(planted, capfd):
    outs = [word for name in EXPORTS for word in ("-o", name)]
    assert run(["eval", "a.eval.yaml", "--cache", *outs]) == 3
    results = next((planted / ".agentv" / "results").glob("2*"))
    rows = [json.loads(line) for line in (results / "index.jsonl").read_text().splitlines()]
    assert len(rows) == len(list(cases()))
    seen = json.dumps(rows)
    assert seen.count("[redacted]") > 2 * len(rows)  # printed and redacted
    for words in (
        *(["results", "show", "--full"], ["results", "list"], ["results", "show", "--json"]),
        *(["results", "report", form, "-"] for form in ("--md", "--html", "--junit")),
        *(["results", "export", "-o", file] for file in ("again.jsonl", "again.csv")),
        *(["eval", "a.eval.yaml", "--list"], ["targets"], ["targets", "--json"], ["validate", "a.eval.yaml"]),
        ["eval", "a.eval.yaml", "--resume", "last", "--filter", "nothing"],
    ):
        assert run(words) in (0, 2 if "--resume" in words else 0), words
    captured = capfd.readouterr()
    assert leaks(planted, captured.out + captured.err)[:20] == []
    assert "[redacted]" in captured.err


@pytest.mark.parametrize("form", ["json", "github", "sarif"])
def test_no_format_of_diagnostics_holds_a_secret(planted, capfd, form):
    run(["eval", "a.eval.yaml", "--filter", "*-GITHUB_PAT*", "--format", form])
    run(["validate", ".", "--format", form])
    captured = capfd.readouterr()
    assert leaks(planted, captured.out + captured.err)[:20] == []


def test_what_is_wrong_in_a_file_is_said_without_its_secrets(planted, capfd):
    assert run(["validate", "wrong.eval.yaml"]) == 2
    assert run(["eval", "wrong.eval.yaml"]) == 2
    captured = capfd.readouterr()
    assert "unknown-key" in captured.err
    assert leaks(planted, captured.out + captured.err)[:20] == []


def test_a_cassette_a_second_grading_and_an_exam_hold_none(planted, capfd):
    prompt = planted / "prompts" / "polite"
    prompt.mkdir(parents=True)
    (prompt / "prompt.md").write_text("{{ words }}")
    (prompt / "meta.yaml").write_text("description: tells\nstatus: draft\n")
    exam = {"defaults": {"model": "tells", "judge": "critic"}, "cases": []}
    for name in (*ENVIRONMENT, *DOTENV):  # secrets of other suites are unknown here
        inputs = {"words": f"{name} plain 9"}
        exam["cases"].append({"name": f"e-{name}", "inputs": inputs, "assert": [{"contains": "x"}], "rubric": "Good?"})
    (prompt / "eval.yml").write_text(json.dumps(exam))
    assert run(["eval", "a.eval.yaml", "--filter", "[aj]-*", "--record", "tape.jsonl"]) == 3
    assert not (planted / "tape.jsonl").exists()
    assert run(["eval", "a.eval.yaml", "--filter", "j-*", "--regrade", "last"]) == 2
    assert "each contained a secret that was redacted" in capfd.readouterr().err
    assert run(["prompt", "eval", "polite"]) in (1, 3)
    for words in (["prompt", "list"], ["prompt", "show", "polite"], ["prompt", "doctor", "polite"]):
        run(words)
    (planted / "payload.json").write_text(json.dumps({"output": SECRETS["SERVICE_API_KEY"], "criteria": "say"}))
    assert run(["assert", "tells", "--file", "payload.json"]) == 1
    (planted / "payload.json").write_text(json.dumps({"output": SECRETS["SERVICE_API_KEY"], "criteria": "raise"}))
    assert run(["assert", "tells", "--file", "payload.json"]) == 3
    (planted / "payload.json").unlink()
    assert run(["eval", SECRETS["SERVICE_API_KEY"]]) == 2
    captured = capfd.readouterr()
    assert leaks(planted, captured.out + captured.err)[:20] == []
    assert (prompt / ".eval.jsonl").exists()


def test_what_users_code_prints_holds_none(planted, capfd):
    code = "import os, sys\ndef answer(prompt):\n    print('told', os.environ['DB_PASS'])\n"
    code += "    print(os.environ['GITHUB_PAT'], file=sys.stderr)\n    os.write(1, os.environ['DB_PASS'].encode())\n"
    code += "    os.system('echo by a program $DB_PASS')\n    return 'fine'\n"
    (planted / "prints.py").write_text(code)
    case = {"id": "a", "input": "x", "assert": [{"contains": "fine"}]}
    suite = {"target": {"provider": "python", "function": "prints.py:answer"}, "tests": [case]}
    (planted / "b.eval.yaml").write_text(json.dumps(suite))
    assert run(["eval", "b.eval.yaml", "--json"]) == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out)
    assert "told [redacted]" in captured.err
    assert "by a program [redacted]" in captured.err
    assert leaks(planted, captured.out + captured.err) == []


def test_a_key_that_is_a_plain_word_is_no_secret_and_a_note_says_so(planted, capfd, monkeypatch):
    monkeypatch.setenv("PLAIN_API_KEY", "test")
    target = {"provider": "cli", "command": "cat", "env": {"OPENAI_API_KEY": "{{ env.PLAIN_API_KEY }}"}}
    case = {"id": "a", "input": "Which test is this?", "assert": [{"contains": "test"}]}
    (planted / "b.eval.yaml").write_text(json.dumps({"target": target, "tests": [case]}))
    assert run(["eval", "b.eval.yaml"]) == 0
    said = capfd.readouterr().err
    assert said.count("note: the value of OPENAI_API_KEY is not redacted in results") == 1
    rows = next((planted / ".agentv" / "results").glob("2*/index.jsonl")).read_text()
    assert json.loads(rows)["output"] == "Which test is this?"
    assert run(["eval", "b.eval.yaml", "--regrade", "last"]) == 0
    assert "grading 1 answer" in capfd.readouterr().err


@pytest.mark.parametrize("shown", [["--list"], ["--list", "--json"], ["-q"], ["--json"]])
def test_a_command_that_names_its_target_is_shown_without_its_key(tmp_path, monkeypatch, capfd, shown):
    monkeypatch.chdir(tmp_path)
    asked = "cli:sh -c 'echo $0 $1' --token Li8sTtOkEn9Xyz {PROMPT}"
    suite = {"tests": [{"id": "a", "input": "Hello", "target": asked, "assert": [{"contains": "token"}]}]}
    Path("a.eval.yaml").write_text(json.dumps(suite), encoding="utf-8")
    assert run(["eval", "a.eval.yaml", *shown]) == 0
    captured = capfd.readouterr()
    assert "Li8sTtOk" not in captured.out + captured.err
    if "-q" not in shown:
        assert "--token [redacted]" in captured.out
        if "--json" in shown:
            json.loads(captured.out)
