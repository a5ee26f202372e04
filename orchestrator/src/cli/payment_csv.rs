//! Payments in a CSV file, checked line by line before anything is sent.
//!
//! Columns, in any order, by heading: `payment_id`, `psp`, `psp_payment_ref`, `currency` and one of `amount` and `amount_minor`; and if wanted
//! `psp_account`, `merchant_reference`, `charged_back_minor`. An empty cell is an absent one.

use crate::api::amount::{parse_decimal, parse_minor};
use jobs::ids::PaymentId;
use jobs::money::Currency;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const COLUMNS: [&str; 9] = [
    "payment_id",
    "psp",
    "psp_account",
    "psp_payment_ref",
    "merchant_reference",
    "currency",
    "amount",
    "amount_minor",
    "charged_back_minor",
];
const NEEDED: [&str; 4] = ["payment_id", "psp", "psp_payment_ref", "currency"];

/// A line that can not be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    pub line: u64,
    pub reason: String,
}

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CsvPayments {
    /// Bodies for the API, one per good line.
    pub payments: Vec<Value>,
    pub bad: Vec<BadRow>,
}

/// Reads and checks a whole file. `known_psps` are the names the server is configured for.
#[must_use]
pub fn read_payments(text: &[u8], known_psps: &[String]) -> CsvPayments {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text);
    let mut read = CsvPayments::default();
    let headings = match reader.headers() {
        Ok(headings) => headings.iter().map(str::to_owned).collect::<Vec<_>>(),
        Err(error) => {
            read.bad.push(BadRow { line: 1, reason: error.to_string() });
            return read;
        }
    };
    if let Err(reason) = check_headings(&headings) {
        read.bad.push(BadRow { line: 1, reason });
        return read;
    }
    let mut seen = BTreeMap::new();
    for record in reader.records() {
        let (line, row) = match record {
            Ok(record) => (record.position().map_or(0, csv::Position::line), check_row(&headings, &record, known_psps)),
            Err(error) => (error.position().map_or(0, csv::Position::line), Err(csv_reason(&error))),
        };
        match row {
            Ok((id, payment)) => match seen.insert(id.clone(), line) {
                Some(first) => {
                    read.bad.push(BadRow { line, reason: format!("payment_id {id} stands on line {first} already") })
                }
                None => read.payments.push(Value::Object(payment)),
            },
            Err(reason) => read.bad.push(BadRow { line, reason }),
        }
    }
    if read.payments.is_empty() && read.bad.is_empty() {
        read.bad.push(BadRow { line: 1, reason: "no payments below the headings".to_owned() });
    }
    read
}

fn csv_reason(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells under {expected_len} headings")
        }
        csv::ErrorKind::Utf8 { .. } => "not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}

fn check_headings(headings: &[String]) -> Result<(), String> {
    if let Some(unknown) = headings.iter().find(|heading| !COLUMNS.contains(&heading.as_str())) {
        return Err(format!("unknown heading {unknown:?}: known are {}", COLUMNS.join(", ")));
    }
    let has = |name: &str| headings.iter().filter(|heading| *heading == name).count();
    if let Some(missing) = NEEDED.into_iter().find(|name| has(name) == 0) {
        return Err(format!("no heading {missing}"));
    }
    if let Some(twice) = COLUMNS.into_iter().find(|name| has(name) > 1) {
        return Err(format!("heading {twice} stands twice"));
    }
    if has("amount") + has("amount_minor") != 1 {
        return Err("one heading of amount and amount_minor is needed".to_owned());
    }
    Ok(())
}

fn check_row(
    headings: &[String],
    record: &csv::StringRecord,
    known_psps: &[String],
) -> Result<(String, Map<String, Value>), String> {
    let filled = headings.iter().zip(record).filter(|(_, cell)| !cell.is_empty());
    let row: Map<String, Value> = filled.map(|(heading, cell)| (heading.clone(), Value::from(cell))).collect();
    let cell = |name: &str| row.get(name).and_then(Value::as_str);
    if let Some(missing) = NEEDED.into_iter().find(|name| cell(name).is_none()) {
        return Err(format!("{missing} is empty"));
    }
    let id = cell("payment_id").unwrap_or_default().to_owned();
    PaymentId::new(&id).map_err(|error| error.to_string())?;
    let psp = cell("psp").unwrap_or_default();
    if !known_psps.iter().any(|known| known == psp) {
        return Err(format!("PSP {psp:?} is not configured on the server"));
    }
    let currency: Currency =
        cell("currency").unwrap_or_default().parse().map_err(|error: jobs::money::CurrencyError| error.to_string())?;
    match (cell("amount"), cell("amount_minor")) {
        (Some(amount), _) => parse_decimal(amount, currency),
        (None, Some(minor)) => parse_minor(minor, currency),
        (None, None) => return Err("the amount is empty".to_owned()),
    }
    .map_err(|error| error.to_string())?;
    if let Some(text) = cell("charged_back_minor").filter(|text| !text.parse::<i64>().is_ok_and(|minor| minor >= 0)) {
        return Err(format!("charged_back_minor {text:?} is not zero or more minor units"));
    }
    Ok((id, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(text: &str) -> Vec<(u64, String)> {
        let read = read_payments(text.as_bytes(), &["acme".to_owned()]);
        read.bad.into_iter().map(|row| (row.line, row.reason)).collect()
    }

    #[test]
    fn good_lines_become_bodies() {
        let text = "\u{feff}payment_id, psp ,psp_payment_ref,currency,amount,merchant_reference\r\np-1,acme,pi_1,EUR,12.50,\r\np-2,acme,pi_2,JPY,500,o-2\r\n";
        let read = read_payments(text.as_bytes(), &["acme".to_owned()]);
        assert_eq!(read.bad, []);
        assert_eq!(read.payments.len(), 2);
        assert_eq!(read.payments[0].get("amount").unwrap(), "12.50");
        assert_eq!(read.payments[0].get("merchant_reference"), None);
    }

    #[test]
    fn every_bad_line_is_named_with_its_reason() {
        let head = "payment_id,psp,psp_payment_ref,currency,amount\n";
        let rows = "p 1,acme,pi_1,EUR,1.00\np-2,other,pi_2,EUR,1.00\np-3,acme,pi_3,eur,1.00\np-4,acme,pi_4,EUR,1.234\np-5,acme\np-6,acme,,EUR,1.00\np-7,acme,pi_7,EUR,1.00\np-7,acme,pi_8,EUR,1.00\np-9,acme,pi_9,EUR,\n";
        let found = bad(&format!("{head}{rows}"));
        assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 9, 10], "{found:?}");
        assert_eq!(found[6].1, "payment_id p-7 stands on line 8 already");
    }

    #[test]
    fn wrong_headings_refuse_the_file() {
        for head in [
            "",
            "payment_id,psp,psp_payment_ref,currency\n",
            "payment_id,psp,psp_payment_ref,currency,amount,amount_minor\n",
            "payment_id,psp,psp_payment_ref,currency,amount,colour\n",
            "payment_id,psp,currency,amount\n",
            "payment_id,psp,psp_payment_ref,currency,amount,amount\n",
            "payment_id,psp,psp_payment_ref,currency,amount\n",
        ] {
            assert_eq!(bad(head).len(), 1, "{head}");
        }
    }
}
