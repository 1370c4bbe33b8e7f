"""The files that user code consists of, for the keys of answers and grades."""
