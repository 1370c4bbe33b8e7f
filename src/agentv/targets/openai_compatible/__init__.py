"""Providers that speak OpenAI's API."""
