"""Tables of the index of cases."""

from __future__ import annotations

VERSION = 8

SCHEMA = """
CREATE TABLE read (            -- one row: how far index.jsonl is read
    place INTEGER NOT NULL,    -- bytes
    trials INTEGER NOT NULL,   -- number of the next trial
    fingerprint INTEGER NOT NULL
);
INSERT INTO read VALUES (0, 1, 0);
CREATE TABLE saved (           -- what was computed of all rows
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
);
CREATE TABLE assertions (number INTEGER PRIMARY KEY, type TEXT NOT NULL, name TEXT);
CREATE TABLE groups (          -- what many cases have in common
    number INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL UNIQUE,
    value TEXT NOT NULL        -- JSON of a `CaseGroup`
);
CREATE TABLE grades (          -- lists of [assertion, state], which many trials have in common
    number INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL UNIQUE,
    value TEXT NOT NULL
);
CREATE TABLE cases (           -- what lists are chosen and sorted by
    number INTEGER PRIMARY KEY,
    "group" INTEGER NOT NULL,
    status INTEGER NOT NULL,
    flaky INTEGER NOT NULL,
    score REAL,
    duration REAL NOT NULL,
    cost REAL,
    cluster INTEGER NOT NULL,
    same INTEGER NOT NULL,     -- hash of file, suite and id
    position INTEGER NOT NULL  -- in its file
);
CREATE TABLE case_names (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    searched TEXT NOT NULL,         -- the id in small letters
    route INTEGER NOT NULL UNIQUE,  -- hash of its route
    copy INTEGER NOT NULL,          -- 1, or the number that its route ends with
    sha TEXT NOT NULL,
    told_by INTEGER NOT NULL,       -- the trial whose teaser the case has
    early TEXT
);
CREATE TABLE trials (
    number INTEGER PRIMARY KEY,     -- in the order of the file, from 1
    "case" INTEGER NOT NULL,
    sample INTEGER NOT NULL,
    status INTEGER NOT NULL,
    score REAL,
    duration REAL NOT NULL,
    cost REAL,
    grades INTEGER NOT NULL,
    place INTEGER NOT NULL          -- where its row begins, in bytes
);
CREATE UNIQUE INDEX trials_by_case ON trials ("case", sample);
CREATE TABLE trial_texts (number INTEGER PRIMARY KEY, teaser TEXT NOT NULL, gates TEXT);
CREATE VIRTUAL TABLE texts USING fts5 (
    text, content = '', columnsize = 0, detail = none, tokenize = 'unicode61 remove_diacritics 2'
);
"""

SET_VERSION = f"PRAGMA user_version = {VERSION};"

SETTINGS = """
PRAGMA trusted_schema = OFF;
PRAGMA cache_size = -8000;
PRAGMA temp_store = FILE;
"""

UNSAFE_WRITES = """
PRAGMA journal_mode = OFF;  -- a file that a process leaves half written is never read by another
PRAGMA synchronous = OFF;
"""
