"""`python -m agentv.testing`."""

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

COMMAND = [sys.executable, "-m", "agentv.testing", "--port"]


@contextmanager
def by_hand(*options):
    """Start it, and return the printed addresses by name."""
    with subprocess.Popen([*COMMAND, "0", *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield dict(process.stdout.readline().split() for _ in range(5)), process
        finally:
            process.kill()


def ask(address, text):
    body = json.dumps(
        {"model": "m", "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": text}]}
    )
    with urlopen(Request(f"{address}/chat/completions", body.encode())) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def test_it_prints_its_addresses_says_what_it_is_asked_and_ends_when_told():
    with by_hand() as (addresses, process):
        assert list(addresses) == ["openai", "anthropic", "gemini", "azure", "ollama"]
        assert ask(addresses["openai"], "say this") == "say this"
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0


def test_one_text_for_all_and_a_rate_limit():
    with by_hand("--text", "always", "--rate", "0.01", "--delay-ms", "1") as (addresses, _):
        assert ask(addresses["openai"], "say this") == "always"
        try:
            ask(addresses["openai"], "more")
        except HTTPError as error:
            with error as reply:
                assert (reply.status, reply.headers["Retry-After"]) == (429, "100")


def test_a_script_in_a_file(tmp_path):
    path = tmp_path / "steps.yaml"
    path.write_text("[Done.]")
    with by_hand("--script", str(path)) as (addresses, _):
        assert ask(addresses["openai"], "say this") == "Done."


def test_a_file_that_is_no_script(tmp_path):
    path = tmp_path / "steps.yaml"
    path.write_text("steps: [{tol: shell}]")
    done = subprocess.run([*COMMAND, "0", "--script", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("step 1 of steps: Object contains unknown field `tol`")) == (1, 1)
