"""Authored files in other formats, and other tools' files as ours."""
