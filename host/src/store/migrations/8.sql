-- By which configured launcher the runner of a process is started; null is the machine as it is.
ALTER TABLE assistant_processes ADD COLUMN launcher TEXT;
