//! What an expression asks for at the least, for the engine that is linear in the text.
//!
//! Look-arounds are left out, a group is atomic no more, and a reference, a call or a condition stands for any text. So whatever the
//! expression matches, this matches too, and what this does not match need not be shown to the engine that backtracks.
//! Before: `regular_expression`, which asks it first.

use fancy_regex::{Assertion, BytesMode, Expr, RegexBuilder, internal};
use std::fmt::Write;
use std::sync::Arc;

/// `None` if the pattern is linear as it is, or cannot be loosened.
pub(super) fn loosened(
    pattern: &str,
    utf8: bool,
    ignore_case: bool,
    program_bytes: usize,
) -> Option<fancy_regex::Regex> {
    let unicode = if utf8 { internal::FLAG_UNICODE } else { 0 };
    let case = if ignore_case { internal::FLAG_CASEI } else { 0 };
    let tree = Expr::parse_tree_with_flags(pattern, unicode | case).ok()?;
    let mut loosening = Loosening { is_looser: false };
    let loose = loosening.expression(&tree.expr)?;
    if !loosening.is_looser {
        return None;
    }
    let mut text = String::new();
    loose.to_str(&mut text, 0);
    // Whether case counts is said where it does not.
    RegexBuilder::new(&text)
        .bytes_mode(if utf8 { BytesMode::UnicodeBytes } else { BytesMode::Ascii })
        .unicode_mode(utf8)
        .delegate_size_limit(program_bytes)
        .max_prog_size(0)
        .build()
        .ok()
}

struct Loosening {
    is_looser: bool,
}

impl Loosening {
    /// Matches the same or more; `None` if that cannot be guaranteed.
    fn expression(&mut self, expression: &Expr) -> Option<Expr> {
        Some(match expression {
            Expr::Empty
            | Expr::Any { .. }
            | Expr::Literal { .. }
            | Expr::Delegate { .. }
            | Expr::Assertion(Assertion::StartText | Assertion::EndText) => expression.clone(),
            Expr::LiteralBytes { bytes } => {
                let mut inner = String::new();
                bytes.iter().for_each(|byte| _ = write!(inner, r"\x{byte:02X}"));
                Expr::Delegate { inner: format!("(?:{inner})"), casei: false }
            }
            Expr::Concat(parts) => Expr::Concat(self.all(parts)?),
            Expr::Alt(parts) => Expr::Alt(self.all(parts)?),
            Expr::Group(inside) => self.group(inside)?,
            Expr::AtomicGroup(inside) => {
                self.is_looser = true;
                self.group(inside)?
            }
            Expr::Repeat { child, lo, hi, greedy } => match self.expression(child)? {
                // Nothing, however often.
                Expr::Empty => Expr::Empty,
                child => Expr::Repeat { child: Box::new(child), lo: *lo, hi: *hi, greedy: *greedy },
            },
            Expr::Assertion(_) => Expr::Empty,
            Expr::LookAround(..)
            | Expr::KeepOut
            | Expr::ContinueFromPreviousMatchEnd
            | Expr::DefineGroup { .. } => {
                self.is_looser = true;
                Expr::Empty
            }
            Expr::GeneralNewline { .. }
            | Expr::Backref { .. }
            | Expr::BackrefWithRelativeRecursionLevel { .. }
            | Expr::BackrefExistsCondition { .. }
            | Expr::Conditional { .. }
            | Expr::SubroutineCall(_)
            | Expr::Absent(_) => {
                self.is_looser = true;
                anything()
            }
            // A verb may end a match before its expression does.
            Expr::BacktrackingControlVerb(_) | Expr::AstNode(..) => return None,
        })
    }

    fn all(&mut self, parts: &[Expr]) -> Option<Vec<Expr>> {
        parts.iter().map(|part| self.expression(part)).collect()
    }

    fn group(&mut self, inside: &Expr) -> Option<Expr> {
        Some(Expr::Group(Arc::new(self.expression(inside)?)))
    }
}

fn anything() -> Expr {
    let child = Box::new(Expr::Any { newline: true, crlf: false });
    Expr::Repeat { child, lo: 0, hi: usize::MAX, greedy: true }
}
