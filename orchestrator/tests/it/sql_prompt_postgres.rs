//! What a person at a SQL prompt, or another service with the runtime role, can not do to the tables.

use crate::postgres_database::{database, server};

/// Four intents: as submitted, with a create in flight, posted, and succeeded with its transfer still to come.
const FIXTURE: &str = "
    INSERT INTO payments (payment_id, psp, psp_account, psp_payment_ref, currency, captured_minor, reserved_minor)
    VALUES ('p-1', 'acme', 'main', 'pi_1', 'EUR', 10000, 4000);
    INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (3, 'sql', 'g-1', 'test');
    INSERT INTO refund_intents (intent_id, payment_id, psp, psp_account, psp_payment_ref, currency, amount_minor, idempotency_key,
        create_body, machine_version, state, version, fence_epoch, fence_counter, stamp_epoch, stamp_counter, stamp_version,
        next_action, next_action_at, timeline)
    SELECT 'r-' || n, 'p-1', 'acme', 'main', 'pi_1', 'EUR', 1000, 'key-' || n, 'body', 1, 'recorded', 1, 0, 0, 0, 0, 1,
        'create', now(), 1 FROM generate_series(1, 4) n;
    INSERT INTO intent_inbox (intent_id, source_id, message) VALUES ('r-1', 's-1', '{}');
    BEGIN;
    UPDATE refund_intents SET state = 'sending', version = 2, fence_epoch = 3, fence_counter = 7, stamp_epoch = 3, stamp_counter = 7,
        stamp_version = 2, holder_session = '00000000-0000-0000-0000-00000000000a', next_action = 'lookup',
        open_attempt = ('00000000-0000-0000-0000-00000000000' || right(intent_id, 1))::uuid WHERE intent_id IN ('r-2', 'r-3', 'r-4');
    INSERT INTO refund_attempts (attempt_id, intent_id, kind, token_epoch, token_counter, session_id, installed_version,
        idempotency_key, request_body, started_at, deadline)
    SELECT open_attempt, intent_id, 'create', 3, 7, holder_session, 2, idempotency_key, create_body, now(), now()
    FROM refund_intents WHERE open_attempt IS NOT NULL;
    COMMIT;
    BEGIN;
    UPDATE refund_intents SET state = 'succeeded', version = 3, stamp_version = 3, holder_session = NULL, open_attempt = NULL,
        next_action = 'none', next_action_at = NULL WHERE intent_id IN ('r-3', 'r-4');
    INSERT INTO refund_outcomes VALUES ('00000000-0000-0000-0000-000000000003', 'accepted', '{}', 5, false, now());
    INSERT INTO ledger_transfers (kind, intent_id, debit_account, credit_account, amount_minor, currency, fence_epoch, fence_counter)
    VALUES ('post', 'r-3', 'customer_refunds:EUR', 'psp_clearing:acme:EUR', 1000, 'EUR', 3, 7);
    COMMIT;
    INSERT INTO breaks (class, intent_id, detail, fence_epoch, fence_counter) VALUES ('late_success', 'r-3', 'x', 3, 7);
    INSERT INTO audit_log VALUES (1, 'ann', 'psp.pause', 'psp/acme', 'x', NULL, NULL, now(), 'first', 'hash-1');";

/// A database with the fixture in it.
fn fixture() -> String {
    let name = database();
    server().must_psql(&name, FIXTURE).unwrap();
    name
}

/// Each statement is refused, the error holds the reason, and no row of the fixture changed.
fn check(cases: &[(&str, &str, &str)]) {
    let name = fixture();
    let before = server().must_psql(&name, EVERYTHING).unwrap();
    for (what, sql, reason) in cases {
        let output = server().psql(&name, sql).unwrap();
        assert_eq!(output.code, 3, "{what}: not refused: {}", output.stdout);
        assert!(output.stderr.contains(reason), "{what}: {reason:?} is not in {}", output.stderr);
    }
    assert_eq!(server().must_psql(&name, EVERYTHING).unwrap(), before);
}

const EVERYTHING: &str = "
    SELECT * FROM refund_intents ORDER BY 1; SELECT * FROM payments ORDER BY 1; SELECT * FROM refund_attempts ORDER BY 1;
    SELECT * FROM refund_outcomes ORDER BY 1; SELECT * FROM ledger_transfers ORDER BY 1; SELECT * FROM intent_inbox ORDER BY 1;
    SELECT * FROM intent_inbox_unread ORDER BY 1; SELECT * FROM breaks ORDER BY 1; SELECT * FROM lease_epochs ORDER BY 1;
    SELECT * FROM audit_log ORDER BY 1;";

#[test]
fn a_state_changes_only_under_the_token_of_its_holder() {
    let stamped =
        "version = 3, fence_epoch = 3, fence_counter = 8, stamp_epoch = 3, stamp_counter = 8, stamp_version = 3";
    let with = |change: &str| format!("UPDATE refund_intents SET {stamped}, {change} WHERE intent_id = 'r-2'");
    let identity = "identity, amount, currency, key and body never change";
    let changed =
        ["amount_minor = 1", "currency = 'USD'", "idempotency_key = 'k'", "create_body = 'b'", "payment_id = 'p-2'"]
            .map(with);
    let mut cases: Vec<(&str, &str, &str)> = changed.iter().map(|sql| ("identity", sql.as_str(), identity)).collect();
    cases.extend([
        ("no version", "UPDATE refund_intents SET state = 'succeeded' WHERE intent_id = 'r-2'", "raises the version by one"),
        ("no stamp", "UPDATE refund_intents SET state = 'failed', version = 3 WHERE intent_id = 'r-2'", "no token"),
        ("null stamp version", "UPDATE refund_intents SET version = 3, stamp_version = NULL WHERE intent_id = 'r-2'", "no token"),
        ("null version", "UPDATE refund_intents SET version = NULL WHERE intent_id = 'r-2'", "no token"),
        (
            "null token",
            "UPDATE refund_intents SET version = 3, stamp_version = 3, stamp_epoch = NULL, stamp_counter = NULL,
                fence_epoch = NULL, fence_counter = NULL WHERE intent_id = 'r-2'",
            "stale token",
        ),
        (
            "null counter",
            "UPDATE refund_intents SET version = 3, stamp_version = 3, stamp_counter = NULL,
                fence_counter = NULL WHERE intent_id = 'r-2'",
            "stale token",
        ),
        (
            "old token",
            "UPDATE refund_intents SET version = 3, stamp_version = 3, stamp_counter = 6, fence_counter = 6 WHERE intent_id = 'r-2'",
            "stale token",
        ),
        (
            "old epoch",
            "UPDATE refund_intents SET version = 3, stamp_version = 3, stamp_epoch = 2, fence_epoch = 2, stamp_counter = 99,
                fence_counter = 99 WHERE intent_id = 'r-2'",
            "stale token",
        ),
        (
            "token of no epoch",
            "UPDATE refund_intents SET version = 2, stamp_version = 2 WHERE intent_id = 'r-1'",
            "stale token",
        ),
        (
            "fence kept below the token",
            "UPDATE refund_intents SET version = 3, stamp_version = 3, stamp_counter = 9 WHERE intent_id = 'r-2'",
            "the fence is the token that was accepted",
        ),
        (
            "fence above the token",
            "UPDATE refund_intents SET version = 3, stamp_version = 3, fence_counter = 9 WHERE intent_id = 'r-2'",
            "the fence is the token that was accepted",
        ),
        ("version jump", "UPDATE refund_intents SET version = 9, stamp_version = 9 WHERE intent_id = 'r-2'", "raises the version by one"),
        ("many rows", "UPDATE refund_intents SET state = 'failed'", "stale token"),
        ("deleted", "DELETE FROM refund_intents WHERE intent_id = 'r-1'", "rows are never deleted"),
    ]);
    check(&cases);
}

#[test]
fn an_intent_is_born_recorded_and_nothing_else() {
    let insert = |state: &str, version: &str, fence: &str, stamp: &str| {
        format!(
            "INSERT INTO refund_intents (intent_id, payment_id, psp, psp_account, psp_payment_ref, currency, amount_minor,
                idempotency_key, create_body, machine_version, state, version, fence_epoch, fence_counter, stamp_epoch, stamp_counter,
                stamp_version, next_action, next_action_at, timeline)
             VALUES ('r-9', 'p-1', 'acme', 'main', 'pi_1', 'EUR', 1000, 'key-9', 'body', 1, {state}, {version}, {fence}, 0, {stamp}, 0,
                1, 'create', now(), 1)"
        )
    };
    let born = "an intent is born recorded";
    let not_null = "violates not-null constraint";
    let statements = [
        ("as succeeded", insert("'succeeded'", "1", "0", "0"), born),
        ("as unknown", insert("'unknown'", "1", "0", "0"), born),
        ("at a later version", insert("'recorded'", "2", "0", "0"), born),
        ("with a fence", insert("'recorded'", "1", "4", "0"), born),
        ("with a stamp", insert("'recorded'", "1", "0", "4"), born),
        ("with no state", insert("NULL", "1", "0", "0"), not_null),
        ("with no version", insert("'recorded'", "NULL", "0", "0"), not_null),
        ("with no fence", insert("'recorded'", "1", "NULL", "0"), not_null),
        ("with no stamp", insert("'recorded'", "1", "0", "NULL"), not_null),
    ];
    check(&statements.iter().map(|(what, sql, reason)| (*what, sql.as_str(), *reason)).collect::<Vec<_>>());
}

#[test]
fn a_transfer_is_posted_only_for_a_state_and_as_its_intent_says() {
    let insert = |kind: &str, intent: &str, amount: i64, currency: &str, fence: &str| {
        format!(
            "INSERT INTO ledger_transfers (kind, intent_id, debit_account, credit_account, amount_minor, currency, fence_epoch,
                fence_counter) VALUES ('{kind}', '{intent}', 'a', 'b', {amount}, '{currency}', {fence})"
        )
    };
    let wrong = "does not carry its intent's fence, amount, currency and state";
    let statements = [
        ("for a recorded intent", insert("post", "r-1", 1000, "EUR", "0, 0"), wrong),
        ("for one in flight", insert("post", "r-2", 1000, "EUR", "3, 7"), wrong),
        ("a reverse of a success", insert("reverse", "r-4", 1000, "EUR", "3, 7"), wrong),
        ("another amount", insert("post", "r-4", 999, "EUR", "3, 7"), wrong),
        ("another currency", insert("post", "r-4", 1000, "USD", "3, 7"), wrong),
        ("an old fence", insert("post", "r-4", 1000, "EUR", "3, 6"), wrong),
        ("a later fence", insert("post", "r-4", 1000, "EUR", "4, 7"), wrong),
        ("no fence", insert("post", "r-4", 1000, "EUR", "3, NULL"), "not-null"),
        ("another kind", insert("adjust", "r-3", 1000, "EUR", "3, 7"), "ledger_transfers_kind"),
        ("an unknown intent", insert("post", "r-7", 1000, "EUR", "3, 7"), "r-7"),
        ("a second time", insert("post", "r-3", 1000, "EUR", "3, 7"), "ledger_transfers_one_per_intent_and_kind"),
    ];
    check(&statements.iter().map(|(what, sql, reason)| (*what, sql.as_str(), *reason)).collect::<Vec<_>>());
}

#[test]
fn evidence_is_neither_rewritten_nor_removed_nor_invented() {
    let tables = [
        ("refund_attempts", "deadline = now()"),
        ("refund_outcomes", "outcome = 'absent'"),
        ("ledger_transfers", "amount_minor = 1"),
        ("intent_inbox", "message = '{}'"),
        ("breaks", "detail = ''"),
        ("audit_log", "reason = ''"),
    ];
    let statements: Vec<(String, &str)> = tables
        .iter()
        .flat_map(|(table, change)| {
            [
                (format!("UPDATE {table} SET {change}"), "rows are never changed"),
                (format!("DELETE FROM {table}"), "rows are never deleted"),
                (format!("TRUNCATE {table} CASCADE"), "rows are never deleted"),
            ]
        })
        .chain(
            ["refund_intents", "payments", "lease_epochs", "intent_inbox_readings"]
                .map(|table| (format!("TRUNCATE {table} CASCADE"), "rows are never deleted")),
        )
        .collect();
    let mut cases: Vec<(&str, &str, &str)> =
        statements.iter().map(|(sql, reason)| (sql.as_str(), sql.as_str(), *reason)).collect();
    let attempt = "INSERT INTO refund_attempts (attempt_id, intent_id, kind, token_epoch, token_counter, session_id,
        installed_version, idempotency_key, started_at, deadline) VALUES (gen_random_uuid(), 'r-2', 'lookup', 3, 8,
        gen_random_uuid(), 3, 'key-2', now(), now())";
    cases.extend([
        ("an attempt its intent has not open", attempt, "is not the one its intent has open"),
        (
            "an outcome of no attempt",
            "INSERT INTO refund_outcomes VALUES (gen_random_uuid(), 'absent', '{}', 1, false, now())",
            "is no recorded attempt",
        ),
        ("a message made read", "DELETE FROM intent_inbox_unread", "is not read by the change its intent has just made"),
        ("all messages made read", "TRUNCATE intent_inbox_unread", "a twin goes when its message is read"),
        (
            "a message read by no change",
            "BEGIN; INSERT INTO intent_inbox_readings (inbox_id, version) VALUES (1, 2); DELETE FROM intent_inbox_unread; COMMIT;",
            "is not read by the change its intent has just made",
        ),
        (
            "a message read by a change of long ago",
            "BEGIN; INSERT INTO intent_inbox_readings (inbox_id, version) VALUES (1, 1); DELETE FROM intent_inbox_unread; COMMIT;",
            "is not read by the change its intent has just made",
        ),
        (
            "a message made unread again",
            "BEGIN; UPDATE refund_intents SET version = 2, stamp_version = 2, fence_epoch = 3, stamp_epoch = 3, fence_counter = 8,
                stamp_counter = 8 WHERE intent_id = 'r-1';
             INSERT INTO intent_inbox_readings (inbox_id, version) VALUES (1, 2); DELETE FROM intent_inbox_unread;
             INSERT INTO intent_inbox_unread VALUES (1, 'r-1'); COMMIT;",
            "is not the twin of a message that waits",
        ),
        ("a fork of the audit log", "INSERT INTO audit_log VALUES (2, 'a', 'b', 'c', 'd', NULL, NULL, now(), 'first', 'hash-2')", "audit_log_previous_key"),
    ]);
    check(&cases);
}

#[test]
fn of_payments_and_epochs_only_counters_and_marks_change() {
    let payment = "of a payment only the counters change";
    let epoch = "of an epoch only the revision mark rises";
    check(&[
        ("captured", "UPDATE payments SET captured_minor = 99999", payment),
        ("currency", "UPDATE payments SET currency = 'USD'", payment),
        ("provider", "UPDATE payments SET psp = 'other'", payment),
        ("charged back falls", "UPDATE payments SET charged_back_minor = -1", payment),
        ("payment deleted", "DELETE FROM payments", "rows are never deleted"),
        ("epoch", "UPDATE lease_epochs SET epoch = 1", epoch),
        ("generation", "UPDATE lease_epochs SET generation = 'other'", epoch),
        ("mark falls", "UPDATE lease_epochs SET highest_revision = -1", epoch),
        ("epoch deleted", "DELETE FROM lease_epochs", "rows are never deleted"),
        (
            "an epoch below",
            "INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (2, 'sql', 'g', 'x')",
            "registered above all others",
        ),
        (
            "an epoch brought back",
            "BEGIN; INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (4, 'sql', 'g', 'x');
             UPDATE lease_epochs SET superseded_at = NULL WHERE epoch = 3; COMMIT;",
            epoch,
        ),
    ]);
}

#[test]
fn a_legal_change_under_a_later_token_passes() {
    let name = fixture();
    let sql = "BEGIN;
        UPDATE refund_intents SET state = 'succeeded', version = 3, fence_epoch = 3, fence_counter = 8, stamp_epoch = 3,
            stamp_counter = 8, stamp_version = 3, holder_session = NULL, open_attempt = NULL, next_action = 'none',
            next_action_at = NULL WHERE intent_id = 'r-2';
        INSERT INTO ledger_transfers (kind, intent_id, debit_account, credit_account, amount_minor, currency, fence_epoch,
            fence_counter) VALUES ('post', 'r-2', 'customer_refunds:EUR', 'psp_clearing:acme:EUR', 1000, 'EUR', 3, 8);
        UPDATE payments SET reserved_minor = reserved_minor - 1000, refunded_minor = refunded_minor + 1000;
        UPDATE lease_epochs SET highest_revision = 8;
        INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (3, 'sql', 'g', 'x') ON CONFLICT DO NOTHING;
        COMMIT;
        SELECT state, version, fence_counter FROM refund_intents WHERE intent_id = 'r-2';
        SELECT epoch FROM lease_epochs WHERE superseded_at IS NULL;";
    assert_eq!(server().must_psql(&name, sql).unwrap(), "succeeded|3|8\n3\n");
}

#[test]
fn the_runtime_role_works_with_rows_but_can_not_take_protection_away() {
    let name = database();
    let role = "DO $$ BEGIN CREATE ROLE refund_runtime; EXCEPTION WHEN duplicate_object THEN NULL; END $$;";
    server().must_psql(&name, role).unwrap();
    let url = secrecy::SecretString::from(server().url(&name));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(orchestrator::store::migrate::migrate(&url)).unwrap();
    server().must_psql(&name, FIXTURE).unwrap();
    for sql in [
        "ALTER TABLE refund_intents DISABLE TRIGGER ALL",
        "TRUNCATE breaks",
        "DELETE FROM ledger_transfers",
        "DROP TABLE breaks",
        "DROP TRIGGER refund_intents_version ON refund_intents",
        "UPDATE _sqlx_migrations SET success = false",
        "CREATE TABLE mine (n int)",
    ] {
        let output = server().psql(&name, &format!("SET ROLE refund_runtime; {sql}")).unwrap();
        assert_eq!(output.code, 3, "{sql}");
        assert!(
            output.stderr.contains("permission denied") || output.stderr.contains("must be owner"),
            "{}",
            output.stderr
        );
    }
    let legal = "SET ROLE refund_runtime; INSERT INTO psp_pauses VALUES ('acme', 'ann', 'x'); DELETE FROM psp_pauses;
        INSERT INTO intent_inbox (intent_id, source_id, message) VALUES ('r-1', 's-2', '{}');
        SELECT count(*) FROM intent_inbox_unread;";
    assert_eq!(server().must_psql(&name, legal).unwrap(), "2\n");
}
