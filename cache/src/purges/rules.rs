//! Which rules there are, and what they say of one thing: pure data, bounded.
//!
//! A later rule of the same scope takes the place of the earlier one. Past a bound the oldest is folded into a rule for
//! everything with the same number: that can only purge more, and spares what was born or checked since. Next:
//! `journal`, which keeps them over a restart.

use super::rule::{Rule, Scope, number_of_key};
use super::{How, Ruling};
use crate::tags::Tags;
use millstream_wire::spelling::canonical;
use std::cell::LazyCell;
use std::collections::{HashMap, VecDeque};

/// Tags and keys that have a rule of their own.
pub(crate) const MOST_ROWS: usize = 65_536;
/// Prefixes that have one.
pub(crate) const MOST_PREFIXES: usize = 1_024;

/// What the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No rule goes for it; it counts as born with this number from now on.
    Untouched(u64),
    /// It is stale since `at`, in milliseconds since 1970. With that it counts as born with `upto`.
    Soft {
        /// The moment.
        at: i64,
        /// The latest rule.
        upto: u64,
    },
    /// It is gone.
    Hard,
}

/// A number and its moment; number 0 stands for no rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mark {
    number: u64,
    at: i64,
}

/// The latest rules of one scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    hard: Mark,
    soft: Mark,
}

#[derive(Debug)]
struct PrefixRule {
    prefix: Box<[u8]>,
    /// The same in the spelling that is compared.
    canonical: Box<[u8]>,
    marks: Marks,
}

/// A tag or a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Row {
    Tag(u64),
    Key(u64),
}

/// The rules of a zone.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    last: u64,
    all: Marks,
    /// The latest last.
    prefixes: VecDeque<PrefixRule>,
    rows: HashMap<Row, Marks>,
    /// Rows in the order of their rules; one that has got a later rule stands there again.
    queue: VecDeque<(u64, Row)>,
    newest_prefix: u64,
    newest_tag: u64,
    newest_key: u64,
}

impl Rules {
    /// The number of the latest rule.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        2 + self.prefixes.len() + self.rows.len()
    }

    /// Entries of the queue, outdated ones included.
    #[cfg(test)]
    pub(super) fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// The number for a rule that is given at this moment.
    pub(super) fn next_number(&self, at: i64) -> u64 {
        self.last.saturating_add(1).max(u64::try_from(at).unwrap_or(0))
    }

    /// The next number will be greater than this.
    pub(super) fn outnumber(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    /// What they say of something that was born then.
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

    /// Whether any rule, hard or soft, goes for something that was born then.
    pub(crate) fn go_for(&self, born: u64, tags: &Tags, text: &[u8]) -> bool {
        !matches!(self.verdict(born, tags, text), Verdict::Untouched(_))
    }

    /// The latest purge that went for such a thing, whenever it was born.
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

    /// Shows the marks of every scope that has a rule later than `born` and may go for such a thing.
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

    /// Takes a rule in.
    pub(crate) fn admit(&mut self, rule: &Rule) {
        self.last = self.last.max(rule.number);
        match &rule.scope {
            Scope::All => self.admit_all(rule),
            Scope::Prefix(prefix) => self.admit_prefix(prefix, rule),
            Scope::Tag(number) => {
                self.newest_tag = self.newest_tag.max(rule.number);
                self.admit_row(Row::Tag(*number), rule);
            }
            Scope::Key(number) => {
                self.newest_key = self.newest_key.max(rule.number);
                self.admit_row(Row::Key(*number), rule);
            }
        }
    }

    /// All of them as they would have been given, for a new journal.
    pub(crate) fn list(&self) -> Vec<Rule> {
        let mut list = Vec::with_capacity(self.len());
        add(&mut list, &self.all, &Scope::All);
        for rule in &self.prefixes {
            add(&mut list, &rule.marks, &Scope::Prefix(rule.prefix.clone()));
        }
        for (row, marks) in &self.rows {
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
        self.rows.retain(|_, marks| marks.says_more_than(&all));
        self.order_prefixes();
        self.order_rows();
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

    fn admit_row(&mut self, row: Row, rule: &Rule) {
        let marks = self.rows.entry(row).or_default();
        marks.take(rule);
        if !marks.says_more_than(&self.all) {
            self.rows.remove(&row);
            return;
        }
        self.queue.push_back((marks.newest().number, row));
        while self.rows.len() > MOST_ROWS {
            let Some((number, row)) = self.queue.pop_front() else { return };
            if self.rows.get(&row).is_some_and(|marks| marks.newest().number == number)
                && let Some(oldest) = self.rows.remove(&row)
            {
                self.all.join(&oldest);
            }
        }
        if self.queue.len() > 2 * self.rows.len() + 1024 {
            self.order_rows();
        }
    }

    /// A check goes by the order; one that has lost its newer mark to a wider rule, or that a journal brings late, does
    /// not stand where it belongs. Few are out of place, so this is little more than a pass over them.
    fn order_prefixes(&mut self) {
        self.prefixes.make_contiguous().sort_by_key(|rule| rule.marks.newest().number);
    }

    fn order_rows(&mut self) {
        let mut rows: Vec<_> = self.rows.iter().map(|(row, marks)| (marks.newest().number, *row)).collect();
        rows.sort_unstable_by_key(|(number, _)| *number);
        self.queue = rows.into();
    }
}

fn add(list: &mut Vec<Rule>, marks: &Marks, scope: &Scope) {
    for (mark, how) in [(marks.hard, How::Hard), (marks.soft, How::Soft)] {
        if mark.number > 0 {
            list.push(Rule { number: mark.number, at: mark.at, how, scope: scope.clone() });
        }
    }
}

impl Marks {
    fn newest(&self) -> Mark {
        if self.hard.number > self.soft.number { self.hard } else { self.soft }
    }

    fn take(&mut self, rule: &Rule) {
        let mark = Mark { number: rule.number, at: rule.at };
        let held = match rule.how {
            How::Hard => &mut self.hard,
            How::Soft => &mut self.soft,
        };
        if mark.number > held.number {
            *held = mark;
        }
    }

    fn join(&mut self, other: &Marks) {
        if other.hard.number > self.hard.number {
            self.hard = other.hard;
        }
        if other.soft.number > self.soft.number {
            self.soft = other.soft;
        }
    }

    /// Forgets what a wider rule says too; whether anything is left.
    fn says_more_than(&mut self, wider: &Marks) -> bool {
        if self.hard.number <= wider.hard.number {
            self.hard = Mark::default();
        }
        if self.soft.number <= wider.soft.number.max(wider.hard.number) {
            self.soft = Mark::default();
        }
        self.newest().number > 0
    }
}
