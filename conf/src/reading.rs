//! What every directive needs while a configuration is read: where paths hang, what is defined so far, and where
//! findings go.
//!
//! The words of a directive become values here, with their errors located. Nothing here knows a directive by name.
//! Before: `declared`, the names; next: `features/`, which call this.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::declared::{Declared, Kind};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::files::{self, Access};
use crate::include::ConfPrefix;
use crate::parts::{Base, NamedPath, Parts, PathUse};
use crate::regular_expression::{self, Regex};
use crate::slots::{self, Slot};
use crate::source::{Sources, Span};
use crate::suggest;
use crate::template::{self, Scope, Template};
use crate::tree::Word;
use crate::value::{self, ValueError};

/// What a directive has no effect without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Cache,
    Api,
}

/// A directory for temporary files, which have no names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TempPath {
    /// If none is written, nginx's own name below the prefix until a start has chosen one.
    pub path: PathBuf,
    /// `None` leaves the choice to the start.
    pub written: Option<Span>,
}

#[derive(Debug)]
pub struct Reading<'a> {
    /// The base of relative paths (`-p`).
    pub prefix: &'a Path,
    pub conf_prefix: &'a ConfPrefix,
    /// Whether a directive that only nginx knows is a warning.
    pub lenient: bool,
    pub sources: &'a Sources,
    pub diagnostics: &'a mut Diagnostics,
    /// Variables that the configuration sets; as in nginx they are known everywhere.
    pub slots: Vec<Slot>,
    /// One flag per `proxy_cache_path` zone.
    pub used_zones: Vec<bool>,
    /// Directives that are obeyed only together with another one that may stand elsewhere.
    pub dependent: Vec<(Need, &'static str, Span)>,
    /// Directives that decide about a cache and are obeyed by some location.
    pub obeyed: HashSet<Span>,
    pub written: HashSet<Box<str>>,
    /// Variables of directives that only nginx knows.
    pub defined_elsewhere: Vec<Box<str>>,
    pub declared: Declared,
    /// Index of the directive of the http block that is being read: in nginx, what follows is not known yet.
    pub place: usize,
    pub parts: Parts,
}

impl Reading<'_> {
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.diagnostics.error(span, message)
    }

    pub fn not_one_of(&mut self, word: &Word, choices: &[&str]) {
        let meant = suggest::did_you_mean(&word.text, choices.iter().copied());
        let help = meant.unwrap_or_else(|| format!("write one of: {}", choices.join(", ")));
        self.error(word.span, format!("invalid value \"{}\"", word.text)).help(help);
    }

    /// In any case as in nginx; anything else is an error.
    pub fn one_of(&mut self, word: &Word, choices: &[&str]) -> Option<usize> {
        let found = choices.iter().position(|choice| choice.eq_ignore_ascii_case(&word.text));
        if found.is_none() {
            self.not_one_of(word, choices);
        }
        found
    }

    /// Anything else is an error.
    pub fn choice<T: Clone>(&mut self, word: &Word, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        self.one_of(word, &words).map(|index| choices[index].1.clone())
    }

    pub fn size(&mut self, word: &Word) -> Option<u64> {
        self.value(word.span, value::size(&word.text))
    }

    pub fn memory_size(&mut self, word: &Word) -> Option<usize> {
        self.size(word).and_then(|bytes| usize::try_from(bytes).ok())
    }

    pub fn offset(&mut self, word: &Word) -> Option<u64> {
        self.value(word.span, value::offset(&word.text))
    }

    pub fn duration(&mut self, word: &Word) -> Option<Duration> {
        self.value(word.span, value::duration(&word.text))
    }

    pub fn flag(&mut self, word: &Word) -> Option<bool> {
        self.value(word.span, value::flag(&word.text))
    }

    /// Both bounds included.
    pub fn number(&mut self, word: &Word, least: u64, most: u64) -> Option<u64> {
        let number = self.value(word.span, value::number(&word.text))?;
        if (least..=most).contains(&number) {
            return Some(number);
        }
        let bounds = if most == u64::MAX {
            format!("must be at least {least}")
        } else {
            format!("must be between {least} and {most}")
        };
        self.error(word.span, format!("value \"{}\" {bounds}", word.text))
            .help("write a number in this range");
        None
    }

    /// Number × size such as `8 4k`; fewer than `least` pieces or empty ones are an error.
    pub fn pieces(&mut self, args: &[Word], least: u64) -> Option<(usize, usize)> {
        let number = self.number(&args[0], least, 1 << 20);
        let size = self.memory_size(&args[1]);
        if size == Some(0) {
            self.error(args[1].span, "a size of zero is not possible here").help("write a size such as 8k");
            return None;
        }
        Some((number? as usize, size?))
    }

    pub fn value<T>(&mut self, span: Span, value: Result<T, ValueError>) -> Option<T> {
        value.map_err(|error| error.report(span, self.diagnostics)).ok()
    }

    /// Part of a word as a word of its own, for `name=value` parameters and completed paths.
    pub fn part(word: &Word, text: impl Into<String>) -> Word {
        Word { text: text.into(), span: word.span, quoted: word.quoted }
    }

    pub fn template(&mut self, word: &Word) -> Template {
        let scope = Scope {
            slots: &self.slots,
            made: &self.declared.made_names,
            defined_elsewhere: &self.defined_elsewhere,
        };
        template::compile(word, &scope, self.diagnostics)
    }

    pub fn regex(&mut self, word: &Word, source: &str, ignore_case: bool) -> Option<Regex> {
        let mut regex = regular_expression::compile(source, ignore_case, word.span, self.diagnostics)?;
        let number = |name: &str| slots::number(&self.slots, name);
        let slots = regex.names.iter().filter_map(|(name, group)| Some((number(name)?, *group)));
        regex.slots = slots.collect();
        Some(regex)
    }

    /// A word that must not hold variables, although nginx would accept them here.
    pub fn without_variables(&mut self, word: &Word, what: &str) -> bool {
        if template::is_literal(&word.text) {
            return true;
        }
        self.error(word.span, format!("nginx allows variables in {what}, Millstream does not (yet)"))
            .help("write the value itself");
        false
    }

    /// For a path that no directive names: absolute as it is, others below the prefix.
    pub fn path(&self, name: &str) -> PathBuf {
        self.prefix.join(name)
    }

    /// For a path that a directive names: absolute as it is, others below the prefix. `written` is the part
    /// of the word that is the path.
    pub fn named_path(&mut self, word: &Word, written: &str, used: PathUse) -> PathBuf {
        self.note(word, written, Base::Prefix, used);
        named(self.prefix.join(written), used)
    }

    /// The same relative to the directory of the main file.
    pub fn path_beside_main(&mut self, word: &Word, used: PathUse) -> PathBuf {
        self.note(word, &word.text, Base::MainFile, used);
        named(self.conf_prefix.resolve(&word.text), used)
    }

    fn note(&mut self, word: &Word, written: &str, base: Base, used: PathUse) {
        self.parts.paths.push(NamedPath { span: word.span, written: written.to_owned(), base, used });
    }

    /// `path [level1 [level2 [level3]]]`. Levels are checked and not used: temporary files have no names
    /// here.
    pub fn temp_path(&mut self, args: &[Word]) -> Option<TempPath> {
        let (path, levels) = args.split_first()?;
        for level in levels {
            self.number(level, 1, 255)?;
        }
        Some(TempPath {
            path: self.named_path(path, &path.text, PathUse::Temporary),
            written: Some(path.span),
        })
    }

    /// `name` is nginx's default.
    pub fn default_temp_path(&self, name: &str) -> TempPath {
        TempPath { path: self.path(name), written: None }
    }

    /// A name that was declared before is an error; the second is dropped.
    pub fn declare(&mut self, kind: Kind, name: &str, span: Span, message: impl Into<String>) -> bool {
        let first = self.declared.declare(kind, name, span);
        first.map_err(|first| self.duplicate(span, message, first)).is_ok()
    }

    pub fn duplicate(&mut self, span: Span, message: impl Into<String>, first: Span) {
        let help = format!("it is already at {}; keep one of them", self.sources.locate(first));
        self.error(span, message).help(help);
    }
}

pub type Switch<T> = fn(&mut T);

/// `None` if the word has no equals sign.
pub fn parameter(word: &Word) -> Option<(&str, Word)> {
    let (name, value) = word.text.split_once('=')?;
    Some((name, Reading::part(word, value)))
}

/// Records a path that is opened with more rights than the serving process has.
fn named(path: PathBuf, used: PathUse) -> PathBuf {
    match used {
        PathUse::Certificate | PathUse::Secret => files::name(&path, Access::Read),
        PathUse::Log => files::name(&path, Access::Append(0)),
        PathUse::Own
        | PathUse::Served
        | PathUse::Stored
        | PathUse::Cache
        | PathUse::State
        | PathUse::Temporary
        | PathUse::Pid => {}
    }
    path
}
