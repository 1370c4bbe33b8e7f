"""What a command that asks no model does not pay for: SDKs take a second to import, and more memory than a run."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = [
    "aiohttp",
    "anthropic",
    "boto3",
    "genai_prices",
    "google.genai",
    "httpx",
    "httpx2",
    "litellm",
    "model2vec",
    "numpy",
    "openai",
    "pydantic",
    "requests",
    "tiktoken",
    "tokenizers",
]

PROGRAM = """
import atexit, json, sys
sys.argv = ["agentv", *json.loads(sys.argv[1])]
from agentv.__main__ import main

def note():
    with open("imported.json", "w") as file:
        json.dump(sorted(sys.modules), file)

atexit.register(note)
main()
"""

BESIDE = """targets:
  - {name: haiku, provider: anthropic, model: claude-haiku-4-5}
defaults: {target: haiku}
"""


def imported(project, *words):
    """The exit status of a command, and the modules that it left behind."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(words)],
        cwd=project.path,
        env=project.environment,
        capture_output=True,
        check=False,  # the caller says which status is right
        timeout=180,
    )
    loaded = json.loads((project.path / "imported.json").read_text())
    return ended.returncode, {name for name in loaded if name in HEAVY}


def test_a_run_on_the_first_project_imports_no_sdk(project):
    assert project.run("init").status == 0
    assert imported(project, "eval", "evals/") == (0, set())


def test_the_list_of_what_is_heavy_is_true(project):
    project.write(".agentv/targets.yaml", BESIDE)
    project.write("a.eval.yaml", "target: anthropic:m\ntests:\n  - {id: a, input: hi, assert: [contains: hi]}\n")
    project.write(".env", "ANTHROPIC_API_KEY=sk-1234\nANTHROPIC_BASE_URL=http://127.0.0.1:9\n")
    status, found = imported(project, "eval", "a.eval.yaml")
    assert status == 3
    assert {"anthropic", "pydantic"} <= found
