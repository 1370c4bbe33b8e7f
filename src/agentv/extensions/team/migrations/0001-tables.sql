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
-- given is the name that the run was given on the server; NULL: none was, and the name in its run.json counts.
-- begun_by is who began the run: nobody else but an admin may change it. replaced is JSON of what was replaced of its rows;
-- NULL: nothing.
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
  given TEXT,
  begun_by TEXT NOT NULL,
  replaced BYTEA,
  UNIQUE (project, name)
);

-- The lines of the pusher's file; start is where a line begins, in bytes. Of several rows of one trial the one with the
-- greatest start counts, as in files.
CREATE TABLE rows (
  run BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  start BIGINT NOT NULL,
  line BYTEA NOT NULL,
  PRIMARY KEY (run, start)
);

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

-- Labels by people, each once. id is the SHA-256 of its line; number grows in the order in which labels arrived in a project.
CREATE TABLE labels (
  project TEXT NOT NULL REFERENCES projects (name),
  id TEXT NOT NULL,
  number BIGINT NOT NULL,
  suite TEXT NOT NULL,
  person TEXT NOT NULL,
  time TEXT NOT NULL,
  actor TEXT NOT NULL,
  line BYTEA NOT NULL,
  PRIMARY KEY (project, id)
);
CREATE UNIQUE INDEX labels_by_number ON labels (project, number);

-- Who may sign in, and what they may do. issuer '': person is an email address in lower case; else the subject that this
-- OpenID provider gives. project NULL: every project.
CREATE TABLE members (
  id TEXT PRIMARY KEY,
  issuer TEXT NOT NULL,
  person TEXT NOT NULL,
  project TEXT REFERENCES projects (name),
  scopes TEXT NOT NULL,
  added TEXT NOT NULL
);
CREATE INDEX members_by_person ON members (person, issuer);

-- Browsers that are signed in, by the hash of what their cookie holds. Signed in with a token, or else by an OpenID
-- provider (issuer, subject, and the email address that it verified, which may be '').
CREATE TABLE sessions (
  sha256 TEXT PRIMARY KEY,
  token TEXT REFERENCES tokens (id),
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  email TEXT NOT NULL,
  created TEXT NOT NULL,
  expires TEXT NOT NULL
);
CREATE INDEX sessions_by_expiry ON sessions (expires);

-- Who changed what. Its ids sort by time.
CREATE TABLE audit (
  id TEXT PRIMARY KEY,
  time TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  project TEXT,
  detail TEXT NOT NULL
);

-- One row: grows with every line of the audit log, so that servers see cheaply whether their copies are up to date.
CREATE TABLE changes (number BIGINT NOT NULL);
INSERT INTO changes (number) VALUES (0);
