"""Samples of other evaluation tools as cases: deepeval's goldens, OpenAI evals' and Inspect's samples."""
