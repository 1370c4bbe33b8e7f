"""Users' modules as a worker loads them."""

from __future__ import annotations

import sys
import time
from threading import Thread

import pytest

from agentv.user_code.functions.guard import ForeignError
from agentv.user_code.workers.loading import load_function, load_module


@pytest.fixture(autouse=True)
def as_in_a_worker(monkeypatch, tmp_path):
    """The path begins at the directory, and nothing that is loaded stays."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_file_that_hangs_holds_up_no_other(tmp_path):
    (tmp_path / "hangs.py").write_text(
        "import time\nfrom pathlib import Path\nhere = Path(__file__).parent\n(here / 'begun').touch()\n"
        "for _ in range(1000):\n    if (here / 'loaded').exists():\n        break\n    time.sleep(0.01)\n"
        "else:\n    (here / 'alone').touch()\n"
    )
    (tmp_path / "works.py").write_text("def answer():\n    return 1\n")
    thread = Thread(target=load_module, args=(str(tmp_path / "hangs.py"), None))
    thread.start()
    while not (tmp_path / "begun").exists():
        time.sleep(0.001)
    assert load_function("answer", str(tmp_path / "works.py"))() == 1
    (tmp_path / "loaded").touch()
    thread.join()
    assert not (tmp_path / "alone").exists()


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("def one(): pass\ndef two(): pass\n", "three", "x.py has no function 'three'; it has one, two"),
        ("one = 1\n", "one", "x.py has no function 'one'"),
        ("def one(:\n", "one", "SyntaxError"),
        ("1 / 0\n", "one", "x.py raised ZeroDivisionError"),
        ("import sys; sys.exit(3)\n", "one", "x.py called sys.exit"),
    ],
)
def test_what_cannot_be_loaded_is_said_each_time(tmp_path, text, name, says):
    (tmp_path / "x.py").write_text(text)
    for _ in range(2):
        with pytest.raises(ForeignError) as caught:
            load_function(name, str(tmp_path / "x.py"))
        assert caught.value.failure.code == "cannot-load"
        assert says in caught.value.failure.message


def test_a_function_of_a_module_is_found_by_its_name():
    assert load_function("dumps", module="json")([1]) == "[1]"
    with pytest.raises(ForeignError, match="module no_such_module raised ModuleNotFoundError"):
        load_function("x", module="no_such_module")
