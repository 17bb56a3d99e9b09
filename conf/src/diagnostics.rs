//! What is wrong with a configuration: every finding of one run, each with its place and what to write instead.
//!
//! Nothing here stops at the first error; whoever checks goes on and adds. Next: `check`, `suggest`.

use std::collections::HashMap;

use crate::source::{Sources, Span};

/// Characters of a line that are shown.
const MOST_SHOWN: usize = 120;

/// Characters shown before the place, if the line is cut.
const MOST_BEFORE: usize = 50;

const MOST_NAMED: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Accepted, and has no effect here; shown by `-t -v` only.
    Idle,
    /// Accepted, but means something else than in nginx, or is unsafe and was dropped.
    Warning,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// `None` for a file that could not be read at all, and for what was not written anywhere.
    pub span: Option<Span>,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    pub help: Option<String>,
    /// Other findings on its line only follow from it.
    garbles_its_line: bool,
    /// The same finding at other places is merged into this one.
    told_once: bool,
    /// What changes if `--lenient` leaves out this error.
    left_out: Option<&'static str>,
    /// The other places of a merged finding, in order.
    further: Vec<Span>,
}

#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Returns it so that help can be added.
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Error, Some(span), message.into())
    }

    pub fn warning(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Warning, Some(span), message.into())
    }

    /// For a directive that is accepted and has no effect; `message` says why.
    pub fn idle(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Idle, Some(span), message.into())
    }

    pub fn error_nowhere(&mut self, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Error, None, message.into())
    }

    pub fn warning_nowhere(&mut self, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Warning, None, message.into())
    }

    /// Sorted by place, those without one first.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<_> = self.list.iter().collect();
        all.sort_by_key(|d| d.span);
        all
    }

    /// Drops repeats: an inherited setting is checked in every location. A `told_once` finding keeps its
    /// first place and records the others.
    pub fn leave_out_repeats(&mut self) {
        let mut seen: HashMap<(Severity, Option<Span>, String), Vec<usize>> = HashMap::new();
        let mut kept: Vec<Diagnostic> = Vec::with_capacity(self.list.len());
        for diagnostic in self.list.drain(..) {
            let place = diagnostic.span.filter(|_| !diagnostic.told_once);
            let alike = seen.entry((diagnostic.severity, place, diagnostic.message.clone())).or_default();
            let same = alike.iter().copied().find(|index| {
                kept[*index].help == diagnostic.help && kept[*index].told_once == diagnostic.told_once
            });
            match same {
                Some(index) => kept[index].add_place(diagnostic.span),
                None => {
                    alike.push(kept.len());
                    kept.push(diagnostic);
                }
            }
        }
        self.list = kept;
    }

    /// Of a line that was read by a guess, keeps only the finding that says so.
    pub fn leave_out_consequences(&mut self, sources: &Sources) {
        let line_of = |span: Span| (span.file, sources.position(span).line);
        let mut garbled: HashMap<_, Span> = HashMap::new();
        for span in self.list.iter().filter(|found| found.garbles_its_line).filter_map(|found| found.span) {
            let first = garbled.entry(line_of(span)).or_insert(span);
            *first = span.min(*first);
        }
        if garbled.is_empty() {
            return;
        }
        self.list.retain(|found| {
            let Some(span) = found.span else { return true };
            garbled.get(&line_of(span)).is_none_or(|first| found.garbles_its_line && span == *first)
        });
    }

    /// Recommends `--lenient` only if the configuration would then start.
    pub fn recommend_lenient(&mut self) {
        let starts =
            self.list.iter().all(|found| found.severity != Severity::Error || found.left_out.is_some());
        for found in &mut self.list {
            if let Some(change) = found.left_out {
                let lenient = if starts { ", or start with --lenient to ignore it" } else { "" };
                found.help = Some(format!("remove it{lenient}: {change}"));
            }
        }
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    fn push(&mut self, severity: Severity, span: Option<Span>, message: String) -> &mut Diagnostic {
        self.list.push(Diagnostic {
            severity,
            span,
            message,
            help: None,
            garbles_its_line: false,
            told_once: false,
            left_out: None,
            further: Vec::new(),
        });
        self.list.last_mut().expect("an element was just pushed")
    }
}

impl Diagnostic {
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// `--lenient` would leave out what this is about; `change` says what differs without it.
    pub fn left_out(&mut self, change: &'static str) -> &mut Self {
        self.left_out = Some(change);
        self
    }

    /// The rest of its line was read by a guess, so findings there only follow from it.
    pub fn garbles_its_line(&mut self) -> &mut Self {
        self.garbles_its_line = true;
        self
    }

    /// Merges the same finding at other places, with their number.
    pub fn once(&mut self) -> &mut Self {
        self.told_once = true;
        self
    }

    /// Where else it applies: the first few places and the number of the others, or empty.
    pub fn elsewhere(&self, sources: &Sources) -> String {
        let named: Vec<String> =
            self.further.iter().take(MOST_NAMED).map(|span| sources.locate(*span)).collect();
        match self.further.len().saturating_sub(MOST_NAMED) {
            0 => named.join(", "),
            1 => format!("{} and one more place", named.join(", ")),
            more => format!("{} and {more} more places", named.join(", ")),
        }
    }

    fn add_place(&mut self, span: Option<Span>) {
        let (Some(first), Some(span)) = (self.span, span) else { return };
        if span == first {
            return;
        }
        let (first, other) = if span < first { (span, first) } else { (first, span) };
        self.span = Some(first);
        if let Err(at) = self.further.binary_search(&other) {
            self.further.insert(at, other);
        }
    }

    /// As text for a terminal: place and message, the line, a caret under it, the help.
    pub fn render(&self, sources: &Sources) -> String {
        let word = match self.severity {
            Severity::Error => "emerg",
            Severity::Warning => "warn",
            Severity::Idle => "notice",
        };
        let Some(span) = self.span else {
            return format!("millstream: [{word}] {}\n", self.message);
        };
        let at = sources.position(span);
        let gutter = at.line.to_string();
        let blank = " ".repeat(gutter.len());
        let (line, carets) =
            excerpt(sources.line(span), at.column as usize - 1, span.end.saturating_sub(span.start) as usize);
        let mut text = format!("millstream: [{word}] {}: {}\n", sources.locate(span), self.message);
        text += &format!("  {gutter} | {line}\n  {blank} | {carets}\n");
        if !self.further.is_empty() {
            text += &format!("  {blank} = also: {}\n", self.elsewhere(sources));
        }
        if let Some(help) = &self.help {
            text += &format!("  {blank} = help: {help}\n");
        }
        text
    }
}

/// The line around a place, and the carets under it. `start` and `length` are bytes; what is shown is counted
/// in characters.
fn excerpt(line: &[u8], start: usize, length: usize) -> (String, String) {
    let (before, rest) = line.split_at(start.min(line.len()));
    let (place, after) = rest.split_at(length.min(rest.len()));
    let read = |bytes: &[u8]| -> Vec<char> { String::from_utf8_lossy(bytes).chars().collect() };
    let (mut before, place, after) = (read(before), read(place), read(after));
    let is_long = before.len() + place.len() + after.len() > MOST_SHOWN;
    if is_long && before.len() > MOST_BEFORE {
        let cut = before.len() - MOST_BEFORE;
        before.splice(..=cut, ['…']);
    }
    let room = MOST_SHOWN.saturating_sub(before.len());
    let mut shown: Vec<char> = place.iter().chain(&after).copied().collect();
    if is_long && shown.len() > room {
        shown.truncate(room - 1);
        shown.push('…');
    }
    let carets = place.len().clamp(1, shown.len().max(1));
    let indent = before.iter().map(|c| if *c == '\t' { '\t' } else { ' ' });
    let carets = indent.chain(std::iter::repeat_n('^', carets)).collect();
    (before.iter().chain(&shown).collect(), carets)
}
