-- Why: payments, intents with their evidence, the ledger, and the fences that refuse a stale or missing stamp whoever sends it.
-- The twin of migrations/postgres/0001_refunds.sql: same tables, columns and names. What differs, and why:
--   Times are integer microseconds since 1970 in UTC; ids of attempts and sessions are text; documents are text that must be JSON.
--   Tables are STRICT, so a sum that left 64 bits is refused and not silently stored as a float.
--   REPLACE deletes rows without firing DELETE triggers, found by primary key, by rowid or by another unique key. So protected tables
--   have no rowid, a BEFORE INSERT trigger refuses a key that exists, and key columns have no default and never change. Our own
--   writes are therefore INSERT ... SELECT ... WHERE NOT EXISTS. Nothing relies on PRAGMA recursive_triggers.
--   Numbers such as transfer_id are the highest plus one: there is one writer at a time, and rows are never deleted.
-- Left out, because whoever can write the file can do it: DROP TRIGGER, PRAGMA writable_schema, PRAGMA ignore_check_constraints,
-- PRAGMA foreign_keys = OFF (the fences below do not need foreign keys), and editing the file's bytes.
-- Written so that the sqlite3 program of Debian 12 (3.40) reads and fences the file as well.

CREATE TABLE payments (
    payment_id         TEXT    NOT NULL CONSTRAINT payments_pkey PRIMARY KEY,
    psp                TEXT    NOT NULL,
    psp_account        TEXT    NOT NULL,
    psp_payment_ref    TEXT    NOT NULL,
    merchant_reference TEXT,
    currency           TEXT    NOT NULL CONSTRAINT payments_currency CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    captured_minor     INTEGER NOT NULL CONSTRAINT payments_captured_positive CHECK (captured_minor > 0),
    charged_back_minor INTEGER NOT NULL DEFAULT 0 CONSTRAINT payments_charged_back_not_negative CHECK (charged_back_minor >= 0),
    -- Evidence may go beyond the capture; that is a break, not an error, so there is no upper CHECK.
    refunded_minor     INTEGER NOT NULL DEFAULT 0 CONSTRAINT payments_refunded_not_negative CHECK (refunded_minor >= 0),
    reserved_minor     INTEGER NOT NULL DEFAULT 0 CONSTRAINT payments_reserved_not_negative CHECK (reserved_minor >= 0),
    created_at         INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000),
    -- The provider's id leads, so that the same index finds a payment by it.
    CONSTRAINT payments_psp_payment_key UNIQUE (psp_payment_ref, psp, psp_account)
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_merchant_reference ON payments (merchant_reference) WHERE merchant_reference IS NOT NULL;

-- Which generation of which lease service tokens come from. Install and commit require the current (highest) epoch.
CREATE TABLE lease_epochs (
    epoch            INTEGER NOT NULL CONSTRAINT lease_epochs_pkey PRIMARY KEY CONSTRAINT lease_epochs_positive CHECK (epoch > 0),
    backend          TEXT    NOT NULL,
    generation       TEXT    NOT NULL,
    highest_revision INTEGER NOT NULL DEFAULT 0,
    registered_by    TEXT    NOT NULL,
    registered_at    INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000),
    -- Set when a later epoch is registered.
    superseded_at    INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE refund_intents (
    intent_id          TEXT    NOT NULL CONSTRAINT refund_intents_pkey PRIMARY KEY,
    payment_id         TEXT    NOT NULL CONSTRAINT refund_intents_payment REFERENCES payments,
    psp                TEXT    NOT NULL,
    psp_account        TEXT    NOT NULL,
    psp_payment_ref    TEXT    NOT NULL,
    merchant_reference TEXT,
    refund_reason      TEXT,
    currency           TEXT    NOT NULL CONSTRAINT refund_intents_currency CHECK (currency GLOB '[A-Z][A-Z][A-Z]'),
    amount_minor       INTEGER NOT NULL CONSTRAINT refund_intents_amount_positive CHECK (amount_minor > 0),
    idempotency_key    TEXT    NOT NULL CONSTRAINT refund_intents_key_length CHECK (length(idempotency_key) BETWEEN 1 AND 45),
    create_body        BLOB    NOT NULL,
    machine_version    INTEGER NOT NULL,
    state              TEXT    NOT NULL CONSTRAINT refund_intents_state CHECK (state IN
        ('recorded', 'sending', 'unknown', 'processing', 'succeeded', 'failed', 'canceled', 'reversed', 'needs_review')),
    state_reason       TEXT,
    psp_refund_ref     TEXT,
    version            INTEGER NOT NULL,
    fence_epoch        INTEGER NOT NULL,
    fence_counter      INTEGER NOT NULL,
    -- What the writer shows: its token and the version it writes. Compared by the triggers below.
    stamp_epoch        INTEGER NOT NULL,
    stamp_counter      INTEGER NOT NULL,
    stamp_version      INTEGER NOT NULL,
    holder_session     TEXT,
    open_attempt       TEXT,
    next_action        TEXT    NOT NULL CONSTRAINT refund_intents_next_action CHECK (next_action IN ('create', 'lookup', 'none')),
    next_action_at     INTEGER,
    rung               INTEGER NOT NULL DEFAULT 0 CONSTRAINT refund_intents_rung_not_negative CHECK (rung >= 0),
    timeline           INTEGER NOT NULL,
    created_at         INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000),
    updated_at         INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000),
    CONSTRAINT refund_intents_key_unique UNIQUE (psp, psp_account, idempotency_key),
    -- Nothing waits in silence: not final and not parked means a next action with a time.
    CONSTRAINT refund_intents_never_silent CHECK (
        CASE WHEN state IN ('succeeded', 'failed', 'canceled', 'reversed', 'needs_review')
             THEN (next_action = 'none') = (next_action_at IS NULL)
             ELSE next_action <> 'none' AND next_action_at IS NOT NULL END),
    CONSTRAINT refund_intents_parked_with_reason CHECK (state <> 'needs_review' OR state_reason IS NOT NULL),
    CONSTRAINT refund_intents_holder_with_attempt CHECK ((holder_session IS NULL) = (open_attempt IS NULL)),
    CONSTRAINT refund_intents_sending_is_open CHECK (state <> 'sending' OR open_attempt IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX refund_intents_due ON refund_intents (psp, psp_account, machine_version, next_action, next_action_at)
    WHERE next_action_at IS NOT NULL;
CREATE INDEX refund_intents_open ON refund_intents (holder_session) WHERE holder_session IS NOT NULL;
CREATE INDEX refund_intents_payment ON refund_intents (payment_id);
CREATE INDEX refund_intents_psp_refund ON refund_intents (psp_refund_ref) WHERE psp_refund_ref IS NOT NULL;
CREATE INDEX refund_intents_merchant_reference ON refund_intents (merchant_reference) WHERE merchant_reference IS NOT NULL;
CREATE INDEX refund_intents_created ON refund_intents (created_at, intent_id);
-- States a person lists and few intents are in; the way from recorded over sending to succeeded never touches it.
CREATE INDEX refund_intents_unusual ON refund_intents (state, created_at, intent_id)
    WHERE state IN ('unknown', 'processing', 'failed', 'canceled', 'reversed', 'needs_review');
-- Always empty, as refund_intents_never_silent says; the gauge that watches over it must not scan.
CREATE INDEX refund_intents_silent ON refund_intents (created_at)
    WHERE next_action_at IS NULL AND state IN ('recorded', 'sending', 'unknown', 'processing');

CREATE TABLE refund_attempts (
    attempt_id        TEXT    NOT NULL CONSTRAINT refund_attempts_pkey PRIMARY KEY,
    intent_id         TEXT    NOT NULL CONSTRAINT refund_attempts_intent REFERENCES refund_intents,
    kind              TEXT    NOT NULL CONSTRAINT refund_attempts_kind CHECK (kind IN ('create', 'lookup')),
    token_epoch       INTEGER NOT NULL,
    token_counter     INTEGER NOT NULL,
    session_id        TEXT    NOT NULL,
    installed_version INTEGER NOT NULL,
    idempotency_key   TEXT    NOT NULL,
    request_body      BLOB,
    started_at        INTEGER NOT NULL,
    deadline          INTEGER NOT NULL,
    key_expires_at    INTEGER,
    absent_until      INTEGER,
    grounds           TEXT,
    CONSTRAINT refund_attempts_version_key UNIQUE (intent_id, installed_version),
    CONSTRAINT refund_attempts_create_has_body CHECK (kind <> 'create' OR request_body IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE refund_outcomes (
    attempt_id  TEXT    NOT NULL CONSTRAINT refund_outcomes_pkey PRIMARY KEY CONSTRAINT refund_outcomes_attempt REFERENCES refund_attempts,
    outcome     TEXT    NOT NULL CONSTRAINT refund_outcomes_outcome CHECK (outcome IN
        ('accepted', 'rejected', 'not_executed', 'found', 'absent', 'unknown')),
    detail      TEXT    NOT NULL CONSTRAINT refund_outcomes_detail_json CHECK (json_valid(detail)),
    duration_ms INTEGER NOT NULL,
    late        INTEGER NOT NULL CONSTRAINT refund_outcomes_late_boolean CHECK (late IN (0, 1)),
    recorded_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
) STRICT, WITHOUT ROWID;

CREATE TABLE intent_inbox (
    inbox_id    INTEGER NOT NULL CONSTRAINT intent_inbox_pkey PRIMARY KEY,
    intent_id   TEXT    NOT NULL CONSTRAINT intent_inbox_intent REFERENCES refund_intents,
    source_id   TEXT    NOT NULL CONSTRAINT intent_inbox_source_key UNIQUE,
    message     TEXT    NOT NULL CONSTRAINT intent_inbox_message_json CHECK (json_valid(message)),
    received_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
) STRICT, WITHOUT ROWID;
CREATE INDEX intent_inbox_intent ON intent_inbox (intent_id);

-- Twin of the rows nobody has read yet; deleted in the fenced transaction that applies them.
CREATE TABLE intent_inbox_unread (
    inbox_id  INTEGER NOT NULL CONSTRAINT intent_inbox_unread_pkey PRIMARY KEY CONSTRAINT intent_inbox_unread_row REFERENCES intent_inbox,
    intent_id TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX intent_inbox_unread_intent ON intent_inbox_unread (intent_id);

CREATE TABLE intent_inbox_readings (
    inbox_id        INTEGER NOT NULL CONSTRAINT intent_inbox_readings_pkey PRIMARY KEY CONSTRAINT intent_inbox_readings_row REFERENCES intent_inbox,
    refused_because TEXT,
    version         INTEGER NOT NULL,
    applied_at      INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger_transfers (
    transfer_id    INTEGER NOT NULL CONSTRAINT ledger_transfers_pkey PRIMARY KEY,
    kind           TEXT    NOT NULL CONSTRAINT ledger_transfers_kind CHECK (kind IN ('post', 'reverse')),
    intent_id      TEXT    NOT NULL CONSTRAINT ledger_transfers_intent REFERENCES refund_intents,
    debit_account  TEXT    NOT NULL,
    credit_account TEXT    NOT NULL,
    amount_minor   INTEGER NOT NULL CONSTRAINT ledger_transfers_amount_positive CHECK (amount_minor > 0),
    currency       TEXT    NOT NULL,
    fence_epoch    INTEGER NOT NULL,
    fence_counter  INTEGER NOT NULL,
    created_at     INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000),
    CONSTRAINT ledger_transfers_one_per_intent_and_kind UNIQUE (intent_id, kind),
    CONSTRAINT ledger_transfers_two_accounts CHECK (debit_account <> credit_account)
) STRICT, WITHOUT ROWID;

CREATE TABLE breaks (
    break_id      INTEGER NOT NULL CONSTRAINT breaks_pkey PRIMARY KEY,
    class         TEXT    NOT NULL,
    intent_id     TEXT    NOT NULL CONSTRAINT breaks_intent REFERENCES refund_intents,
    detail        TEXT    NOT NULL,
    fence_epoch   INTEGER NOT NULL,
    fence_counter INTEGER NOT NULL,
    created_at    INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
) STRICT, WITHOUT ROWID;
CREATE INDEX breaks_intent ON breaks (intent_id);

CREATE TABLE psp_pauses (
    psp       TEXT    NOT NULL CONSTRAINT psp_pauses_pkey PRIMARY KEY,
    actor     TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    paused_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
) STRICT, WITHOUT ROWID;

-- What people and configuration did; machine steps are not in it. Each row's hash covers the one before.
CREATE TABLE audit_log (
    audit_id   INTEGER NOT NULL CONSTRAINT audit_log_pkey PRIMARY KEY,
    actor      TEXT    NOT NULL,
    action     TEXT    NOT NULL,
    object     TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    before     TEXT    CONSTRAINT audit_log_before_json CHECK (json_valid(before)),
    after      TEXT    CONSTRAINT audit_log_after_json CHECK (json_valid(after)),
    created_at INTEGER NOT NULL,
    -- One line, no fork: every row follows another one.
    previous   TEXT    NOT NULL CONSTRAINT audit_log_previous_key UNIQUE,
    hash       TEXT    NOT NULL CONSTRAINT audit_log_hash_key UNIQUE
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------------------------------------------------------
-- Fences. Each trigger names the rule in WHEN and says why in its message.

CREATE TRIGGER refund_intents_born_recorded BEFORE INSERT ON refund_intents FOR EACH ROW
    WHEN (NEW.state IS NOT 'recorded' OR NEW.version IS NOT 1 OR NEW.fence_epoch IS NOT 0 OR NEW.fence_counter IS NOT 0
        OR NEW.stamp_epoch IS NOT 0 OR NEW.stamp_counter IS NOT 0 OR NEW.stamp_version IS NOT 1 OR NEW.open_attempt IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'refund_intents: an intent is born recorded, at version 1, with no fence [refund_intents_born_recorded]'); END;

CREATE TRIGGER refund_intents_identity BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN ((NEW.intent_id, NEW.payment_id, NEW.psp, NEW.psp_account, NEW.psp_payment_ref, NEW.currency, NEW.amount_minor,
           NEW.idempotency_key, NEW.create_body, NEW.created_at, NEW.merchant_reference, NEW.refund_reason)
          IS NOT
          (OLD.intent_id, OLD.payment_id, OLD.psp, OLD.psp_account, OLD.psp_payment_ref, OLD.currency, OLD.amount_minor,
           OLD.idempotency_key, OLD.create_body, OLD.created_at, OLD.merchant_reference, OLD.refund_reason))
BEGIN SELECT RAISE(ABORT, 'refund_intents: identity, amount, currency, key and body never change [refund_intents_identity]'); END;

CREATE TRIGGER refund_intents_version BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN (NEW.version IS NOT OLD.version + 1)
BEGIN SELECT RAISE(ABORT, 'refund_intents: every change raises the version by one [refund_intents_version]'); END;

CREATE TRIGGER refund_intents_no_token BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN (NEW.stamp_version IS NOT NEW.version)
BEGIN SELECT RAISE(ABORT, 'refund_intents: no token: a change carries the stamp of its holder [refund_intents_no_token]'); END;

CREATE TRIGGER refund_intents_stale_token BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN ((NEW.stamp_epoch, NEW.stamp_counter) < (OLD.fence_epoch, OLD.fence_counter)
        OR NEW.stamp_epoch IS NULL OR NEW.stamp_counter IS NULL OR NEW.stamp_epoch <= 0)
BEGIN SELECT RAISE(ABORT, 'refund_intents: stale token: a later holder has written [refund_intents_stale_token]'); END;

CREATE TRIGGER refund_intents_fence_is_stamp BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN ((NEW.fence_epoch, NEW.fence_counter) IS NOT (NEW.stamp_epoch, NEW.stamp_counter))
BEGIN SELECT RAISE(ABORT, 'refund_intents: the fence is the token that was accepted [refund_intents_fence_is_stamp]'); END;

-- A transfer carries its intent's fence, amount and currency; the one writer holds the file, so no holder can move it meanwhile.
CREATE TRIGGER ledger_transfers_fence AFTER INSERT ON ledger_transfers FOR EACH ROW
    WHEN NOT EXISTS (SELECT 1 FROM refund_intents i WHERE i.intent_id = NEW.intent_id
        AND (i.fence_epoch, i.fence_counter) IS (NEW.fence_epoch, NEW.fence_counter)
        AND i.amount_minor IS NEW.amount_minor AND i.currency IS NEW.currency
        AND (CASE NEW.kind WHEN 'post' THEN i.state IN ('succeeded', 'reversed') WHEN 'reverse' THEN i.state = 'reversed' ELSE 0 END))
BEGIN SELECT RAISE(ABORT, 'ledger_transfers: the transfer does not carry its intent''s fence, amount, currency and state [ledger_transfers_fence]'); END;

-- An attempt is installed by the holder whose token the intent has just accepted.
CREATE TRIGGER refund_attempts_fence AFTER INSERT ON refund_attempts FOR EACH ROW
    WHEN NOT EXISTS (SELECT 1 FROM refund_intents i WHERE i.intent_id = NEW.intent_id
        AND i.open_attempt IS NEW.attempt_id AND i.version IS NEW.installed_version
        AND (i.fence_epoch, i.fence_counter) IS (NEW.token_epoch, NEW.token_counter)
        AND i.holder_session IS NEW.session_id AND i.idempotency_key IS NEW.idempotency_key
        AND (NEW.request_body IS NULL OR i.create_body IS NEW.request_body))
BEGIN SELECT RAISE(ABORT, 'refund_attempts: the attempt is not the one its intent has open [refund_attempts_fence]'); END;

-- What refers to a row has it, also where foreign keys are off, as they are in the sqlite3 program.
CREATE TRIGGER refund_intents_of_payment AFTER INSERT ON refund_intents FOR EACH ROW
    WHEN NOT EXISTS (SELECT 1 FROM payments p WHERE p.payment_id = NEW.payment_id
        AND (p.psp, p.psp_account, p.psp_payment_ref, p.currency) IS (NEW.psp, NEW.psp_account, NEW.psp_payment_ref, NEW.currency))
BEGIN SELECT RAISE(ABORT, 'refund_intents: the intent is not as its payment is [refund_intents_payment]'); END;
CREATE TRIGGER refund_outcomes_of_attempt AFTER INSERT ON refund_outcomes FOR EACH ROW
    WHEN NOT EXISTS (SELECT 1 FROM refund_attempts a WHERE a.attempt_id = NEW.attempt_id)
BEGIN SELECT RAISE(ABORT, 'refund_outcomes: this is no recorded attempt [refund_outcomes_attempt]'); END;
CREATE TRIGGER intent_inbox_of_intent AFTER INSERT ON intent_inbox FOR EACH ROW
    WHEN NOT EXISTS (SELECT 1 FROM refund_intents i WHERE i.intent_id = NEW.intent_id)
BEGIN SELECT RAISE(ABORT, 'intent_inbox: this is no recorded intent [intent_inbox_intent]'); END;

-- Only counters of a payment change, and what disputes took back never falls. A name that could change would let UPDATE OR REPLACE
-- delete the row whose name is taken; so with epochs.
CREATE TRIGGER payments_identity BEFORE UPDATE ON payments FOR EACH ROW
    WHEN ((NEW.payment_id, NEW.psp, NEW.psp_account, NEW.psp_payment_ref, NEW.merchant_reference, NEW.currency, NEW.captured_minor,
           NEW.created_at)
          IS NOT
          (OLD.payment_id, OLD.psp, OLD.psp_account, OLD.psp_payment_ref, OLD.merchant_reference, OLD.currency, OLD.captured_minor,
           OLD.created_at)
          OR NEW.charged_back_minor IS NULL OR NEW.charged_back_minor < OLD.charged_back_minor
          OR NEW.refunded_minor IS NULL OR NEW.reserved_minor IS NULL)
BEGIN SELECT RAISE(ABORT, 'payments: of a payment only the counters change, and what was charged back never falls [payments_identity]'); END;

-- Epochs follow one another; of a registered one only the revision mark rises and the end is written once.
CREATE TRIGGER lease_epochs_identity BEFORE UPDATE ON lease_epochs FOR EACH ROW
    WHEN ((NEW.epoch, NEW.backend, NEW.generation, NEW.registered_by, NEW.registered_at)
          IS NOT (OLD.epoch, OLD.backend, OLD.generation, OLD.registered_by, OLD.registered_at)
          OR NEW.highest_revision IS NULL OR NEW.highest_revision < OLD.highest_revision
          OR (OLD.superseded_at IS NOT NULL AND NEW.superseded_at IS NOT OLD.superseded_at))
BEGIN SELECT RAISE(ABORT, 'lease_epochs: of an epoch only the revision mark rises [lease_epochs_identity]'); END;

CREATE TRIGGER lease_epochs_follow AFTER INSERT ON lease_epochs FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'lease_epochs: an epoch is registered above all others [lease_epochs_follow]')
     WHERE NEW.superseded_at IS NOT NULL OR EXISTS (SELECT 1 FROM lease_epochs WHERE epoch > NEW.epoch);
    UPDATE lease_epochs SET superseded_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
     WHERE epoch < NEW.epoch AND superseded_at IS NULL;
END;

-- Nobody can leave a message without its twin, and no twin goes before its reading is written.
CREATE TRIGGER intent_inbox_twins AFTER INSERT ON intent_inbox FOR EACH ROW
BEGIN INSERT INTO intent_inbox_unread (inbox_id, intent_id) VALUES (NEW.inbox_id, NEW.intent_id); END;

-- A message is unread once: a twin that came back would have it applied again.
CREATE TRIGGER intent_inbox_unread_twin AFTER INSERT ON intent_inbox_unread FOR EACH ROW
    WHEN NOT EXISTS (SELECT 1 FROM intent_inbox m WHERE m.inbox_id = NEW.inbox_id AND m.intent_id = NEW.intent_id)
        OR EXISTS (SELECT 1 FROM intent_inbox_readings d WHERE d.inbox_id = NEW.inbox_id)
BEGIN SELECT RAISE(ABORT, 'intent_inbox_unread: the row is not the twin of a message that waits [intent_inbox_unread_twin]'); END;

CREATE TRIGGER intent_inbox_unread_read AFTER DELETE ON intent_inbox_unread FOR EACH ROW
    WHEN NOT EXISTS (SELECT 1 FROM intent_inbox_readings d JOIN refund_intents i ON i.intent_id = OLD.intent_id
                      WHERE d.inbox_id = OLD.inbox_id AND d.version = i.version)
BEGIN SELECT RAISE(ABORT, 'intent_inbox_unread: the row is not read by the change its intent has just made [intent_inbox_unread_read]'); END;

-- Evidence is append-only; intents and payments stay.
CREATE TRIGGER refund_attempts_append_only BEFORE UPDATE ON refund_attempts FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'refund_attempts: rows are never changed: write a new one [refund_attempts_append_only]'); END;
CREATE TRIGGER refund_outcomes_append_only BEFORE UPDATE ON refund_outcomes FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'refund_outcomes: rows are never changed: write a new one [refund_outcomes_append_only]'); END;
CREATE TRIGGER intent_inbox_append_only BEFORE UPDATE ON intent_inbox FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'intent_inbox: rows are never changed: write a new one [intent_inbox_append_only]'); END;
CREATE TRIGGER intent_inbox_unread_append_only BEFORE UPDATE ON intent_inbox_unread FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'intent_inbox_unread: rows are never changed: write a new one [intent_inbox_unread_append_only]'); END;
CREATE TRIGGER intent_inbox_readings_append_only BEFORE UPDATE ON intent_inbox_readings FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'intent_inbox_readings: rows are never changed: write a new one [intent_inbox_readings_append_only]'); END;
CREATE TRIGGER ledger_transfers_append_only BEFORE UPDATE ON ledger_transfers FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'ledger_transfers: rows are never changed: write a new one [ledger_transfers_append_only]'); END;
CREATE TRIGGER breaks_append_only BEFORE UPDATE ON breaks FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'breaks: rows are never changed: write a new one [breaks_append_only]'); END;
CREATE TRIGGER audit_log_append_only BEFORE UPDATE ON audit_log FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'audit_log: rows are never changed: write a new one [audit_log_append_only]'); END;

CREATE TRIGGER refund_intents_no_delete BEFORE DELETE ON refund_intents FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'refund_intents: rows are never deleted [refund_intents_no_delete]'); END;
CREATE TRIGGER payments_no_delete BEFORE DELETE ON payments FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'payments: rows are never deleted [payments_no_delete]'); END;
CREATE TRIGGER refund_attempts_no_delete BEFORE DELETE ON refund_attempts FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'refund_attempts: rows are never deleted [refund_attempts_no_delete]'); END;
CREATE TRIGGER refund_outcomes_no_delete BEFORE DELETE ON refund_outcomes FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'refund_outcomes: rows are never deleted [refund_outcomes_no_delete]'); END;
CREATE TRIGGER intent_inbox_no_delete BEFORE DELETE ON intent_inbox FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'intent_inbox: rows are never deleted [intent_inbox_no_delete]'); END;
CREATE TRIGGER intent_inbox_readings_no_delete BEFORE DELETE ON intent_inbox_readings FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'intent_inbox_readings: rows are never deleted [intent_inbox_readings_no_delete]'); END;
CREATE TRIGGER ledger_transfers_no_delete BEFORE DELETE ON ledger_transfers FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'ledger_transfers: rows are never deleted [ledger_transfers_no_delete]'); END;
CREATE TRIGGER breaks_no_delete BEFORE DELETE ON breaks FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'breaks: rows are never deleted [breaks_no_delete]'); END;
CREATE TRIGGER lease_epochs_no_delete BEFORE DELETE ON lease_epochs FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'lease_epochs: rows are never deleted [lease_epochs_no_delete]'); END;
CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log FOR EACH ROW
BEGIN SELECT RAISE(ABORT, 'audit_log: rows are never deleted [audit_log_no_delete]'); END;

-- REPLACE would delete them all the same: a key that exists is refused before the conflict is resolved.
CREATE TRIGGER refund_intents_no_replace BEFORE INSERT ON refund_intents FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'refund_intents: rows are never replaced: this key exists [refund_intents_pkey]')
     WHERE EXISTS (SELECT 1 FROM refund_intents o WHERE o.intent_id = NEW.intent_id);
    SELECT RAISE(ABORT, 'refund_intents: rows are never replaced: this key exists [refund_intents_key_unique]')
     WHERE EXISTS (SELECT 1 FROM refund_intents o WHERE o.psp = NEW.psp AND o.psp_account = NEW.psp_account AND o.idempotency_key = NEW.idempotency_key);
END;
CREATE TRIGGER payments_no_replace BEFORE INSERT ON payments FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'payments: rows are never replaced: this key exists [payments_pkey]')
     WHERE EXISTS (SELECT 1 FROM payments o WHERE o.payment_id = NEW.payment_id);
    SELECT RAISE(ABORT, 'payments: rows are never replaced: this key exists [payments_psp_payment_key]')
     WHERE EXISTS (SELECT 1 FROM payments o WHERE o.psp_payment_ref = NEW.psp_payment_ref AND o.psp = NEW.psp AND o.psp_account = NEW.psp_account);
END;
CREATE TRIGGER refund_attempts_no_replace BEFORE INSERT ON refund_attempts FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'refund_attempts: rows are never replaced: this key exists [refund_attempts_pkey]')
     WHERE EXISTS (SELECT 1 FROM refund_attempts o WHERE o.attempt_id = NEW.attempt_id);
    SELECT RAISE(ABORT, 'refund_attempts: rows are never replaced: this key exists [refund_attempts_version_key]')
     WHERE EXISTS (SELECT 1 FROM refund_attempts o WHERE o.intent_id = NEW.intent_id AND o.installed_version = NEW.installed_version);
END;
CREATE TRIGGER refund_outcomes_no_replace BEFORE INSERT ON refund_outcomes FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'refund_outcomes: rows are never replaced: this key exists [refund_outcomes_pkey]')
     WHERE EXISTS (SELECT 1 FROM refund_outcomes o WHERE o.attempt_id = NEW.attempt_id);
END;
CREATE TRIGGER intent_inbox_no_replace BEFORE INSERT ON intent_inbox FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'intent_inbox: rows are never replaced: this key exists [intent_inbox_pkey]')
     WHERE EXISTS (SELECT 1 FROM intent_inbox o WHERE o.inbox_id = NEW.inbox_id);
    SELECT RAISE(ABORT, 'intent_inbox: rows are never replaced: this key exists [intent_inbox_source_key]')
     WHERE EXISTS (SELECT 1 FROM intent_inbox o WHERE o.source_id = NEW.source_id);
END;
CREATE TRIGGER intent_inbox_unread_no_replace BEFORE INSERT ON intent_inbox_unread FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'intent_inbox_unread: rows are never replaced: this key exists [intent_inbox_unread_pkey]')
     WHERE EXISTS (SELECT 1 FROM intent_inbox_unread o WHERE o.inbox_id = NEW.inbox_id);
END;
CREATE TRIGGER intent_inbox_readings_no_replace BEFORE INSERT ON intent_inbox_readings FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'intent_inbox_readings: rows are never replaced: this key exists [intent_inbox_readings_pkey]')
     WHERE EXISTS (SELECT 1 FROM intent_inbox_readings o WHERE o.inbox_id = NEW.inbox_id);
END;
CREATE TRIGGER ledger_transfers_no_replace BEFORE INSERT ON ledger_transfers FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'ledger_transfers: rows are never replaced: this key exists [ledger_transfers_pkey]')
     WHERE EXISTS (SELECT 1 FROM ledger_transfers o WHERE o.transfer_id = NEW.transfer_id);
    SELECT RAISE(ABORT, 'ledger_transfers: rows are never replaced: this key exists [ledger_transfers_one_per_intent_and_kind]')
     WHERE EXISTS (SELECT 1 FROM ledger_transfers o WHERE o.intent_id = NEW.intent_id AND o.kind = NEW.kind);
END;
CREATE TRIGGER breaks_no_replace BEFORE INSERT ON breaks FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'breaks: rows are never replaced: this key exists [breaks_pkey]')
     WHERE EXISTS (SELECT 1 FROM breaks o WHERE o.break_id = NEW.break_id);
END;
CREATE TRIGGER lease_epochs_no_replace BEFORE INSERT ON lease_epochs FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'lease_epochs: rows are never replaced: this key exists [lease_epochs_pkey]')
     WHERE EXISTS (SELECT 1 FROM lease_epochs o WHERE o.epoch = NEW.epoch);
END;
CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log FOR EACH ROW
BEGIN
    SELECT RAISE(ABORT, 'audit_log: rows are never replaced: this key exists [audit_log_pkey]')
     WHERE EXISTS (SELECT 1 FROM audit_log o WHERE o.audit_id = NEW.audit_id);
    SELECT RAISE(ABORT, 'audit_log: rows are never replaced: this key exists [audit_log_previous_key]')
     WHERE EXISTS (SELECT 1 FROM audit_log o WHERE o.previous = NEW.previous);
    SELECT RAISE(ABORT, 'audit_log: rows are never replaced: this key exists [audit_log_hash_key]')
     WHERE EXISTS (SELECT 1 FROM audit_log o WHERE o.hash = NEW.hash);
END;
