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
