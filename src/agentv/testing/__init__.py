"""Doubles for the tests of people who use agentv."""
