//! Why there is no certificate: what failed, whose fault it is, and when to try again.
//!
//! What a server says is shortened and told as it is; nothing of keys and tokens is in it. Next: `session`, which meets most of them; `schedule`,
//! which makes moments of them.

use millstream_net::tls::TlsError;
use serde::Deserialize;
use std::fmt;
use std::io;
use std::time::Duration;

/// Bytes of a server's message that are logged.
const MOST_TOLD: usize = 300;

#[derive(Debug)]
pub(crate) enum AcmeFailure {
    Connection(io::Error),
    /// The response is not ACME.
    Answer(&'static str),
    /// An HTTP error without a problem document.
    Status(u16),
    /// An error with its reasons (RFC 7807), and when to ask again if the server says so.
    Refused(Box<Problem>, Option<Duration>),
    /// A name whose control was not proven.
    Unproven(String, Box<Problem>),
    Terms(String),
    /// The server demands external account binding.
    NeedsExternalAccount,
    /// The server does not offer the configured profile.
    NoProfile(String),
    /// The server does not offer the configured challenge for this name.
    NoChallenge(String, &'static str),
    TimedOut(&'static str),
    Key(String),
    Unusable(TlsError),
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Problem {
    /// `urn:ietf:params:acme:error:…`.
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) detail: String,
    #[serde(default)]
    pub(crate) subproblems: Vec<Subproblem>,
    /// URL of further instructions; may be empty.
    #[serde(default)]
    pub(crate) instance: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Subproblem {
    #[serde(default)]
    detail: String,
    identifier: Option<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    value: String,
}

impl Problem {
    /// Replaces each secret by `***`.
    pub(crate) fn without(mut self, secrets: &[&str]) -> Problem {
        let all = self.subproblems.iter_mut().map(|sub| &mut sub.detail).chain([&mut self.detail]);
        for text in all {
            for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
                *text = text.replace(secret, "***");
            }
        }
        self
    }

    /// The last part of its type.
    pub(crate) fn name(&self) -> &str {
        self.kind.rsplit(':').next().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Later,
    After(Duration),
    /// Only after the configuration has changed.
    Never,
}

/// Errors that time does not cure.
const LASTING: [&str; 12] = [
    "badCSR",
    "badPublicKey",
    "badSignatureAlgorithm",
    "externalAccountRequired",
    "invalidContact",
    "invalidProfile",
    "malformed",
    "rejectedIdentifier",
    "unsupportedContact",
    "unsupportedIdentifier",
    "userActionRequired",
    "accountDoesNotExist",
];

/// Bounds of the wait after a rate limit.
const LEAST_PAUSE: Duration = Duration::from_secs(60);
const MOST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

impl AcmeFailure {
    pub(crate) fn retry(&self) -> Retry {
        match self {
            AcmeFailure::Refused(problem, after) if problem.name() == "rateLimited" => {
                Retry::After(after.unwrap_or(Duration::from_secs(60 * 60)).clamp(LEAST_PAUSE, MOST_PAUSE))
            }
            AcmeFailure::Refused(problem, _) if LASTING.contains(&problem.name()) => Retry::Never,
            AcmeFailure::Refused(_, Some(after)) => Retry::After((*after).clamp(LEAST_PAUSE, MOST_PAUSE)),
            AcmeFailure::Terms(_)
            | AcmeFailure::NeedsExternalAccount
            | AcmeFailure::NoProfile(_)
            | AcmeFailure::NoChallenge(..)
            | AcmeFailure::Key(_) => Retry::Never,
            _ => Retry::Later,
        }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        matches!(self, AcmeFailure::Refused(problem, _) if problem.name() == name)
    }
}

impl fmt::Display for AcmeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcmeFailure::Connection(error) => write!(f, "the server cannot be reached: {error}"),
            AcmeFailure::Answer(what) => write!(f, "the server's response {what}"),
            AcmeFailure::Status(status) => write!(f, "the server responded with {status}"),
            AcmeFailure::Refused(problem, _) => write!(f, "the server rejected the request: {problem}"),
            AcmeFailure::Unproven(name, problem) => {
                write!(f, "the server could not validate {name}: {problem}")
            }
            AcmeFailure::Terms(url) => write!(
                f,
                "the server requires agreement to its terms of service; read {} and add accept_terms_of_service",
                shortened(url)
            ),
            AcmeFailure::NeedsExternalAccount => f.write_str(
                "the server requires an external account; add external_account_key with the id and key that the server provides",
            ),
            AcmeFailure::NoProfile(name) => write!(f, "the server does not offer the profile {}", shortened(name)),
            AcmeFailure::NoChallenge(name, challenge) => {
                write!(f, "the server does not offer the challenge {challenge} for {}", shortened(name))
            }
            AcmeFailure::TimedOut(what) => write!(f, "the server took too long to {what}"),
            AcmeFailure::Key(what) => f.write_str(what),
            AcmeFailure::Unusable(error) => write!(f, "the issued certificate cannot be used: {error}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = if self.detail.is_empty() { "no reason given" } else { &self.detail };
        write!(f, "{}", shortened(detail))?;
        if !self.name().is_empty() {
            write!(f, " ({})", shortened(self.name()))?;
        }
        if self.name() == "userActionRequired" && !self.instance.is_empty() {
            write!(f, "; see {}", shortened(&self.instance))?;
        }
        for sub in self.subproblems.iter().take(3) {
            let name = sub.identifier.as_ref().map_or("", |named| named.value.as_str());
            write!(f, "; {}: {}", shortened(name), shortened(&sub.detail))?;
        }
        Ok(())
    }
}

fn shortened(text: &str) -> &str {
    let end = (0..=MOST_TOLD.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

impl From<io::Error> for AcmeFailure {
    fn from(error: io::Error) -> Self {
        AcmeFailure::Connection(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(kind: &str, after: Option<u64>) -> AcmeFailure {
        let problem = Problem { kind: format!("urn:ietf:params:acme:error:{kind}"), ..Problem::default() };
        AcmeFailure::Refused(Box::new(problem), after.map(Duration::from_secs))
    }

    #[test]
    fn a_reason_says_when_to_ask_again() {
        let hour = Duration::from_secs(3600);
        for (failure, expected) in [
            (refused("rateLimited", None), Retry::After(hour)),
            (refused("rateLimited", Some(7200)), Retry::After(2 * hour)),
            (refused("rateLimited", Some(1)), Retry::After(LEAST_PAUSE)),
            (refused("rateLimited", Some(u64::MAX)), Retry::After(MOST_PAUSE)),
            (refused("rejectedIdentifier", None), Retry::Never),
            (refused("serverInternal", None), Retry::Later),
            (refused("dns", None), Retry::Later),
            (AcmeFailure::Status(503), Retry::Later),
            (AcmeFailure::Terms("https://ca/terms".into()), Retry::Never),
        ] {
            assert_eq!(failure.retry(), expected, "{failure}");
        }
    }

    #[test]
    fn what_a_server_says_is_told_in_one_short_line() {
        let problem: Problem = serde_json::from_str(
            r#"{"type":"urn:ietf:params:acme:error:dns","detail":"no address","subproblems":[{"detail":"NXDOMAIN","identifier":{"type":"dns","value":"a.test"}}]}"#,
        )
        .expect("it is JSON");
        let told = AcmeFailure::Unproven("a.test".into(), Box::new(problem)).to_string();
        assert_eq!(told, "the server could not validate a.test: no address (dns); a.test: NXDOMAIN");
        let secret = Problem { detail: "at /acme-challenge/abc: not abc.def".into(), ..Problem::default() };
        assert_eq!(secret.without(&["abc", "def", ""]).to_string(), "at /acme-challenge/***: not ***.***");
        let long = Problem { detail: "\u{fc}".repeat(1000), ..Problem::default() };
        assert!(long.to_string().len() <= MOST_TOLD);
    }
}
