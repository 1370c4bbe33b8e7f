"""Calls of targets: rate limits, retries, budgets, concurrency."""
