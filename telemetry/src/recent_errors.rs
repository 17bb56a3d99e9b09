//! The last lines of the error logs that tell of an error or worse, for those who look at a page and not at a file.
//!
//! Nobody waits for a place here: a line that comes while another is put in is left out. Before: `error_log`, which writes; next: whoever shows them.

use crate::local_time;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

const LINES: usize = 20;
/// In bytes.
const LONGEST: usize = 400;
/// Length of the date before the level.
const DATE: usize = "2000/01/01 00:00:00 ".len();

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentError {
    /// In seconds since 1970.
    pub at: i64,
    pub text: String,
}

#[derive(Debug, Default)]
pub struct RecentErrors(Mutex<VecDeque<RecentError>>);

impl RecentErrors {
    /// As it goes into the files.
    pub(crate) fn keep(&self, line: &[u8]) {
        let text = line.get(DATE..).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST)]).trim_end().to_owned();
        let Ok(mut lines) = self.0.try_lock() else { return };
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(RecentError { at: local_time::now().seconds, text });
    }

    pub fn all(&self) -> Vec<RecentError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_without_their_dates_and_never_more() {
        let recent = RecentErrors::default();
        for number in 0..100 {
            let line = format!("2026/01/02 03:04:05 [error] 1#1: {number} {}\n", "é".repeat(300));
            recent.keep(line.as_bytes());
        }
        recent.keep(b"short");
        let all = recent.all();
        assert_eq!((all.len(), all[LINES - 1].text.as_str()), (LINES, ""));
        assert!(all[0].text.starts_with("[error] 1#1: 81 é") && all[0].text.len() <= LONGEST + 3);
    }
}
