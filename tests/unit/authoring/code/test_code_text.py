"""What code loads and runs is read from its text, as far as that tells it; what it does not tell is unknown."""

import pytest

from agentv.authoring.code.code_imports import with_imports
from agentv.authoring.code.code_text import loads_of

HERE = "from pathlib import Path\nimport os, sys\nHERE = os.path.dirname(os.path.abspath(__file__))\n"


def of_python(text):
    return loads_of("/repo/code/agent.py", (HERE + text).encode())


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("sys.path.insert(0, 'lib')", "lib"),
        ("sys.path += ['a', os.path.join(HERE, 'b')]", "b"),
        ("sys.path[:0] = ['lib']", "lib"),
        ("sys.path = [HERE + '/lib'] + sys.path", "lib"),
        ("sys.path.extend(p for p in ('a', 'b'))", "b"),
        ("import site\nsite.addsitedir('lib')", "lib"),
        ("LIB = 'lib'\nsys.path.append(f'{HERE}/{LIB}')", "lib"),
        ("ROOT = Path(__file__).resolve().parents[1]\nsys.path.append(str(ROOT / 'a' / 'b'))", "a/b"),
        ("for one in ('a', 'b'):\n    sys.path.append(os.path.join(HERE, '..', one))", "b"),
        ("from sys import path\npath.append(HERE + '/lib')", "lib"),
        ("os.chdir('lib')", "lib"),
        ("X = HERE\nX = X + '/lib'\nsys.path.append(X)", "lib"),
    ],
)
def test_where_python_looks_for_modules(text, home):
    found = of_python(text)
    assert home in found.homes
    assert not found.unknown


@pytest.mark.parametrize(
    "text",
    [
        "sys.path.append(os.environ['LIB'])",
        "from conf import LIB\nsys.path.append(LIB)",
        "def add(where):\n    sys.path.append(where)",
        "__import__(name)",
        "from importlib import import_module as load\nload(name)",
        "load = importlib.import_module\nload(name)",
        "importlib.import_module(f'plugins.{name}')",
        "exec(text)",
        "eval(compile(x, 'x', 'eval'))",
        "import runpy\nrunpy.run_path(sys.argv[1])",
        "import importlib.util\nimportlib.util.spec_from_file_location('x', found)",
        "import pkgutil\npkgutil.iter_modules()",
        "import subprocess",
        "os.execvp(x)",
        "def (",
    ],
)
def test_what_python_does_not_tell_is_unknown(text):
    assert of_python(text).unknown


@pytest.mark.parametrize(
    "text", ["sys.path.append(HERE)", "re.compile(x).execute()", "model.eval()", "print(1)", "eval('1 + 1')"]
)
def test_what_only_looks_like_it_is_nothing(text):
    assert not of_python(text).unknown


@pytest.mark.parametrize("text", ["importlib.import_module('a.b')", "__import__('a.b')", "runpy.run_module('a.b')"])
def test_modules_that_are_imported_by_name(text):
    assert (0, "a.b") in of_python(text).modules


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("require(name)", True),
        ("await import(name)", True),
        ("await import(`./plug/${name}.js`)", True),
        ("require('a' + name)", True),
        ("const load = createRequire(import.meta.url); load(name)", True),
        ("import { spawn } from 'child_process'", True),
        ("Bun.spawn(['x'])", True),
        ("const load = require\nload(name)", True),
        ("module.require(name)", True),
        ("eval(text)", True),
        ("await import('./a.js')", False),
        ("import(\n  /* webpack */ './a.js')", False),
        ("/x/.exec(text); model.eval(1)", False),
    ],
)
def test_what_javascript_does_not_tell_is_unknown(text, unknown):
    assert loads_of("/repo/a.mjs", text.encode()).unknown is unknown


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("export PYTHONPATH=lib:$PYTHONPATH\npython3 a.py", "homes", ("lib",)),
        ('PYTHONPATH="$PWD/lib" python3 a.py', "homes", ("lib",)),
        ("PATH=$(pwd)/tools:/usr/bin:$PATH", "goes", ("tools", "/usr/bin")),
        ("cd sub && python3 a.py; (cd deep; ls)", "goes", ("sub", "deep")),
        ('cd "$1"', "goes", ()),
        (". ./env\nsource lib/env", "sourced", ("./env", "lib/env")),
        ("python3 -m pkg.tool -v", "modules", ((0, "pkg.tool"),)),
    ],
)
def test_where_a_script_has_code_looked_for(text, name, found):
    assert getattr(loads_of("/run.sh", text.encode()), name) == found


def closure(folder, files: dict[str, str], start: str) -> set[str]:
    (folder / ".git").mkdir()
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return {path.removeprefix(f"{folder}/") for path in with_imports(str(folder / start))}


@pytest.mark.parametrize(
    ("start", "text", "found"),
    [
        ("package.json", '{"scripts": {"go": "node ./tools/run.mjs --x", "no": 1}}', {"tools/run.mjs"}),
        ("package.json", "{broken", set()),
        ("package.json", '{"scripts": [1]}', set()),
        ("Makefile", "all:\n\t@python3 lib/part.py > out.txt\n", {"lib/part.py"}),
        ("run.sh", '. "$DIR/lib/env.sh"\nnode tools/run.mjs\n', {"lib/env.sh", "tools/run.mjs"}),
        ("bin/run", "#!/usr/bin/env bash\npython3 lib/part.py\n", {"lib/part.py"}),
        ("data.txt", "python3 lib/part.py\n", set()),
        ("a.py", "import subprocess\nsubprocess.run(['sh', 'lib/env.sh'])\n", {"lib/env.sh"}),
        ("a.py", "import os, runpy\nrunpy.run_path(os.path.dirname(__file__) + '/lib/part.py')\n", {"lib/part.py"}),
        ("a.py", "print('lib/env.sh')\n", set()),
        ("a.mjs", "import { execSync } from 'node:child_process';\nexecSync('sh lib/env.sh');\n", {"lib/env.sh"}),
    ],
)
def test_what_a_file_runs_belongs_to_it(tmp_path, start, text, found):
    files = {"tools/run.mjs": "1", "lib/part.py": "", "lib/env.sh": "", "out.txt": "python3 lib/part.py"}
    assert closure(tmp_path, {**files, start: text}, start) == {start, *found}


def test_a_module_that_comes_later_belongs_to_it_too(tmp_path):
    assert closure(tmp_path, {"a.py": "import sys\nsys.path.insert(0, 'lib')\nimport x\n", "lib/y.py": ""}, "a.py") == {
        "a.py"
    }
    (tmp_path / "lib" / "x.py").write_text("")
    assert {path.removeprefix(f"{tmp_path}/") for path in with_imports(str(tmp_path / "a.py"))} == {"a.py", "lib/x.py"}
