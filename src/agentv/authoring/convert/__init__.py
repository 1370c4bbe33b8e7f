"""Conversion of eval files to other formats, and of other tools' files to eval files."""
