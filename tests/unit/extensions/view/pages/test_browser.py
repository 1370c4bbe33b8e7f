import subprocess
from pathlib import Path

from doubles.runtimes import node

TESTS = Path(__file__).parents[4] / "browser"


def test_the_modules_of_the_pages_pass_their_own_tests():
    files = sorted(TESTS.glob("*.test.js"))
    found = subprocess.run([node(), "--test", *map(str, files)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "# fail 0" in found.stdout or "ℹ fail 0" in found.stdout
