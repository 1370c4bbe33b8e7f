"""Exams of prompts, and the files of a prompt library."""
