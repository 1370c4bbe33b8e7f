-- Answers of a run on which a person was shown how often they and the judge agree: their labels of these answers stay.
-- person is the name as persons are compared.
CREATE TABLE agreements (
  project TEXT NOT NULL REFERENCES projects (name),
  run TEXT NOT NULL,
  person TEXT NOT NULL,
  answer TEXT NOT NULL,
  time TEXT NOT NULL,
  PRIMARY KEY (project, run, person, answer)
);
