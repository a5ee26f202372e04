SELECT intent_id FROM (
    SELECT intent_id, created_at FROM refund_intents WHERE intent_id = $1
    UNION
    SELECT intent_id, created_at FROM refund_intents WHERE psp_refund_ref = $1
    UNION
    SELECT intent_id, created_at FROM refund_intents WHERE payment_id = $1
    UNION
    SELECT intent_id, created_at FROM refund_intents WHERE merchant_reference = $1
    UNION
    SELECT i.intent_id, i.created_at FROM payments p JOIN refund_intents i ON i.payment_id = p.payment_id WHERE p.psp_payment_ref = $1
    UNION
    SELECT i.intent_id, i.created_at FROM payments p JOIN refund_intents i ON i.payment_id = p.payment_id
     WHERE p.merchant_reference = $1
) AS hits
ORDER BY created_at DESC, intent_id DESC LIMIT $2
