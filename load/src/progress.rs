//! The live view of a run: one line that is redrawn in a terminal, plain lines every few seconds elsewhere.
//!
//! Holds no clock and no thread: whoever drives hands in a [`Progress`] some ten times a second. Nothing is hidden or
//! switched in the terminal, so that a run that is ended by force leaves nothing to mend. Next: `drive`.

use crate::outcome::Errors;
use crate::report::quantity;
use millstream_net::terminal;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

/// How far a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Since warming up began while it lasts, since measuring began afterwards.
    pub elapsed: Duration,
    /// How long this stretch will be; `None`: until the requests are done.
    pub of: Option<Duration>,
    /// How many requests are to be measured at the most.
    pub most: Option<u64>,
    /// Whether it is warming up; nothing counts yet.
    pub warming: bool,
    /// Answers as expected, in this stretch.
    pub answers: u64,
    /// What went wrong, in this stretch.
    pub errors: Errors,
    /// Answers per second in the last second.
    pub rate: f64,
    /// The median latency of the last second.
    pub p50: Duration,
    /// Its 99th percentile.
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

/// How it is shown.
#[derive(Debug, Clone, Copy)]
pub enum Style {
    /// One line, redrawn; the function says how many columns there are now.
    Redrawn(fn() -> Option<u16>),
    /// A line of its own each time so much of a stretch has passed.
    Lines(Duration),
}

/// Time between two plain lines.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// The view. Dropping it ends its line, so an early end leaves the terminal as it was.
pub struct Live<W: Write> {
    out: W,
    style: Style,
    label: String,
    /// Whether a line stands in the terminal that has no end yet.
    is_drawn: bool,
    /// The stretch's time at which the next plain line is due.
    due: Duration,
    was_warming: bool,
}

impl Live<std::io::Stderr> {
    /// On standard error, in the style that fits it.
    pub fn to_stderr() -> Self {
        let style = match terminal::error_columns() {
            Some(_) => Style::Redrawn(terminal::error_columns),
            None => Style::Lines(BETWEEN_LINES),
        };
        Live::new(std::io::stderr(), style)
    }
}

impl<W: Write> Live<W> {
    /// A view that writes to `out`. What cannot be written is lost: nobody stops a run for its view.
    pub fn new(out: W, style: Style) -> Self {
        let due = first(style);
        Live { out, style, label: String::new(), is_drawn: false, due, was_warming: false }
    }

    /// What the next lines are about, such as a step's name; empty for nothing. A new stretch begins.
    pub fn label(&mut self, text: &str) {
        self.label = terminal::visible(text).replace('\n', " ");
        self.due = first(self.style);
    }

    /// Shows how far it is.
    pub fn show(&mut self, progress: &Progress) {
        if std::mem::replace(&mut self.was_warming, progress.warming) != progress.warming {
            self.due = first(self.style);
        }
        match self.style {
            Style::Redrawn(columns) => {
                // One short of the width: a full line would wrap on some terminals.
                let columns = usize::from(columns().unwrap_or(80)).saturating_sub(1);
                let line: String = line(&self.label, progress).chars().take(columns).collect();
                self.is_drawn = true;
                let _ = write!(self.out, "\r{line}\x1b[K");
            }
            Style::Lines(every) => {
                if progress.elapsed < self.due {
                    return;
                }
                while self.due <= progress.elapsed && !every.is_zero() {
                    self.due += every;
                }
                let _ = writeln!(self.out, "{}", line(&self.label, progress));
            }
        }
        let _ = self.out.flush();
    }

    /// A line that stays, above what is redrawn.
    pub fn say(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(self.out, "{}", terminal::visible(text));
        let _ = self.out.flush();
    }

    /// Takes the redrawn line away: what follows begins in an empty one.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(self.out, "\r\x1b[K");
            let _ = self.out.flush();
        }
    }
}

impl<W: Write> Drop for Live<W> {
    fn drop(&mut self) {
        self.clear();
    }
}

fn first(style: Style) -> Duration {
    match style {
        Style::Redrawn(_) => Duration::ZERO,
        Style::Lines(every) => every,
    }
}

/// `  4.2s of 10s   91.23k/s   p50 1.10ms   p99 2.90ms   3 errors   5.8s left`, most important first.
fn line(label: &str, progress: &Progress) -> String {
    let mut text = String::new();
    if !label.is_empty() {
        let _ = write!(text, "{label}: ");
    }
    if progress.warming {
        text.push_str("warming up, ");
    }
    let _ = write!(text, "{:.1}s", progress.elapsed.as_secs_f64());
    if let Some(of) = progress.of {
        let _ = write!(text, " of {}", quantity::span(of.as_secs_f64()));
    }
    let _ = write!(text, "   {}/s", quantity::scaled(progress.rate));
    if !progress.p99.is_zero() {
        let _ =
            write!(text, "   p50 {}   p99 {}", quantity::took(progress.p50), quantity::took(progress.p99));
    }
    let _ = write!(text, "   {}", quantity::plural(progress.errors.total(), "error"));
    if let Some((kind, _)) =
        progress.errors.kinds().into_iter().filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count)
    {
        let _ = write!(text, " ({kind})");
    }
    if let Some(left) = progress.left() {
        let _ = write!(text, "   {} left", coarse(left));
    }
    text
}

/// Whole seconds, and minutes from two on: what is left is never known better.
fn coarse(left: Duration) -> String {
    match left.as_secs_f64().ceil() as u64 {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds.div_ceil(60)),
        seconds => format!("{}h", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests;
