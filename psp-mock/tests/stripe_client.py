"""Drives the mock with Stripe's official client: only the base address is changed.

Usage: stripe_client.py BASE_URL. Ends with status 0 when everything is as Stripe's client expects it.
The webhook endpoint runs in this process; the mock is told about it through /_mock/webhook.
"""

import http.server
import json
import queue
import sys
import threading
import urllib.request

import stripe

BASE = sys.argv[1]
SECRET = "whsec_python"
client = stripe.StripeClient("sk_test_python", base_addresses={"api": BASE}, max_network_retries=0)
v1 = client.v1


def admin(path, body):
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{BASE}/_mock/{path}", data, headers)).read()


def refused(kind, code, call):
    try:
        call()
    except kind as error:
        assert error.code == code, f"{error.code!r} instead of {code!r}: {error}"
        assert error.request_id.startswith("req_"), error.request_id
        return error
    raise AssertionError(f"{kind.__name__} {code} was expected")


def listen():
    """Starts an endpoint for events; what it gets comes out of the queue as (body, signature)."""
    events = queue.Queue()

    class Endpoint(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            events.put((body, self.headers["stripe-signature"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    admin("webhook", {"url": f"http://127.0.0.1:{server.server_port}/hook", "secret": SECRET})
    return events


def pay(amount):
    params = {"amount": amount, "currency": "eur", "confirm": True, "payment_method": "pm_card_visa"}
    payment = v1.payment_intents.create(params)
    assert payment.status == "succeeded" and payment.latest_charge.startswith("ch_"), payment
    return payment


def payments_and_charges():
    payment = pay(2000)
    assert v1.payment_intents.retrieve(payment.id).amount == 2000
    assert payment.id in [p.id for p in v1.payment_intents.list({"limit": 5}).data]
    charge = v1.charges.create({"amount": 700, "currency": "usd", "source": "tok_visa"})
    assert v1.charges.retrieve(charge.id).amount == 700
    assert v1.refunds.create({"charge": charge.id}).amount == 700
    assert v1.charges.retrieve(charge.id).refunded is True


def one_refund(events):
    payment = pay(1000)
    params = {
        "payment_intent": payment.id,
        "amount": 300,
        "reason": "requested_by_customer",
        "metadata": {"intent_id": "rf_1", "order": "42"},
    }
    refund = v1.refunds.create(params, {"idempotency_key": "key-1"})
    assert (refund.object, refund.status, refund.amount) == ("refund", "succeeded", 300), refund
    assert refund.metadata["intent_id"] == "rf_1"
    again = v1.refunds.create(params, {"idempotency_key": "key-1"})
    assert again.id == refund.id and again.last_response.headers["idempotent-replayed"] == "true"
    assert v1.refunds.retrieve(refund.id).charge == payment.latest_charge
    updated = v1.refunds.update(refund.id, {"metadata": {"order": "", "note": "x"}})
    assert updated.metadata.to_dict() == {"intent_id": "rf_1", "note": "x"}, updated.metadata
    transaction = v1.balance_transactions.retrieve(refund.balance_transaction)
    assert (transaction.amount, transaction.type, transaction.source) == (-300, "refund", refund.id)

    body, signature = events.get(timeout=10)
    event = stripe.Webhook.construct_event(body, signature, SECRET)
    assert event.type == "refund.created" and event.data.object.id == refund.id, event
    try:
        stripe.Webhook.construct_event(body, signature, "whsec_other")
        raise AssertionError("a wrong secret was accepted")
    except stripe.SignatureVerificationError:
        pass

    reused = dict(params, amount=301)
    refused(stripe.IdempotencyError, None, lambda: v1.refunds.create(reused, {"idempotency_key": "key-1"}))


def lists():
    payment = pay(10_000)
    made = [v1.refunds.create({"payment_intent": payment.id, "amount": 1 + n}).id for n in range(25)]
    newest_first = made[::-1]
    page = v1.refunds.list({"payment_intent": payment.id, "limit": 10})
    assert [r.id for r in page.data] == newest_first[:10] and page.has_more
    assert [r.id for r in page.auto_paging_iter()] == newest_first
    since = {"charge": payment.latest_charge, "created": {"gte": payment.created}, "limit": 100}
    assert len(v1.refunds.list(since).data) == 25
    assert v1.refunds.list({"charge": payment.latest_charge, "created": {"lt": payment.created - 60}}).data == []
    assert [t.source for t in v1.balance_transactions.list({"source": made[0]}).auto_paging_iter()] == [made[0]]


def cancel():
    payment = pay(500)
    admin("faults", {"match": {"payment": payment.id}, "effects": [{"kind": "insufficient_funds"}]})
    refund = v1.refunds.create({"payment_intent": payment.id})
    assert (refund.status, refund.pending_reason) == ("pending", "insufficient_funds"), refund
    assert v1.refunds.cancel(refund.id).status == "canceled"


def errors():
    payment = pay(100)
    invalid = stripe.InvalidRequestError
    create = v1.refunds.create
    over = refused(invalid, None, lambda: create({"payment_intent": payment.id, "amount": 101}))
    assert (over.param, over.http_status) == ("amount", 400), over
    create({"payment_intent": payment.id})
    refused(invalid, "charge_already_refunded", lambda: create({"payment_intent": payment.id}))
    missing = refused(invalid, "resource_missing", lambda: create({"payment_intent": "pi_none"}))
    assert (missing.param, missing.http_status) == ("payment_intent", 404), missing
    refused(invalid, "parameter_missing", lambda: create({}))
    disputed = pay(100)
    admin("disputes", {"payment": disputed.id})
    refused(invalid, "charge_disputed", lambda: create({"payment_intent": disputed.id}))
    admin("faults", {"effects": [{"kind": "rate_limited", "retry_after_s": 1}]})
    # The client keeps no code for this class.
    refused(stripe.RateLimitError, None, lambda: create({"payment_intent": "pi_none"}))
    admin("faults", {"effects": [{"kind": "error_not_executed"}]})
    refused(stripe.APIError, None, lambda: create({"payment_intent": "pi_none"}))
    stranger = stripe.StripeClient("pk_public", base_addresses={"api": BASE}).v1
    refused(stripe.AuthenticationError, None, lambda: stranger.refunds.list())


def lost_answer_is_repaired_by_the_clients_own_retry():
    payment = pay(100)
    patient = stripe.StripeClient("sk_test_python", base_addresses={"api": BASE}, max_network_retries=2).v1
    admin("faults", {"match": {"payment": payment.id}, "effects": [{"kind": "answer_lost"}]})
    refund = patient.refunds.create({"payment_intent": payment.id})
    assert [r.id for r in v1.refunds.list({"payment_intent": payment.id}).data] == [refund.id]


payments_and_charges()
one_refund(listen())
lists()
cancel()
errors()
lost_answer_is_repaired_by_the_clients_own_retry()
print(f"stripe {stripe.VERSION}: everything as expected")
