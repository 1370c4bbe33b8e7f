"""Dialects: recognition of other tools' files, and their translation to the keys of eval files."""
