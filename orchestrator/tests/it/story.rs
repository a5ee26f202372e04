//! What `refund show` tells for each state, compared with the checked-in text. Regenerate with BLESS=1.

use chrono::{DateTime, TimeDelta, Utc};
use jobs::ids::{AttemptId, IntentId, PaymentId, SessionId, Token};
use jobs::money::Money;
use jobs::refund::capabilities::Capabilities;
use jobs::refund::intent::{
    Attempt, AttemptKind, InboxMessage, InboxRow, Intent, MACHINE_VERSION, NextAction, RecordedOutcome,
};
use jobs::refund::outcome::{Outcome, PspRefund, Rejection, RejectionClass};
use jobs::refund::state::{PspStatus, State};
use orchestrator::api::story::{StoryView, story_view};
use orchestrator::cli::story_text;
use orchestrator::store::read::{Break, InboxEntry, InboxReading, Payment, PspPause, Story, Transfer};
use std::fmt::Write;
use uuid::Uuid;

const TOKEN: Token = Token { epoch: 1, counter: 7 };

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_083_200 + seconds, 0).unwrap()
}

fn eur(minor: i64) -> Money {
    Money { minor, currency: "EUR".parse().unwrap() }
}

/// A refund that was recorded at second 0 and is read at second 90.
fn story(state: State) -> Story {
    let intent = Intent {
        intent_id: IntentId::new("r-1").unwrap(),
        payment_id: PaymentId::new("p-1").unwrap(),
        psp: "acme".to_owned(),
        psp_account: "acct_1".to_owned(),
        psp_payment_ref: "pi_1".to_owned(),
        merchant_reference: Some("order-7".to_owned()),
        refund_reason: Some("arrived broken".to_owned()),
        amount: eur(1_250),
        idempotency_key: "rf1-key".to_owned(),
        create_body: b"amount=1250".to_vec(),
        machine_version: MACHINE_VERSION,
        state,
        state_reason: None,
        psp_refund_ref: None,
        version: 3,
        fence: TOKEN,
        holder_session: None,
        open_attempt: None,
        next_action: NextAction::None,
        next_action_at: None,
        rung: 0,
        timeline: 1,
        created_at: at(0),
        updated_at: at(60),
    };
    let payment = Payment {
        payment_id: PaymentId::new("p-1").unwrap(),
        psp: "acme".to_owned(),
        psp_account: "acct_1".to_owned(),
        psp_payment_ref: "pi_1".to_owned(),
        merchant_reference: None,
        captured: eur(10_000),
        charged_back_minor: 0,
        refunded_minor: 0,
        reserved_minor: 1_250,
        created_at: at(-86_400),
    };
    let (attempts, inbox, transfers, breaks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Story { now: at(90), intent, payment, attempts, inbox, transfers, breaks, psp_pause: None }
}

fn attempt(kind: AttemptKind, started: i64, outcome: Option<(i64, Outcome)>) -> Attempt {
    let create = kind == AttemptKind::Create;
    Attempt {
        attempt_id: AttemptId(Uuid::from_u128(u128::from((started + 1).unsigned_abs()))),
        intent_id: IntentId::new("r-1").unwrap(),
        kind,
        token: TOKEN,
        session: SessionId(Uuid::from_u128(0x00c0_ffee << 96)),
        installed_version: 2,
        started_at: at(started),
        deadline: at(started + 60),
        key_expires_at: Some(at(86_400)),
        absent_until: create.then(|| at(started + 360)),
        grounds: None,
        outcome: outcome.map(|(seconds, outcome)| RecordedOutcome {
            outcome,
            duration_ms: seconds * 1_000 + 25,
            late: false,
            recorded_at: at(started + seconds),
        }),
    }
}

fn refund(status: PspStatus, minor: i64, reason: Option<&str>) -> PspRefund {
    PspRefund { psp_refund_ref: "re_1".to_owned(), status, amount: eur(minor), reason: reason.map(str::to_owned) }
}

fn unknown(reason: &str) -> Outcome {
    Outcome::Unknown { reason: reason.to_owned() }
}

fn due(story: &mut Story, action: NextAction, seconds: i64) {
    story.intent.next_action = action;
    story.intent.next_action_at = Some(at(seconds));
}

fn message(story: &mut Story, seconds: i64, message: InboxMessage, reading: Option<Option<&str>>) {
    let inbox_id = i64::try_from(story.inbox.len()).unwrap() + 1;
    let row = InboxRow {
        inbox_id,
        intent_id: IntentId::new("r-1").unwrap(),
        source_id: format!("source-{inbox_id}"),
        message,
        received_at: at(seconds),
    };
    let applied = reading.map(|refused| InboxReading {
        refused_because: refused.map(str::to_owned),
        version: 3,
        applied_at: at(seconds + 1),
    });
    story.inbox.push(InboxEntry { row, applied });
}

fn transfer(kind: &str, seconds: i64) -> Transfer {
    let (debit, credit) = match kind {
        "post" => ("customer_refunds:EUR", "psp_clearing:acme:EUR"),
        _ => ("psp_clearing:acme:EUR", "customer_refunds:EUR"),
    };
    Transfer {
        transfer_id: 1,
        kind: kind.to_owned(),
        debit_account: debit.to_owned(),
        credit_account: credit.to_owned(),
        amount: eur(1_250),
        token: TOKEN,
        created_at: at(seconds),
    }
}

/// Every state, and what can be special about it.
fn stories() -> Vec<(&'static str, Story, Option<Capabilities>)> {
    let stripe = || Some(Capabilities::stripe());
    let mut stories = pending_stories();
    stories.extend(resting_stories());
    let mut other_version = story(State::Unknown);
    other_version.intent.machine_version = 2;
    due(&mut other_version, NextAction::Lookup, 80);
    stories.push(("left alone: unknown machine version", other_version, stripe()));
    let mut not_configured = story(State::Recorded);
    due(&mut not_configured, NextAction::Create, 0);
    stories.push(("left alone: PSP not configured", not_configured, None));
    let mut paused = story(State::Recorded);
    due(&mut paused, NextAction::Create, 0);
    let pause = PspPause {
        psp: "acme".to_owned(),
        actor: "local".to_owned(),
        reason: "they double everything".to_owned(),
        paused_at: at(30),
    };
    paused.psp_pause = Some(pause.clone());
    stories.push(("left alone: PSP paused", paused, stripe()));
    let mut paused_unknown = story(State::Unknown);
    paused_unknown.psp_pause = Some(pause);
    paused_unknown.attempts = vec![attempt(AttemptKind::Create, 1, Some((5, unknown("connection reset"))))];
    due(&mut paused_unknown, NextAction::Lookup, 95);
    stories.push(("unknown while its PSP is paused", paused_unknown, stripe()));
    stories
}

fn pending_stories() -> Vec<(&'static str, Story, Option<Capabilities>)> {
    let stripe = || Some(Capabilities::stripe());
    let mut recorded = story(State::Recorded);
    due(&mut recorded, NextAction::Create, 0);
    message(&mut recorded, 20, InboxMessage::Cancel { actor: "local".to_owned(), reason: "a typo".to_owned() }, None);

    let mut backing_off = story(State::Recorded);
    let busy = Outcome::NotExecuted { reason: "429 too many requests".to_owned(), retry_after_ms: Some(30_000) };
    backing_off.attempts = vec![attempt(AttemptKind::Create, 85, Some((1, busy)))];
    due(&mut backing_off, NextAction::Create, 115);

    let mut sending = story(State::Sending);
    let open = attempt(AttemptKind::Create, 60, None);
    (sending.intent.open_attempt, sending.intent.holder_session) = (Some(open.attempt_id), Some(open.session));
    sending.attempts = vec![open];
    due(&mut sending, NextAction::Lookup, 135);

    let mut lookup_due = story(State::Unknown);
    lookup_due.attempts = vec![
        attempt(AttemptKind::Create, 1, Some((60, unknown("no answer within 60 s")))),
        attempt(AttemptKind::Lookup, 62, Some((1, Outcome::Absent))),
    ];
    lookup_due.intent.rung = 1;
    due(&mut lookup_due, NextAction::Lookup, 3_690);
    let cancel = InboxMessage::Cancel { actor: "local".to_owned(), reason: "too late".to_owned() };
    message(&mut lookup_due, 63, cancel, Some(Some("a create was started")));

    let mut resend_due = story(State::Unknown);
    resend_due.attempts = vec![
        attempt(AttemptKind::Create, -600, Some((60, unknown("no answer within 60 s")))),
        attempt(AttemptKind::Lookup, 30, Some((1, Outcome::Absent))),
    ];
    resend_due.intent.created_at = at(-700);
    due(&mut resend_due, NextAction::Create, 90);

    let mut expired = story(State::Unknown);
    expired.now = at(200_000);
    expired.attempts = vec![attempt(AttemptKind::Create, 1, None)];
    due(&mut expired, NextAction::Lookup, 199_000);

    let mut processing = story(State::Processing);
    processing.intent.psp_refund_ref = Some("re_1".to_owned());
    processing.intent.state_reason = Some("insufficient_funds".to_owned());
    let accepted = Outcome::Accepted { refund: refund(PspStatus::Processing, 1_250, Some("insufficient_funds")) };
    processing.attempts = vec![attempt(AttemptKind::Create, 1, Some((45, accepted)))];
    due(&mut processing, NextAction::Lookup, 86_446);
    vec![
        ("recorded, with a cancel not read yet", recorded, stripe()),
        ("recorded, the PSP did not start on it", backing_off, stripe()),
        ("sending", sending, stripe()),
        ("unknown, a lookup is due", lookup_due, stripe()),
        ("unknown, a resend is due", resend_due, stripe()),
        ("unknown, the key has expired", expired, stripe()),
        ("processing", processing, stripe()),
    ]
}

fn resting_stories() -> Vec<(&'static str, Story, Option<Capabilities>)> {
    let stripe = || Some(Capabilities::stripe());
    let done = || Outcome::Accepted { refund: refund(PspStatus::Succeeded, 1_250, None) };

    let mut succeeded = story(State::Succeeded);
    succeeded.intent.psp_refund_ref = Some("re_1".to_owned());
    let mut resent = attempt(AttemptKind::Create, 50, Some((1, done())));
    resent.grounds = Some("absent after 00:08:21, key good until 2026-12-02 00:00:00".to_owned());
    succeeded.attempts = vec![attempt(AttemptKind::Create, 1, Some((5, unknown("connection reset")))), resent];
    succeeded.transfers = vec![transfer("post", 51)];
    (succeeded.payment.reserved_minor, succeeded.payment.refunded_minor) = (0, 1_250);

    let mut failed = story(State::Failed);
    failed.intent.state_reason = Some("charge_disputed".to_owned());
    let rejection = Rejection {
        code: "charge_disputed".to_owned(),
        message: "The charge is disputed.".to_owned(),
        stored_under_key: true,
        class: RejectionClass::Final,
    };
    failed.attempts = vec![attempt(AttemptKind::Create, 1, Some((1, Outcome::Rejected { rejection })))];
    failed.payment.reserved_minor = 0;

    let mut canceled = story(State::Canceled);
    canceled.intent.state_reason = Some("a typo".to_owned());
    canceled.payment.reserved_minor = 0;
    let cancel = InboxMessage::Cancel { actor: "local".to_owned(), reason: "a typo".to_owned() };
    message(&mut canceled, 20, cancel, Some(None));

    let mut reversed = story(State::Reversed);
    reversed.intent.state_reason = Some("lost_or_stolen_card".to_owned());
    reversed.attempts = vec![attempt(AttemptKind::Create, 1, Some((1, done())))];
    reversed.transfers = vec![transfer("post", 2), transfer("reverse", 71)];
    reversed.payment.reserved_minor = 0;
    let notice = InboxMessage::ProviderNotice { event_id: "evt_1".to_owned(), event_type: "refund.failed".to_owned() };
    message(&mut reversed, 70, notice, Some(None));

    let mut parked = story(State::NeedsReview);
    parked.intent.state_reason = Some("the PSP shows 49.00 EUR under our reference, asked were 12.50 EUR".to_owned());
    parked.intent.psp_refund_ref = Some("re_1".to_owned());
    let wrong = Outcome::Found { refunds: vec![refund(PspStatus::Succeeded, 4_900, None)] };
    parked.attempts = vec![attempt(AttemptKind::Create, 1, None), attempt(AttemptKind::Lookup, 62, Some((0, wrong)))];
    let detail = "re_1 is 49.00 EUR, asked were 12.50 EUR".to_owned();
    parked.breaks = vec![Break { break_id: 1, class: "amount_differs".to_owned(), detail, created_at: at(63) }];
    let late = InboxMessage::LateAnswer {
        attempt_id: AttemptId(Uuid::from_u128(2)),
        outcome: unknown("connection reset"),
        duration_ms: 61_000,
    };
    message(&mut parked, 64, late, None);
    vec![
        ("succeeded after a resend", succeeded, stripe()),
        ("failed", failed, stripe()),
        ("canceled", canceled, stripe()),
        ("reversed", reversed, stripe()),
        ("parked", parked, stripe()),
    ]
}

#[test]
fn the_story_of_every_state_is_the_checked_in_text() {
    let mut text = String::new();
    let mut states = Vec::new();
    for (name, story, capabilities) in stories() {
        states.push(story.intent.state);
        let view = story_view(&story, capabilities.as_ref());
        writeln!(text, "==== {name}\n{}", story_text(&view)).unwrap();
        let json = serde_json::to_string(&view).unwrap();
        assert_eq!(serde_json::from_str::<StoryView>(&json).unwrap(), view, "{name}");
    }
    for state in State::ALL {
        assert!(states.contains(&state), "no story is {state}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/story.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap_or_default(), "review it, then BLESS=1");
}

#[test]
fn times_are_told_in_the_two_largest_units() {
    for (away, expected) in [
        (TimeDelta::seconds(25), "(in 25 s)"),
        (TimeDelta::seconds(125), "(in 2 min 5 s)"),
        (TimeDelta::seconds(7_200), "(in 2 h)"),
        (TimeDelta::seconds(90_061), "(in 1 d 1 h)"),
        (TimeDelta::seconds(-125), "2 min 5 s ago)"),
        (TimeDelta::zero(), "now (at "),
    ] {
        let mut story = story(State::Recorded);
        story.intent.next_action = NextAction::Create;
        story.intent.next_action_at = Some(story.now + away);
        let view = story_view(&story, Some(&Capabilities::stripe()));
        assert!(view.what_happens_next.contains(expected), "{away}: {}", view.what_happens_next);
    }
}
