"""The tests of Agent Skills, `evals.json` and lists of queries, as a dialect."""
