-- Why: leases kept in this file, for the processes of one host: sessions, holds, and the counter their tokens come from.
-- The twin of migrations/postgres/0002_leases.sql. Expiry is a point of CLOCK_BOOTTIME, so it means something only until the host starts again:
-- sessions of another boot are dead. One writer at a time makes claims queue.

CREATE TABLE lease_sessions (
    session_id TEXT    NOT NULL CONSTRAINT lease_sessions_pkey PRIMARY KEY,
    label      TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    ttl_ns     INTEGER NOT NULL CONSTRAINT lease_sessions_ttl_positive CHECK (ttl_ns > 0),
    boot_id    TEXT    NOT NULL,
    expires_boottime_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A hold is alive as long as its session's row is there.
CREATE TABLE lease_holds (
    resource_key TEXT    NOT NULL CONSTRAINT lease_holds_pkey PRIMARY KEY,
    session_id   TEXT    NOT NULL,
    counter      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lease_counter (
    only_row INTEGER NOT NULL CONSTRAINT lease_counter_pkey PRIMARY KEY CONSTRAINT lease_counter_one_row CHECK (only_row = 1),
    counter  INTEGER NOT NULL CONSTRAINT lease_counter_not_negative CHECK (counter >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO lease_counter (only_row, counter) VALUES (1, 0);

CREATE TRIGGER lease_counter_rises BEFORE UPDATE ON lease_counter FOR EACH ROW
    WHEN NEW.counter < OLD.counter OR NEW.only_row <> OLD.only_row
BEGIN SELECT RAISE(ABORT, 'lease_counter: the counter only rises'); END;
CREATE TRIGGER lease_counter_no_delete BEFORE DELETE ON lease_counter FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'lease_counter: rows are never deleted'); END;
CREATE TRIGGER lease_counter_no_replace BEFORE INSERT ON lease_counter FOR EACH ROW
    WHEN EXISTS (SELECT 1 FROM lease_counter)
BEGIN SELECT RAISE(ABORT, 'lease_counter: rows are never replaced: this key exists'); END;
