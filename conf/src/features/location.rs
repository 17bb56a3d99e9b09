//! `location`: which requests a block is for.
//!
//! Which location may stand in which is for `locations` to say. Next: `locations`, which reads the blocks; `millstream-server`'s
//! `route/location`, which finds one for a request.

use super::context::{Context, LOCATION, SERVER_LOCATION};
use super::{Apply, MANY, Row, often, once};
use crate::reading::Reading;
use crate::regular_expression::Regex;
use crate::source::Span;
use crate::suggest;
use crate::tree::Word;

/// Index into `Http::locations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub u32);

#[derive(Debug, Clone)]
pub enum LocationMatch {
    /// The server block itself, used if no location matches.
    Server,
    Exact(String),
    /// `/path` or `^~ /path` (then `no_regex`).
    Prefix {
        path: String,
        /// `^~`: expressions are not tried if this is the longest prefix.
        no_regex: bool,
    },
    Regex(Regex),
    /// `@name`, reached internally only.
    Named(String),
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("location", SERVER_LOCATION, (1, 2), "[ = | ~ | ~* | ^~ ] uri { … } | @name { … }", "",
        "Sets the configuration for some of the URIs. `=` matches one path exactly. Of several matching prefixes, the longest is used. The first \
        matching regular expression (`~`, or `~*` without regard to case) takes precedence over a prefix, unless the longest prefix has the modifier \
        `^~`. `@name` is used only by `error_page`, `try_files` and `X-Accel-Redirect`.",
        Apply::Block(Context::Location)),
    once("limit_except", LOCATION, (1, MANY), "method … { … }", "",
        "Applies the block to all methods except these; GET includes HEAD. The block may contain access rules (`allow`, `deny`, `auth_basic`), logs \
        and the directive that passes the request on. Everything else comes from the location, except its rewrite directives (`return`, `rewrite`, \
        `set`, `if`), which do not run for these methods, as in nginx.",
        Apply::Block(Context::LimitExcept)),
];

const METHODS: [&str; 16] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "MKCOL",
    "COPY",
    "MOVE",
    "OPTIONS",
    "PROPFIND",
    "PROPPATCH",
    "LOCK",
    "UNLOCK",
    "PATCH",
    "CONNECT",
    "TRACE",
];

/// The methods that a `limit_except` excepts, in upper case.
pub fn methods(words: &[Word], reading: &mut Reading<'_>) -> Box<[Box<str>]> {
    let mut methods: Vec<Box<str>> = Vec::new();
    for word in words {
        match METHODS.iter().find(|known| word.text.eq_ignore_ascii_case(known)) {
            Some(&known) => methods.push(known.into()),
            None => {
                let help = suggest::did_you_mean(&word.text.to_ascii_uppercase(), METHODS.iter().copied());
                reading
                    .error(word.span, format!("invalid method \"{}\"", word.text))
                    .help(help.unwrap_or_else(|| format!("the methods are {}", METHODS.join(", "))));
            }
        }
    }
    if methods.iter().any(|method| &**method == "GET") {
        methods.push("HEAD".into());
    }
    methods.into()
}

/// The modifier may stand apart or at the front of the path.
pub fn parse(args: &[Word], span: Span, reading: &mut Reading<'_>) -> Option<LocationMatch> {
    let prefix = |path: &str, no_regex| Some(LocationMatch::Prefix { path: path.to_owned(), no_regex });
    if let [modifier, word] = args {
        let path = word.text.as_str();
        return match modifier.text.as_str() {
            "=" => Some(LocationMatch::Exact(path.to_owned())),
            "^~" => prefix(path, true),
            "~" => reading.regex(word, path, false).map(LocationMatch::Regex),
            "~*" => reading.regex(word, path, true).map(LocationMatch::Regex),
            other => {
                reading
                    .error(modifier.span, format!("invalid location modifier \"{other}\""))
                    .help("the modifiers are =, ^~, ~ and ~*; put a path with spaces in quotes");
                None
            }
        };
    }
    let Some(word) = args.first() else {
        reading.error(span, "a location needs a path").help("write location / { … }");
        return None;
    };
    let text = word.text.as_str();
    if let Some(path) = text.strip_prefix('=') {
        return Some(LocationMatch::Exact(path.to_owned()));
    }
    if let Some(path) = text.strip_prefix("^~") {
        return prefix(path, true);
    }
    if let Some(source) = text.strip_prefix("~*") {
        return reading.regex(word, source, true).map(LocationMatch::Regex);
    }
    if let Some(source) = text.strip_prefix('~') {
        return reading.regex(word, source, false).map(LocationMatch::Regex);
    }
    if text.starts_with('@') {
        return Some(LocationMatch::Named(text.to_owned()));
    }
    prefix(text, false)
}
