-- Who began a run: nobody else but an admin may change it. NULL: unknown.
ALTER TABLE runs ADD COLUMN begun_by TEXT;
UPDATE runs SET begun_by = (
  SELECT audit.actor FROM audit
  WHERE audit.action = 'run begun' AND audit.project = runs.project AND audit.detail = runs.name
  ORDER BY audit.id DESC LIMIT 1
);

-- Generations of rows that ended because rows from start on were replaced, and those rows. The rows before start are those
-- of the next generation.
CREATE TABLE replacements (
  run BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  generation BIGINT NOT NULL,
  start BIGINT NOT NULL,
  rows BIGINT NOT NULL,
  time TEXT NOT NULL,
  actor TEXT NOT NULL,
  PRIMARY KEY (run, generation)
);
CREATE TABLE replaced_rows (
  run BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  generation BIGINT NOT NULL,
  start BIGINT NOT NULL,
  line BYTEA NOT NULL,
  PRIMARY KEY (run, generation, start)
);
