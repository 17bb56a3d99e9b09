//! What is wrong with a configuration: every finding of one run, each with its place and what to write instead.
//!
//! Nothing here stops at the first error; whoever checks goes on and adds. Next: `check`, `suggest`.

use crate::source::{Sources, Span};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Accepted, and has no effect here; shown by `-t -v` only.
    Idle,
    /// Accepted, and means something else than in nginx, or is unsafe and was dropped.
    Warning,
    /// The configuration cannot be used.
    Error,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where; `None` for a file that could not be read at all, and for what was written nowhere.
    pub span: Option<Span>,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// The findings of one run, in the order they were made.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds an error and returns it, so that help can be put on it.
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Error, Some(span), message.into())
    }

    /// Adds a warning.
    pub fn warning(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Warning, Some(span), message.into())
    }

    /// Notes a directive that is accepted and has no effect here; `message` says why.
    pub fn idle(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Idle, Some(span), message.into())
    }

    /// Adds an error that has no place in a file.
    pub fn error_nowhere(&mut self, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Error, None, message.into())
    }

    /// Adds a warning that has no place in a file.
    pub fn warning_nowhere(&mut self, message: impl Into<String>) -> &mut Diagnostic {
        self.push(Severity::Warning, None, message.into())
    }

    /// All findings, sorted by place, those without one first.
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<_> = self.list.iter().collect();
        all.sort_by_key(|d| d.span);
        all
    }

    /// Leaves out findings that repeat another: a setting that several locations inherit is checked in each of them.
    pub fn leave_out_repeats(&mut self) {
        let mut kept: Vec<Diagnostic> = Vec::with_capacity(self.list.len());
        for diagnostic in self.list.drain(..) {
            if !kept.contains(&diagnostic) {
                kept.push(diagnostic);
            }
        }
        self.list = kept;
    }

    /// Whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    fn push(&mut self, severity: Severity, span: Option<Span>, message: String) -> &mut Diagnostic {
        self.list.push(Diagnostic { severity, span, message, help: None });
        self.list.last_mut().expect("an element was just pushed")
    }
}

impl Diagnostic {
    /// Says what to write instead.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// The finding as text for a terminal: place and message, the line, a caret under it, the help.
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
        let line = String::from_utf8_lossy(sources.line(span));
        let mut text = format!("millstream: [{word}] {}: {}\n", sources.locate(span), self.message);
        let gutter = at.line.to_string();
        let indent: String =
            line.chars().take(at.column as usize - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let room = line.len().saturating_sub(at.column as usize - 1).max(1);
        let carets = "^".repeat((span.end.saturating_sub(span.start) as usize).clamp(1, room));
        text += &format!("  {gutter} | {line}\n  {} | {indent}{carets}\n", " ".repeat(gutter.len()));
        if let Some(help) = &self.help {
            text += &format!("  {} = help: {help}\n", " ".repeat(gutter.len()));
        }
        text
    }
}
