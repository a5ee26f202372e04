-- Why: leases kept in this database: sessions, holds, and the counter their tokens come from.
-- Sessions and holds are UNLOGGED: they cost no log and are empty after a crash, a restore or a promotion. That is legal: every session is
-- then over, replicas hear so at their next renewal and open new ones, and whoever still believed meets the fences. The counter is
-- an ordinary table, so the tokens of a key rise across all of that.

CREATE UNLOGGED TABLE lease_sessions (
    session_id uuid        NOT NULL CONSTRAINT lease_sessions_pkey PRIMARY KEY,
    label      text        NOT NULL,
    epoch      bigint      NOT NULL,
    ttl_ms     bigint      NOT NULL CONSTRAINT lease_sessions_ttl_positive CHECK (ttl_ms > 0),
    expires_at timestamptz NOT NULL,
    opened_at  timestamptz NOT NULL DEFAULT clock_timestamp()
    -- Renewals change no indexed column and find room on their page.
) WITH (fillfactor = 50);

-- A hold is alive as long as its session's row is there. Narrow, one index, ordered by bytes: a claim and its release are all that
-- ever happens to most rows.
CREATE UNLOGGED TABLE lease_holds (
    resource_key text        COLLATE "C" NOT NULL CONSTRAINT lease_holds_pkey PRIMARY KEY,
    session_id   uuid        NOT NULL,
    counter      bigint      NOT NULL,
    claimed_at   timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);

-- One row for all keys. A claim holds its lock until the commit, so numbers rise in the order of commits; a sequence's would not.
CREATE TABLE lease_counter (
    only_row boolean NOT NULL DEFAULT true CONSTRAINT lease_counter_pkey PRIMARY KEY CONSTRAINT lease_counter_one_row CHECK (only_row),
    counter  bigint  NOT NULL CONSTRAINT lease_counter_not_negative CHECK (counter >= 0)
) WITH (fillfactor = 10);
INSERT INTO lease_counter (counter) VALUES (0);

CREATE TRIGGER lease_counter_rises BEFORE UPDATE ON lease_counter FOR EACH ROW
    WHEN (NEW.counter < OLD.counter) EXECUTE FUNCTION refuse('the counter only rises');
CREATE TRIGGER lease_counter_no_delete BEFORE DELETE ON lease_counter FOR EACH ROW
    EXECUTE FUNCTION refuse('rows are never deleted');
CREATE TRIGGER lease_counter_no_truncate BEFORE TRUNCATE ON lease_counter FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('rows are never deleted');

-- Claims what is free of the keys, which are distinct and sorted. The token of the n-th key, if it is won, has the counter
-- `counter_before + n`. A session that is gone gets a NULL epoch.
-- Each statement here sees what was committed before it began (READ COMMITTED), and the first one waits for all earlier claims.
-- Dead sessions are deleted before their holds are taken: a renewal that comes too late finds no row, one that came in time keeps it.
CREATE FUNCTION lease_claim(claiming_session uuid, wanted_keys text[], OUT token_epoch bigint, OUT counter_before bigint, OUT counters bigint[])
LANGUAGE plpgsql AS $$
DECLARE current_epoch bigint;
BEGIN
    UPDATE lease_counter c SET counter = c.counter + cardinality(wanted_keys)
     WHERE c.only_row RETURNING c.counter - cardinality(wanted_keys) INTO STRICT counter_before;
    SELECT max(e.epoch) INTO current_epoch FROM lease_epochs e;
    DELETE FROM lease_sessions s WHERE s.expires_at <= clock_timestamp() OR s.epoch IS DISTINCT FROM current_epoch;
    PERFORM FROM lease_sessions s WHERE s.session_id = claiming_session;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    token_epoch := current_epoch;
    -- Only claims add rows, and this is the only claim, so what is absent here is inserted without a conflict.
    WITH seen AS MATERIALIZED (
        SELECT k.resource_key, counter_before + k.place AS counter, t.session_id,
               t.session_id IS NOT NULL AND NOT EXISTS (SELECT FROM lease_sessions s WHERE s.session_id = t.session_id) AS is_dead
          FROM unnest(wanted_keys) WITH ORDINALITY AS k (resource_key, place)
          LEFT JOIN LATERAL (SELECT h.session_id FROM lease_holds h WHERE h.resource_key = k.resource_key) AS t ON true),
    added AS (
        INSERT INTO lease_holds AS h (resource_key, session_id, counter, claimed_at)
        SELECT n.resource_key, claiming_session, n.counter, now() FROM seen n WHERE n.session_id IS NULL
        RETURNING h.counter),
    taken_over AS (
        UPDATE lease_holds h SET session_id = claiming_session, counter = n.counter, claimed_at = now()
          FROM seen n WHERE n.is_dead AND h.resource_key = n.resource_key AND h.session_id = n.session_id
        RETURNING h.counter)
    SELECT coalesce(array_agg(w.counter), '{}') INTO counters
      FROM (SELECT a.counter FROM added a UNION ALL SELECT o.counter FROM taken_over o) w;
END $$;
