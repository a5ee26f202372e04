//! The memory provider's book: refunds, keys, and what is still to happen. All of it synchronous; time is an argument.

use super::made::{MadeRefunds, Order, Shortage};
use super::script::{Counters, Executes, LookupScript, Script, Tells};
use chrono::{DateTime, TimeDelta, Utc};
use jobs::ids::IntentId;
use jobs::refund::intent::Intent;
use jobs::refund::outcome::{Outcome, PspRefund, Rejection, RejectionClass};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Provider account and idempotency key.
type KeyName = (String, String);

#[derive(Debug)]
struct Key {
    body: Vec<u8>,
    first_used: DateTime<Utc>,
    /// What the first create with it came to; empty while that is under way.
    result: Option<Outcome>,
}

/// A call that is held: a create that is to execute, or a caller that waits, or both.
#[derive(Debug)]
struct Held {
    intent_id: IntentId,
    /// Executed at the release.
    work: Option<Work>,
    /// What its caller will be told, unless the work says otherwise.
    truth: Outcome,
    released: bool,
    caller_waits: bool,
}

#[derive(Debug, Clone)]
struct Work {
    key: KeyName,
    order: Order,
    script: Script,
}

/// What a call gets: an answer, or a number to wait with.
#[derive(Debug)]
pub(super) enum Reply {
    Now(Outcome),
    Wait(u64),
}

#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) made: MadeRefunds,
    keys: BTreeMap<KeyName, Key>,
    pub(super) create_scripts: BTreeMap<IntentId, VecDeque<Script>>,
    pub(super) lookup_scripts: BTreeMap<IntentId, VecDeque<LookupScript>>,
    held: BTreeMap<u64, Held>,
    due: BTreeMap<(DateTime<Utc>, u64), Work>,
    pub(super) counters: BTreeMap<IntentId, Counters>,
    last_number: u64,
}

impl Book {
    pub(super) fn create(&mut self, intent: &Intent, key_lifetime: TimeDelta, now: DateTime<Utc>) -> Reply {
        self.apply_due(now);
        let counters = self.counters.entry(intent.intent_id.clone()).or_default();
        counters.creates += 1;
        let script = pop(&mut self.create_scripts, &intent.intent_id).unwrap_or_default();
        if let Tells::NotExecuted { retry_after_ms } = script.tells {
            return Reply::Now(Outcome::NotExecuted { reason: "429".to_owned(), retry_after_ms });
        }
        if script.executes == Executes::Never && script.tells == Tells::Nothing {
            return Reply::Now(lost());
        }
        let name = (intent.psp_account.clone(), intent.idempotency_key.clone());
        if self.keys.get(&name).is_some_and(|key| now - key.first_used >= key_lifetime) {
            self.keys.remove(&name);
        }
        if let Some(key) = self.keys.get(&name) {
            counters.repeated += 1;
            let told = match (&key.result, key.body == intent.create_body) {
                (_, false) => refused("idempotency_error", RejectionClass::KeyReused),
                (None, true) => Outcome::Unknown { reason: "409 idempotency_key_in_use".to_owned() },
                (Some(result), true) => result.clone(),
            };
            return Reply::Now(if script.tells == Tells::Nothing { lost() } else { told });
        }
        let Ok(order) = serde_json::from_slice::<Order>(&intent.create_body) else {
            return Reply::Now(refused("parameter_invalid", RejectionClass::Final));
        };
        self.begin(Work { key: name, order, script }, &intent.create_body, now)
    }

    fn begin(&mut self, work: Work, body: &[u8], now: DateTime<Utc>) -> Reply {
        if let Tells::Refused(rejection) = &work.script.tells {
            let told = Outcome::Rejected { rejection: rejection.clone() };
            if rejection.stored_under_key {
                self.keys.insert(work.key, Key { body: body.to_vec(), first_used: now, result: Some(told.clone()) });
            }
            return Reply::Now(told);
        }
        self.keys.insert(work.key.clone(), Key { body: body.to_vec(), first_used: now, result: None });
        let Script { executes, tells, .. } = work.script.clone();
        let intent_id = work.order.intent_id.clone();
        let (truth, held_work) = match executes {
            Executes::AtOnce => (Some(self.execute(&work, now)), None),
            Executes::Never => (Some(self.settle(&work, stored_error())), None),
            Executes::OnRelease => (None, Some(work)),
            Executes::After(delay) => {
                let number = self.next_number();
                self.due.insert((now + delay, number), work);
                (None, None)
            }
        };
        let waits = tells == Tells::NothingUntilReleased;
        if waits || held_work.is_some() {
            let number = self.next_number();
            let truth = truth.clone().unwrap_or_else(lost);
            let held = Held { intent_id, work: held_work, truth, released: false, caller_waits: waits };
            self.held.insert(number, held);
            if waits {
                return Reply::Wait(number);
            }
        }
        Reply::Now(match tells {
            Tells::StoredError => stored_error(),
            Tells::Nothing => lost(),
            _ => truth.unwrap_or_else(lost),
        })
    }

    /// Makes the refund if the payment has enough left, and closes the key.
    fn execute(&mut self, work: &Work, now: DateTime<Utc>) -> Outcome {
        let Work { key: (account, _), order, script } = work;
        if let Some(shortage) = self.made.shortage(account, order) {
            return self.settle(work, short(shortage));
        }
        let refund = PspRefund {
            psp_refund_ref: self.made.next_reference(),
            status: script.status,
            amount: script.makes.unwrap_or(order.amount),
            reason: script.reason.clone(),
        };
        self.counters.entry(order.intent_id.clone()).or_default().executed += 1;
        self.made.add(account, order, refund.clone(), now + script.hidden_for);
        self.settle(work, Outcome::Accepted { refund })
    }

    /// Stores what the key will repeat; a server error hides the truth from it for good.
    fn settle(&mut self, work: &Work, truth: Outcome) -> Outcome {
        let stored = if work.script.tells == Tells::StoredError { stored_error() } else { truth.clone() };
        if let Some(key) = self.keys.get_mut(&work.key) {
            key.result = Some(stored);
        }
        truth
    }

    pub(super) fn lookup(&mut self, intent: &Intent, now: DateTime<Utc>) -> Reply {
        self.apply_due(now);
        self.counters.entry(intent.intent_id.clone()).or_default().lookups += 1;
        match pop(&mut self.lookup_scripts, &intent.intent_id) {
            None => Reply::Now(self.made.read(intent, now)),
            Some(LookupScript::BreaksOff) => Reply::Now(lost()),
            Some(LookupScript::NotExecuted { retry_after_ms }) => {
                Reply::Now(Outcome::NotExecuted { reason: "429".to_owned(), retry_after_ms })
            }
            Some(LookupScript::Held) => {
                let (number, intent_id) = (self.next_number(), intent.intent_id.clone());
                // The provider reads when it answers, so this is only a place holder.
                let truth = Outcome::Absent;
                self.held.insert(number, Held { intent_id, work: None, truth, released: false, caller_waits: true });
                Reply::Wait(number)
            }
        }
    }

    /// Lets everything of this intent go on that was held.
    pub(super) fn release(&mut self, intent_id: &IntentId, now: DateTime<Utc>) {
        self.apply_due(now);
        let ours = |held: &Held| held.intent_id == *intent_id && !held.released;
        let numbers: Vec<u64> = self.held.iter().filter(|(_, held)| ours(held)).map(|(number, _)| *number).collect();
        for number in numbers {
            let Some(mut held) = self.held.remove(&number) else { continue };
            if let Some(work) = held.work.take() {
                held.truth = self.execute(&work, now);
            }
            if held.caller_waits {
                self.held.insert(number, Held { released: true, ..held });
            }
        }
    }

    /// The answer a waiting caller was released with.
    pub(super) fn take_answer(&mut self, number: u64) -> Option<Outcome> {
        if !self.held.get(&number)?.released {
            return None;
        }
        self.held.remove(&number).map(|held| held.truth)
    }

    /// The caller gave up; what it asked for may still execute.
    pub(super) fn give_up(&mut self, number: u64) {
        if let Some(held) = self.held.get_mut(&number) {
            held.caller_waits = false;
            if held.work.is_none() {
                self.held.remove(&number);
            }
        }
    }

    /// Carries out what the clock has reached.
    pub(super) fn apply_due(&mut self, now: DateTime<Utc>) {
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), work) = entry.remove_entry();
            let outcome = self.execute(&work, at);
            tracing::trace!(?outcome, "a late create executed");
        }
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

fn pop<T>(scripts: &mut BTreeMap<IntentId, VecDeque<T>>, intent_id: &IntentId) -> Option<T> {
    scripts.get_mut(intent_id)?.pop_front()
}

/// The caller's side of a broken connection.
pub(super) fn lost() -> Outcome {
    Outcome::Unknown { reason: "connection lost".to_owned() }
}

fn stored_error() -> Outcome {
    Outcome::Unknown { reason: "500 api_error".to_owned() }
}

fn short(shortage: Shortage) -> Outcome {
    match shortage {
        Shortage::UsedUp => refused("charge_already_refunded", RejectionClass::AlreadyRefunded),
        Shortage::TooMuch => refused("amount_too_large", RejectionClass::Final),
    }
}

fn refused(code: &str, class: RejectionClass) -> Outcome {
    let stored_under_key = code == "charge_already_refunded";
    Outcome::Rejected {
        rejection: Rejection { code: code.to_owned(), message: code.to_owned(), stored_under_key, class },
    }
}

/// Time in the form the book counts in; longer than a century is a century.
pub(super) fn time_delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::days(36_500))
}
