"""Finding what Python code loads from its text alone; anything the text does not determine is unknown."""

import pytest

from agentv.authoring.code.python_code import loads_of

HERE = "from pathlib import Path\nimport os, sys\nHERE = os.path.dirname(os.path.abspath(__file__))\n"


def loads(text):
    return loads_of("/repo/code/agent.py", text.encode())


@pytest.mark.parametrize(
    ("text", "homes"),
    [
        ("sys.path.insert(0, 'lib')", ("lib",)),
        ("sys.path += ['a', os.path.join(HERE, 'b')]", ("a", "/repo/code/b")),
        ("sys.path = [HERE + '/lib'] + sys.path", ("/repo/code/lib",)),
        ("sys.path.extend(p for p in ('a', 'b'))", ("a", "b")),
        ("LIB = 'lib'\nsys.path.append(f'{HERE}/{LIB}')", ("/repo/code/lib",)),
        ("sys.path.append(str(Path(__file__).resolve().parents[1] / 'a' / 'b'))", ("/repo/a/b",)),
        ("sys.path.append(str(Path(__file__).parent.joinpath('a')))", ("/repo/code/a",)),
        ("for one in ('a', 'b'):\n    sys.path.append(os.path.join(HERE, '..', one))", ("/repo/a", "/repo/b")),
        ("import sys as s\ns.path.append(HERE)", ("/repo/code",)),
        ("sys.path.append('a' if x else 'b')", ("a", "b")),
        ("sys.path.append(os.path.join(os.getcwd(), 'lib'))", ("lib",)),
        ("sys.path.remove('lib')", ()),
        ("x = os.path.join('a', 'b')\nself.path.append(y)", ()),
    ],
)
def test_where_python_looks_for_modules(text, homes):
    found = loads(HERE + text)
    assert tuple(found.homes) == homes
    assert not found.unknown


@pytest.mark.parametrize(
    "text",
    [
        "sys.path.append(os.environ['LIB'])",
        "def add(where):\n    sys.path.append(where)",
        "__import__(name)",
        "load = importlib.import_module\nload(name)",
        "exec(text)",
        "import runpy\nrunpy.run_path(sys.argv[1])",
        "import importlib.util\nimportlib.util.spec_from_file_location('x', found)",
        "import subprocess",
        "os.execvp(x)",
        "def (",
    ],
)
def test_what_the_text_does_not_tell_is_unknown(text):
    assert loads(HERE.replace("\n", ";", 2) + text).unknown
    for only_looks_like_it in ("re.compile(x).execute()", "model.eval()", "print(1)", "eval('1 + 1')"):
        assert not loads(only_looks_like_it).unknown


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("importlib.import_module('a.b')", "modules", (0, "a.b")),
        ("importlib.import_module(f'plugins.{name}')", "packages", (0, "plugins")),
        ("P = 'plugins'\nimportlib.import_module(f'{P}.deep.{name}')", "packages", (0, "plugins.deep")),
        ("importlib.import_module('.' + name, __package__)", "packages", (1, "")),
        ("importlib.import_module(f'{__name__}.{name}')", "packages", (1, "")),
        ("runpy.run_module('tool')", "modules", (0, "tool")),
        ("runpy.run_path(HERE + '/tool.py')", "files", "/repo/code/tool.py"),
        ("exec(open('code.inc').read())", "files", "code.inc"),
        ("spec_from_file_location('x', os.path.join(HERE, 'x.py'))", "files", "/repo/code/x.py"),
        ("for m in pkgutil.iter_modules([HERE + '/plug']):\n    __import__(m.name)", "walked", "/repo/code/plug"),
    ],
)
def test_what_is_loaded_by_a_name_or_a_path(text, name, found):
    said = loads(HERE + text)
    assert found in getattr(said, name)
    assert not said.unknown


def test_a_name_that_stands_for_itself_comes_to_an_end():
    assert loads(HERE + "X = HERE\nX = X + '/lib'\nsys.path.append(X)").homes == {"/repo/code": None}
