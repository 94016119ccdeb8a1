-- The store of one host. Times are Unix milliseconds. Ids are text: an assistant's is its slug, all others are UUIDs.

-- The registry: files are mirrored here by hash, rows of source 'database' are made by an app.
CREATE TABLE assistants (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT,
  system_prompt TEXT NOT NULL,
  mcp_config TEXT NOT NULL,
  allowed_builtin_service_aliases TEXT,
  tags TEXT NOT NULL,
  source TEXT NOT NULL,
  path TEXT,
  content_hash TEXT NOT NULL,
  definition TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT;

-- The definition that a process started with, by the hash of its content.
CREATE TABLE snapshots (
  hash TEXT PRIMARY KEY,
  definition TEXT NOT NULL
) STRICT;

-- One row a connection of a principal.
CREATE TABLE sessions (
  session_id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  caller_name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  end_cause TEXT
) STRICT;

-- One row a run of an assistant. seq is the order in which they were spawned.
CREATE TABLE assistant_processes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  process_id TEXT NOT NULL UNIQUE,
  assistant_id TEXT NOT NULL,
  snapshot TEXT NOT NULL REFERENCES snapshots(hash),
  parent_process_id TEXT REFERENCES assistant_processes(process_id),
  parent_assistant_id TEXT NOT NULL,
  root_process_id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions(session_id),
  thread_id TEXT NOT NULL UNIQUE,
  depth INTEGER NOT NULL,
  detached INTEGER NOT NULL DEFAULT 0,
  label TEXT,
  status TEXT NOT NULL,
  reason TEXT,
  cause TEXT,
  error TEXT,
  cancel_requested_at INTEGER,
  query TEXT NOT NULL,
  context TEXT,
  inputs TEXT,
  output_schema TEXT,
  working_dir TEXT,
  tools TEXT NOT NULL,
  unavailable_tools TEXT NOT NULL,
  model_requested TEXT,
  model TEXT NOT NULL,
  limits TEXT NOT NULL,
  resumed_from TEXT REFERENCES assistant_processes(process_id),
  waits INTEGER NOT NULL DEFAULT 0,
  conversation_length INTEGER NOT NULL DEFAULT 0,
  turns INTEGER NOT NULL DEFAULT 0,
  tool_calls INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens INTEGER NOT NULL DEFAULT 0,
  cache_write_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_tokens INTEGER NOT NULL DEFAULT 0,
  usage_unknown INTEGER NOT NULL DEFAULT 0,
  result TEXT,
  structured TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  exit_code INTEGER
) STRICT;
CREATE INDEX processes_living ON assistant_processes (session_id, status)
  WHERE status IN ('queued', 'starting', 'running', 'waiting');
CREATE INDEX processes_parent ON assistant_processes (parent_process_id);
CREATE INDEX processes_root ON assistant_processes (root_process_id);
CREATE INDEX processes_session ON assistant_processes (session_id);

-- The message box. A null process is the session. seq is the order in which they were sent.
CREATE TABLE assistant_messages (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  thread_id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions(session_id),
  kind TEXT NOT NULL,
  from_assistant_id TEXT NOT NULL,
  to_assistant_id TEXT NOT NULL,
  from_process_id TEXT REFERENCES assistant_processes(process_id),
  to_process_id TEXT REFERENCES assistant_processes(process_id),
  content TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  delivered_at INTEGER,
  read_at INTEGER
) STRICT;
CREATE INDEX messages_thread ON assistant_messages (thread_id, created_at);
CREATE INDEX messages_unread ON assistant_messages (thread_id, to_process_id) WHERE read_at IS NULL;
CREATE INDEX messages_queued ON assistant_messages (to_process_id, seq) WHERE delivered_at IS NULL;

-- What processes ask their parents: PENDING, ANSWERED, RETRIEVED or EXPIRED.
CREATE TABLE questions (
  message_id TEXT PRIMARY KEY REFERENCES assistant_messages(id),
  process_id TEXT NOT NULL REFERENCES assistant_processes(process_id),
  to_process_id TEXT REFERENCES assistant_processes(process_id),
  state TEXT NOT NULL,
  asked_at INTEGER NOT NULL,
  answer_by_at INTEGER NOT NULL,
  answer_message_id TEXT REFERENCES assistant_messages(id),
  answered_at INTEGER,
  retrieved_at INTEGER
) STRICT;
CREATE INDEX questions_process ON questions (process_id, state);

-- The record of a conversation: each message once. Where a runner rewrites its conversation, the last row of a
-- position counts, up to the process's conversation_length.
CREATE TABLE conversations (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  process_id TEXT NOT NULL REFERENCES assistant_processes(process_id),
  position INTEGER NOT NULL,
  message TEXT NOT NULL,
  hash TEXT NOT NULL,
  message_id TEXT REFERENCES assistant_messages(id)
) STRICT;
CREATE INDEX conversations_position ON conversations (process_id, position, seq);

-- A tool call of a process, so that a repeated one is answered and not done again.
CREATE TABLE tool_calls (
  process_id TEXT NOT NULL REFERENCES assistant_processes(process_id),
  call_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  result TEXT,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  PRIMARY KEY (process_id, call_id)
) STRICT, WITHOUT ROWID;

-- The log of each process, in order.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  process_id TEXT NOT NULL REFERENCES assistant_processes(process_id),
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE INDEX events_process ON events (process_id, seq);

-- What a repeated call is answered with.
CREATE TABLE idempotency_keys (
  principal TEXT NOT NULL,
  tool TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  answer TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (principal, tool, idempotency_key)
) STRICT, WITHOUT ROWID;

-- Budgets: what model calls have used, and what those in flight may use at most.
ALTER TABLE assistant_processes ADD COLUMN spent_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assistant_processes ADD COLUMN spent_microdollars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assistant_processes ADD COLUMN reserved_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assistant_processes ADD COLUMN reserved_microdollars INTEGER NOT NULL DEFAULT 0;
CREATE INDEX processes_reserved ON assistant_processes (reserved_tokens) WHERE reserved_tokens > 0;

-- What all model calls of a day (days since 1970, UTC) have used.
CREATE TABLE spent_days (
  day INTEGER PRIMARY KEY,
  tokens INTEGER NOT NULL
) STRICT;

-- How deep the client of a session is itself below assistants of other hosts.
ALTER TABLE sessions ADD COLUMN level INTEGER NOT NULL DEFAULT 0;

-- The last turn of a session.
DROP INDEX processes_session;
CREATE INDEX processes_session ON assistant_processes (session_id, started_at);

-- What is looked up by these and would be searched for in all rows.
CREATE INDEX processes_resumed ON assistant_processes (resumed_from) WHERE resumed_from IS NOT NULL;
CREATE INDEX questions_asked ON questions (to_process_id) WHERE state = 'PENDING';

-- The call whose result handed a message to a process, until a model call has contained that result; of a message that
-- is not delivered: its runner is being given it.
ALTER TABLE assistant_messages ADD COLUMN handed_by TEXT;
CREATE INDEX messages_handed ON assistant_messages (to_process_id) WHERE handed_by IS NOT NULL;
CREATE INDEX messages_for_session ON assistant_messages (session_id, seq)
  WHERE to_process_id IS NULL AND delivered_at IS NULL;
CREATE INDEX sessions_principal ON sessions (principal);
CREATE INDEX questions_due ON questions (answer_by_at) WHERE state = 'PENDING';

-- Retention removes rows, and each removed row is looked for where it may be referred to.
CREATE INDEX processes_snapshot ON assistant_processes (snapshot);
CREATE INDEX messages_session ON assistant_messages (session_id);
CREATE INDEX messages_from ON assistant_messages (from_process_id) WHERE from_process_id IS NOT NULL;
CREATE INDEX messages_to ON assistant_messages (to_process_id) WHERE to_process_id IS NOT NULL;
CREATE INDEX questions_to ON questions (to_process_id) WHERE to_process_id IS NOT NULL;
CREATE INDEX questions_answer ON questions (answer_message_id) WHERE answer_message_id IS NOT NULL;
CREATE INDEX conversations_message ON conversations (message_id) WHERE message_id IS NOT NULL;

-- What each spawn and each send counts is counted in an index alone.
CREATE INDEX processes_living_child ON assistant_processes (parent_process_id)
  WHERE parent_process_id IS NOT NULL AND status IN ('queued', 'starting', 'running', 'waiting');
DROP INDEX messages_queued;
CREATE INDEX messages_queued ON assistant_messages (to_process_id, seq, kind) WHERE delivered_at IS NULL;

-- What is looked at of all assistants when a host opens, apart from their texts.
CREATE INDEX assistants_mirrored ON assistants (id, content_hash, path, source, deleted_at);
CREATE INDEX assistants_own ON assistants (id) WHERE source = 'database' AND deleted_at IS NULL;

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

-- Which configured runner a process has; null is the host's own.
ALTER TABLE assistant_processes ADD COLUMN runner TEXT;

-- The tools that a process was given when it was run, with those of its servers: a text of `snapshots`.
ALTER TABLE assistant_processes ADD COLUMN given_tools TEXT REFERENCES snapshots(hash);
CREATE INDEX processes_given_tools ON assistant_processes (given_tools) WHERE given_tools IS NOT NULL;

-- The process is one of an agent that has its own model and tools.
ALTER TABLE assistant_processes ADD COLUMN agent INTEGER NOT NULL DEFAULT 0;
-- The session of the agent's own that it works in: by that it can be gone on with.
ALTER TABLE assistant_processes ADD COLUMN agent_session TEXT;
-- What the agent told that its model calls cost, and how often it told that this is not known.
ALTER TABLE assistant_processes ADD COLUMN told_microdollars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE assistant_processes ADD COLUMN untold_costs INTEGER NOT NULL DEFAULT 0;

-- By which configured launcher the runner of a process is started; null is the machine as it is.
ALTER TABLE assistant_processes ADD COLUMN launcher TEXT;

-- Git worktrees that processes work in. What is kept stays listed when the process that made it is gone.
CREATE TABLE worktrees (
  -- The process that it was made for.
  worktree_id TEXT PRIMARY KEY,
  -- The process that has it, or had it last.
  process_id TEXT NOT NULL,
  assistant_id TEXT NOT NULL,
  -- The git directory of the repository, and the folder of its files that the process was to work in.
  repository TEXT NOT NULL,
  source TEXT NOT NULL,
  -- Its own git directory; null until it is made.
  git_dir TEXT,
  path TEXT NOT NULL,
  branch TEXT NOT NULL,
  -- The commit that it begins at.
  base TEXT NOT NULL,
  -- The folder in it that the process works in.
  folder TEXT NOT NULL,
  state TEXT NOT NULL,
  -- What it holds that is not in its first commit, in words; empty is nothing, null is not looked.
  holds TEXT,
  created_at INTEGER NOT NULL
) STRICT;
-- The worktree in which a process works: its own, or that of whoever spawned it.
ALTER TABLE assistant_processes ADD COLUMN worktree TEXT;
CREATE INDEX processes_worktree ON assistant_processes (worktree) WHERE worktree IS NOT NULL;

-- In whose name a session is where its client runs within an assistant: the process, of this host or another one; where
-- that is not known, the session itself. Null is a client of the principal's own.
ALTER TABLE sessions ADD COLUMN within TEXT;
-- The sessions whose processes a session sees and steers: all of its principal; where it is within an assistant, those of
-- clients within the same one.
CREATE VIEW reach (session_id, reached) AS
  SELECT mine.session_id, theirs.session_id FROM sessions mine JOIN sessions theirs ON theirs.principal = mine.principal
    WHERE mine.within IS NULL OR theirs.within = mine.within;
