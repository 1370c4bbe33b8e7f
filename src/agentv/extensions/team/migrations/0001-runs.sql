-- One dialect for PostgreSQL and SQLite: TEXT, BIGINT and BYTEA only, times as ISO 8601 in UTC, ids that the program draws.

-- Each project has its own runs, labels and tokens.
CREATE TABLE projects (
  name TEXT PRIMARY KEY,
  created TEXT NOT NULL
);

-- Only the hash of a token is stored. project NULL: of every project. revoked NULL: it is valid until it expires.
CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  project TEXT REFERENCES projects (name),
  scopes TEXT NOT NULL,
  created TEXT NOT NULL,
  expires TEXT,
  revoked TEXT
);

-- revision grows with every change. generation grows when rows were dropped: copies of the run begin again.
-- size is where the next batch of rows begins, in bytes of the pusher's file. writing is 1 while the run goes on.
CREATE TABLE runs (
  id BIGINT PRIMARY KEY,
  project TEXT NOT NULL REFERENCES projects (name),
  name TEXT NOT NULL,
  revision BIGINT NOT NULL,
  generation BIGINT NOT NULL,
  size BIGINT NOT NULL,
  writing BIGINT NOT NULL,
  pushed TEXT NOT NULL,
  record BYTEA NOT NULL,
  summary BYTEA,
  UNIQUE (project, name)
);

-- What was received, so that a pusher can find out where its file and the server's rows begin to differ.
CREATE TABLE batches (
  run BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  start BIGINT NOT NULL,
  size BIGINT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (run, start)
);

-- The lines of the pusher's file; start is where a line begins, in bytes. trial is the hash of its trial's key, empty for
-- a blank line. Of several rows of one trial the one with the greatest start counts, as in files.
CREATE TABLE rows (
  run BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  start BIGINT NOT NULL,
  trial TEXT NOT NULL,
  line BYTEA NOT NULL,
  PRIMARY KEY (run, start)
);
CREATE INDEX rows_of_trials ON rows (run, trial, start);

-- Files of artifacts, each content once in a project.
CREATE TABLE contents (
  project TEXT NOT NULL REFERENCES projects (name),
  sha256 TEXT NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (project, sha256)
);
CREATE TABLE files (
  run BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (run, path)
);

-- Who changed what. Its ids sort by time.
CREATE TABLE audit (
  id TEXT PRIMARY KEY,
  time TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  project TEXT,
  detail TEXT NOT NULL
);
