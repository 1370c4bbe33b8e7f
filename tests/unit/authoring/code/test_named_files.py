import pytest

from agentv.authoring.code.code_imports import with_imports
from agentv.authoring.code.named_files import places_of_script, starts_programs
from doubles.loading import repository


def closure(folder, start: str) -> set[str]:
    return {path.removeprefix(f"{folder}/") for path in with_imports(str(folder / start))}


@pytest.mark.parametrize(
    ("start", "text", "found"),
    [
        ("package.json", '{"scripts": {"go": "node ./tools/run.mjs --x", "no": 1}}', {"tools/run.mjs"}),
        ("package.json", '{"scripts": [1]}', set()),
        ("Makefile", "all:\n\t@python3 lib/part.py > out.txt\n", {"lib/part.py"}),
        ("run.sh", '. "$DIR/lib/env.sh"\nnode tools/run.mjs\n', {"lib/env.sh", "tools/run.mjs"}),
        ("bin/run", "#!/usr/bin/env bash\npython3 lib/part.py\n", {"lib/part.py"}),
        ("data.txt", "python3 lib/part.py\n", set()),
        ("a.py", "import subprocess\nsubprocess.run(['sh', 'lib/env.sh'])\n", {"lib/env.sh"}),
        ("a.mjs", "import { execSync } from 'node:child_process';\nexecSync('sh lib/env.sh');\n", {"lib/env.sh"}),
    ],
)
def test_what_a_file_runs_belongs_to_it(tmp_path, start, text, found):
    files = {"tools/run.mjs": "1", "lib/part.py": "", "lib/env.sh": "", "out.txt": "python3 lib/part.py"}
    assert closure(repository(tmp_path, {**files, start: text}), start) == {start, *found}


def test_a_new_plugin_and_a_new_module_change_what_belongs_to_it(tmp_path):
    text = (
        "import sys, pkgutil, plugins\nsys.path.insert(0, 'lib')\npkgutil.walk_packages(plugins.__path__)\nimport x\n"
    )
    files = {"a.py": text, "plugins/__init__.py": "", "plugins/one.py": "", "lib/y.py": ""}
    start = {"a.py", "plugins/__init__.py", "plugins/one.py"}
    assert closure(repository(tmp_path, files), "a.py") == start
    repository(tmp_path, {"plugins/two.py": "", "lib/x.py": ""})
    assert closure(tmp_path, "a.py") == {*start, "plugins/two.py", "lib/x.py"}


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("export PYTHONPATH=lib:$PYTHONPATH\npython3 a.py", "homes", ("lib",)),
        ('PYTHONPATH="$PWD/lib" python3 a.py', "homes", ("lib",)),
        ("PATH=$(pwd)/tools:/usr/bin:$PATH", "entered", ("tools", "/usr/bin")),
        ("cd sub && python3 a.py; (cd deep; ls)", "entered", ("sub", "deep")),
        (". ./env\nsource lib/env", "files", ("./env", "lib/env")),
        ("python3 -m pkg.tool -v", "modules", ((0, "pkg.tool"),)),
    ],
)
def test_where_a_script_has_code_looked_for(text, name, found):
    assert tuple(getattr(places_of_script("/run.sh", text.encode()), name)) == found


def test_code_that_starts_programs_is_told_apart():
    code = {"subprocess.run(x)": True, "importlib.import_module(name)": True, "Bun.spawn(['x'])": True}
    code |= {"importlib.import_module('a.b')": False, "re.compile(x).execute()": False}
    assert {text: starts_programs(text.encode()) for text in code} == code
