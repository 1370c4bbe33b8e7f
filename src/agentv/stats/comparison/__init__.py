"""Tests of the difference of two runs."""
