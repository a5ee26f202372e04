-- What the role that runs the service may do, where that role exists. It owns nothing, so it can neither switch triggers off nor
-- TRUNCATE; DELETE it gets only on tables that no trigger protects from it.
DO $$
DECLARE t record;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'refund_runtime') THEN
        RETURN;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO refund_runtime', current_schema());
    FOR t IN
        SELECT c.oid::regclass AS name, c.relname,
               EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = c.relname || '_no_delete') AS kept
          FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM refund_runtime', t.name);
        EXECUTE format('GRANT SELECT ON %s TO refund_runtime', t.name);
        CONTINUE WHEN t.relname = '_sqlx_migrations';
        EXECUTE format('GRANT INSERT, UPDATE ON %s TO refund_runtime', t.name);
        IF NOT t.kept THEN
            EXECUTE format('GRANT DELETE ON %s TO refund_runtime', t.name);
        END IF;
    END LOOP;
END $$;
