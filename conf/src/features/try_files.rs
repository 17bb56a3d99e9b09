//! `try_files`: the first of several files that is there, or else another URI, a named location or a status.
//!
//! As in nginx it holds on the level that wrote it alone: neither a nested location nor an `if` block has it. Next:
//! `millstream-server`'s `try_files`, which looks for them.

use super::context::SERVER_LOCATION;
use super::templates::{Templates, record};
use super::{Apply, Feature, Level, MANY, Place, Row, once};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Directive;

record! {
    pub struct TryFiles {
        /// In order.
        pub candidates: Vec<Candidate>,
        pub otherwise: Otherwise,
    }
}

record! {
    pub struct Candidate {
        /// Below `root` or `alias`.
        pub name: Template,
        /// A name written with a trailing slash.
        pub is_directory: bool,
    }
}

#[derive(Debug, Clone)]
pub enum Otherwise {
    Status(u16),
    /// `@name`, or a path with its query.
    Uri(Template),
}

impl Templates for Otherwise {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            Otherwise::Status(_) => {}
            Otherwise::Uri(uri) => all.push(uri),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct TryFilesLevel {
    written: Option<Box<TryFiles>>,
}

impl Feature for TryFilesLevel {
    type Settings = Option<Box<TryFiles>>;

    fn inherit(&mut self, _: &Self) {}

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Self::Settings {
        self.written.clone()
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("try_files", SERVER_LOCATION, (2, MANY), "file … uri | file … =code", "",
        "Checks whether files exist under `root` or `alias`, in order; a trailing slash means a directory. The first one found becomes the URI of the \
        request, which stays in its location. If none is found, the last parameter applies: another URI with or without a query, a named location, \
        or a status. The directive is not inherited by inner locations or `if` blocks.",
        Apply::Level(try_files)),
];

fn try_files(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (last, files) = directive.args.split_last().expect("the table asks for two words");
    let candidates = files.iter().map(|word| {
        let name = word.text.strip_suffix('/');
        let text = name.unwrap_or(&word.text);
        Candidate { name: reading.template(&Reading::part(word, text)), is_directory: name.is_some() }
    });
    let candidates = candidates.collect();
    let otherwise = match last.text.strip_prefix('=') {
        None => Otherwise::Uri(reading.template(last)),
        Some(code) => match code.parse() {
            Ok(status @ 0..=999) => Otherwise::Status(status),
            _ => {
                reading
                    .error(last.span, format!("invalid code \"{}\"", last.text))
                    .help("write a status, as in =404");
                return;
            }
        },
    };
    level.try_files.written = Some(Box::new(TryFiles { candidates, otherwise }));
}
