-- Why: payments, intents with their evidence, the ledger, and the fences that refuse a stale or missing stamp whoever sends it.
-- On the way of every refund, references are checked by the statement triggers below, which look anyway and at more than the key;
-- a foreign key would look again, row by row, for a quarter of the database's work. What is referred to is never deleted or renamed.
-- The runtime role owns nothing here; the owner role runs migrations, and `migrate` grants the role `refund_runtime`, where it exists,
-- what it needs: DELETE only on tables without a `_no_delete` trigger, TRUNCATE and DDL on none.

CREATE TABLE payments (
    payment_id         text        NOT NULL CONSTRAINT payments_pkey PRIMARY KEY,
    psp                text        NOT NULL,
    psp_account        text        NOT NULL,
    psp_payment_ref    text        NOT NULL,
    merchant_reference text,
    currency           text        NOT NULL CONSTRAINT payments_currency CHECK (currency ~ '^[A-Z]{3}$'),
    captured_minor     bigint      NOT NULL CONSTRAINT payments_captured_positive CHECK (captured_minor > 0),
    charged_back_minor bigint      NOT NULL DEFAULT 0 CONSTRAINT payments_charged_back_not_negative CHECK (charged_back_minor >= 0),
    -- Evidence may go beyond the capture; that is a break, not an error, so there is no upper CHECK.
    refunded_minor     bigint      NOT NULL DEFAULT 0 CONSTRAINT payments_refunded_not_negative CHECK (refunded_minor >= 0),
    reserved_minor     bigint      NOT NULL DEFAULT 0 CONSTRAINT payments_reserved_not_negative CHECK (reserved_minor >= 0),
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The provider's id leads, so that the same index finds a payment by it.
    CONSTRAINT payments_psp_payment_key UNIQUE (psp_payment_ref, psp, psp_account)
) WITH (fillfactor = 60); -- Room for two moves of the counters in the same page: then no index is touched.
CREATE INDEX payments_merchant_reference ON payments (merchant_reference) WHERE merchant_reference IS NOT NULL;

-- Which generation of which lease service tokens come from. Install and commit require the current (highest) epoch.
CREATE TABLE lease_epochs (
    epoch            bigint      NOT NULL CONSTRAINT lease_epochs_pkey PRIMARY KEY CONSTRAINT lease_epochs_positive CHECK (epoch > 0),
    backend          text        NOT NULL,
    generation       text        NOT NULL,
    highest_revision bigint      NOT NULL DEFAULT 0,
    registered_by    text        NOT NULL,
    registered_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Set when a later epoch is registered. Writers of intents hold a share lock on the row that is not superseded, so a raise
    -- waits for them, and those that come after it find no such row.
    superseded_at    timestamptz
);

CREATE TABLE refund_intents (
    intent_id          text        NOT NULL CONSTRAINT refund_intents_pkey PRIMARY KEY,
    payment_id         text        NOT NULL,
    psp                text        NOT NULL,
    psp_account        text        NOT NULL,
    psp_payment_ref    text        NOT NULL,
    merchant_reference text,
    refund_reason      text,
    currency           text        NOT NULL CONSTRAINT refund_intents_currency CHECK (currency ~ '^[A-Z]{3}$'),
    amount_minor       bigint      NOT NULL CONSTRAINT refund_intents_amount_positive CHECK (amount_minor > 0),
    idempotency_key    text        NOT NULL CONSTRAINT refund_intents_key_length CHECK (length(idempotency_key) BETWEEN 1 AND 45),
    create_body        bytea       NOT NULL,
    machine_version    integer     NOT NULL,
    state              text        NOT NULL CONSTRAINT refund_intents_state CHECK (state IN
        ('recorded', 'sending', 'unknown', 'processing', 'succeeded', 'failed', 'canceled', 'reversed', 'needs_review')),
    state_reason       text,
    psp_refund_ref     text,
    version            bigint      NOT NULL,
    fence_epoch        bigint      NOT NULL,
    fence_counter      bigint      NOT NULL,
    -- What the writer shows: its token and the version it writes. Compared by the triggers below.
    stamp_epoch        bigint      NOT NULL,
    stamp_counter      bigint      NOT NULL,
    stamp_version      bigint      NOT NULL,
    holder_session     uuid,
    open_attempt       uuid,
    next_action        text        NOT NULL CONSTRAINT refund_intents_next_action CHECK (next_action IN ('create', 'lookup', 'none')),
    next_action_at     timestamptz,
    rung               integer     NOT NULL DEFAULT 0 CONSTRAINT refund_intents_rung_not_negative CHECK (rung >= 0),
    timeline           bigint      NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The key leads, so that nobody is tempted to walk all intents of an account in this index.
    CONSTRAINT refund_intents_key_unique UNIQUE (idempotency_key, psp, psp_account),
    -- Nothing waits in silence: not final and not parked means a next action with a time.
    CONSTRAINT refund_intents_never_silent CHECK (
        CASE WHEN state IN ('succeeded', 'failed', 'canceled', 'reversed', 'needs_review')
             THEN (next_action = 'none') = (next_action_at IS NULL)
             ELSE next_action <> 'none' AND next_action_at IS NOT NULL END),
    CONSTRAINT refund_intents_parked_with_reason CHECK (state <> 'needs_review' OR state_reason IS NOT NULL),
    CONSTRAINT refund_intents_holder_with_attempt CHECK ((holder_session IS NULL) = (open_attempt IS NULL)),
    CONSTRAINT refund_intents_sending_is_open CHECK (state <> 'sending' OR open_attempt IS NOT NULL)
) WITH (fillfactor = 70);
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
    attempt_id        uuid        NOT NULL CONSTRAINT refund_attempts_pkey PRIMARY KEY,
    intent_id         text        NOT NULL,
    kind              text        NOT NULL CONSTRAINT refund_attempts_kind CHECK (kind IN ('create', 'lookup')),
    token_epoch       bigint      NOT NULL,
    token_counter     bigint      NOT NULL,
    session_id        uuid        NOT NULL,
    installed_version bigint      NOT NULL,
    idempotency_key   text        NOT NULL,
    request_body      bytea,
    started_at        timestamptz NOT NULL,
    deadline          timestamptz NOT NULL,
    key_expires_at    timestamptz,
    absent_until      timestamptz,
    grounds           text,
    CONSTRAINT refund_attempts_version_key UNIQUE (intent_id, installed_version),
    CONSTRAINT refund_attempts_create_has_body CHECK (kind <> 'create' OR request_body IS NOT NULL)
);

CREATE TABLE refund_outcomes (
    attempt_id  uuid        NOT NULL CONSTRAINT refund_outcomes_pkey PRIMARY KEY,
    outcome     text        NOT NULL CONSTRAINT refund_outcomes_outcome CHECK (outcome IN
        ('accepted', 'rejected', 'not_executed', 'found', 'absent', 'unknown')),
    detail      jsonb       NOT NULL,
    duration_ms bigint      NOT NULL,
    late        boolean     NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE intent_inbox (
    inbox_id    bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT intent_inbox_pkey PRIMARY KEY,
    intent_id   text        NOT NULL CONSTRAINT intent_inbox_intent REFERENCES refund_intents,
    source_id   text        NOT NULL CONSTRAINT intent_inbox_source_key UNIQUE,
    message     jsonb       NOT NULL,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX intent_inbox_intent ON intent_inbox (intent_id);

-- Twin of the rows nobody has read yet; deleted in the fenced transaction that applies them. Never a high-water mark:
-- ids commit out of order.
CREATE TABLE intent_inbox_unread (
    inbox_id  bigint NOT NULL CONSTRAINT intent_inbox_unread_pkey PRIMARY KEY CONSTRAINT intent_inbox_unread_row REFERENCES intent_inbox,
    intent_id text   NOT NULL
);
CREATE INDEX intent_inbox_unread_intent ON intent_inbox_unread (intent_id);

CREATE TABLE intent_inbox_readings (
    inbox_id        bigint      NOT NULL CONSTRAINT intent_inbox_readings_pkey PRIMARY KEY CONSTRAINT intent_inbox_readings_row REFERENCES intent_inbox,
    refused_because text,
    version         bigint      NOT NULL,
    applied_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE ledger_transfers (
    transfer_id    bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT ledger_transfers_pkey PRIMARY KEY,
    kind           text        NOT NULL CONSTRAINT ledger_transfers_kind CHECK (kind IN ('post', 'reverse')),
    intent_id      text        NOT NULL,
    debit_account  text        NOT NULL,
    credit_account text        NOT NULL,
    amount_minor   bigint      NOT NULL CONSTRAINT ledger_transfers_amount_positive CHECK (amount_minor > 0),
    currency       text        NOT NULL,
    fence_epoch    bigint      NOT NULL,
    fence_counter  bigint      NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ledger_transfers_one_per_intent_and_kind UNIQUE (intent_id, kind),
    CONSTRAINT ledger_transfers_two_accounts CHECK (debit_account <> credit_account)
);

CREATE TABLE breaks (
    break_id      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY CONSTRAINT breaks_pkey PRIMARY KEY,
    class         text        NOT NULL,
    intent_id     text        NOT NULL CONSTRAINT breaks_intent REFERENCES refund_intents,
    detail        text        NOT NULL,
    fence_epoch   bigint      NOT NULL,
    fence_counter bigint      NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX breaks_intent ON breaks (intent_id);

CREATE TABLE psp_pauses (
    psp       text        NOT NULL CONSTRAINT psp_pauses_pkey PRIMARY KEY,
    actor     text        NOT NULL,
    reason    text        NOT NULL,
    paused_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What people and configuration did; machine steps are not in it. Each row's hash covers the one before.
CREATE TABLE audit_log (
    audit_id   bigint      NOT NULL CONSTRAINT audit_log_pkey PRIMARY KEY,
    actor      text        NOT NULL,
    action     text        NOT NULL,
    object     text        NOT NULL,
    reason     text        NOT NULL,
    before     jsonb,
    after      jsonb,
    created_at timestamptz NOT NULL,
    -- One line, no fork: every row follows another one.
    previous   text        NOT NULL CONSTRAINT audit_log_previous_key UNIQUE,
    hash       text        NOT NULL CONSTRAINT audit_log_hash_key UNIQUE
);

-- ---------------------------------------------------------------------------------------------------------------------------
-- Fences. One function says why; each trigger names the rule in WHEN, so a legal write costs no function call.

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: %', TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'RF001', CONSTRAINT = TG_NAME;
END $$;

CREATE TRIGGER refund_intents_born_recorded BEFORE INSERT ON refund_intents FOR EACH ROW
    WHEN (NEW.state <> 'recorded' OR NEW.version <> 1 OR NEW.fence_epoch <> 0 OR NEW.fence_counter <> 0
        OR NEW.stamp_epoch <> 0 OR NEW.stamp_counter <> 0 OR NEW.stamp_version <> 1 OR NEW.open_attempt IS NOT NULL)
    EXECUTE FUNCTION refuse('an intent is born recorded, at version 1, with no fence');

CREATE TRIGGER refund_intents_identity BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN ((NEW.intent_id, NEW.payment_id, NEW.psp, NEW.psp_account, NEW.psp_payment_ref, NEW.currency, NEW.amount_minor,
           NEW.idempotency_key, NEW.create_body, NEW.created_at, NEW.merchant_reference, NEW.refund_reason)
          IS DISTINCT FROM
          (OLD.intent_id, OLD.payment_id, OLD.psp, OLD.psp_account, OLD.psp_payment_ref, OLD.currency, OLD.amount_minor,
           OLD.idempotency_key, OLD.create_body, OLD.created_at, OLD.merchant_reference, OLD.refund_reason))
    EXECUTE FUNCTION refuse('identity, amount, currency, key and body never change');

CREATE TRIGGER refund_intents_version BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN (NEW.version IS DISTINCT FROM OLD.version + 1)
    EXECUTE FUNCTION refuse('every change raises the version by one');

CREATE TRIGGER refund_intents_no_token BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN (NEW.stamp_version IS DISTINCT FROM NEW.version)
    EXECUTE FUNCTION refuse('no token: a change carries the stamp of its holder');

CREATE TRIGGER refund_intents_stale_token BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN ((NEW.stamp_epoch, NEW.stamp_counter) < (OLD.fence_epoch, OLD.fence_counter)
        OR NEW.stamp_epoch IS NULL OR NEW.stamp_counter IS NULL OR NEW.stamp_epoch <= 0)
    EXECUTE FUNCTION refuse('stale token: a later holder has written');

CREATE TRIGGER refund_intents_fence_is_stamp BEFORE UPDATE ON refund_intents FOR EACH ROW
    WHEN ((NEW.fence_epoch, NEW.fence_counter) IS DISTINCT FROM (NEW.stamp_epoch, NEW.stamp_counter))
    EXECUTE FUNCTION refuse('the fence is the token that was accepted');

-- A transfer carries its intent's fence, amount and currency; read under a share lock so that no holder can move it meanwhile.
-- The lateral subqueries of these functions keep each look at an intent a look by its key, whatever the planner knew when it cached.
CREATE FUNCTION check_transfers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong text;
BEGIN
    SELECT c.intent_id INTO wrong FROM (
        SELECT n.intent_id, i.intent_id IS NOT NULL
               AND (i.fence_epoch, i.fence_counter) IS NOT DISTINCT FROM (n.fence_epoch, n.fence_counter)
               AND i.amount_minor = n.amount_minor AND i.currency = n.currency
               AND CASE n.kind WHEN 'post' THEN i.state IN ('succeeded', 'reversed') WHEN 'reverse' THEN i.state = 'reversed' ELSE false END
               AS good
          FROM (SELECT * FROM added ORDER BY intent_id) n
          LEFT JOIN LATERAL (SELECT i.* FROM refund_intents i WHERE i.intent_id = n.intent_id FOR SHARE) i ON true) c
     WHERE c.good IS NOT TRUE LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'ledger_transfers: the transfer for % does not carry its intent''s fence, amount, currency and state', wrong
            USING ERRCODE = 'RF001', CONSTRAINT = 'ledger_transfers_fence';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ledger_transfers_fence AFTER INSERT ON ledger_transfers
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION check_transfers();

-- An attempt is installed by the holder whose token the intent has just accepted.
CREATE FUNCTION check_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong text;
BEGIN
    SELECT n.intent_id INTO wrong FROM added n
      LEFT JOIN LATERAL (SELECT i.* FROM refund_intents i WHERE i.intent_id = n.intent_id FOR SHARE) i ON true
     WHERE i.intent_id IS NULL OR i.open_attempt IS DISTINCT FROM n.attempt_id OR i.version IS DISTINCT FROM n.installed_version
        OR (i.fence_epoch, i.fence_counter) IS DISTINCT FROM (n.token_epoch, n.token_counter)
        OR i.holder_session IS DISTINCT FROM n.session_id OR i.idempotency_key IS DISTINCT FROM n.idempotency_key
        OR (n.request_body IS NOT NULL AND i.create_body IS DISTINCT FROM n.request_body)
     LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'refund_attempts: the attempt for % is not the one its intent has open', wrong
            USING ERRCODE = 'RF001', CONSTRAINT = 'refund_attempts_fence';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER refund_attempts_fence AFTER INSERT ON refund_attempts
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION check_attempts();

-- An outcome is of a recorded attempt. The store passes no attempt at all where it is not one of the intent that is changed.
CREATE TRIGGER refund_outcomes_attempt BEFORE INSERT ON refund_outcomes FOR EACH ROW
    WHEN (NEW.attempt_id IS NULL)
    EXECUTE FUNCTION refuse('the outcome is of no attempt of its intent');

CREATE FUNCTION check_outcomes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong uuid;
BEGIN
    SELECT n.attempt_id INTO wrong FROM added n
      LEFT JOIN LATERAL (SELECT a.attempt_id FROM refund_attempts a WHERE a.attempt_id = n.attempt_id OFFSET 0) a ON true
     WHERE a.attempt_id IS NULL LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'refund_outcomes: % is no recorded attempt', wrong
            USING ERRCODE = 'RF001', CONSTRAINT = 'refund_outcomes_attempt';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER refund_outcomes_of_attempt AFTER INSERT ON refund_outcomes
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION check_outcomes();

-- An intent is of a payment, in its currency and at its place.
CREATE FUNCTION check_new_intents() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong text;
BEGIN
    SELECT n.intent_id INTO wrong FROM added n
      LEFT JOIN LATERAL (SELECT p.* FROM payments p WHERE p.payment_id = n.payment_id OFFSET 0) p ON true
     WHERE p.payment_id IS NULL OR (p.psp, p.psp_account, p.psp_payment_ref, p.currency)
           IS DISTINCT FROM (n.psp, n.psp_account, n.psp_payment_ref, n.currency)
     LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'refund_intents: % is not as its payment is', wrong
            USING ERRCODE = 'RF001', CONSTRAINT = 'refund_intents_payment';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER refund_intents_of_payment AFTER INSERT ON refund_intents
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION check_new_intents();

-- Only counters of a payment change, and what disputes took back never falls.
CREATE TRIGGER payments_identity BEFORE UPDATE ON payments FOR EACH ROW
    WHEN ((NEW.payment_id, NEW.psp, NEW.psp_account, NEW.psp_payment_ref, NEW.merchant_reference, NEW.currency, NEW.captured_minor,
           NEW.created_at)
          IS DISTINCT FROM
          (OLD.payment_id, OLD.psp, OLD.psp_account, OLD.psp_payment_ref, OLD.merchant_reference, OLD.currency, OLD.captured_minor,
           OLD.created_at)
          OR NEW.charged_back_minor < OLD.charged_back_minor)
    EXECUTE FUNCTION refuse('of a payment only the counters change, and what was charged back never falls');

-- Epochs follow one another; of a registered one only the revision mark rises and the end is written once.
CREATE TRIGGER lease_epochs_identity BEFORE UPDATE ON lease_epochs FOR EACH ROW
    WHEN ((NEW.epoch, NEW.backend, NEW.generation, NEW.registered_by, NEW.registered_at)
          IS DISTINCT FROM (OLD.epoch, OLD.backend, OLD.generation, OLD.registered_by, OLD.registered_at)
          OR NEW.highest_revision < OLD.highest_revision
          OR (OLD.superseded_at IS NOT NULL AND NEW.superseded_at IS DISTINCT FROM OLD.superseded_at))
    EXECUTE FUNCTION refuse('of an epoch only the revision mark rises');

CREATE FUNCTION supersede_epochs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM lease_epochs WHERE epoch > NEW.epoch) OR NEW.superseded_at IS NOT NULL THEN
        RAISE EXCEPTION 'lease_epochs: an epoch is registered above all others'
            USING ERRCODE = 'RF001', CONSTRAINT = 'lease_epochs_follow';
    END IF;
    UPDATE lease_epochs SET superseded_at = clock_timestamp() WHERE epoch < NEW.epoch AND superseded_at IS NULL;
    RETURN NULL;
END $$;
-- After the insert, so that an INSERT ... ON CONFLICT DO NOTHING of a known epoch supersedes nothing.
CREATE TRIGGER lease_epochs_follow AFTER INSERT ON lease_epochs FOR EACH ROW EXECUTE FUNCTION supersede_epochs();

-- Nobody can leave a message without its twin, and no twin goes before its reading is written.
CREATE FUNCTION add_unread_twins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO intent_inbox_unread (inbox_id, intent_id) SELECT inbox_id, intent_id FROM added;
    RETURN NULL;
END $$;
CREATE TRIGGER intent_inbox_twins AFTER INSERT ON intent_inbox
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_unread_twins();

CREATE FUNCTION check_twins_read() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong bigint;
BEGIN
    SELECT r.inbox_id INTO wrong FROM removed r
      LEFT JOIN LATERAL (SELECT d.version FROM intent_inbox_readings d WHERE d.inbox_id = r.inbox_id OFFSET 0) d ON true
      LEFT JOIN LATERAL (SELECT i.version FROM refund_intents i WHERE i.intent_id = r.intent_id OFFSET 0) i ON true
     WHERE d.version IS NULL OR d.version IS DISTINCT FROM i.version LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'intent_inbox_unread: row % is not read by the change its intent has just made', wrong
            USING ERRCODE = 'RF001', CONSTRAINT = 'intent_inbox_unread_read';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER intent_inbox_unread_read AFTER DELETE ON intent_inbox_unread
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION check_twins_read();

-- Evidence is append-only; intents and payments stay.
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['refund_attempts', 'refund_outcomes', 'intent_inbox', 'intent_inbox_unread', 'intent_inbox_readings',
                             'ledger_transfers', 'breaks', 'audit_log']
    LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION refuse(%L)',
            t || '_append_only', t, 'rows are never changed: write a new one');
    END LOOP;
    FOREACH t IN ARRAY ARRAY['refund_intents', 'payments', 'refund_attempts', 'refund_outcomes', 'intent_inbox', 'intent_inbox_readings',
                             'ledger_transfers', 'breaks', 'lease_epochs', 'audit_log']
    LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse(%L)',
            t || '_no_delete', t, 'rows are never deleted');
        EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse(%L)',
            t || '_no_truncate', t, 'rows are never deleted');
    END LOOP;
END $$;
CREATE TRIGGER intent_inbox_unread_no_truncate BEFORE TRUNCATE ON intent_inbox_unread FOR EACH STATEMENT
    EXECUTE FUNCTION refuse('a twin goes when its message is read');
