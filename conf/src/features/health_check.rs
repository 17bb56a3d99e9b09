//! `health_check`: servers of a group are asked regularly whether they are well.
//!
//! A check belongs to the group that its location passes requests to, and to no level below. Before: `health_match`; next:
//! `millstream-upstream`'s `health`, which counts, and `millstream-server`'s `health`, which asks.

use std::sync::Arc;
use std::time::Duration;

use super::context::LOCATION;
use super::pass::target::PassTarget;
use super::templates::{Templates, record};
use super::{Apply, Feature, MANY, Place, Row, once};
use crate::declared::health::{BeforeFirst, HealthCheck, HealthMatch, HealthQuestion, HealthTerms};
use crate::declared::upstream::UpstreamId;
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::template::Template;
use crate::tree::Word;

record! {
    pub struct LocationCheck {
        pub upstream: UpstreamId,
        /// Its index among the checks of the group.
        pub number: usize,
        pub check: Arc<HealthCheck>,
    }
}

impl Templates for HealthCheck {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        if let HealthQuestion::Get { matches, .. } = &self.question {
            matches.templates(all);
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct HealthCheckLevel {
    own: Option<(Vec<Word>, Span)>,
}

impl Feature for HealthCheckLevel {
    type Settings = Option<LocationCheck>;

    fn inherit(&mut self, _: &Self) {}

    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> Option<LocationCheck> {
        let (words, span) = self.own.as_ref()?;
        let upstream = match place.level.pass.draft.as_ref().map(|draft| &draft.target) {
            Some(PassTarget::Upstream(id)) => *id,
            Some(PassTarget::Variables(_)) => {
                reading
                    .error(*span, "\"health_check\" cannot be used where the upstream has variables")
                    .help("check it in another location, whose proxy_pass names the upstream");
                return None;
            }
            None => {
                reading
                    .error(
                        *span,
                        "\"health_check\" has no upstream to check: the location passes no requests on",
                    )
                    .help("write it in a location with proxy_pass or fastcgi_pass");
                return None;
            }
        };
        let check = Arc::new(read(words, *span, reading));
        let checks = &mut reading.declared.upstreams[upstream.0 as usize].checks;
        checks.push(check.clone());
        Some(LocationCheck { upstream, number: checks.len() - 1, check })
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("health_check", LOCATION, (0, MANY),
        "[interval=time] [jitter=time] [fails=n] [passes=n] [uri=uri] [port=n] [match=name] [mandatory [persistent]] [keepalive_time=time] [type=grpc [grpc_service=name] [grpc_status=code]]", "",
        "Checks every server of the location's upstream. Every `interval` (5s) plus a random time up to `jitter` (0), `uri` (`/`) is requested with \
        the `proxy_set_header`, TLS and timeouts of the location. A check fails if the response does not meet `match`, or without `match` if its \
        status is not 2xx or 3xx. After `fails` (1) failed checks in a row, a server receives no requests until `passes` (1) checks in a row \
        succeed. With `mandatory`, a server is not used before its first successful check; with `persistent`, its state survives a reload. `port` \
        sets another port for checks. With `keepalive_time`, checks reuse a connection for that long. If an upstream has several checks, a server \
        must pass all of them. `type=grpc` uses the gRPC health checking protocol over HTTP/2, with TLS if the location uses it. A check succeeds if \
        the response is SERVING for `grpc_service` (by default, for the whole server). With a `grpc_status` other than 0, it succeeds if the call \
        ends with that code, such as 12 (UNIMPLEMENTED) for servers without this protocol. `type=grpc` cannot be combined with `uri` or `match`.",
        Apply::Level(|l, d, _| l.health_check.own = Some((d.args.clone(), d.span)))),
];

const KNOWN: [&str; 13] = [
    "interval",
    "jitter",
    "fails",
    "passes",
    "uri",
    "port",
    "match",
    "mandatory",
    "persistent",
    "keepalive_time",
    "type",
    "grpc_service",
    "grpc_status",
];

/// The last of gRPC's status codes: UNAUTHENTICATED.
const LAST_GRPC_STATUS: u64 = 16;

#[derive(Default)]
struct QuestionDraft {
    is_grpc: bool,
    uri: Option<String>,
    matches: Option<Arc<HealthMatch>>,
    service: Option<String>,
    status: Option<u32>,
}

impl QuestionDraft {
    /// Parameters of one kind of check cannot be combined with the other's.
    fn question(self, words: &[Word], reading: &mut Reading<'_>) -> HealthQuestion {
        let (others, why, help) = if self.is_grpc {
            (
                ["uri", "match"],
                "cannot be combined with \"type=grpc\"",
                "remove it: the check is that of gRPC",
            )
        } else {
            (
                ["grpc_service", "grpc_status"],
                "requires \"type=grpc\"",
                "write type=grpc before it, or remove it",
            )
        };
        for word in words {
            if let Some((name, _)) = parameter(word).filter(|(name, _)| others.contains(name)) {
                reading.error(word.span, format!("\"{name}\" {why}")).help(help);
            }
        }
        match self.is_grpc {
            true => HealthQuestion::Grpc {
                service: self.service.unwrap_or_default(),
                status: self.status.unwrap_or_default(),
            },
            false => {
                HealthQuestion::Get { uri: self.uri.unwrap_or_else(|| "/".to_owned()), matches: self.matches }
            }
        }
    }
}

fn read(words: &[Word], span: Span, reading: &mut Reading<'_>) -> HealthCheck {
    let mut check = HealthCheck {
        span,
        interval: Duration::from_secs(5),
        jitter: Duration::ZERO,
        terms: HealthTerms { fails: 1, passes: 1, before: BeforeFirst::Used },
        question: HealthQuestion::Get { uri: String::new(), matches: None },
        port: None,
        keepalive_time: Duration::ZERO,
    };
    let mut draft = QuestionDraft::default();
    for word in words {
        read_parameter((&mut check, &mut draft), word, reading);
    }
    check.question = draft.question(words, reading);
    let persistent = words.iter().find(|word| word.text == "persistent");
    if let (BeforeFirst::Used, Some(word)) = (check.terms.before, persistent) {
        reading
            .error(word.span, "\"persistent\" requires \"mandatory\"")
            .help("write mandatory persistent, or remove it");
    }
    check
}

fn read_parameter(
    (check, draft): (&mut HealthCheck, &mut QuestionDraft),
    word: &Word,
    reading: &mut Reading<'_>,
) {
    let times = |value: &Word, reading: &mut Reading<'_>| {
        reading.number(value, 1, u64::from(u32::MAX)).map_or(1, |number| number as u32)
    };
    match parameter(word) {
        Some(("interval", value)) => match reading.duration(&value) {
            Some(Duration::ZERO) => {
                reading.error(word.span, "\"interval\" is zero").help("write a time such as interval=5s");
            }
            interval => check.interval = interval.unwrap_or(check.interval),
        },
        Some(("jitter", value)) => check.jitter = reading.duration(&value).unwrap_or_default(),
        Some(("fails", value)) => check.terms.fails = times(&value, reading),
        Some(("passes", value)) => check.terms.passes = times(&value, reading),
        Some(("uri", value)) => draft.uri = uri(&value, reading),
        Some(("port", value)) => check.port = reading.number(&value, 1, 65_535).map(|port| port as u16),
        Some(("match", value)) => draft.matches = matches(&value, word.span, reading),
        Some(("keepalive_time", value)) => {
            check.keepalive_time = reading.duration(&value).unwrap_or_default()
        }
        Some(("type", value)) => {
            draft.is_grpc = true;
            if value.text != "grpc" {
                reading
                    .error(word.span, format!("invalid type \"{}\" in \"health_check\"", value.text))
                    .help("write type=grpc, or remove it for an HTTP request");
            }
        }
        Some(("grpc_service", value)) => draft.service = Some(value.text.clone()),
        Some(("grpc_status", value)) => {
            draft.status = reading.number(&value, 0, LAST_GRPC_STATUS).map(|status| status as u32);
        }
        None if word.text == "mandatory" && check.terms.before == BeforeFirst::Used => {
            check.terms.before = BeforeFirst::Waits;
        }
        None if word.text == "persistent" => {
            if check.terms.before == BeforeFirst::Waits {
                check.terms.before = BeforeFirst::WaitsOnce;
            }
        }
        None if word.text == "mandatory" => {}
        other => {
            let name = other.map_or(word.text.as_str(), |(name, _)| name);
            let help = suggest::did_you_mean(name, KNOWN)
                .unwrap_or_else(|| "docs/directives.md lists the parameters of health_check".to_owned());
            reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
        }
    }
}

fn matches(name: &Word, span: Span, reading: &mut Reading<'_>) -> Option<Arc<HealthMatch>> {
    let known = &reading.declared.health_matches;
    let found = known.iter().find(|known| known.name == name.text).cloned();
    if found.is_none() {
        let help = suggest::did_you_mean(&name.text, known.iter().map(|known| known.name.as_str()));
        let help =
            help.unwrap_or_else(|| format!("write match {} {{ status 200; }} in the http block", name.text));
        reading.error(span, format!("match \"{}\" not found", name.text)).help(help);
    }
    found
}

fn uri(word: &Word, reading: &mut Reading<'_>) -> Option<String> {
    let is_of_target = |byte: u8| byte.is_ascii_graphic() && byte != b'#' || byte >= 0x80;
    if word.text.starts_with('/') && word.text.bytes().all(is_of_target) {
        return Some(word.text.clone());
    }
    reading
        .error(word.span, format!("invalid URI \"{}\" in \"health_check\"", word.text))
        .help("write a path that begins with a slash, as in uri=/health");
    None
}
