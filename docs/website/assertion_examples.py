"""Runs the example of each assertion type: `examples/assertions/GROUP/NAME.eval.yaml`.

An example has one assertion, a case `passes` and a case `fails`; one that compares answers has a case of any name. The
pages of the site show what the run found, and a test holds it against the names of the cases.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from agentv import evaluate
from agentv.model.run.trial import TrialResult
from agentv.testing import ModelServer

EXAMPLES = Path(__file__).parents[2] / "examples" / "assertions"


@dataclass(frozen=True)
class Outcome:
    """What one trial of an example came to.

    Attributes:
        case: its id.
        status: `passed`, `failed` or `errored`.
        checks: whether each check passed, its text, and its evidence.
    """

    case: str
    status: str
    score: float | None
    checks: tuple[tuple[bool, str, str], ...]

    def as_text(self) -> str:
        """The outcome in the words of the terminal."""
        score = "" if self.score is None else f": score {self.score:.2f}"
        lines = [f"{self.status.upper()} {self.case}{score}"]
        for passed, text, evidence in self.checks:
            lines.append(f"  {'passed' if passed else 'failed'}: {text}{f' | {evidence}' if evidence else ''}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Example:
    """The example of one assertion type, and what it came to."""

    type: str
    file: Path
    outcomes: tuple[Outcome, ...]

    @property
    def text(self) -> str:
        """The eval file."""
        return self.file.read_text(encoding="utf-8")

    @property
    def further_files(self) -> tuple[Path, ...]:
        """Code and files that the eval file names, as far as they are below the examples."""
        beside = (path for path in sorted(EXAMPLES.rglob("*")) if path.is_file() and path.suffix != ".yaml")
        named = [path for path in beside if path.name in self.text or self._is_in_the_template(path)]
        return tuple(named)

    def _is_in_the_template(self, path: Path) -> bool:
        return "template: ./repository" in self.text and "repository" in path.parts


def file_name(name: str) -> str:
    """A type's name as a part of file names: without colons, which not every system allows."""
    return name.replace(":", "-")


def example_files() -> dict[str, Path]:
    """File name of a type → its example."""
    return {path.name.removesuffix(".eval.yaml"): path for path in sorted(EXAMPLES.rglob("*.eval.yaml"))}


def run_examples(out: Path) -> dict[str, Example]:
    """All examples by the types of their assertions, run in this process. `out` receives the results."""
    with ModelServer() as server, grading_server() as grader:
        keys = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.openai, "GRADER_URL": grader}
        env = {"PATH": os.environ["PATH"], **keys}
        results = evaluate(str(EXAMPLES), out=str(out), process_env=env).results
    by_suite: dict[str, list[TrialResult]] = {}
    for result in results:
        by_suite.setdefault(result.trial.suite.name, []).append(result)
    files = example_files()
    return dict(_example(files[name], found) for name, found in by_suite.items())


def _example(file: Path, results: list[TrialResult]) -> tuple[str, Example]:
    kinds = {score.entry.type for result in results for score in result.scores}
    kind = ", ".join(sorted(kinds))
    outcomes = sorted((_outcome(result) for result in results), key=lambda one: one.status, reverse=True)
    return kind, Example(kind, file, tuple(outcomes))


def _outcome(result: TrialResult) -> Outcome:
    checks = tuple(
        (check.passed, check.text, check.evidence or "") for score in result.scores for check in score.grade.checks
    )
    return Outcome(result.trial.case.id, str(result.status), result.score, checks)


class _Grader(BaseHTTPRequestHandler):
    """A webhook that passes answers with the word refund."""

    def do_POST(self) -> None:  # the name that the library calls
        """Grade one answer."""
        case = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps(self._verdict(case)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _verdict(self, case: Mapping[str, object]) -> Mapping[str, object]:
        passed = "refund" in str(case["output"])
        return {"pass": passed, "reason": "It names the refund." if passed else "There is no refund."}

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def grading_server() -> Iterator[str]:
    """The URL of a webhook that runs meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Grader)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/grade"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
