"""A project whose answers were graded by several models of a local server and labelled by people."""

import json
import re
from collections import Counter
from pathlib import Path
from threading import Lock

import yaml

from agentv.app.planning.preparation import prepare
from agentv.app.running.evaluate import evaluate
from agentv.app.settings import EvalSettings
from agentv.extensions.labels.labelling import open_session
from doubles.priced_server import PricedServer

MODELS = {"small": 0.001, "middle": 0.003, "large": 0.02}
"""Judges of targets.yaml, named like their models → cost of a call."""

_SHOWN = re.compile(r"ANSWER (\d+) (good|bad)")


class JudgeModels:
    """Models with one grading rule each: model → function of an answer's number, its quality and the whole text.

    A rule returns a verdict or a reply. Without a rule, a model is always right. `asked` counts the calls by
    model.
    """

    def __init__(self, **rules):
        self.rules = rules
        self.asked = Counter()
        self.texts = []
        self.server = PricedServer(reply=self._reply)
        self._lock = Lock()

    def _reply(self, model, text):
        with self._lock:
            self.asked[model] += 1
            self.texts.append(text)
            number, good = (found := _SHOWN.search(text))[1], found[2] == "good"
            said = self.rules.get(model, lambda _number, is_good, _text: is_good)(int(number), good, text)
            return said if isinstance(said, str) else json.dumps({"score": float(said), "reason": f"says {said}"}), (
                MODELS[model]
            )


def write_project(root: Path, server: PricedServer, cases: int, **rubric) -> None:
    """Write a project in which every third answer is bad, graded by `small`."""
    (root / ".git").mkdir(exist_ok=True)
    (root / ".agentv").mkdir(exist_ok=True)
    shared = {"provider": "openai", "base_url": server.openai, "api_key": "sk-judge-1234567890"}
    targets = [{"name": name, "model": name, **shared} for name in MODELS]
    (root / ".agentv/targets.yaml").write_text(yaml.safe_dump({"targets": targets, "defaults": {"judge": "small"}}))
    check = {"name": "polite", "type": "llm-rubric", "value": "Is polite", **rubric}
    tests = [
        {"id": f"c{number}", "input": f"ANSWER {number} {'good' if number % 3 else 'bad'}"} for number in range(cases)
    ]
    suite = {"name": "polite", "target": "echo", "default_test": {"assert": [check]}, "tests": tests}
    (root / "polite.eval.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))


def run_project() -> None:
    """Run the project in the working directory."""
    evaluate(prepare(EvalSettings(paths=("polite.eval.yaml",))), lambda _: None)


def label_answers(sample: int, person: str = "ada", says=None) -> None:
    """Label answers of the last run as a person: correctly, or as `says` decides."""
    session = open_session("last", None, sample, 0, person)
    for drawn in session.drawn:
        good = _SHOWN.search(drawn.answer.output)[2] == "good"
        verdict = says(drawn.answer) if says is not None else None
        session.label(drawn, verdict or ("pass" if good else "fail"))
