"""The cases of a run, made to be searched and counted: one SQLite file beside its rows, built from them."""
