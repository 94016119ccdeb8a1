-- The tools that a process was given when it was run, with those of its servers: a text of `snapshots`.
ALTER TABLE assistant_processes ADD COLUMN given_tools TEXT REFERENCES snapshots(hash);
CREATE INDEX processes_given_tools ON assistant_processes (given_tools) WHERE given_tools IS NOT NULL;
