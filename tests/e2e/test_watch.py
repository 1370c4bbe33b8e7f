"""`agentv eval --watch` in its own process: a save reruns what it changes and nothing else."""

import signal
import threading

SUITE = """\
target: {name: mine, provider: python, function: agent.py:answer}
tests:
  - {id: a, input: one, assert: [{contains: one}]}
  - {id: b, input: two, assert: [{contains: two}]}
"""
AGENT = """\
from pathlib import Path
def answer(prompt):
    with Path(__file__).with_name("calls.txt").open("a") as file:
        file.write(f"{prompt}\\\\n")
    return prompt
""".replace("\\\\", "\\")


class Lines:
    """The output lines of a process, as they arrive."""

    def __init__(self, process):
        self.seen = []
        self._changed = threading.Condition()
        self.reader = threading.Thread(target=self._read, args=(process.stderr,), daemon=True)
        self.reader.start()

    def _read(self, stream):
        for line in stream:
            with self._changed:
                self.seen.append(line.rstrip())
                self._changed.notify_all()

    def until(self, text, times):
        """Return all lines as soon as this many of them begin with a text."""
        with self._changed:
            enough = self._changed.wait_for(lambda: sum(line.startswith(text) for line in self.seen) >= times, 60)
        assert enough, self.seen
        return "\n".join(self.seen)


def test_only_what_a_save_changes_is_called_again(project):
    project.write_files({"evals/a.eval.yaml": SUITE, "evals/agent.py": AGENT})
    project.write("agentv.py", "raise SystemExit(2)\n")  # not the installed agentv
    calls = project.path / "evals/calls.txt"
    process = project.start("eval", "evals", "--watch")
    lines = Lines(process)
    lines.until("watching for changes", 1)
    assert sorted(calls.read_text().split()) == ["one", "two"]
    new = project.write("evals/new.tmp", SUITE.replace("input: two", "input: two and more"))
    new.rename(project.path / "evals/a.eval.yaml")
    lines.until("watching for changes", 2)
    assert calls.read_text().splitlines()[2:] == ["two and more"]
    project.write("evals/a.eval.yaml", "tests: [\n")
    assert "error[bad-yaml]" in lines.until("watching for changes", 3)
    project.write("evals/a.eval.yaml", SUITE.replace("contains: one", "contains: ONE"))
    shown = lines.until("watching for changes", 4)
    assert shown.count("FAILED a: ") == 1
    assert len(calls.read_text().splitlines()) == 3  # a new assertion regrades the same answer
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert lines.until("stopped watching", 1)
    lines.reader.join(60)
    process.stdout.close()
    process.stderr.close()
    assert sorted((row["test_id"], row["status"]) for row in project.rows()) == [("a", "failed"), ("b", "passed")]
