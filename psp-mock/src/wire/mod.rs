//! Stripe's wire format: forms in, JSON objects and error objects out. Owned by this crate, shared with no client.

pub(crate) mod currency;
pub(crate) mod error;
pub(crate) mod form;
pub(crate) mod objects;
pub(crate) mod page;

pub(crate) use currency::Currency;
pub(crate) use error::ApiError;
pub(crate) use form::Form;
