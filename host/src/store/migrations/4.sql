-- Bytes that are too large for a conversation, by the SHA-256 of their content: pictures, files, long texts.
CREATE TABLE blobs (
  hash TEXT PRIMARY KEY,
  bytes BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- Which process has which, and as what it got it: it may read them, and they are kept as long as one of these is.
CREATE TABLE blob_uses (
  process_id TEXT NOT NULL REFERENCES assistant_processes(process_id),
  hash TEXT NOT NULL REFERENCES blobs(hash),
  mime_type TEXT NOT NULL,
  name TEXT,
  PRIMARY KEY (process_id, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_hash ON blob_uses (hash);

-- Pictures and files of the result, as parts in JSON.
ALTER TABLE assistant_processes ADD COLUMN result_parts TEXT;
-- Rounds in which a result that did not fit its schema was sent back.
ALTER TABLE assistant_processes ADD COLUMN output_repairs INTEGER NOT NULL DEFAULT 0;
-- What a process was told to say of itself, as JSON.
ALTER TABLE assistant_processes ADD COLUMN reported TEXT;

-- Which list of tools a session is offered.
ALTER TABLE sessions ADD COLUMN profile TEXT NOT NULL DEFAULT 'orchestrator';

-- The line of conversation that a process goes on with, where its assistant does that; its processes run one after the other.
ALTER TABLE assistant_processes ADD COLUMN line TEXT;
CREATE INDEX processes_line ON assistant_processes (assistant_id, line, seq) WHERE line IS NOT NULL;
