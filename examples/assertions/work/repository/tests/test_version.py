from pathlib import Path


def test_version():
    assert Path("VERSION").read_text().strip()
