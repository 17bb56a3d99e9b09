//! The live view of a run: one line that is redrawn in a terminal, plain lines every few seconds elsewhere.
//!
//! Holds no clock and no thread: whoever drives hands in a [`Progress`] some ten times a second. Nothing is hidden or
//! switched in the terminal, so that a run that is ended by force leaves nothing to mend. Next: `drive`.

use crate::outcome::Errors;
use crate::report::quantity::{Quantity, Rate, plural, seconds};
use crate::report::table::printable;
use millstream_net::terminal;
use std::io::{Stderr, Write};
use std::time::Duration;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Since warming up began while it lasts, since measuring began afterwards.
    pub elapsed: Duration,
    /// How long this stretch will be; `None`: until the requests are done.
    pub of: Option<Duration>,
    /// How many requests are to be measured at the most.
    pub most: Option<u64>,
    pub warming: bool,
    pub answers: u64,
    pub errors: Errors,
    /// Answers per second in the last second.
    pub rate: f64,
    pub p50: Duration,
    pub p99: Duration,
}

impl Progress {
    /// What is left: of the time, or of the requests at the present rate, whichever ends sooner. `None`: unknown.
    pub fn left(&self) -> Option<Duration> {
        let by_time = self.of.map(|of| of.saturating_sub(self.elapsed));
        let by_requests = self.most.filter(|_| !self.warming && self.rate > 0.0).map(|most| {
            let done = self.answers.saturating_add(self.errors.total());
            Duration::try_from_secs_f64(most.saturating_sub(done) as f64 / self.rate).unwrap_or(Duration::MAX)
        });
        [by_time, by_requests].into_iter().flatten().min()
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Style {
    Quiet,
    /// One line, redrawn; the function says how many columns there are now.
    Redrawn(fn() -> Option<u16>),
    /// A line of its own each time so much of a stretch has passed.
    Lines(Duration),
}

const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// The view. Dropping it ends its line, so an early end leaves the terminal as it was.
pub struct Live<W: Write = Stderr> {
    out: W,
    style: Style,
    label: String,
    is_drawn: bool,
    /// Plain lines of this stretch.
    lines: u32,
    was_warming: bool,
}

impl Live {
    pub fn unless(is_quiet: bool) -> Self {
        let style = match terminal::error_columns() {
            _ if is_quiet => Style::Quiet,
            Some(_) => Style::Redrawn(terminal::error_columns),
            None => Style::Lines(BETWEEN_LINES),
        };
        Live::new(std::io::stderr(), style)
    }
}

impl<W: Write> Live<W> {
    /// A view that writes to `out`. What cannot be written is lost: nobody stops a run for its view.
    pub fn new(out: W, style: Style) -> Self {
        Live { out, style, label: String::new(), is_drawn: false, lines: 0, was_warming: false }
    }

    /// What the next lines are about, such as a step's name; empty for nothing. A new stretch begins.
    pub fn label(&mut self, text: &str) {
        (self.label, self.lines) = (printable(text), 0);
    }

    pub fn show(&mut self, progress: &Progress) {
        if std::mem::replace(&mut self.was_warming, progress.warming) != progress.warming {
            self.lines = 0;
        }
        match self.style {
            Style::Redrawn(columns) => {
                // One short of the width: a full line would wrap on some terminals.
                let columns = usize::from(columns().unwrap_or(80)).saturating_sub(1);
                let line: String = line(&self.label, progress).chars().take(columns).collect();
                self.is_drawn = true;
                _ = write!(self.out, "\r{line}\x1b[K");
            }
            Style::Lines(every) if progress.elapsed >= every * self.lines.saturating_add(1) => {
                self.lines = (progress.elapsed.as_nanos() / every.as_nanos().max(1)) as u32;
                _ = writeln!(self.out, "{}", line(&self.label, progress));
            }
            Style::Lines(_) | Style::Quiet => {}
        }
    }

    /// A line that stays, above what is redrawn.
    pub fn say(&mut self, text: &str) {
        self.clear();
        let text = terminal::visible(text);
        let text = match self.style {
            Style::Redrawn(columns) => terminal::folded(&text, usize::from(columns().unwrap_or(80))).into(),
            Style::Lines(_) | Style::Quiet => text,
        };
        _ = writeln!(self.out, "{text}");
    }

    /// What has just happened, where nothing is redrawn: in a terminal the next line says it.
    pub fn note(&mut self, text: &str) {
        if matches!(self.style, Style::Lines(_)) {
            _ = writeln!(self.out, "{}", terminal::visible(text));
        }
    }

    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            _ = write!(self.out, "\r\x1b[K");
        }
    }
}

impl<W: Write> Drop for Live<W> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `4.2s of 10s   91,234/s   p50 1.1ms   p99 2.9ms   3 errors (timeout)   6s left`, most important first.
fn line(label: &str, progress: &Progress) -> String {
    let Progress { elapsed, rate, p50, p99, errors, .. } = *progress;
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    let warming = if progress.warming { "warming up, " } else { "" };
    let mut text = format!("{label}{warming}{:.1}s", elapsed.as_secs_f64());
    text.extend(progress.of.map(|of| format!(" of {}", Quantity::from(of))));
    text += &format!("   {}", Rate(rate));
    if !p99.is_zero() {
        text += &format!("   p50 {}   p99 {}", Quantity::from(p50), Quantity::from(p99));
    }
    text += &format!("   {}", plural(errors.total(), "error"));
    text.extend(errors.found().max_by_key(|(_, count, _)| *count).map(|(kind, ..)| format!(" ({kind})")));
    // What is left is never known better than to the second.
    let left = progress.left().map(|left| seconds(left.as_secs_f64().ceil()));
    text.extend(left.map(|left| format!("   {left} left")));
    text
}

#[cfg(test)]
mod tests;
