-- What is looked at of all assistants when a host opens, apart from their texts.
CREATE INDEX assistants_mirrored ON assistants (id, content_hash, path, source, deleted_at);
CREATE INDEX assistants_own ON assistants (id) WHERE source = 'database' AND deleted_at IS NULL;
