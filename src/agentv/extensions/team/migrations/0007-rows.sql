-- A pusher compares all rows at once, and rows that were replaced are counted, not kept. Agreements are not noted any more.
DROP TABLE batches;
DROP TABLE replaced_rows;
DROP INDEX rows_of_trials;
ALTER TABLE rows DROP COLUMN trial;
DROP TABLE agreements;
ALTER TABLE replacements DROP COLUMN start;

-- One row: grows with every line of the audit log, so that servers see cheaply whether their copies are up to date.
CREATE TABLE changes (number BIGINT NOT NULL);
INSERT INTO changes (number) VALUES (0);
