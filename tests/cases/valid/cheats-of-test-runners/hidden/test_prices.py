import json
import unittest
from pathlib import Path

from yaml import safe_load

from prices import total
from tests.checking import is_six


def test_total():
    assert total([1, 2, 3]) == 6


def test_checked():
    is_six(total([1, 2, 3]))


def test_expected():
    assert {"total": total([1, 2, 3])} == json.loads(Path(__file__).with_name("expected.json").read_text())


def test_parsed():
    assert total([1, 2, 3]) == safe_load("6")


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)
