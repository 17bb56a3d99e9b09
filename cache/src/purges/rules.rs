//! Which rules there are, and what they say of one thing: pure data, bounded.
//!
//! A later rule of the same scope takes the place of the earlier one. Past a bound the oldest is folded into a rule for
//! everything with the same number: that can only purge more, and spares what was born or checked since. What changes of pieces
//! declare is apart from what was asked for, and folded into a rule for pieces alone: clients may cause it. Next: `journal`, which
//! keeps them over a restart.

use super::rows::{Marks, Rows};
use super::rule::{Cause, Rule, Scope, number_of_key};
use super::{How, Ruling};
use crate::tags::Tags;
use millstream_wire::spelling::canonical;
use std::cell::LazyCell;
use std::collections::VecDeque;

pub(crate) const MOST_ROWS: usize = 65_536;
pub(crate) const MOST_PREFIXES: usize = 1_024;
pub(crate) const MOST_WHOLES: usize = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No rule applies; it counts as born with this number from now on.
    Untouched(u64),
    /// Stale since `at`, in milliseconds since 1970. It then counts as born with `upto`.
    Soft {
        at: i64,
        upto: u64,
    },
    Hard,
}

#[derive(Debug)]
struct PrefixRule {
    prefix: Box<[u8]>,
    /// In the spelling that is compared.
    canonical: Box<[u8]>,
    marks: Marks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Row {
    Tag(u64),
    Key(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Rules {
    last: u64,
    all: Marks,
    /// The latest last.
    prefixes: VecDeque<PrefixRule>,
    rows: Rows<Row, MOST_ROWS>,
    all_pieces: Marks,
    wholes: Rows<u64, MOST_WHOLES>,
    newest_prefix: u64,
    newest_tag: u64,
    newest_key: u64,
    newest_whole: u64,
}

impl Rules {
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn len(&self, cause: Cause) -> usize {
        match cause {
            Cause::Purge => 2 + self.prefixes.len() + self.rows.len(),
            Cause::Change => 2 + self.wholes.len(),
        }
    }

    /// Including outdated ones.
    #[cfg(test)]
    pub(super) fn queue_len(&self) -> usize {
        self.rows.queue_len()
    }

    pub(super) fn next_number(&self, at: i64) -> u64 {
        self.last.saturating_add(1).max(u64::try_from(at).unwrap_or(0))
    }

    /// The next number will be greater than this.
    pub(super) fn outnumber(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    pub(crate) fn verdict(&self, born: u64, tags: &Tags, text: &[u8]) -> Verdict {
        let mut hard = false;
        let mut soft: Option<i64> = None;
        self.each(born, tags, text, |marks, _| {
            hard |= marks.hard.number > born;
            if marks.soft.number > born {
                soft = Some(soft.map_or(marks.soft.at, |at| at.min(marks.soft.at)));
            }
        });
        match soft {
            _ if hard => Verdict::Hard,
            Some(at) => Verdict::Soft { at, upto: self.last },
            None => Verdict::Untouched(self.last.max(born)),
        }
    }

    pub(crate) fn go_for(&self, born: u64, tags: &Tags, text: &[u8]) -> bool {
        !matches!(self.verdict(born, tags, text), Verdict::Untouched(_))
    }

    /// The latest purge that applied to it, whenever it was born.
    pub(crate) fn ruling(&self, tags: &Tags, text: &[u8]) -> Option<Ruling> {
        let mut latest: Option<Ruling> = None;
        self.each(0, tags, text, |marks, scope| {
            for (mark, how) in [(marks.hard, How::Hard), (marks.soft, How::Soft)] {
                if mark.number > latest.as_ref().map_or(0, |ruling| ruling.number) {
                    latest = Some(Ruling { number: mark.number, at: mark.at, how, scope: scope() });
                }
            }
        });
        latest
    }

    /// Shows the marks of every scope that has a rule later than `born` and may apply.
    fn each(&self, born: u64, tags: &Tags, text: &[u8], mut show: impl FnMut(&Marks, &dyn Fn() -> Scope)) {
        show(&self.all, &|| Scope::All);
        let spelled = LazyCell::new(|| canonical(text));
        if self.newest_prefix > born {
            let later = self.prefixes.iter().rev().take_while(|rule| rule.marks.newest().number > born);
            let begins =
                |rule: &&PrefixRule| spelled.starts_with(&rule.canonical) || text.starts_with(&rule.prefix);
            for rule in later.filter(begins) {
                show(&rule.marks, &|| Scope::Prefix(rule.prefix.clone()));
            }
        }
        if self.newest_tag > born {
            for tag in tags.iter() {
                if let Some(marks) = self.rows.get(&Row::Tag(tag.0)) {
                    show(marks, &|| Scope::Tag(tag.0));
                }
            }
        }
        if let Some(whole) = tags.whole() {
            show(&self.all_pieces, &|| Scope::AllPieces);
            if self.newest_whole > born
                && let Some(marks) = self.wholes.get(&whole.0)
            {
                show(marks, &|| Scope::Pieces(whole.0));
            }
        }
        if self.newest_key > born {
            // A journal of an earlier version has the numbers of texts as they are.
            let own = (**spelled != *text).then(|| number_of_key(text));
            for number in [number_of_key(&spelled)].into_iter().chain(own) {
                if let Some(marks) = self.rows.get(&Row::Key(number)) {
                    show(marks, &|| Scope::Key(number));
                }
            }
        }
    }

    pub(crate) fn admit(&mut self, rule: &Rule) {
        self.last = self.last.max(rule.number);
        match &rule.scope {
            Scope::All => self.admit_all(rule),
            Scope::Prefix(prefix) => self.admit_prefix(prefix, rule),
            Scope::Tag(number) => {
                self.newest_tag = self.newest_tag.max(rule.number);
                self.all.join(&self.rows.admit(Row::Tag(*number), rule, &self.all));
            }
            Scope::Key(number) => {
                self.newest_key = self.newest_key.max(rule.number);
                self.all.join(&self.rows.admit(Row::Key(*number), rule, &self.all));
            }
            Scope::AllPieces => {
                self.all_pieces.take(rule);
                self.wholes.leave_to(&self.for_all_pieces());
            }
            Scope::Pieces(number) => {
                self.newest_whole = self.newest_whole.max(rule.number);
                self.all_pieces.join(&self.wholes.admit(*number, rule, &self.for_all_pieces()));
            }
        }
    }

    /// As they would have been given, for a new journal.
    pub(crate) fn list(&self, cause: Cause) -> Vec<Rule> {
        let mut list = Vec::with_capacity(self.len(cause));
        if cause == Cause::Change {
            add(&mut list, &self.all_pieces, &Scope::AllPieces);
            self.wholes.iter().for_each(|(number, marks)| add(&mut list, marks, &Scope::Pieces(*number)));
            return list;
        }
        add(&mut list, &self.all, &Scope::All);
        for rule in &self.prefixes {
            add(&mut list, &rule.marks, &Scope::Prefix(rule.prefix.clone()));
        }
        for (row, marks) in self.rows.iter() {
            let scope = match *row {
                Row::Tag(number) => Scope::Tag(number),
                Row::Key(number) => Scope::Key(number),
            };
            add(&mut list, marks, &scope);
        }
        list
    }

    fn admit_all(&mut self, rule: &Rule) {
        self.all.take(rule);
        // What the rule says too need not be said again.
        let all = self.all;
        self.prefixes.retain_mut(|rule| rule.marks.says_more_than(&all));
        self.rows.leave_to(&all);
        self.all_pieces.says_more_than(&all);
        self.wholes.leave_to(&self.for_all_pieces());
        self.order_prefixes();
    }

    fn for_all_pieces(&self) -> Marks {
        let mut marks = self.all;
        marks.join(&self.all_pieces);
        marks
    }

    fn admit_prefix(&mut self, prefix: &[u8], rule: &Rule) {
        self.newest_prefix = self.newest_prefix.max(rule.number);
        let mut marks = Marks::default();
        marks.take(rule);
        if !marks.says_more_than(&self.all) {
            return;
        }
        self.prefixes.retain_mut(|other| {
            if *other.prefix == *prefix {
                marks.join(&other.marks);
                return false;
            }
            !other.prefix.starts_with(prefix) || other.marks.says_more_than(&marks)
        });
        let canonical = canonical(prefix).into();
        self.prefixes.push_back(PrefixRule { prefix: prefix.into(), canonical, marks });
        self.order_prefixes();
        if self.prefixes.len() > MOST_PREFIXES
            && let Some(oldest) = self.prefixes.pop_front()
        {
            self.all.join(&oldest.marks);
        }
    }

    /// A check relies on the order; a prefix that lost its newer mark to a wider rule, or that a journal
    /// restores late, is out of place. Few are, so this is little more than one pass.
    fn order_prefixes(&mut self) {
        self.prefixes.make_contiguous().sort_by_key(|rule| rule.marks.newest().number);
    }
}

fn add(list: &mut Vec<Rule>, marks: &Marks, scope: &Scope) {
    for (mark, how) in [(marks.hard, How::Hard), (marks.soft, How::Soft)] {
        if mark.number > 0 {
            list.push(Rule { number: mark.number, at: mark.at, how, scope: scope.clone() });
        }
    }
}
