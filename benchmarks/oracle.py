#!/usr/bin/env python3
"""Compare two versions of agentv on the same eval files.

    benchmarks/oracle.py old/bin/python new/bin/python examples/* tests/cases ../others/*

OLD_PYTHON and NEW_PYTHON have agentv installed, and the same libraries. A PATH is a project; if it contains folders
with `expected.txt` or `expected.yaml`, each of them is one. Each is copied to a temporary directory. There, both
versions validate the eval files, convert promptfoo's configurations and run what is valid, without keys and with an
empty home. Files that need a model run with the target `echo`. The new version also reads the run of the old one, both
resume it, and both say whether the exams that the old one ran allow a promotion.

Prints a line for each difference in diagnostics, exit statuses, rows and totals. Differences that match a pattern in
oracle.toml are only counted, by its name. Exit status 1 if others remain. Projects run code; for those of strangers:
`bwrap --dev-bind / / --unshare-net benchmarks/oracle.py …`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

NAMED = Path(__file__).with_suffix(".toml")
NOT_COPIED = (".git", "node_modules", ".venv")
OF_A_CASE = ("expected.txt", "expected.yaml", "request.yaml", "remote")
"""What is not part of the project that a folder of tests/cases is."""
EVAL_FILES = re.compile(
    r"([^.].*\.eval\.(ya?ml|py|json|jsonl)|EVAL\.ya?ml|suite\.(ya?ml|jsonl|csv|json))$", re.IGNORECASE
)
PROMPTFOO = re.compile(r"promptfooconfig.*\.ya?ml$")
OFFLINE = ("--target", "echo", "--judge", 'mock:{"pass": true, "score": 1, "reason": "oracle"}')
FLAGS = {"target": "--target", "targets": "--target", "judge": "--judge", "env_file": "--env-file"}
ENVIRONMENT = {"LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "300", "NO_COLOR": "1", "CI": "1"}
ENVIRONMENT |= dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
ENVIRONMENT["no_proxy"] = "127.0.0.1,localhost"
"""No keys, and no network for what heeds proxies."""
TIMEOUT_S = 120
BATCH = 50
"""Files that one command validates."""

NOT_COMPARED = {"timestamp", "duration_ms", "latency_ms", "waited_ms", "key", "case_sha256", "run_id", "shared"}
CHANGING = (
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|seconds)\b"), "DURATION"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), "ADDRESS"),
    (re.compile(r"\b(0x)?[0-9a-f]{12,}\b"), "HEX"),
    (re.compile(r"\bworkspaces/\d+-\w+"), "WORKSPACE"),
    (re.compile(r"\bpid:? \d+|\bprocess \d+"), "PID"),
    (re.compile(r"(/[\w.+-]+)+/(site-packages|src)/agentv\b"), "AGENTV"),
    (re.compile(r"/tmp[\w./-]*"), "TEMPORARY"),
)
HEADLINE = re.compile(
    r"^(?P<file>\S.*?):(?P<rest>\d+:\d+: (error|warning|hint)\[[\w-]+\]: .*)|^(error|warning|note|promptfoo)\b.*"
)
TOTALS = re.compile(r"^(\d+ cases?: |pass rate |mean score |resuming: )")


Made = TypeVar("Made")
Rows = Mapping[str, Any]


@dataclass(frozen=True)
class Project:
    """Eval files with what is beside them, and how they are run."""

    name: str
    source: Path
    files: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = NOT_COPIED

    def place_of(self, files: Sequence[str]) -> str:
        return f"{self.name}/{files[0]}" if len(files) == 1 else self.name


@dataclass(frozen=True)
class Done:
    """What a command did."""

    status: int | str
    stdout: str
    stderr: str

    def lines(self) -> list[str]:
        return [*self.stderr.splitlines(), *self.stdout.splitlines()]

    def diagnostics(self) -> list[str]:
        return [steady(line) for line in self.lines() if HEADLINE.match(line)]

    def totals(self) -> list[str]:
        return [steady(line) for line in self.lines() if TOTALS.match(line)]


def shown(value: Any, start: int = 0) -> str:
    """The value in one line, long texts from `start` on."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= 300 else ("…" if start else "") + text[start : start + 300] + "…"
    return text.replace("\n", "\\n")


def steady(text: str) -> str:
    """The text without times, ids and temporary paths."""
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text


def projects(path: Path) -> Iterator[Project]:
    """The projects of a PATH."""
    folders = sorted({found.parent for depth in ("", "*/", "*/*/") for found in path.glob(f"{depth}expected.*")})
    for folder in folders or [path]:
        name = str(folder.relative_to(path.parent))
        asked = folder / "request.yaml"
        request = yaml.safe_load(asked.read_text(encoding="utf-8")) if folders and asked.is_file() else {}
        options = [f"--var={key}={value}" for key, value in request.get("variables", {}).items()]
        for key, flag in FLAGS.items():
            given = request.get(key, ())
            options += [f"{flag}={one}" for one in ((given,) if isinstance(given, str) else given)]
        files = (request["path"],) if "path" in request else tuple(eval_files(folder)) or (".",)
        hidden = (*NOT_COPIED, *OF_A_CASE) if folders else NOT_COPIED
        yield Project(name, folder, files, tuple(options), request.get("env", {}), hidden)


def eval_files(folder: Path) -> Iterator[str]:
    """Paths of the files that can be validated, without those of libraries and hidden directories."""
    for directory, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if name not in NOT_COPIED and not name.startswith("."))
        for name in sorted(names):
            with_prompt = name in ("eval.yml", "eval.yaml") and any(one.startswith("prompt.") for one in names)
            if EVAL_FILES.match(name) or PROMPTFOO.match(name) or with_prompt:
                yield os.path.relpath(f"{directory}/{name}", folder)


SERVER = """
import importlib, json, os, sys

def learn():  # the modules that a run imports
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1), os.dup2(nothing, 2)
    with open("warm.eval.yaml", "w") as file:
        file.write("target: echo\\ntests:\\n  - {id: a, input: b, assert: [contains: b]}\\n")
    from agentv.cli.main import run
    run(["eval", "warm.eval.yaml"])
    with open("modules", "w") as file:
        json.dump(list(sys.modules), file)
    os._exit(0)

if (child := os.fork()) == 0:
    learn()
os.waitpid(child, 0)
for name in json.load(open("modules")):
    try:
        importlib.import_module(name)
    except Exception:
        pass
for line in sys.stdin:
    words, place, environment, streams = json.loads(line)
    if (child := os.fork()) == 0:
        os.setsid()
        for number, name in enumerate(streams):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
        os.chdir(place)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["agentv", *words]
        from agentv.__main__ import main
        main()
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Forks for each command, so that agentv is imported once: a command takes a third of the time."""


class Server:
    """Runs the commands of one version, one after the other."""

    def __init__(self, python: str, work: Path) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="server-", dir=work))
        environment = {**ENVIRONMENT, "PATH": os.environ["PATH"], "HOME": str(self.place)}
        command, pipe = [python, "-c", SERVER], subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=self.place, env=environment, stdin=pipe, stdout=pipe, text=True)

    def run(self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> Done:
        """Run `agentv ARGUMENTS`; what takes too long is ended, with all that it started."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        out, err = self.place / "stdout", self.place / "stderr"
        out.unlink(missing_ok=True)
        err.unlink(missing_ok=True)
        command = [list(arguments), str(cwd), environment, [os.devnull, str(out), str(err)]]
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        late: list[bool] = []

        def end() -> None:
            late.append(True)
            for kill in (os.killpg, os.kill):  # it may have no session of its own yet
                with contextlib.suppress(ProcessLookupError):
                    kill(child, signal.SIGKILL)

        timer = threading.Timer(TIMEOUT_S, end)
        timer.start()
        status = int(self.process.stdout.readline())
        timer.cancel()
        return Done("timeout" if late else status, *(one.read_text(errors="replace") for one in (out, err)))


class Oracle:
    """Runs both versions in a temporary directory."""

    def __init__(self, old: str, new: str, work: Path, report: Callable[[str], None]) -> None:
        self.pythons = (old, new)
        self.work = work
        self.report = report
        self.commands = 0
        self.local = threading.local()

    def both(self, command: Callable[[str], Made]) -> tuple[Made, Made]:
        old, new = self.pythons
        return command(old), command(new)

    def run(self, python: str, arguments: Sequence[str], cwd: Path, env: Mapping[str, str] = {}) -> Done:
        """Run `agentv ARGUMENTS` with an empty home and no keys."""
        self.commands += 1
        home = cwd / ".home" if cwd == self.work else cwd.parent / "home"
        home.mkdir(exist_ok=True)
        bins = f"{Path(python).parent}:{os.environ['PATH']}"
        environment = {**ENVIRONMENT, "PATH": bins, "HOME": str(home), "TMPDIR": str(home), **env}
        if (servers := getattr(self.local, "servers", None)) is None:
            servers = self.local.servers = {one: Server(one, self.work) for one in self.pythons}
        return servers[python].run(arguments, cwd, environment)

    def differ(self, what: str, where: str, old: Any, new: Any) -> None:
        if old != new:
            same = next((i for i, (one, other) in enumerate(zip(str(old), str(new), strict=False)) if one != other), 0)
            self.report(f"{what} {where}: {shown(old, max(0, same - 50))} -> {shown(new, max(0, same - 50))}")

    def differ_in_lines(self, what: str, where: str, old: Iterable[str], new: Iterable[str]) -> None:
        """Report lines that only one version has, in pairs if there are as many of each."""
        before, after = Counter(old), Counter(new)
        only_old, only_new = list((before - after).elements()), list((after - before).elements())
        if len(only_old) != len(only_new):
            only_old, only_new = [*only_old, *["nothing"] * len(only_new)], [*["nothing"] * len(only_old), *only_new]
        for one, other in zip(only_old, only_new, strict=True):
            self.differ(what, where, one, other)

    # Diagnostics of all files

    def validate(self, opened: Mapping[str, Project]) -> set[str]:
        """Compare the diagnostics of all projects; the names of those in which both versions find an error."""
        files = [
            f"{name}/{one}" for name, project in opened.items() for one in project.files if not PROMPTFOO.search(one)
        ]
        found: list[dict[str, list[str]]] = [{}, {}]  # by file, of each version
        listed: list[dict[str, list[str]]] = [{}, {}]
        for start in range(0, len(files), BATCH):
            for side, python in enumerate(self.pythons):
                found[side] |= self.validated(python, ("validate", "--json"), files[start : start + BATCH])
                listed[side] |= self.validated(python, ("eval", "--list"), files[start : start + BATCH])
        for file in sorted({*found[0], *found[1], *listed[0], *listed[1]}):
            said = [one.get(file, []) for one in found]
            self.differ_in_lines("validate", file, *said)
            more = [
                [one for one in listed[side].get(file, ()) if not any(line.startswith(one) for line in said[side])]
                for side in (0, 1)
            ]
            self.differ_in_lines("eval --list", file, *more)
        wrong = [{file.split("/")[0] for file, lines in one.items() if "error[" in " ".join(lines)} for one in found]
        return wrong[0] & wrong[1]

    def validated(self, python: str, words: Sequence[str], files: Sequence[str]) -> dict[str, list[str]]:
        """The diagnostics by file. A command that ends without them is tried again with half of the files."""
        done = self.run(python, [*words, *files], self.work)
        by_file: dict[str, list[str]] = {}
        try:
            for one in json.loads(done.stdout) if "--json" in words else ():
                place = f"{one['line']}:{one['column']}: {one['severity']}[{one['code']}]"
                by_file.setdefault(one["file"], []).append(steady(f"{place}: {one['message']} | {one['hint']}"))
            stopped = done.status not in (0, 2)
        except ValueError:
            stopped = True
        for match in filter(None, map(HEADLINE.match, () if "--json" in words else done.lines())):
            stopped = stopped or not match["file"]
            by_file.setdefault(match["file"] or files[0], []).append(steady(match["rest"] or match[0]))
        if not stopped:
            return by_file
        if len(files) == 1:
            return {files[0]: [f"exit {done.status}", *done.diagnostics()]}
        half = len(files) // 2
        return {**self.validated(python, words, files[:half]), **self.validated(python, words, files[half:])}

    # One project

    def open(self, project: Project, place: Path) -> Path:
        """A fresh copy, as a repository of its own, without what an earlier one left."""
        for left in (place, place.with_name("home")):
            shutil.rmtree(left, ignore_errors=True)
        shutil.copytree(project.source, place, ignore=shutil.ignore_patterns(*project.hidden), symlinks=True)
        shutil.rmtree(place / ".agentv" / "results", ignore_errors=True)
        (place / ".git").mkdir(exist_ok=True)
        return place

    def compare(self, project: Project, place: Path) -> None:
        """Compare all that runs in a project."""
        files = list(project.files)
        for one in [file for file in files if PROMPTFOO.search(file)]:
            files.remove(one)
            self.convert(project, one, place)
        if files:
            self.evaluate(project, files, list(project.options), place)
        if exams := [str(Path(file).parent) for file in files if Path(file).name in ("eval.yml", "eval.yaml")]:
            self.promote(project, exams, place)

    def convert(self, project: Project, file: str, place: Path) -> None:
        """Convert a configuration of promptfoo, and run what the old version made of it."""
        converted, where = str(Path(file).with_name("converted.eval.yaml")), f"{project.name}/{file}"

        def command(python: str) -> tuple[Done, str]:
            made = self.open(project, place) / converted
            done = self.run(python, ["convert", file, "--out", converted], place)
            return done, made.read_text(encoding="utf-8") if made.is_file() else ""

        (old, before), (new, after) = self.both(command)
        self.differ("convert: exit", where, old.status, new.status)
        if old.status == new.status or (before and after):
            self.differ_in_lines("convert: finding", where, map(steady, old.lines()), map(steady, new.lines()))
            self.differ_in_lines("convert: line", where, before.splitlines(), after.splitlines())
        if before:
            source = place.with_name("converted")
            shutil.copytree(self.open(project, place), source, symlinks=True, dirs_exist_ok=True)
            (source / converted).write_text(before, encoding="utf-8")
            self.evaluate(replace(project, source=source), [converted], [], place)

    def evaluate(self, project: Project, files: list[str], options: list[str], place: Path) -> None:
        """Run eval files; those that cannot run are run offline, and left out if that is not enough."""
        run = place.with_name("run")

        def command(python: str) -> tuple[Done, dict[str, Any]]:
            kept = place.with_name("kept" if python == self.pythons[0] else "other")
            for left in (run, kept):
                shutil.rmtree(left, ignore_errors=True)
            arguments = ["eval", *files, "--no-progress", "--workers=4", f"--out={run}", *options]
            done, rows = self.run(python, arguments, self.open(project, place), project.env), stored(run)
            if run.is_dir():
                run.rename(kept)
            return done, rows

        (old, before), (new, after) = self.both(command)
        where = project.place_of(files)
        self.differ("eval: exit", where, old.status, new.status)
        self.differ_in_lines("eval: message", where, old.diagnostics(), new.diagnostics())
        if 2 not in (old.status, new.status):
            self.differ_in_runs("eval: ", where, (old, before), (new, after))
            if before and old.status != "timeout":
                self.continue_old(project, files, options, place)
            return
        named = {match["file"] for done in (old, new) for line in done.lines() if (match := HEADLINE.match(line))}
        wrong = [file for file in files if file in named] or files
        if left := [file for file in files if file not in wrong]:
            self.evaluate(project, left, options, place)
        if "echo" not in options:
            self.evaluate(project, wrong, [*options, *OFFLINE], place)
        elif wrong == files and len(files) > 1:
            for file in files:
                self.evaluate(project, [file], options, place)

    def continue_old(self, project: Project, files: list[str], options: list[str], place: Path) -> None:
        """The new version reads the old version's run, and both resume it."""
        kept, run = place.with_name("kept"), place.with_name("run")
        where = project.place_of(files)
        read = self.run(self.pythons[1], ["results", "show", str(kept), "--json"], place)
        self.differ("read: exit", where, 0, read.status)
        if read.status == 0:
            self.differ_in_rows("read: row", where, stored(kept), keyed(json.loads(read.stdout)["rows"]))

        def command(python: str) -> tuple[Done, dict[str, Any]]:
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(kept, run)
            arguments = ["eval", *files, "--no-progress", "--workers=4", f"--resume={run}", *options]
            return self.run(python, arguments, place, project.env), stored(run)

        (old, before), (new, after) = self.both(command)
        self.differ("resume: exit", where, old.status, new.status)
        self.differ_in_runs("resume: ", where, (old, before), (new, after))

    def promote(self, project: Project, exams: list[str], place: Path) -> None:
        """The old version runs the exams; both say whether a promotion is allowed."""
        self.open(project, place)
        self.run(self.pythons[0], ["prompt", "eval", *exams], place, project.env)
        command = ["prompt", "promote", *exams, "--dry-run", "--json"]
        old, new = self.both(lambda python: self.run(python, command, place, project.env))
        self.differ("promote: exit", project.name, old.status, new.status)
        self.differ_in_lines("promote: line", project.name, map(steady, old.lines()), map(steady, new.lines()))

    def differ_in_runs(self, what: str, where: str, old: tuple[Done, Rows], new: tuple[Done, Rows]) -> None:
        """Report what differs in totals and rows; where a command took too long, what ran by then is chance."""
        if "timeout" not in (old[0].status, new[0].status):
            self.differ_in_lines(f"{what}totals", where, old[0].totals(), new[0].totals())
            self.differ_in_rows(f"{what}row", where, old[1], new[1])

    def differ_in_rows(self, what: str, where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        for key in sorted({*old, *new}):
            if key not in old or key not in new:
                self.differ(what, f"{where} {key}", *("a row" if key in one else "nothing" for one in (old, new)))
                continue
            before, after = dict(leaves(old[key])), dict(leaves(new[key]))
            moved = before.get("status") != after.get("status")  # its scores are others then
            for name in sorted(name for name in {*before, *after} if not (moved and name.startswith("scores"))):
                self.differ(what, f"{where} {key} {name}", before.get(name, "nothing"), after.get(name, "nothing"))


def stored(run: Path) -> dict[str, Any]:
    """The rows in the directory of a run, by what they are of."""
    index = run / "index.jsonl"
    lines = index.read_text(encoding="utf-8").split("\n") if index.is_file() else []
    return keyed(json.loads(line) for line in lines if line)


def keyed(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    names = ("eval_path", "suite", "test_id", "target", "prompt_id", "variant", "sample")
    return {" ".join(str(row[name]) for name in names if row.get(name) is not None): row for row in rows}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Each value inside a row with its path, without what differs from run to run."""
    if isinstance(value, dict) and (kept := [key for key in value if key not in NOT_COMPARED]):
        for key in kept:
            yield from leaves(value[key], f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value:
        for place, one in enumerate(value):
            yield from leaves(one, f"{name}.{place}")
    else:
        yield name, steady(value) if isinstance(value, str) else {} if isinstance(value, dict) else value


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD_PYTHON")
    parser.add_argument("new", metavar="NEW_PYTHON")
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    parser.add_argument("--named", type=Path, default=NAMED, help="file of named exceptions")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    exceptions = tomllib.loads(given.named.read_text(encoding="utf-8")).get("exception", [])
    named: Counter[str] = Counter({one["name"]: 0 for one in exceptions})
    unnamed = 0

    def report(line: str) -> None:
        nonlocal unnamed
        if name := next((one["name"] for one in exceptions if re.search(one["pattern"], line)), ""):
            named[name] += 1
        else:
            unnamed += 1
            print(line, flush=True)

    with tempfile.TemporaryDirectory(prefix="oracle-") as temporary:
        work = Path(temporary).resolve()
        oracle = Oracle(given.old, given.new, work, report)
        listed = [project for path in given.paths for project in projects(path.resolve())]
        opened = {project.name.replace("/", "--"): project for project in listed}
        for name, project in opened.items():
            oracle.open(project, work / name / "project")
        with ThreadPoolExecutor(given.processes) as pool:
            files = {f"{name}/project": project for name, project in opened.items()}
            wrong = pool.submit(oracle.validate, files).result()
            running = {name: one for name, one in opened.items() if name not in wrong or len(one.files) > 1}
            list(pool.map(lambda name: oracle.compare(running[name], work / name / "project"), running))
    print(f"{len(listed)} projects, {sum(len(one.files) for one in listed)} files, {oracle.commands} commands")
    for name, count in named.items():
        print(f"  {name}: {count}")
    print(f"{unnamed} differences without a name")
    return 1 if unnamed else 0


if __name__ == "__main__":
    sys.exit(main())
