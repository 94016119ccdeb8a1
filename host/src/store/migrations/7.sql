-- The process is one of an agent that has its own model and tools.
ALTER TABLE assistant_processes ADD COLUMN agent INTEGER NOT NULL DEFAULT 0;
-- The session of the agent's own that it works in: by that it can be gone on with.
ALTER TABLE assistant_processes ADD COLUMN agent_session TEXT;
-- What the agent told that its model calls cost, and how often it told that this is not known.
ALTER TABLE assistant_processes ADD COLUMN told_microdollars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assistant_processes ADD COLUMN untold_costs INTEGER NOT NULL DEFAULT 0;
