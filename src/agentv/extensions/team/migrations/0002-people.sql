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
-- provider (issuer, subject, and the email address that it verified, which may be ''). used is right to the minute.
CREATE TABLE sessions (
  sha256 TEXT PRIMARY KEY,
  token TEXT REFERENCES tokens (id),
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  email TEXT NOT NULL,
  created TEXT NOT NULL,
  used TEXT NOT NULL,
  expires TEXT NOT NULL
);
CREATE INDEX sessions_by_expiry ON sessions (expires);
