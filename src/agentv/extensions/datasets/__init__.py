"""Samples of deepeval, OpenAI evals and Inspect: recognized, and converted to eval files."""
