"""Gemini models through Google's SDK."""
