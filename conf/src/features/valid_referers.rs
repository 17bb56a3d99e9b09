//! `valid_referers`: which pages may refer to what a location has.
//!
//! As in nginx a level that names any takes the expressions of the level above all the same, unless it has its own. Next:
//! `millstream-server`'s `variables/referer`, which judges.

use std::sync::Arc;

use super::context::SERVER_LOCATION;
use super::level::level;
use super::listen::ServerName;
use super::templates::without_templates;
use super::{Apply, Feature, Level, MANY, Place, Row, idle, often};
use crate::host_names::HostNames;
use crate::reading::Reading;
use crate::regular_expression::Regex;
use crate::source::Span;
use crate::tree::{Directive, Word};

#[derive(Debug, Clone)]
pub struct ValidReferers {
    /// `none`: a request without the field.
    pub none: bool,
    /// A field without `http://` or `https://`.
    pub blocked: bool,
    /// Each with what the path must begin with.
    pub hosts: HostNames<Option<Box<str>>>,
    /// Expressions among them are matched against the host.
    pub server_names: Arc<[ServerName]>,
    /// Matched against everything after the scheme.
    pub expressions: Arc<[Regex]>,
}

without_templates!(ValidReferers);

#[derive(Debug, Clone, Default)]
pub struct ReferersDraft {
    none: bool,
    blocked: bool,
    server_names: bool,
    hosts: HostNames<Option<Box<str>>>,
    span: Span,
}

level! {
    pub struct ValidReferersLevel {
        draft: ReferersDraft,
        expressions: Vec<Regex>,
        by_server_expressions: bool,
        server_names: Arc<[ServerName]>,
    }
}

impl ValidReferersLevel {
    pub fn stands_in(&mut self, names: &[(ServerName, Span)]) {
        self.server_names = Some(names.iter().map(|(name, _)| name.clone()).collect());
    }
}

impl Feature for ValidReferersLevel {
    type Settings = Option<Arc<ValidReferers>>;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, reading: &mut Reading<'_>) -> Self::Settings {
        let draft = self.draft.as_ref()?;
        let names: &[ServerName] = self.server_names.as_deref().unwrap_or_default();
        let mut hosts = draft.hosts.clone();
        for name in names.iter().filter(|_| draft.server_names) {
            let text = match name {
                ServerName::Exact(name) => name.clone(),
                ServerName::LeadingWildcard(tail) => format!("*{tail}"),
                ServerName::TrailingWildcard(head) => format!("{head}*"),
                ServerName::Regex(_) => continue,
            };
            if let Err(unfit) = hosts.add(&text, None) {
                let (message, help) = unfit.sentence(&text);
                reading.error(draft.span, message).help(help).once();
            }
        }
        let expressions: Arc<[Regex]> = self.expressions.iter().flatten().cloned().collect();
        if hosts.is_empty() && expressions.is_empty() && (draft.none || draft.blocked) {
            let message = "the \"none\" or \"blocked\" referers are specified in the \"valid_referers\" directive without any \
                           valid referer";
            reading.error(draft.span, message).help("add a host, as in *.example.com").once();
        }
        let is_expression = |name: &&ServerName| matches!(name, ServerName::Regex(_));
        let counts = self.by_server_expressions == Some(true);
        let server_names: Arc<[ServerName]> =
            names.iter().filter(|_| counts).filter(is_expression).cloned().collect();
        let is_any = hosts.is_empty() && expressions.is_empty() && server_names.is_empty();
        (!is_any).then(|| {
            let (none, blocked) = (draft.none, draft.blocked);
            Arc::new(ValidReferers { none, blocked, hosts, server_names, expressions })
        })
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("valid_referers", SERVER_LOCATION, (1, MANY), "none | blocked | server_names | host[/path] | ~regex …", "",
        "Sets the Referer fields for which `$invalid_referer` is empty; otherwise, it is `1`. `none`: a request without the field. `blocked`: a field \
        that does not begin with `http://` or `https://`. `server_names`: the names of the server. A host may be a wildcard such as `*.example.com` \
        or `example.*`, and may be followed by the beginning of a path. A regular expression is case-insensitive and is matched against the text \
        after the scheme. The port in the field is ignored. If the current level has this directive, it inherits only regular expressions, and only \
        if it has none.",
        Apply::Level(set)),
    idle("referer_hash_max_size", SERVER_LOCATION, (1, 1), "size",
        "The maximum size of the hash table of `valid_referers`.",
        "hash tables grow as needed"),
    idle("referer_hash_bucket_size", SERVER_LOCATION, (1, 1), "size",
        "The bucket size of the hash table of `valid_referers`.",
        "hash tables grow as needed"),
];

fn set(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let level = &mut level.valid_referers;
    let draft = level.draft.get_or_insert_default();
    draft.span = directive.span;
    for word in &directive.args {
        match word.text.as_str() {
            "none" => draft.none = true,
            "blocked" => draft.blocked = true,
            "server_names" => {
                draft.server_names = true;
                level.by_server_expressions = Some(true);
            }
            "" => {
                reading.error(word.span, "invalid referer \"\"").help("write a host, as in www.example.com");
            }
            "~" => {
                reading
                    .error(word.span, "empty regex in \"~\"")
                    .help("write a regular expression after the tilde");
            }
            text => match text.strip_prefix('~') {
                Some(source) => {
                    let compiled = reading.regex(word, source, true);
                    level.expressions.get_or_insert_default().extend(compiled);
                }
                None => draft.host(word, reading),
            },
        }
    }
}

impl ReferersDraft {
    fn host(&mut self, word: &Word, reading: &mut Reading<'_>) {
        let (host, path) = match word.text.find('/') {
            Some(at) => (&word.text[..at], Some(&word.text[at..])),
            None => (word.text.as_str(), None),
        };
        if let Err(unfit) = self.hosts.add(host, path.map(Box::from)) {
            let (message, help) = unfit.sentence(host);
            reading.error(word.span, message).help(help);
        } else if host.contains(':') {
            let message = format!("\"{host}\" matches no Referer: its scheme and port are not compared");
            reading.diagnostics.warning(word.span, message).help("write the host without scheme and port");
        }
    }
}
