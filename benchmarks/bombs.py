"""Files, answers and replies that demand excessive time and memory, and what agentv uses for each.

    python benchmarks/bombs.py [WORD]

Files go to `agentv validate`, answers and replies of servers to `agentv eval`. Prints CPU seconds, wall-clock seconds
and MB of each bomb whose name contains WORD, then the worst. Figures depend on the machine; a process that starts
others is at least as large as this one.
"""

from __future__ import annotations

# ruff: noqa: E501  # a bomb a line
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path

AGENTV = str(Path(sysconfig.get_path("scripts")) / "agentv")
LIMIT_S = 60
CASE = "target: echo\ntests:\n- id: a\n  input: hello\n"
CHECKED = "  assert: [{contains: a}]\n"
MANY = 20_000

TEMPLATES = {
    "center": "'a'|center(10**10)",
    "center-literal": "'a'|center(10000000000)",
    "center-method": "'a'.center(10**10)",
    "ljust": "'a'.ljust(10**10)",
    "rjust": "'a'.rjust(10**10)",
    "zfill": "'1'.zfill(10**10)",
    "expandtabs": "'\\t'.expandtabs(10**10)",
    "expandtabs-many": "('\\t' * 100000).expandtabs(100000)",
    "format-filter": "'%10000000000d'|format(1)",
    "format-star": "'%*d'|format(10000000000, 1)",
    "format-operator": "'%10000000000d' % 1",
    "format-long": "'%s%s%s%s'|format(*['a' * 9000000] * 4)",
    "format-method": "'{:>10000000000}'.format(1)",
    "format-nested": "'{:>{w}}'.format(1, w=10**10)",
    "format-map": "'{a:>10000000000}'.format_map({'a': 1})",
    "replace": "('a' * 10**6)|replace('', 'b' * 10**6)",
    "replace-method": "('a' * 10**6).replace('a', 'b' * 10**6)",
    "translate": "('a' * 10**6).translate({97: 'b' * 10**6})",
    "indent": "'a\\nb'|indent(10**10)",
    "indent-text": "('\\n' * 10**6)|indent('b' * 10**6)",
    "batch": "[1]|batch(10**9, 0)|list",
    "slice": "[1]|slice(10**9)|list",
    "join": "(['a' * 10**6] * 100000)|join",
    "join-between": "range(100000)|join('a' * 10**6)",
    "join-method": "('a' * 10**6).join(['b'] * 100000)",
    "round": "5|round(-10**9)",
    "round-ceil": "5.5|round(10**9, 'ceil')",
    "tojson": "[1]|tojson(indent=10**9)",
    "tojson-shared": "([['a' * 10**6] * 1000] * 1000)|tojson",
    "string-shared": "([['a' * 10**6] * 1000] * 1000)|string",
    "list-shared": "[['a' * 10**6] * 1000] * 1000",
    "pprint": "([1] * 199999)|pprint",
    "wordwrap": "('a ' * 4000000)|wordwrap(1)",
    "wordwrap-with": "('a ' * 40000)|wordwrap(1, wrapstring='b' * 10**6)",
    "urlize": "('http://a.b ' * 500000)|urlize",
    "striptags": "('<a>' * 3000000)|striptags",
    "xmlattr": "{'a': 'b' * 9000000}|xmlattr",
    "sum-of-lists": "([[0]] * 199999)|sum(start=[])",
    "power": "9**9**9",
    "power-chain": "(9**4000)**4000",
    "product": "'a' * 10**10",
    "list-product": "[0] * 10**9",
    "to-bytes": "(1).to_bytes(10**10, 'big')",
    "lipsum": "lipsum(10**8)",
    "lipsum-words": "lipsum(1, max=10**8, min=10**7)",
    "range": "range(10**12)|list",
    "map-center": "range(100000)|map('center', 100000)|list",
    "map-repeated": "range(100000)|map('string')|map('upper')|map('lower')|list|length",
    "concat": "'a' * 9000000 ~ 'a' * 9000000 ~ 'a' * 9000000",
    "plus": "'a' * 9000000 + 'a' * 9000000 + 'a' * 9000000",
    "unique": "(range(100000)|list + range(100000)|list)|unique|list",
    "groupby": "range(100000)|groupby('real')|list",
    "attributes": ".".join(["a", *["b"] * 50_000]),
    "parentheses": "(" * 5_000 + "1" + ")" * 5_000,
    "sum-of-ones": "+".join(["1"] * 50_000),
    "digits": "9" * 100_000,
    "comparisons": "<".join(["1"] * 50_000),
}
STATEMENTS = {
    "nested-ranges": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "nested-text": "{% for a in range(9999) %}{% for b in range(9999) %}" + "x" * 9999 + "{% endfor %}{% endfor %}",
    "loop-of-text": "{% for a in range(99999) %}" + "x" * 99_999 + "{% endfor %}",
    "recursive-macro": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "endless-macro": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "macro-text": "{% macro m(n) %}"
    + "x" * 999
    + "{% if n %}{{ m(n - 1) ~ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}",
    "recursive-loop": "{% for a in [1] recursive %}{% if loop.depth < 60 %}{{ loop([1]) }}{{ loop([1]) }}{% endif %}{% endfor %}",
    "doubling-block": "{% set a = 'xxxxxxxx' %}" + "{% set a %}{{ a }}{{ a }}{% endset %}" * 60 + "{{ a }}",
    "doubling-text": "{% set a = 'x' %}" + "{% set a = a ~ a %}" * 60 + "{{ a }}",
    "doubling-plus": "{% set a = 'x' %}" + "{% set a = a + a %}" * 60 + "{{ a }}",
    "doubling-list": "{% set a = [1] %}" + "{% set a = a + a %}" * 60 + "{{ a }}",
    "doubling-nested": "{% set a = [1] %}" + "{% set a = [a, a] %}" * 60 + "{{ a }}",
    "doubling-dict": "{% set a = 1 %}" + "{% set a = {'x': a, 'y': a} %}" * 60 + "{{ a }}",
    "doubling-tuple": "{% set a = (1,) %}" + "{% set a = (a, a) %}" * 60 + "{{ {a: 1} }}",
    "equal-trees": "{% set a = [1] %}"
    + "{% set a = [a, a] %}" * 40
    + "{% set b = [1] %}"
    + "{% set b = [b, b] %}" * 40
    + "{{ a == b }}",
    "namespace": "{% set n = namespace(a='x') %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}{% endfor %}{{ n.a }}",
    "namespace-list": "{% set n = namespace(a=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a }}",
    "comparing": "{% set a = 'x' * 9000000 %}{% set b = 'x' * 9000000 %}{% for i in range(99999) %}{% if a == b %}{% endif %}"
    "{% endfor %}",
    "upper-again": "{% set a = 'x' * 9000000 %}{% for i in range(99999) %}{% if a.upper() %}{% endif %}{% endfor %}",
    "filter-block": "{% filter upper %}{% for i in range(99999) %}" + "x" * 9_999 + "{% endfor %}{% endfilter %}",
    "call-block": "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}"
    + "{% call m() %}" * 60
    + "x"
    + "{% endcall %}" * 60,
    "ifs": "{% if 1 %}" * 1_500 + "{% endif %}" * 1_500,
    "placeholders": "{{ a.b }}" * 100_000,
    "undefined-names": "".join(f"{{{{ a{n} }}}} " for n in range(MANY)),
    "open-braces": "{{ " * 200_000,
    "percent-braces": "{% " * 200_000,
    "spaces": "{{" + " " * 1_000_000,
}


def files() -> dict[str, dict[str, str]]:
    """Bomb → its files by name; the first is given to `validate`."""
    made = {f"template-{name}": in_input("{{ " + text + " }}") for name, text in TEMPLATES.items()}
    made |= {f"template-{name}": in_input(text) for name, text in STATEMENTS.items()}
    return made | structures() | tables() | answers() | replies()


def in_input(text: str) -> dict[str, str]:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return {"a.yaml": f'target: echo\ntests:\n- id: a\n{CHECKED}  input: "x {quoted}"\n'}


def yaml(text: str) -> dict[str, str]:
    return {"a.yaml": text}


def lines(written: str, count: int = MANY) -> str:
    return "".join(written.replace("N", str(number)) for number in range(count))


def structures() -> dict[str, dict[str, str]]:
    asserting = CASE + "  assert:\n"
    return {
        "unknown-keys-of-a-suite": yaml("target: echo\n" + lines("unknownN: 1\n") + CASE[13:] + CHECKED),
        "unknown-keys-of-a-case": yaml(CASE + lines("  unknownN: 1\n") + CHECKED),
        "unknown-keys-of-an-assertion": yaml(
            asserting + "  - type: contains\n    value: a\n" + lines("    unknownN: 1\n")
        ),
        "unknown-types": yaml(asserting + lines("  - contiansN: a\n")),
        "unknown-roles": yaml(CASE.replace("hello", "\n") + lines("  - {role: usr, content: a}\n") + CHECKED),
        "unknown-targets": yaml("target: [" + lines("targetN, ") + "]\n" + CASE[13:] + CHECKED),
        "anchors": yaml("target: echo\nx-a:\n" + lines("- &aN [1]\n") + CASE[13:] + CHECKED),
        "aliases": yaml("target: echo\nx-a:\n- &a [1]\n" + lines("- *a\n") + CASE[13:] + CHECKED),
        "alias-tree": yaml(
            "x-a:\n- &a0 [1]\n" + "".join(f"- &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)) + CASE
        ),
        "merges": yaml("x-a: &a {" + lines("kN: 1, ", 5000) + "}\nx-b:\n" + "- {<<: *a}\n" * 300 + CASE + CHECKED),
        "merge-tree": yaml(
            "x-a:\n- &a0 {a: 1}\n" + "".join(f"- &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60)) + CASE
        ),
        "values-of-a-case": yaml(CASE + CHECKED + "  metadata: {x: [" + "[]," * 3_000_000 + "]}\n"),
        "values-beside-cases": yaml("x-a: [" + "[]," * 3_000_000 + "]\n" + CASE + CHECKED),
        "duplicate-keys": yaml("x-a: 1\n" * MANY + CASE + CHECKED),
        "deep-list": yaml("tests: " + "[" * 100_000),
        "deep-mapping": yaml("tests: " + "{a: " * 100_000),
        "deep-block": yaml("".join(" " * n + "a:\n" for n in range(2_000))),
        "deep-sets": yaml(
            asserting + "".join("  " * n + "  - type: assert-set\n" + "  " * n + "    assert:\n" for n in range(40))
        ),
        "long-text": yaml(f"tests: {'x' * 10_000_000}\n"),
        "long-key": yaml(f"{'x' * 1_000_000}: 1\n" + CASE + CHECKED),
        "long-type": yaml(asserting + f"  - {'x' * 900}: 1\n" * 500),
        "tabs": yaml("tests:\n" + "\t" * 100_000),
        "quotes": yaml("tests: '" + "''" * 1_000_000),
        "ignores": yaml("# agentv: ignore[unknown-key]\n" * MANY + CASE + CHECKED),
        "secrets": yaml(lines("x-N_api_key: sk-abcdefghijklmnopqrstuvwN\n", 2_000) + CASE + CHECKED),
        "contradictions": yaml(asserting + lines("  - equals: aN\n", 3_000)),
        "equals-and-patterns": yaml(asserting + f"  - equals: {'a' * 40}!\n" + lines("  - regex: '(a+)+(N)?$'\n", 200)),
        "same-ids": yaml("target: echo\ntests:\n" + "- {id: a, input: b, assert: [{contains: b}]}\n" * 10_000),
        "dependencies": yaml(
            "target: echo\ntests:\n"
            + "".join(
                f"- {{id: a{n}, input: b, depends_on: a{n + 1}, assert: [{{contains: b}}]}}\n" for n in range(3_000)
            )
        ),
        "expansion": yaml(
            CASE
            + CHECKED
            + "  expand: true\n  vars: {"
            + ", ".join(f"{c}: [1, 2, 3, 4, 5, 6, 7, 8]" for c in "abcdefgh")
            + "}\n"
        ),
        "undefined-in-each": yaml(asserting + lines('  - contains: "{{ aN }}"\n', 5_000)),
        "many-variables": yaml(
            CASE
            + "  vars: {"
            + lines("vN: 1, ", 10_000)
            + "}\n  assert:\n"
            + lines('  - contains: "{{ vvN }}"\n', 1_000)
        ),
        "regex-groups": yaml(asserting + f"  - regex: '{'(' * 5_000}{')' * 5_000}'\n"),
        "regex-counts": yaml(asserting + "  - regex: '((a{1,1000}){1,1000}){1,1000}'\n"),
        "regex-long": yaml(asserting + f"  - regex: '{'(a|b)*' * 20_000}'\n"),
        "schema-deep": yaml(
            asserting + "  - {type: json-schema, value: " + "{allOf: [" * 45 + "{}" + "]}" * 45 + "}\n"
        ),
        "schema-cycle": yaml(asserting + "  - {type: json-schema, value: {$ref: '#'}}\n"),
        "schema-wide": yaml(
            asserting + "  - {type: json-schema, value: {properties: {" + lines("pN: {type: strin}, ", 5_000) + "}}}\n"
        ),
        "rubrics": yaml(CASE + "  rubrics:\n" + lines("  - {id: r, outcome: a}\n", 5_000)),
        "json-path": yaml(asserting + f"  - {{contains: a, transform: '$.{'a.' * 20_000}a'}}\n"),
        "dotenv": {"a.yaml": CASE + CHECKED, ".env": "no name\n" * MANY},
        "dotenv-quote": {"a.yaml": CASE + CHECKED, ".env": 'A="' * 20_000},
        "targets-file": {
            "a.yaml": CASE + CHECKED,
            ".agentv/targets.yaml": "targets:\n" + lines("- {name: tN, provider: ech}\n", 5_000),
        },
        "pattern": {
            "a.yaml": "target: echo\ntests: '" + "**/" * 40 + "*.jsonl'\n",
            **{f"{'d/' * n}a.txt": "" for n in range(1, 30)},
        },
    }


def tables() -> dict[str, dict[str, str]]:
    suite = {"a.yaml": "target: echo\ninput: a\n"}
    wide = 200_000
    return {
        "csv-columns": {"a.csv": lines("cN,", wide) + "__expected\n" + "a," * wide + "a\n", **suite},
        "csv-same-columns": {"a.csv": "c," * wide + "__expected\na\n", **suite},
        "csv-special-columns": {"a.csv": "q" + lines(",__nothingN", 16_000) + "\na\n", **suite},
        "csv-configs": {"a.csv": "q" + lines(",__config:__expectedN:threshold", 16_000) + "\na\n", **suite},
        "csv-quotes": {"a.csv": "q,__expected\n" + '"' * 5_000_000, **suite},
        "csv-open-quote": {"a.csv": 'q,__expected\n"' + "a\n" * 2_000_000, **suite},
        "csv-bad-rows": {"a.csv": "q,__expected\n" + "a\n" * 100_000, **suite},
        "json-lines-empty": {"a.jsonl": "{}\n" * 300_000},
        "json-lines-broken": {"a.jsonl": "{\n" * 300_000},
        "json-lines-deep": {"a.jsonl": '{"id": ' + "[" * 1_000_000 + "\n"},
        "json-lines-long": {"a.jsonl": '{"id": "' + "a" * 9_000_000 + '"}\n'},
        "json-lines-keys": {"a.jsonl": "{" + lines('"kN": 1, ')[:-2] + "}\n"},
        "json-lines-same-key": {"a.jsonl": "{" + '"k": 1, ' * MANY + '"k": 1}\n'},
        "json-lines-values": {"a.jsonl": '{"metadata": {"x": [' + "[]," * 3_000_000 + "[]]}}\n"},
        "json-numbers": {"a.jsonl": '{"id": "a", "threshold": ' + "9" * 1_000_000 + "}\n"},
    }


def answers() -> dict[str, dict[str, str]]:
    """Answers, and what scripts print about them; Python makes them, so that this process stays small."""
    wide, long, other = "'[' + '[],' * 3_000_000 + '[]]'", "'ab' * 1_500_000", "xyz" * 1_000_000
    nested = "{$defs: {" + ", ".join(
        f"a{n}: {{allOf: [{{$ref: '#/$defs/a{n + 1}'}}, {{$ref: '#/$defs/a{n + 1}'}}]}}" for n in range(40)
    )
    made = {
        "json": (wide, "type: is-json"),
        "json-objects": ("'[' + '[{}],' * 1_900_000 + '[]]'", "type: is-json"),
        "json-in-prose": ("'x ' + " + wide, "type: contains-json"),
        "json-objects-in-prose": ("'x [' + '[{}],' * 1_900_000 + '[]]'", "type: contains-json"),
        "json-equals": (wide, "equals: {a: 1}"),
        "json-schema": ("'[1]'", f"{{type: json-schema, value: {nested}, a40: {{}}}}, $ref: '#/$defs/a0'}}}}"),
        "unique": ("str(list(range(900_000)))", "{type: json-schema, value: {uniqueItems: true}}"),
        "levenshtein": (long, f"{{type: levenshtein, value: {other}, threshold: 2999999}}"),
        "levenshtein-equal": (long, f"{{type: levenshtein, value: {'ab' * 1_500_000}, threshold: 2999999}}"),
        "contains-any": ("'x' * 10**6", "contains-any: [" + lines("wN, ", 50_000) + "]"),
        "icontains-all": ("'x' * 10**6", "icontains-all: [" + lines("wN, ", 50_000) + "]"),
        "regex": ("'x' * 5_000_000", "regex: '(x+x+)+y'"),
        "words": ("'a ' * 4_900_000", "word-count: 3"),
        "tags": ("'<p>' * 3_000_000", "type: is-html"),
        "open-tags": ("'<a ' * 3_000_000", "type: contains-xml"),
        "transform": ("'a ' * 4_900_000", "{contains: a, transform: 'output.split()|map(\"upper\")|list|length'}"),
        "reference": (long, "{type: rouge-n, value: " + lines("wN ", 100_000) + "}"),
    }
    script = "import sys; sys.stdout.write("
    printed = {
        "values": '\'{"pass": true, "details": \' + ' + wide + " + '}'",
        "keys": "'{\"pass\": true' + ''.join(f', \"k{n}\": 1' for n in range(60_000)) + ', \"k1\": 1}'",
        "lines": "'x\\n' + '{\\n' * 1_000_000",
    }
    target = "target: {provider: python, function: 'a.py:answer'}\ntests:\n- id: a\n  input: hello\n  assert:\n"
    return {
        **{
            f"answer-{name}": {"a.yaml": f"{target}  - {assertion}\n", "a.py": f"def answer(prompt): return {text}\n"}
            for name, (text, assertion) in made.items()
        },
        "answer-fuzzy": {
            "a.yaml": f"{target}  - {{type: field-accuracy, fields: [{{path: a, match: fuzzy, threshold: 0.1}}]}}\n"
            f"  expected_output: {{a: {other}}}\n",
            "a.py": f"def answer(prompt): return '{{\"a\": \"' + {long} + '\"}}'\n",
        },
        **{
            f"answer-printed-{name}": {
                "a.yaml": f"{CASE}  assert: [{{type: script, command: [python3, b.py]}}]\n",
                "b.py": f"{script}{text})\n",
            }
            for name, text in printed.items()
        },
        "answer-of-command": {
            "a.yaml": CASE.replace("echo", "{provider: cli, command: [python3, b.py]}") + CHECKED,
            "b.py": f'{script}\'{{"output": "a", "x": \' + {wide} + \'}}\')\n',
        },
    }


SERVED = {
    "http": "url: 'URL/BODY', output: $.x",
    "openai": "model: gpt-x, base_url: 'URL/BODY', api_key: '{{ env.FAKE }}'",
    "anthropic": "model: claude-x, base_url: 'URL/BODY', api_key: '{{ env.FAKE }}'",
    "gemini": "model: gemini-x, base_url: 'URL/BODY', api_key: '{{ env.FAKE }}'",
    "litellm": "model: openai/gpt-x, base_url: 'URL/BODY', api_key: '{{ env.FAKE }}'",
}
BODIES = {
    "spaces": (b" ", 200_000_000, b""),
    "text": (b"a", 60_000_000, b'"}'),
    "wide-letter": (b"a", 21_000_000, '😀"}'.encode()),
    "lists": (b"[],", 10_000_000, b"[]]}"),
    "open-lists": (b"[", 21_000_000, b""),
}
"""What is repeated, how often, and the end of a reply; it begins as JSON does."""


def replies() -> dict[str, dict[str, str]]:
    """Replies that are as large as is read, or larger."""
    return {
        f"reply-{body}-{provider}": {
            "a.yaml": f"target: {{provider: {provider}, {keys.replace('BODY', body)}, retry: {{max_retries: 0}}}}\n{CASE[13:]}{CHECKED}"
        }
        for provider, keys in SERVED.items()
        for body in BODIES
    }


def pieces_of(body: str) -> Iterator[bytes]:
    """A body, some 10,000 bytes at a time."""
    piece, count, end = BODIES[body]
    yield {b"a": b'{"x": "', b"[],": b'{"x": ['}.get(piece, b"")
    yield from repeat(piece * 10_000, count // 10_000)
    yield end


class Serving(BaseHTTPRequestHandler):
    """Answers every call with the body that the address names."""

    def do_POST(self) -> None:  # as the library calls it
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        with suppress(OSError):
            for piece in pieces_of(self.path.split("/")[1]):
                self.wfile.write(piece)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server of replies."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def command(name: str, made: dict[str, str]) -> list[str]:
    """The agentv command for a bomb."""
    runs = name.startswith(("answer-", "reply-"))
    return [AGENTV, "eval", "a.yaml", "--out", "out"] if runs else [AGENTV, "validate", next(iter(made))]


def measured(name: str, made: dict[str, str], folder: Path, url: str) -> tuple[float, float, float, str]:
    """(seconds of computing, seconds by the clock, MB, name)."""
    home = folder / name
    for file, text in made.items():
        path = home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("URL", url) if name.startswith("reply-") else text, encoding="utf-8")
    began = time.monotonic()
    process = subprocess.Popen(
        command(name, made),
        cwd=home,
        env={**os.environ, "FAKE": "not-a-real-key"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while time.monotonic() < began + LIMIT_S:
        ended, _, used = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        time.sleep(0.02)
    else:
        process.kill()
        _, _, used = os.wait4(process.pid, 0)
        name += " (killed)"
    process.returncode = 0
    clock = time.monotonic() - began
    shutil.rmtree(home)
    return used.ru_utime + used.ru_stime, clock, used.ru_maxrss / (1 << (10 if sys.platform == "linux" else 20)), name


def main(word: str) -> None:
    chosen = {name: made for name, made in files().items() if word in name}
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        (Path(folder) / ".git").mkdir()
        found = []
        for name, made in chosen.items():
            found.append(measured(name, made, Path(folder), url))
            print("{:6.2f} s computing {:6.2f} s {:6.0f} MB  {}".format(*found[-1]), flush=True)
    slowest, largest = max(found), max(found, key=lambda one: one[2])
    print(f"{len(found)} bombs; slowest {slowest[0]:.2f} s ({slowest[3]}), largest {largest[2]:.0f} MB ({largest[3]})")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
