-- The guarded change of many intents: those that lost are not among the rows returned.
-- $1..$14 are one array per column, sorted by intent_id, which is the lock order. The old row tells what the amount counted as.
WITH epoch AS (SELECT epoch FROM lease_epochs WHERE superseded_at IS NULL FOR SHARE)
UPDATE refund_intents AS i SET
    state = c.state,
    state_reason = c.state_reason,
    psp_refund_ref = c.psp_refund_ref,
    version = i.version + 1,
    fence_epoch = c.token_epoch,
    fence_counter = c.token_counter,
    stamp_epoch = c.token_epoch,
    stamp_counter = c.token_counter,
    stamp_version = i.version + 1,
    holder_session = c.holder_session,
    open_attempt = c.open_attempt,
    next_action = c.next_action,
    next_action_at = c.next_action_at,
    rung = c.rung,
    timeline = (SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint),
    updated_at = (SELECT clock_timestamp())
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::uuid[], $7::text[], $8::text[], $9::text[],
            $10::uuid[], $11::uuid[], $12::text[], $13::timestamptz[], $14::integer[])
     WITH ORDINALITY AS c(intent_id, expected_version, token_epoch, token_counter, below, expected_open_attempt, state, state_reason,
            psp_refund_ref, holder_session, open_attempt, next_action, next_action_at, rung, position)
JOIN epoch ON epoch.epoch = c.token_epoch
JOIN refund_intents AS o ON o.intent_id = c.intent_id AND o.version = c.expected_version
WHERE i.intent_id = c.intent_id
  AND i.version = c.expected_version
  AND i.open_attempt IS NOT DISTINCT FROM c.expected_open_attempt
  AND CASE WHEN c.below THEN (i.fence_epoch, i.fence_counter) < (c.token_epoch, c.token_counter)
           ELSE (i.fence_epoch, i.fence_counter) = (c.token_epoch, c.token_counter) END
RETURNING c.position, o.state, i.payment_id, i.psp, i.amount_minor, i.currency
