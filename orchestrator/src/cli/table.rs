//! Tables for people.

use chrono::{DateTime, Utc};

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A time in a column whose heading says UTC.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S").to_string()
}

/// Sets rows under their headings, two spaces between columns, nothing after the last.
pub(crate) fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, (heading, _))| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain([heading.chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let set = cells.into_iter().zip(columns.iter().zip(&widths)).map(|(cell, ((_, align), width))| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        format!("{}\n", set.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = line(columns.iter().map(|(heading, _)| *heading).collect());
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_line_up_at_their_last_digit() {
        let rows = [vec!["r-1".to_owned(), "1.00".to_owned()], vec!["r-long".to_owned(), "1000.00".to_owned()]];
        let text = table(&[("INTENT", Align::Left), ("AMOUNT", Align::Right)], &rows);
        assert_eq!(text, "INTENT   AMOUNT\nr-1        1.00\nr-long  1000.00\n");
    }
}
