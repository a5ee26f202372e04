-- Open steps of sessions that are not alive. The sessions of open steps are walked from one to the next in the index, so the steps
-- of live ones are not read. OFFSET 0 keeps the planner from starting at the account.
WITH RECURSIVE session(id) AS (
    (SELECT holder_session FROM refund_intents WHERE holder_session IS NOT NULL ORDER BY holder_session LIMIT 1)
    UNION ALL
    SELECT (SELECT n.holder_session FROM refund_intents n WHERE n.holder_session > s.id ORDER BY n.holder_session LIMIT 1)
    FROM session s WHERE s.id IS NOT NULL)
SELECT i.intent_id, i.next_action_at
FROM session s
CROSS JOIN LATERAL (SELECT o.* FROM refund_intents o WHERE o.holder_session = s.id OFFSET 0) i
WHERE s.id <> ALL($4::uuid[]) AND i.psp = $1 AND i.psp_account = $2 AND i.machine_version = $3
ORDER BY i.next_action_at, i.intent_id LIMIT $5
