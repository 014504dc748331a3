-- The users, each with the role of roles.sql that it needs. @NAME@ stands for the SHA-256 of a password in hex: users.sh
-- puts it there, so that no password is in a statement, a log, or the list of processes.
-- To be repeated as often as one likes; a new password takes effect.

CREATE DATABASE IF NOT EXISTS ettwatch;

-- ettwatch migrate: tables and views of this database, and no other.
CREATE USER OR REPLACE migrate IDENTIFIED WITH sha256_hash BY '@MIGRATE@' DEFAULT DATABASE ettwatch;
GRANT ettwatch_migrator TO migrate;

-- ettwatch sink: rows in, and what is needed to know what is there. It can neither change nor remove a table.
CREATE USER OR REPLACE sink IDENTIFIED WITH sha256_hash BY '@SINK@' DEFAULT DATABASE ettwatch;
GRANT ettwatch_writer TO sink;

-- People and Grafana: reading only, and no query that takes the server down.
CREATE USER OR REPLACE reader IDENTIFIED WITH sha256_hash BY '@READER@' DEFAULT DATABASE ettwatch
    SETTINGS max_memory_usage = 4000000000 MAX 8000000000, max_execution_time = 60 MAX 300;
GRANT ettwatch_reader TO reader;
