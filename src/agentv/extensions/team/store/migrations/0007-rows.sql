-- A pusher compares all rows at once, and rows that were replaced are counted, not kept. Agreements are not noted any more.
DROP TABLE batches;
DROP TABLE replaced_rows;
DROP INDEX rows_of_trials;
ALTER TABLE rows DROP COLUMN trial;
DROP TABLE agreements;
