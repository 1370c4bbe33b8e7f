"""Gemini models, by the Gemini API."""
