"""Pure numbers: no files, no rows, no targets."""
