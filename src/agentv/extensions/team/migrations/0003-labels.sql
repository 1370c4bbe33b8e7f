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
