//! What a person with the `sqlite3` program can not do to the tables of a file that the store wrote.
//!
//! The program is Debian's, older than the engine inside the store, so the fences hold under both. Left out, as the migration says:
//! taking the triggers away, which nothing in a file can prevent.

use crate::store_sqlite::{SqliteEngine, open_temporary, sqlite3};
use crate::store_suite::Engine;
use crate::store_suite::fixture::{Fixture, attempt_id};
use orchestrator::store::Store;
use orchestrator::store::change::{NewBreak, WriteResult};
use orchestrator::store::sqlite::SqliteStore;
use std::sync::Arc;

/// Four intents of an acme payment each: `r-1` as submitted, with a message; `r-2` with a create in flight; `r-3` posted, with a
/// break; `r-4` succeeded with its transfer still to come. The holder's token is 3.7 throughout.
async fn fixture() -> Arc<SqliteStore> {
    let store = Arc::new(open_temporary().await);
    let engine = SqliteEngine(Arc::clone(&store));
    assert_eq!((engine.raise_epoch().await, engine.raise_epoch().await), (1, 2));
    let fixture = Fixture::new(Box::new(engine)).await;
    for id in ["r-1", "r-2", "r-3", "r-4"] {
        fixture.intent(id).await;
    }
    assert_eq!(fixture.tell("r-1", "s-1").await, 1);
    fixture.install("r-2", 7).await;
    let open = fixture.install("r-3", 7).await;
    let mut posted = fixture.succeeding(&open);
    posted.breaks = vec![NewBreak { class: "late_success", detail: "found by hand".to_owned() }];
    assert_eq!(fixture.apply_one(posted).await, WriteResult::Written);
    let open = fixture.install("r-4", 7).await;
    let mut unposted = fixture.succeeding(&open);
    unposted.transfer = None;
    assert_eq!(fixture.apply_one(unposted).await, WriteResult::Written);
    store.pause_psp("acme", "ann", "they are down").await.unwrap();
    store
}

const EVERYTHING: &str = "
    SELECT * FROM refund_intents; SELECT * FROM payments; SELECT * FROM refund_attempts; SELECT * FROM refund_outcomes;
    SELECT * FROM ledger_transfers; SELECT * FROM intent_inbox; SELECT * FROM intent_inbox_unread; SELECT * FROM intent_inbox_readings;
    SELECT * FROM breaks; SELECT * FROM lease_epochs; SELECT * FROM audit_log;";

/// Each statement is refused, the error holds the reason, and no row changed.
async fn check<S: AsRef<str>>(cases: &[(&str, S, &str)]) {
    let store = fixture().await;
    let before = sqlite3(store.file(), EVERYTHING).unwrap();
    for (what, sql, reason) in cases {
        let told = sqlite3(store.file(), sql.as_ref()).expect_err(what);
        assert!(told.contains(reason), "{what}: {reason:?} is not in {told}");
    }
    assert_eq!(sqlite3(store.file(), EVERYTHING).unwrap(), before);
}

/// A change of the intent in flight, at version 2 under fence 3.7.
fn update(change: &str) -> String {
    format!("UPDATE refund_intents SET {change} WHERE intent_id = 'r-2'")
}

#[tokio::test]
async fn a_state_changes_only_under_the_token_of_its_holder() {
    let no_token = "no token: a change carries the stamp of its holder";
    let stale = "stale token: a later holder has written";
    let fence = "the fence is the token that was accepted";
    check(&[
        ("no version", update("state = 'unknown'"), "every change raises the version by one"),
        ("a version jump", update("version = 9, stamp_version = 9"), "every change raises the version by one"),
        ("no stamp", update("state = 'unknown', version = 3"), no_token),
        ("no version at all", update("version = NULL, stamp_version = NULL"), "every change raises the version by one"),
        ("a stamp version of nothing", update("version = 3, stamp_version = NULL"), no_token),
        ("a token of nothing", update("version = 3, stamp_version = 3, stamp_epoch = NULL, fence_epoch = NULL"), stale),
        ("a counter of nothing", update("version = 3, stamp_version = 3, stamp_counter = NULL, fence_counter = NULL"), stale),
        ("an old token", update("version = 3, stamp_version = 3, stamp_counter = 6, fence_counter = 6"), stale),
        (
            "an old epoch",
            update("version = 3, stamp_version = 3, stamp_epoch = 2, fence_epoch = 2, stamp_counter = 99, fence_counter = 99"),
            stale,
        ),
        (
            "a token of no epoch",
            "UPDATE refund_intents SET version = 2, stamp_version = 2 WHERE intent_id = 'r-1'".to_owned(),
            stale,
        ),
        ("a fence kept below the token", update("version = 3, stamp_version = 3, stamp_counter = 9"), fence),
        ("a fence above the token", update("version = 3, stamp_version = 3, fence_counter = 9"), fence),
        ("a token that is text", update("version = 3, stamp_version = 3, stamp_counter = 'z', fence_counter = 'z'"), "TEXT"),
        ("all rows", "UPDATE refund_intents SET state = 'failed' WHERE version > 1".to_owned(), "every change raises the version by one"),
        ("deleted", "DELETE FROM refund_intents WHERE intent_id = 'r-1'".to_owned(), "rows are never deleted"),
        ("all deleted", "DELETE FROM refund_intents".to_owned(), "rows are never deleted"),
    ])
    .await;
}

#[tokio::test]
async fn identity_never_changes_even_under_a_good_token() {
    let stamp = "version = 3, fence_counter = 8, stamp_counter = 8, stamp_version = 3";
    let changes = [
        "intent_id = 'r-9'",
        "amount_minor = 1",
        "currency = 'USD'",
        "idempotency_key = 'k'",
        "create_body = x'00'",
        "payment_id = 'p-r-1'",
        "psp = 'other'",
        "psp_account = 'other'",
        "psp_payment_ref = 'other'",
        "merchant_reference = NULL",
        "created_at = 0",
    ];
    let reason = "identity, amount, currency, key and body never change";
    check(&changes.map(|change| (change, update(&format!("{stamp}, {change}")), reason))).await;
}

#[tokio::test]
async fn an_intent_is_born_recorded_and_nothing_else() {
    let insert = |state: &str, version: &str, fence: &str, stamp: &str| {
        format!(
            "INSERT INTO refund_intents (intent_id, payment_id, psp, psp_account, psp_payment_ref, currency, amount_minor,
                idempotency_key, create_body, machine_version, state, version, fence_epoch, fence_counter, stamp_epoch, stamp_counter,
                stamp_version, next_action, next_action_at, timeline)
             VALUES ('r-9', 'p-r-1', 'acme', 'main', 'pi_p-r-1', 'EUR', 1000, 'key-9', x'00', 1, {state}, {version}, {fence}, 0, {stamp}, 0,
                1, 'create', 0, 1)"
        )
    };
    let born = "an intent is born recorded, at version 1, with no fence";
    let recorded = insert("'recorded'", "1", "0", "0");
    check(&[
        ("as succeeded", insert("'succeeded'", "1", "0", "0"), born),
        ("as unknown", insert("'unknown'", "1", "0", "0"), born),
        ("at a later version", insert("'recorded'", "2", "0", "0"), born),
        ("with a fence", insert("'recorded'", "1", "4", "0"), born),
        ("with a stamp", insert("'recorded'", "1", "0", "4"), born),
        ("with no state", insert("NULL", "1", "0", "0"), born),
        ("with no version", insert("'recorded'", "NULL", "0", "0"), born),
        ("with no fence", insert("'recorded'", "1", "NULL", "0"), born),
        ("with no stamp", insert("'recorded'", "1", "0", "NULL"), born),
        ("of no payment", recorded.replace("'p-r-1'", "'p-9'"), "refund_intents_payment"),
        ("of another payment's place", recorded.replace("'pi_p-r-1'", "'pi_p-r-2'"), "refund_intents_payment"),
        ("in another currency", recorded.replace("'EUR'", "'USD'"), "refund_intents_payment"),
    ])
    .await;
}

#[tokio::test]
async fn a_transfer_is_posted_only_for_a_state_and_as_its_intent_says() {
    let insert = |kind: &str, intent: &str, amount: &str, currency: &str, fence: &str| {
        format!(
            "INSERT INTO ledger_transfers (transfer_id, kind, intent_id, debit_account, credit_account, amount_minor, currency,
                fence_epoch, fence_counter) VALUES (99, '{kind}', '{intent}', 'a', 'b', {amount}, '{currency}', {fence})"
        )
    };
    let wrong = "does not carry its intent's fence, amount, currency and state";
    check(&[
        ("for a recorded intent", insert("post", "r-1", "100", "EUR", "0, 0"), wrong),
        ("for one in flight", insert("post", "r-2", "100", "EUR", "3, 7"), wrong),
        ("a reverse of a success", insert("reverse", "r-4", "100", "EUR", "3, 7"), wrong),
        ("another amount", insert("post", "r-4", "99", "EUR", "3, 7"), wrong),
        ("another currency", insert("post", "r-4", "100", "USD", "3, 7"), wrong),
        ("an old fence", insert("post", "r-4", "100", "EUR", "3, 6"), wrong),
        ("a later fence", insert("post", "r-4", "100", "EUR", "4, 7"), wrong),
        ("no fence", insert("post", "r-4", "100", "EUR", "3, NULL"), "NOT NULL"),
        ("an amount that is no integer", insert("post", "r-4", "100.5", "EUR", "3, 7"), "REAL"),
        ("another kind", insert("adjust", "r-3", "100", "EUR", "3, 7"), "ledger_transfers_kind"),
        ("an unknown intent", insert("post", "r-7", "100", "EUR", "3, 7"), wrong),
        ("a second time", insert("post", "r-3", "100", "EUR", "3, 7"), "ledger_transfers_one_per_intent_and_kind"),
    ])
    .await;
}

#[tokio::test]
async fn evidence_is_neither_rewritten_nor_removed_nor_invented() {
    let tables = [
        ("refund_attempts", "deadline = 0"),
        ("refund_outcomes", "outcome = 'absent'"),
        ("ledger_transfers", "amount_minor = 1"),
        ("intent_inbox", "message = '{}'"),
        ("intent_inbox_unread", "intent_id = 'r-2'"),
        ("breaks", "detail = ''"),
        ("audit_log", "reason = ''"),
    ];
    let mut cases: Vec<(&str, String, &str)> = Vec::new();
    for (table, change) in tables {
        cases.push((table, format!("UPDATE {table} SET {change}"), "rows are never changed"));
        cases.push((table, format!("UPDATE OR REPLACE {table} SET {change}"), "rows are never changed"));
        cases.push((table, format!("UPDATE OR IGNORE {table} SET {change}"), "rows are never changed"));
        if table != "intent_inbox_unread" {
            cases.push((table, format!("DELETE FROM {table}"), "rows are never deleted"));
        }
    }
    let attempt = "INSERT INTO refund_attempts (attempt_id, intent_id, kind, token_epoch, token_counter, session_id, installed_version,
        idempotency_key, started_at, deadline) VALUES ('a', 'r-2', 'lookup', 3, 8, 's', 3, 'key_r-2', 0, 0)";
    let unread = "is not read by the change its intent has just made";
    let reading = "BEGIN; INSERT INTO intent_inbox_readings (inbox_id, version) VALUES (1, 2); DELETE FROM intent_inbox_unread; COMMIT;";
    let again = "BEGIN; UPDATE refund_intents SET version = 2, stamp_version = 2, fence_epoch = 3, stamp_epoch = 3, fence_counter = 8,
            stamp_counter = 8 WHERE intent_id = 'r-1';
        INSERT INTO intent_inbox_readings (inbox_id, version) VALUES (1, 2); DELETE FROM intent_inbox_unread;
        INSERT INTO intent_inbox_unread VALUES (1, 'r-1'); COMMIT;";
    let fork =
        "INSERT INTO audit_log SELECT 2, actor, action, object, reason, before, after, 0, previous, 'h' FROM audit_log";
    cases.extend([
        ("an attempt its intent has not open", attempt.to_owned(), "is not the one its intent has open"),
        ("a message made read", "DELETE FROM intent_inbox_unread".to_owned(), unread),
        ("a message read by no change", reading.to_owned(), unread),
        ("a fork of the audit log", fork.to_owned(), "audit_log_previous_key"),
        (
            "an outcome of no attempt",
            "INSERT INTO refund_outcomes (attempt_id, outcome, detail, duration_ms, late) VALUES ('a', 'absent', '{}', 1, 0)".to_owned(),
            "refund_outcomes_attempt",
        ),
        (
            "a message for no intent",
            "INSERT INTO intent_inbox (inbox_id, intent_id, source_id, message) VALUES (9, 'r-9', 's-9', '{}')".to_owned(),
            "intent_inbox_intent",
        ),
        (
            "a twin of no message",
            "INSERT INTO intent_inbox_unread VALUES (9, 'r-1')".to_owned(),
            "intent_inbox_unread_twin",
        ),
        ("a message made unread again", again.to_owned(), "intent_inbox_unread_twin"),
    ]);
    check(&cases).await;
}

/// Copies a row with some columns changed over the row that has the keys left unchanged.
fn replace(verb: &str, table: &str, keep: &str, changes: &str) -> String {
    format!(
        "CREATE TEMP TABLE copy AS SELECT * FROM {table} WHERE {keep}; UPDATE copy SET {changes};
         {verb} INTO {table} SELECT * FROM copy;"
    )
}

#[tokio::test]
async fn replace_does_not_slip_past_the_ban_on_deleting() {
    let by_key = [
        ("refund_intents", "intent_id = 'r-1'", "amount_minor = 1", "refund_intents_pkey"),
        ("refund_intents", "intent_id = 'r-1'", "intent_id = 'r-9', amount_minor = 1", "refund_intents_key_unique"),
        ("payments", "payment_id = 'p-r-1'", "captured_minor = 1", "payments_pkey"),
        ("payments", "payment_id = 'p-r-1'", "payment_id = 'p-9'", "payments_psp_payment_key"),
        ("refund_attempts", "intent_id = 'r-2'", "deadline = 0", "refund_attempts_pkey"),
        ("refund_attempts", "intent_id = 'r-2'", "attempt_id = 'a'", "refund_attempts_version_key"),
        ("refund_outcomes", "1 LIMIT 1", "outcome = 'absent'", "refund_outcomes_pkey"),
        ("ledger_transfers", "1", "amount_minor = 1", "ledger_transfers_pkey"),
        ("ledger_transfers", "1", "transfer_id = '1'", "ledger_transfers_pkey"),
        ("ledger_transfers", "1", "transfer_id = 9, amount_minor = 1", "ledger_transfers_one_per_intent_and_kind"),
        ("intent_inbox", "1", "message = '{}'", "intent_inbox_pkey"),
        ("intent_inbox", "1", "inbox_id = 9", "intent_inbox_source_key"),
        ("intent_inbox_unread", "1", "intent_id = 'r-2'", "intent_inbox_unread_pkey"),
        ("breaks", "1", "detail = ''", "breaks_pkey"),
        ("lease_epochs", "epoch = 3", "generation = ''", "lease_epochs_pkey"),
        ("audit_log", "1", "reason = ''", "audit_log_pkey"),
        ("audit_log", "1", "audit_id = 9, previous = 'p'", "audit_log_hash_key"),
    ];
    let mut cases: Vec<(&str, String, &str)> = Vec::new();
    for (table, keep, changes, reason) in by_key {
        for verb in ["INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE"] {
            cases.push((table, replace(verb, table, keep, changes), reason));
        }
    }
    let tables = ["refund_intents", "payments", "refund_attempts", "refund_outcomes", "ledger_transfers"];
    for table in tables {
        cases.push((table, format!("INSERT OR REPLACE INTO {table} (rowid) VALUES (1)"), "no column named rowid"));
    }
    let stamp = "version = 3, fence_counter = 8, stamp_counter = 8, stamp_version = 3";
    let other_key =
        format!("UPDATE OR REPLACE refund_intents SET {stamp}, idempotency_key = 'key_r-1' WHERE intent_id = 'r-2'");
    let other_id = format!("UPDATE OR REPLACE refund_intents SET {stamp}, intent_id = 'r-1' WHERE intent_id = 'r-2'");
    cases.extend([
        ("another intent's key", other_key, "identity, amount, currency, key and body never change"),
        ("another intent's id", other_id, "identity, amount, currency, key and body never change"),
        (
            "another payment's name",
            "UPDATE OR REPLACE payments SET psp_payment_ref = 'pi_p-r-1' WHERE payment_id = 'p-r-2'".to_owned(),
            "of a payment only the counters change",
        ),
        (
            "another epoch's number",
            "UPDATE OR REPLACE lease_epochs SET epoch = 3 WHERE epoch = 2".to_owned(),
            "of an epoch only the revision mark rises",
        ),
        (
            "an upsert",
            "INSERT INTO payments SELECT * FROM payments WHERE payment_id = 'p-r-1' ON CONFLICT DO UPDATE SET captured_minor = 1".to_owned(),
            "rows are never replaced",
        ),
    ]);
    check(&cases).await;
}

#[tokio::test]
async fn of_payments_and_epochs_only_counters_and_marks_change() {
    let payment = "of a payment only the counters change";
    let epoch = "of an epoch only the revision mark rises";
    check(&[
        ("captured", "UPDATE payments SET captured_minor = 99999", payment),
        ("currency", "UPDATE payments SET currency = 'USD'", payment),
        ("provider", "UPDATE payments SET psp = 'other'", payment),
        ("charged back falls", "UPDATE payments SET charged_back_minor = -1", payment),
        ("a counter set back by its default", "UPDATE OR REPLACE payments SET reserved_minor = NULL", payment),
        ("a counter below zero", "UPDATE payments SET reserved_minor = -1", "payments_reserved_not_negative"),
        ("payment deleted", "DELETE FROM payments", "rows are never deleted"),
        ("epoch", "UPDATE lease_epochs SET epoch = 4 WHERE epoch = 3", epoch),
        ("generation", "UPDATE lease_epochs SET generation = 'other'", epoch),
        ("mark falls", "UPDATE lease_epochs SET highest_revision = -1", epoch),
        ("epoch deleted", "DELETE FROM lease_epochs", "rows are never deleted"),
        ("an epoch brought back", "UPDATE lease_epochs SET superseded_at = NULL WHERE epoch = 2", epoch),
        (
            "an epoch below",
            "BEGIN; INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (5, 'sql', 'g', 'x');
             INSERT INTO lease_epochs (epoch, backend, generation, registered_by) VALUES (4, 'sql', 'g', 'x'); COMMIT;",
            "registered above all others",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_legal_change_under_a_later_token_passes() {
    let store = fixture().await;
    let sql = "BEGIN IMMEDIATE;
        UPDATE refund_intents SET state = 'succeeded', version = 3, fence_epoch = 3, fence_counter = 8, stamp_epoch = 3,
            stamp_counter = 8, stamp_version = 3, holder_session = NULL, open_attempt = NULL, next_action = 'none',
            next_action_at = NULL WHERE intent_id = 'r-2';
        INSERT INTO ledger_transfers (transfer_id, kind, intent_id, debit_account, credit_account, amount_minor, currency, fence_epoch,
            fence_counter) VALUES (9, 'post', 'r-2', 'customer_refunds:EUR', 'psp_clearing:acme:EUR', 100, 'EUR', 3, 8);
        UPDATE payments SET reserved_minor = reserved_minor - 100, refunded_minor = refunded_minor + 100 WHERE payment_id = 'p-r-2';
        UPDATE lease_epochs SET highest_revision = 8 WHERE epoch = 3;
        COMMIT;
        SELECT state, version, fence_counter FROM refund_intents WHERE intent_id = 'r-2';
        SELECT epoch FROM lease_epochs WHERE superseded_at IS NULL;";
    assert_eq!(sqlite3(store.file(), sql).unwrap(), "succeeded|3|8\n3\n");
    let story = store.story(&crate::store_suite::fixture::intent_id("r-2")).await.unwrap().unwrap();
    assert_eq!(story.transfers.len(), 1);
    assert_eq!(story.attempts[0].attempt_id, attempt_id("r-2", 7));
}
