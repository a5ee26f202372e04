//! A mock payment service provider that speaks Stripe's wire format and goes wrong on demand.
//!
//! It is the adversary that the rest of this workspace is tested against, so it shares no type with it: it owns its wire types and
//! judges by its own book. Use it as a process (`psp-mock`) or start one inside a test with [`Mock::start`].
//!
//! - Calls: payment intents, charges, refunds, balance transactions, as far as refunding needs them; Stripe's own client libraries
//!   work with only their base address changed.
//! - Idempotency keys by Stripe's documented rules, forgotten after their lifetime.
//! - Faults, scripted ([`Fault`]) or drawn from the seed ([`FaultRate`]); events with Stripe's signature; a settlement report.
//! - Admin calls under `/_mock/`, the same as the methods of [`Mock`].
//!
//! Left out: everything else that Stripe has, `expand[]`, API version differences, TLS, and state across restarts.

mod book;
mod clock;
mod config;
mod faults;
mod ids;
mod mock;
mod server;
mod settlement;
mod state;
mod webhooks;
mod wire;

pub use book::{AddedPayment, BookPage, BookQuery, BookedRefund, Payment};
pub use config::{Config, FaultRate, LatencyOn, Webhook, parse_duration, parse_fault_rate};
pub use faults::{CallKind, Effect, Executes, Fault, Gap, How, Match, WebhookFault};
pub use mock::{Mock, Refused};
pub use settlement::ReportQuery;
pub use state::tallies::{IntentCounters, Totals};
