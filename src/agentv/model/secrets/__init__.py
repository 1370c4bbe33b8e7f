"""Secrets in text, and their redaction."""
