//! Amounts as a provider counts them. Some providers give a currency other decimal places than ISO 4217 does, or take only
//! multiples; the difference exists on the wire and nowhere else.

use super::{Currency, Money};
use crate::refund::capabilities::WireAmount;

/// Why an amount has no counterpart on the other side of the wire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("{amount} has more decimal places than the provider takes: send {places} at most")]
    TooPrecise { amount: Money, places: u32 },
    #[error("{amount} is {wire} for the provider, which takes multiples of {multiple_of} only")]
    NotAMultiple { amount: Money, wire: i64, multiple_of: i64 },
    #[error("{wire} of the provider's units of {currency} is no whole number of minor units")]
    NotWhole { wire: i64, currency: Currency },
    #[error("{value} of {currency} does not fit when its decimal places change")]
    TooLarge { value: i64, currency: Currency },
}

/// The amount in the provider's units.
pub fn to_wire(amount: Money, exceptions: &[WireAmount]) -> Result<i64, WireError> {
    let Some(exception) = exception_for(amount.currency, exceptions) else { return Ok(amount.minor) };
    let too_large = WireError::TooLarge { value: amount.minor, currency: amount.currency };
    let wire = match shift(amount.minor, amount.currency.exponent(), exception.exponent) {
        Shifted::Exact(wire) => wire,
        Shifted::Inexact => return Err(WireError::TooPrecise { amount, places: exception.exponent }),
        Shifted::TooLarge => return Err(too_large),
    };
    // A step below one is no step.
    let multiple_of = exception.multiple_of.max(1);
    if wire % multiple_of != 0 {
        return Err(WireError::NotAMultiple { amount, wire, multiple_of });
    }
    Ok(wire)
}

/// A provider's amount in our units. What the provider shows is evidence, so a step it would refuse is not held against it.
pub fn from_wire(wire: i64, currency: Currency, exceptions: &[WireAmount]) -> Result<Money, WireError> {
    let Some(exception) = exception_for(currency, exceptions) else { return Ok(Money::new(wire, currency)) };
    match shift(wire, exception.exponent, currency.exponent()) {
        Shifted::Exact(minor) => Ok(Money::new(minor, currency)),
        Shifted::Inexact => Err(WireError::NotWhole { wire, currency }),
        Shifted::TooLarge => Err(WireError::TooLarge { value: wire, currency }),
    }
}

fn exception_for(currency: Currency, exceptions: &[WireAmount]) -> Option<&WireAmount> {
    exceptions.iter().find(|exception| exception.currency == currency)
}

enum Shifted {
    Exact(i64),
    Inexact,
    TooLarge,
}

fn shift(value: i64, from_places: u32, to_places: u32) -> Shifted {
    let Some(unit) = 10_i64.checked_pow(from_places.abs_diff(to_places)) else { return Shifted::TooLarge };
    if to_places >= from_places {
        value.checked_mul(unit).map_or(Shifted::TooLarge, Shifted::Exact)
    } else if value % unit == 0 {
        Shifted::Exact(value / unit)
    } else {
        Shifted::Inexact
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::tests::money;

    fn exception(code: &str, exponent: u32, multiple_of: i64) -> WireAmount {
        WireAmount { currency: code.parse().unwrap(), exponent, multiple_of }
    }

    fn check(exceptions: &[WireAmount], amount: Money, expected: Result<i64, WireError>) {
        assert_eq!(to_wire(amount, exceptions), expected, "{amount}");
        if let Ok(wire) = expected {
            assert_eq!(from_wire(wire, amount.currency, exceptions), Ok(amount));
        }
    }

    #[test]
    fn only_the_wire_amount_follows_the_providers_exponents() {
        check(&[exception("UGX", 2, 1)], money(5, "UGX"), Ok(500));
        check(&[exception("ISK", 2, 1)], money(1_500, "ISK"), Ok(150_000));
        check(&[], money(1_148_000, "HUF"), Ok(1_148_000));
        check(&[exception("UGX", 2, 1)], money(5, "USD"), Ok(5));
        check(&[exception("MGA", 0, 1)], money(12_300, "MGA"), Ok(123));
    }

    #[test]
    fn what_the_provider_would_round_or_refuse_is_not_sent() {
        let huf = money(1_148_050, "HUF");
        check(
            &[exception("HUF", 2, 100)],
            huf,
            Err(WireError::NotAMultiple { amount: huf, wire: 1_148_050, multiple_of: 100 }),
        );
        check(&[exception("KWD", 3, 10)], money(18_600, "KWD"), Ok(18_600));
        let kwd = money(18_605, "KWD");
        check(
            &[exception("KWD", 3, 10)],
            kwd,
            Err(WireError::NotAMultiple { amount: kwd, wire: 18_605, multiple_of: 10 }),
        );
        let mga = money(12_345, "MGA");
        check(&[exception("MGA", 0, 1)], mga, Err(WireError::TooPrecise { amount: mga, places: 0 }));
        let ugx = money(i64::MAX, "UGX");
        check(&[exception("UGX", 2, 1)], ugx, Err(WireError::TooLarge { value: i64::MAX, currency: ugx.currency }));
        check(
            &[exception("UGX", 90, 1)],
            money(1, "UGX"),
            Err(WireError::TooLarge { value: 1, currency: ugx.currency }),
        );
    }

    #[test]
    fn a_step_of_nothing_asks_for_nothing() {
        check(&[exception("UGX", 2, 0)], money(5, "UGX"), Ok(500));
        check(&[exception("UGX", 2, -7)], money(5, "UGX"), Ok(500));
    }

    #[test]
    fn evidence_is_read_back_even_off_the_step_but_never_rounded() {
        let kwd = "KWD".parse().unwrap();
        assert_eq!(from_wire(18_605, kwd, &[exception("KWD", 3, 10)]), Ok(money(18_605, "KWD")));
        let ugx = "UGX".parse().unwrap();
        assert_eq!(
            from_wire(501, ugx, &[exception("UGX", 2, 100)]),
            Err(WireError::NotWhole { wire: 501, currency: ugx })
        );
    }
}
