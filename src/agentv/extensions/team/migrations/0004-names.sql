-- The name that a run was given on the server; NULL: none was, and the name in its run.json counts.
ALTER TABLE runs ADD COLUMN given TEXT;
