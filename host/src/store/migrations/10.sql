-- In whose name a session is where its client runs within an assistant: the process, of this host or another one; where
-- that is not known, the session itself. Null is a client of the principal's own.
ALTER TABLE sessions ADD COLUMN within TEXT;
-- The sessions whose processes a session sees and steers: all of its principal; where it is within an assistant, those of
-- clients within the same one.
CREATE VIEW reach (session_id, reached) AS
  SELECT mine.session_id, theirs.session_id FROM sessions mine JOIN sessions theirs ON theirs.principal = mine.principal
    WHERE mine.within IS NULL OR theirs.within = mine.within;
