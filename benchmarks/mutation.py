"""Mutation run: change the deciding code in one place at a time, and check that a test fails.

    nice python benchmarks/mutation.py [--list] [--jobs 2] [--minutes 20] [--skip N] [--line N] [GROUP or FILE ...]

It needs only what `pip install --editable '.[dev]'` installs. All groups take hours, so CI does not run it:
run the group that was changed. Mutants are taken in the order of a fixed seed; where `--minutes` ends a group, what ran
is a sample of it, and the table says how many mutants were not tried. `--skip N` continues after such a sample.

Printed for each survivor: place, code before, code after. A survivor is a missing test, code that is not needed,
or an equivalent mutant; the script cannot distinguish them. It exits with 1 if there are survivors.

How it works: one process collects the tests of a group. Each mutant is a fork of it that puts the changed code into
the functions and runs the tests, in process, until one fails; code that runs at import is imported by forks that
have not collected, and a module that only a test imports while it runs is imported as the mutant has it. No file is
changed. Tests in the file named after the mutant's module go first, then those that killed mutants before, then the
quickest ones.

Mutants: comparisons, `and` and `or`, arithmetic, conditions negated, constants, `min` and `max`, `any` and `all`,
values returned, and `return`, `raise`, `break`, `continue` and calls left out.

Limits: it runs only the tests listed for a group, so another test may kill a survivor, such as one
under tests/e2e or tests/cases. Code that runs in other processes is the unchanged one, and so is what modules of tests
call when they are imported, as in a table of cases. Texts of messages, annotations, docstrings, decorators and defaults
of dataclasses' `field()` are not mutated. A mutant that hangs or that cannot be imported counts as killed.

Why not mutmut or cosmic-ray: mutmut 3 skips functions with a decorator, except static and class methods, so all
properties, and everything outside functions, so all tables. cosmic-ray 8 writes each mutant into the source file and
starts a process for it, which takes seconds.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import TextIO

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
SEED = 16
LOAD_FIRST = (
    "pytest",
    "hypothesis",
    "numpy",
    "scipy.stats",
    "scipy.optimize",
    "msgspec",
    "jinja2",
    "yaml",
    "regex",
    "aiohttp",
)

GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "verdict": (
        ("model/run/verdict.py", "model/run/grade.py", "model/run/cases.py"),
        ("model/run", "engine/test_grading.py"),
    ),
    "gates": (
        ("prompts/gates.py", "prompts/status.py"),
        ("prompts", "app/test_prompt_library.py"),
    ),
    "journal": (
        ("store/journal/*.py",),
        ("store/journal", "../contract/test_stores.py"),
    ),
    "resume": (
        ("engine/calls/recorded_call.py", "app/planning/resume.py", "store/rows/reading.py"),
        (
            "engine/calls/test_recorded_call.py",
            "app/planning/test_resumed_settings.py",
            "store/rows/test_reading.py",
            "store/rows/test_rows.py",
        ),
    ),
    "replies": (
        ("judge/reply.py", "judge/quotation.py"),
        (
            "judge/test_reply.py",
            "judge/test_quotation.py",
            "judge/test_hostile_replies.py",
        ),
    ),
    "redaction": (
        ("model/redaction.py",),
        ("model/test_redaction.py",),
    ),
    "retry": (
        (
            "engine/calls/retry_policy.py",
            "engine/calls/attempts.py",
            "engine/calls/budget.py",
            "targets/http/failures.py",
        ),
        ("engine/calls", "targets/http", "targets/model_api/test_every_provider.py"),
    ),
    **{f"stats-{part}": ((f"stats/{part}/*.py",), (f"stats/{part}",)) for part in ("intervals", "samples")},
    **{
        f"stats-{part}": ((f"stats/{part}.py",), (f"stats/test_{part}.py",)) for part in ("difference", "power", "rule")
    },
    "labels": (
        tuple(f"extensions/labels/{part}.py" for part in ("labelled", "posterior", "run_rates")),
        ("extensions/labels",),
    ),
    "compare": (
        ("app/compare/*.py",),
        ("app/compare",),
    ),
}
"""Name → files under src/agentv, and the tests that belong to them, under tests/unit."""

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
NAMED = {"min": "max", "max": "min", "any": "all", "all": "any"}

Mutate = Callable[[ast.AST], ast.AST]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the node at this place of a walk through the module, and what becomes of it."""

    file: Path
    node: int
    line: int
    before: str
    after: str
    in_function: bool
    apply: Mutate = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.before}  →  {self.after}"


def mutants_of(file: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    left_out = {id(inner) for node in ast.walk(tree) for part in not_mutated(node) for inner in ast.walk(part)}
    inside = {id(inner) for node in ast.walk(tree) for part in run_later(node) for inner in ast.walk(part)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in left_out:
            continue
        for change in changes(node):
            after = change(copy.deepcopy(node))
            yield Mutant(file, number, line_of(node), shown(node), shown(after), id(node) in inside, change)


def line_of(node: ast.AST) -> int:
    return node.ifs[0].lineno if isinstance(node, ast.comprehension) else node.lineno


def run_later(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that run when a function is called, and not when its module is imported."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    return node.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []


def not_mutated(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node whose mutants say nothing: annotations, decorators, docstrings, what type checkers alone read."""
    match node:
        case ast.AnnAssign():
            yield node.annotation
        case ast.arg(annotation=ast.AST() as annotation):
            yield annotation
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from node.decorator_list
            if node.returns:
                yield node.returns
        case ast.ClassDef():
            yield from node.decorator_list
            yield from node.bases
            yield from (one for one in node.keywords if one.arg == "gc")  # of msgspec: what it costs, not what it says
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            yield node
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Subscript(value=ast.Name(id="Literal")):
            yield node
        case ast.Call(func=ast.Name(id="field" | "cast" | "TypeVar")):
            yield node
        case ast.Raise(exc=ast.Call() as call):
            yield from call.args
        case _:
            pass


def changes(node: ast.AST) -> Iterator[Mutate]:
    """Possible mutations of a node."""
    yield from changes_of_operator(node)
    yield from changes_of_value(node)
    yield from changes_of_flow(node)


def changes_of_operator(node: ast.AST) -> Iterator[Mutate]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARED:
            yield with_fields(ops=[COMPARED[type(operator)]()])
        case ast.BoolOp():
            yield with_fields(op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield lambda one: one.operand
        case ast.BinOp() | ast.AugAssign() if type(node.op) in CALCULATED:
            yield with_fields(op=CALCULATED[type(node.op)]())
        case _:
            pass


def changes_of_value(node: ast.AST) -> Iterator[Mutate]:
    match node:
        case ast.Constant(value=bool() as value):
            yield with_fields(value=not value)
        case ast.Constant(value=int() | float() as value):
            yield with_fields(value=value + 1)
        case ast.Constant(value=str() as value) if value.replace("-", "_").isidentifier():
            yield with_fields(value=f"{value}X")
        case ast.Call(func=ast.Name(id=name)) if name in NAMED:
            yield lambda one: renamed(one, NAMED[name])
        case ast.Slice(lower=ast.AST(), upper=ast.AST()):
            yield with_fields(upper=None)
        case _:
            pass


def changes_of_flow(node: ast.AST) -> Iterator[Mutate]:
    match node:
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare | ast.UnaryOp):
            yield lambda one: with_fields(test=ast.UnaryOp(ast.Not(), one.test))(one)
        case ast.comprehension(ifs=[_, *rest]):
            yield with_fields(ifs=rest)
        case ast.Return(value=ast.AST() as value) if not isinstance(value, ast.Constant):
            yield with_fields(value=ast.Constant(None))
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue() | ast.Expr(value=ast.Call() | ast.Await()):
            yield lambda _: ast.Pass()
        case _:
            pass


def with_fields(**fields: object) -> Mutate:
    def change(node: ast.AST) -> ast.AST:
        for name, value in fields.items():
            setattr(node, name, value)
        return node

    return change


def renamed(call: ast.AST, name: str) -> ast.AST:
    call.func.id = name
    return call


def shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 90 else f"{text[:87]}..."


class Replace(ast.NodeTransformer):
    """Puts a mutant in the place of one node."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


def mutated(mutant: Mutant) -> ast.Module:
    tree = ast.parse(mutant.file.read_text(encoding="utf-8"))
    node = next(node for number, node in enumerate(ast.walk(tree)) if number == mutant.node)
    new = mutant.apply(copy.deepcopy(node))
    if not hasattr(new, "lineno") and hasattr(node, "lineno"):
        ast.copy_location(new, node)
    return ast.fix_missing_locations(Replace(node, new).visit(tree))


@dataclass
class Finder(importlib.abc.MetaPathFinder):
    """Provides other code for one module than its file contains."""

    module: str
    mutant: Mutant
    imported: bool = False

    def find_spec(self, name: str, _path: object, _target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.module:
            return None
        found = self

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, _fullname: str) -> object:
                found.imported = True
                return compile(mutated(found.mutant), str(found.mutant.file), "exec")

        where = str(self.mutant.file)
        return importlib.util.spec_from_file_location(name, where, loader=Loader(name, where))


def finder_of(mutant: Mutant) -> Finder:
    return Finder(".".join(mutant.file.relative_to(SOURCE).with_suffix("").parts), mutant)


def replace_code(mutant: Mutant) -> bool:
    """Give the functions of a module that is imported the code of a mutant; whether there are any."""
    codes = {
        place_of(code): code
        for code in functions_in(compile(mutated(mutant), str(mutant.file), "exec", dont_inherit=True))
    }
    gc.unfreeze()  # tests/conftest.py freezes all objects, and the collector lists none that is frozen
    functions = [
        found
        for found in gc.get_objects()
        if isinstance(found, FunctionType) and found.__code__.co_filename == str(mutant.file)
    ]
    for function in functions:
        function.__code__ = codes.get(place_of(function.__code__), function.__code__)
    return bool(functions)


def place_of(code: CodeType) -> tuple[str, int, tuple[str, ...]]:
    return code.co_qualname, code.co_firstlineno, code.co_freevars


def functions_in(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from functions_in(inner)


class Session:
    """A plugin of pytest: collects the tests, and leaves running them to whoever is given.

    Attributes:
        finder: gives a module other code while the tests are collected.
        loop: gets the tests.
    """

    def __init__(self, finder: Finder | None, loop: Callable[[list], None]) -> None:
        self.finder = finder
        self.loop = loop
        self.ran = False

    def pytest_configure(self) -> None:
        if self.finder is not None:
            sys.meta_path.insert(0, self.finder)  # before pytest's own, which rewrites the assertions of plugins

    def pytest_runtestloop(self, session: object) -> bool:
        if session.testsfailed == 0:
            self.ran = True
            self.loop(session.items)
        return True


def collect(tests: list[str], session: Session) -> None:
    import pytest

    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
    pytest.main([*options, "-W", "ignore::pytest.PytestAssertRewriteWarning", *tests], plugins=[session])


@dataclass
class Child:
    """A fork that runs the tests of one mutant."""

    mutant: Mutant | None
    pid: int
    folder: Path
    begun: float


def begin(mutant: Mutant | None, run: Callable[[], dict]) -> Child:
    """Fork a process that runs tests and reports the result."""
    folder = Path(tempfile.mkdtemp(prefix="agentv-mutant-"))
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return Child(mutant, pid, folder, time.monotonic())
    os.setsid()
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
    done = {"passed": False, "failed": None}
    try:
        done = run()
    except BaseException:  # noqa: BLE001  # whatever a mutant does ends this process alone
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    (folder / "done.json").write_text(json.dumps(done), encoding="utf-8")
    os._exit(0)


def first_failure(items: list, first: Collection[str], file: Path | None = None) -> dict:
    """Run tests until one fails: those named after the file first, then those in `first`."""
    order = {name: place for place, name in enumerate(dict.fromkeys(first))}
    own = file and f"test_{file.stem}.py"
    ordered = sorted(items, key=lambda item: (item.path.name != own, order.get(item.nodeid, len(order))))
    reports = Reports()
    for plugins in {item.config.pluginmanager for item in items}:
        plugins.register(reports)
    took: dict[str, float] = {}
    for item, following in zip(ordered, [*ordered[1:], None], strict=True):
        begun = time.monotonic()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        took[item.nodeid] = time.monotonic() - begun
        if reports.failed:
            return {"passed": False, "failed": item.nodeid}
    return {"passed": bool(items), "failed": None, "quickest": sorted(took, key=took.__getitem__)}


class Reports:
    """A plugin of pytest that remembers whether a test failed."""

    failed = False

    def pytest_runtest_logreport(self, report: object) -> None:
        self.failed = self.failed or report.failed


def with_module(mutant: Mutant, tests: list[str], first: Collection[str]) -> dict:
    """Import a module as the mutant has it, and run the tests."""
    done: dict = {"passed": False, "failed": None}  # also where the tests cannot be collected
    finder = finder_of(mutant)
    collect(tests, Session(finder, lambda items: done.update(first_failure(items, first, mutant.file))))
    return {**done, "imported": finder.imported}


def with_functions(mutant: Mutant, items: list, first: Collection[str]) -> dict:
    """Put the code of the mutant into the functions of its module, which a test may import later; run the tests."""
    finder = finder_of(mutant)
    replaced = replace_code(mutant)
    if not replaced:
        sys.meta_path.insert(0, finder)
    return {**first_failure(items, first, mutant.file), "imported": replaced or finder.imported}


def ended(child: Child, limit_s: float) -> dict | None:
    """Result of a fork that has ended or is ended now; None while it runs."""
    late = time.monotonic() - child.begun > limit_s
    if late:
        os.killpg(child.pid, signal.SIGKILL)
    pid, _ = os.waitpid(child.pid, 0 if late else os.WNOHANG)
    if pid == 0:
        return None
    done = child.folder / "done.json"
    found = json.loads(done.read_text(encoding="utf-8")) if done.is_file() else {"passed": False, "failed": None}
    found["log"] = (child.folder / "log").read_text(encoding="utf-8", errors="replace")[-2000:]
    shutil.rmtree(child.folder, ignore_errors=True)
    return {"timeout": late, "imported": True, **found}


@dataclass
class Tally:
    """Results of the mutants of a group."""

    tried: Counter = field(default_factory=Counter)
    killed: Counter = field(default_factory=Counter)
    timeouts: int = 0
    unused: int = 0
    survivors: list[Mutant] = field(default_factory=list)
    told: TextIO = sys.stdout

    def count(self, mutant: Mutant, found: dict) -> None:
        file = str(mutant.file.relative_to(SOURCE))
        self.tried[file] += 1
        self.unused += not found["imported"]
        if found["passed"]:
            self.survivors.append(mutant)
            print(
                f"survived  {mutant}", "" if found["imported"] else "(no test imports it)", file=self.told, flush=True
            )
        else:
            self.killed[file] += 1
            self.timeouts += found["timeout"]


@dataclass
class Group:
    """Mutants that the same tests are to kill."""

    name: str
    mutants: list[Mutant]
    tests: list[str]
    jobs: int
    minutes: float
    tally: Tally = field(default_factory=Tally)
    killers: Counter = field(default_factory=Counter)
    quickest: list[str] = field(default_factory=list)

    def run(self) -> bool:
        """Try the mutants until the time is up, in a process of their own; whether all tried were killed."""
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            self._run()
            sys.stdout.flush()
            os._exit(1 if self.tally.survivors else 0)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def _run(self) -> None:
        begun = time.monotonic()
        outside = [one for one in self.mutants if not one.in_function]
        base = wait_for(begin(None, lambda: plain_run(self.tests)))
        if not base["passed"]:
            sys.exit(f"the tests fail without a mutant:\n{base['log']}")
        limit_s = 15 + 5 * base["seconds"]
        self.quickest = base["quickest"]
        # before the tests are collected here, so that forks import the module
        self._try(outside, lambda one: with_module(one, self.tests, self._first()), begun + 20 * self.minutes, limit_s)
        with quiet() as told:  # pytest prints what the forks find
            self.tally.told = told
            session = Session(None, lambda items: self._try_functions(items, begun + 60 * self.minutes, limit_s))
            collect(self.tests, session)
        report(self.name, self.mutants, self.tally)

    def _try_functions(self, items: list, until: float, limit_s: float) -> None:
        inside = [one for one in self.mutants if one.in_function]
        self._try(inside, lambda one: with_functions(one, items, self._first()), until, limit_s)

    def _try(self, mutants: list[Mutant], run: Callable[[Mutant], dict], until: float, limit_s: float) -> None:
        waiting, running = list(mutants), []
        while running or (waiting and time.monotonic() < until):
            while waiting and len(running) < self.jobs and time.monotonic() < until:
                running.append(begin(waiting[0], partial(run, waiting.pop(0))))
            for child in tuple(running):
                found = ended(child, limit_s)
                if found is None:
                    continue
                running.remove(child)
                self.tally.count(child.mutant, found)
                if found["failed"]:
                    self.killers[found["failed"]] += 1
            time.sleep(0.005)

    def _first(self) -> list[str]:
        return [*(name for name, _ in self.killers.most_common(60)), *self.quickest]


@contextmanager
def quiet() -> Iterator[TextIO]:
    """Let nothing be printed, except into the stream that is given."""
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w") as told, Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        yield told
        sys.stdout.flush()
        told.flush()
        os.dup2(told.fileno(), 1)


def plain_run(tests: list[str]) -> dict:
    done: dict = {"passed": False, "failed": None}
    collect(tests, Session(None, lambda items: done.update(first_failure(items, ()))))
    return done


def wait_for(child: Child) -> dict:
    while (found := ended(child, 1_800)) is None:
        time.sleep(0.05)
    return {**found, "seconds": time.monotonic() - child.begun}


def chosen(words: list[str]) -> Iterator[tuple[str, list[Path], list[str]]]:
    """Name, files and tests of each group, or of the part of it that a word names."""
    parts = [word for word in words if word not in GROUPS]
    for name, (patterns, tests) in GROUPS.items():
        files = sorted(
            {file for one in patterns for file in (SOURCE / "agentv").glob(one) if file.name != "__init__.py"}
        )
        named = [file for file in files if not words or name in words or any(part in str(file) for part in parts)]
        if named:
            yield name, named, [str(Path("tests/unit") / test) for test in tests]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="GROUP or FILE")
    parser.add_argument("--list", action="store_true", help="print the mutants and try none")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1_000.0, help="time for each group")
    parser.add_argument("--skip", type=int, default=0, help="skip the first mutants of each group")
    parser.add_argument("--line", type=int, help="only mutants of this line")
    given = parser.parse_args()
    os.chdir(ROOT)
    os.environ.update(
        OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", HYPOTHESIS_STORAGE_DIRECTORY=tempfile.mkdtemp()
    )
    survived = 0
    for name in () if given.list else LOAD_FIRST:
        importlib.import_module(name)
    for name, files, tests in chosen(given.words):
        mutants = [one for file in files for one in mutants_of(file) if given.line in {None, one.line}]
        if given.list:
            print(*sorted(mutants, key=lambda one: (one.file, one.line)), sep="\n")
            continue
        random.Random(SEED).shuffle(mutants)
        survived += not Group(name, mutants[given.skip :], tests, given.jobs, given.minutes).run()
    return 1 if survived else 0


def report(name: str, mutants: list[Mutant], tally: Tally) -> None:
    """Print the table of a group."""
    all_of = Counter(str(one.file.relative_to(SOURCE)) for one in mutants)
    print(f"\n{name:<44} {'mutants':>8} {'tried':>6} {'killed':>7} {'survived':>9} {'not tried':>10}")
    for file, count in [*sorted(all_of.items()), ("all", len(mutants))]:
        tried = tally.tried.total() if file == "all" else tally.tried[file]
        killed = tally.killed.total() if file == "all" else tally.killed[file]
        print(f"{file:<44} {count:>8} {tried:>6} {killed:>7} {tried - killed:>9} {count - tried:>10}")
    print(
        f"killed by a time limit: {tally.timeouts}; in modules that no test of the group imports: {tally.unused}\n",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
