//! The list of the suite's files, and the score of each that is kept in the tree: it may only rise.

use super::super::{folder, told_of};
use std::fs;

const KEPT: &str = "nginx-tests.tsv";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    /// Assertions that nginx itself passes.
    pub(super) of: usize,
    /// Assertions that have held so far.
    pub(super) held: usize,
    pub(super) passes: bool,
}

impl Row {
    /// Whether a result falls short of the stored one.
    pub(super) fn is_above(&self, held: usize, passes: bool) -> bool {
        held < self.held || (self.passes && !passes)
    }

    pub(super) fn raise(&mut self, held: usize, passes: bool) -> bool {
        let before = self.clone();
        self.held = self.held.max(held);
        self.passes |= passes;
        *self != before
    }
}

pub(super) fn kept() -> Result<Vec<Row>, String> {
    let text = super::super::text_of(KEPT)?;
    text.lines().skip(1).map(|line| row(line).ok_or_else(|| format!("{KEPT}: {line}"))).collect()
}

fn row(line: &str) -> Option<Row> {
    let mut fields = line.split('\t');
    Some(Row {
        name: fields.next()?.to_owned(),
        of: fields.next()?.parse().ok()?,
        held: fields.next()?.parse().ok()?,
        passes: fields.next()? == "passes",
    })
}

pub(super) fn keep(rows: &[Row]) -> Result<(), String> {
    let text = rows.iter().fold("file\tassertions\theld\tfile passes\n".to_owned(), |all, row| {
        let Row { name, of, held, passes } = row;
        all + &format!("{name}\t{of}\t{held}\t{}\n", if *passes { "passes" } else { "-" })
    });
    let path = folder().join(KEPT);
    fs::write(&path, text).map_err(|error| told_of(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_raised_and_never_lowered() {
        let mut row = Row { name: "a.t".to_owned(), of: 9, held: 5, passes: false };
        assert!(row.is_above(4, false) && !row.is_above(5, false));
        assert!(!row.raise(4, false));
        assert!(row.raise(9, true) && row.is_above(9, false));
        assert!(!row.raise(0, false));
        assert_eq!((row.held, row.passes), (9, true));
    }
}
