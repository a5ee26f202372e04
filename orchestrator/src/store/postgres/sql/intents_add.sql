-- Placeholders, in id order; a known intent_id is left out and not among the rows returned.
INSERT INTO refund_intents (intent_id, payment_id, psp, psp_account, psp_payment_ref, merchant_reference, refund_reason, currency,
    amount_minor, idempotency_key, create_body, machine_version, state, version, fence_epoch, fence_counter, stamp_epoch,
    stamp_counter, stamp_version, next_action, next_action_at, timeline, created_at, updated_at)
SELECT n.intent_id, n.payment_id, n.psp, n.psp_account, n.psp_payment_ref, n.merchant_reference, n.refund_reason, n.currency,
    n.amount_minor, n.idempotency_key, n.create_body, $13, 'recorded', 1, 0, 0, 0, 0, 1, 'create', coalesce(n.due_at, w.now),
    w.timeline, w.now, w.now
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
            $10::text[], $11::bytea[], $12::timestamptz[])
     AS n(intent_id, payment_id, psp, psp_account, psp_payment_ref, merchant_reference, refund_reason, currency, amount_minor,
          idempotency_key, create_body, due_at),
     (SELECT clock_timestamp() AS now, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint AS timeline
      OFFSET 0) AS w
ON CONFLICT (intent_id) DO NOTHING
RETURNING intent_id, next_action_at, created_at, timeline
