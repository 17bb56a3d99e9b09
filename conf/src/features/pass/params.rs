//! What FastCGI, uwsgi and SCGI have in common: parameters for an application, and an address without a URL.
//!
//! Before: `target`, whom a location passes to; next: the protocols `fastcgi`, `uwsgi` and `scgi`; `millstream-server`'s
//! `exchange/params`.

use super::exchange::Exchange;
use super::http::SetHeader;
use super::target::{self, PassDraft, PassTarget};
use super::{Family, Sent};
use crate::features::Level;
use crate::features::templates::{record, without_templates};
use crate::reading::Reading;
use crate::template::{self, Part, Template, Variable};
use crate::tree::{Directive, Word};
use crate::variables::Builtin;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Itself,
    /// The method as sent: GET for a HEAD whose response is to be stored.
    Method,
    Length,
}

without_templates!(Says);

record! {
    pub struct Param {
        pub name: String,
        pub value: Template,
        /// Not sent if its value is empty.
        pub if_not_empty: bool,
        pub says: Says,
    }
}

#[derive(Debug, Clone, Default)]
pub struct Params {
    pub all: Vec<Param>,
    /// The request fields among them (`HTTP_…`), by field name.
    pub fields: Vec<SetHeader>,
}

pub(super) fn sent(params: Option<&Params>) -> Sent<'_> {
    params.map_or_else(Sent::default, |params| Sent {
        fields: &params.fields,
        params: &params.all,
        ..Sent::default()
    })
}

/// An application sends no Date or Server that ours would replace; its status is a field.
pub(super) fn adjust(exchange: &mut Exchange) {
    exchange.hide_headers.push("status".to_owned());
    for name in ["date", "server", "x-pad"] {
        if !exchange.hide_headers.iter().any(|hidden| hidden == name) {
            exchange.pass_headers.push(name.to_owned());
        }
    }
}

/// Schemes of uwsgi, and whether they use TLS.
const UWSGI_SCHEMES: [(&str, bool); 2] = [("uwsgi://", false), ("suwsgi://", true)];

pub(super) fn pass(family: Family, level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    if target::is_taken(level, directive, reading) {
        return;
    }
    let word = &directive.args[0];
    let mut schemes = UWSGI_SCHEMES.iter().filter(|_| family == Family::Uwsgi);
    let found = schemes.find_map(|(scheme, tls)| Some((word.text.strip_prefix(scheme)?, *tls)));
    let (address, mut may_be_encrypted) = found.unwrap_or((&word.text, false));
    let (target, host, port) = if !template::is_literal(&word.text) {
        // What stands before the first variable may decide already.
        let start = word.text.split('$').next().unwrap_or_default();
        may_be_encrypted |= family == Family::Uwsgi && UWSGI_SCHEMES[1].0.starts_with(start);
        (PassTarget::Variables(reading.template(word)), String::new(), 0)
    } else if address.contains("://") {
        return no_url(&family.directive("pass"), word, reading);
    } else {
        let text = address.strip_suffix(':').filter(|text| text.starts_with("unix:")).unwrap_or(address);
        let Some((id, host, port)) = target::target(text, None, family, word, reading) else { return };
        (PassTarget::Upstream(id), host, port)
    };
    let (uri, url, span) = (None, None, word.span);
    level.pass.draft = Some(PassDraft { family, target, host, port, uri, url, may_be_encrypted, span });
}

fn no_url(name: &str, word: &Word, reading: &mut Reading<'_>) {
    let error = reading.error(word.span, format!("invalid host in {name} \"{}\"", word.text));
    match word.text.split_once("://") {
        Some((_, bare)) => error.help(format!("an application has no URL; write {name} {bare};")),
        None => error,
    };
}

impl Params {
    pub(super) fn read(&mut self, directive: &Directive, reading: &mut Reading<'_>) {
        let [name, word, rest @ ..] = &directive.args[..] else { return };
        if let Some(flag) = rest.first()
            && reading.one_of(flag, &["if_not_empty"]).is_none()
        {
            return;
        }
        let value = reading.template(word);
        let says = match &*value.parts {
            [Part::Variable(Variable::Builtin(Builtin::RequestMethod))] => Says::Method,
            [Part::Variable(Variable::Builtin(Builtin::ContentLength))] => Says::Length,
            _ => Says::Itself,
        };
        if let Some(field) = name.text.strip_prefix("HTTP_") {
            let field = field.replace('_', "-").to_ascii_lowercase();
            self.fields.push(SetHeader { name: field, value: value.clone() });
        }
        self.all.push(Param { name: name.text.clone(), value, if_not_empty: !rest.is_empty(), says });
    }
}
