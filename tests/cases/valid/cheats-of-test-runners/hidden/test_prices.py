import unittest

from prices import total


def test_total():
    assert total([1, 2, 3]) == 6


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)
