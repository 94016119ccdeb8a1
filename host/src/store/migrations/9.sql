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
