//! The settlement report: it tells the book's story, except where a gap is scripted.

use crate::support::Psp;
use psp_mock::{Effect, Gap, Match, ReportQuery};
use std::collections::HashMap;
use std::time::Duration;

type Row = HashMap<String, String>;

fn rows(csv: &str) -> Vec<Row> {
    csv::Reader::from_reader(csv.as_bytes()).deserialize().collect::<Result<_, _>>().expect("is CSV")
}

fn report(psp: &Psp, query: &ReportQuery) -> Vec<Row> {
    rows(&psp.mock.settlement_report(query).expect("range is valid"))
}

/// `gross reference` of the lines that are not charges.
fn refunds(psp: &Psp, query: &ReportQuery) -> Vec<String> {
    let brief =
        |row: &Row| format!("{} {} {}", row["reporting_category"], row["gross"], row["refund_metadata[intent_id]"]);
    report(psp, query)
        .iter()
        .filter(|row| row["reporting_category"] != "charge")
        .map(|row| brief(row).trim_end().to_owned())
        .collect()
}

async fn two_refunds() -> Psp {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    psp.payment("b", 1000, "jpy");
    psp.refund("pi_a", "rf_1").await.expect("is answered");
    psp.refund("pi_b", "rf_2").await.expect("is answered");
    psp
}

#[tokio::test]
async fn the_report_lists_each_movement_in_major_units() {
    let psp = two_refunds().await;
    let all = report(&psp, &ReportQuery::default());
    assert_eq!(all.len(), 4);
    let line = all.iter().find(|row| row["refund_metadata[intent_id]"] == "rf_1").expect("is reported");
    let booked = &psp.mock.book(&psp_mock::BookQuery { intent: Some("rf_1".into()), ..Default::default() }).refunds[0];
    for (column, expected) in [
        ("source_id", booked.id.as_str()),
        ("reporting_category", "refund"),
        ("payment_intent_id", "pi_a"),
        ("charge_id", "ch_a"),
        ("currency", "eur"),
        ("gross", "-1.00"),
        ("fee", "0.00"),
        ("net", "-1.00"),
    ] {
        assert_eq!(line[column], expected, "{column}");
    }
    let charge = all.iter().find(|row| row["source_id"] == "ch_a").expect("is reported");
    assert_eq!((&*charge["gross"], &*charge["fee"], &*charge["net"]), ("10.00", "0.59", "9.41"));
    assert_eq!(refunds(&psp, &ReportQuery::default()), ["refund -1.00 rf_1", "refund -100 rf_2"]);
    let by_http = psp
        .client
        .get(format!("{}/_mock/settlement.csv?account=acct_mock", psp.mock.url()))
        .send()
        .await
        .expect("is answered");
    assert_eq!(rows(&by_http.text().await.expect("is text")), all);
}

#[tokio::test]
async fn each_gap_spoils_the_line_it_matches() {
    let cases: [(Gap, &[&str]); 6] = [
        (Gap::Missing, &["refund -100 rf_2"]),
        (Gap::Doubled, &["refund -1.00 rf_1", "refund -1.00 rf_1", "refund -100 rf_2"]),
        (Gap::Extra, &["refund -1.00 rf_1", "refund -1.00", "refund -100 rf_2"]),
        (Gap::AmountOff { by: 1 }, &["refund -1.01 rf_1", "refund -100 rf_2"]),
        (Gap::UnknownType { category: "mystery".to_owned() }, &["mystery -1.00 rf_1", "refund -100 rf_2"]),
        (Gap::Late { by_s: 3600 }, &["refund -100 rf_2"]),
    ];
    let psp = two_refunds().await;
    for (gap, expected) in cases {
        let shown = format!("{gap:?}");
        let late = matches!(gap, Gap::Late { .. });
        psp.fault(Match::intent("rf_1"), Effect::Settlement(gap));
        for _ in 0..2 {
            assert_eq!(refunds(&psp, &ReportQuery::default()), expected, "{shown}: reading uses nothing up");
        }
        if late {
            psp.mock.advance(Duration::from_secs(3700));
            let from = Some((psp.mock.now_ms() / 1000 - 200).to_string());
            assert_eq!(refunds(&psp, &ReportQuery { from, ..Default::default() }), ["refund -1.00 rf_1"], "{shown}");
        }
        psp.mock.clear_faults();
    }
}

#[tokio::test]
async fn a_range_includes_its_beginning_and_not_its_end() {
    let psp = two_refunds().await;
    let now_s = psp.mock.now_ms() / 1000;
    for (from, to, expected) in [
        (Some("2020-01-01".to_owned()), None, 2),
        (Some("2020-01-01".to_owned()), Some("2020-01-02".to_owned()), 0),
        (Some("2020-01-01T00:00:00Z".to_owned()), Some((now_s + 1).to_string()), 2),
        (Some((now_s + 1).to_string()), None, 0),
    ] {
        let query = ReportQuery { from, to, account: None };
        assert_eq!(refunds(&psp, &query).len(), expected, "{query:?}");
    }
    let other = ReportQuery { account: Some("acct_other".to_owned()), ..Default::default() };
    assert_eq!(report(&psp, &other).len(), 0);
    assert!(
        psp.mock.settlement_report(&ReportQuery { from: Some("yesterday".to_owned()), ..Default::default() }).is_err()
    );
}

#[tokio::test]
async fn a_refund_that_failed_comes_back_in_the_report() {
    let psp = Psp::start().await;
    psp.payment("a", 1000, "eur");
    psp.fault(Match::default(), Effect::FailsLater { after_ms: 1_000, reason: "declined".to_owned() });
    psp.refund("pi_a", "rf_1").await.expect("is answered");
    psp.mock.advance(Duration::from_secs(2));
    assert_eq!(refunds(&psp, &ReportQuery::default()), ["refund -1.00 rf_1", "refund_failure 1.00 rf_1"]);
}
