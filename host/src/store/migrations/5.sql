-- Which configured runner a process has; null is the host's own.
ALTER TABLE assistant_processes ADD COLUMN runner TEXT;
