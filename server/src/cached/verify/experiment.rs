//! What the responses to a client's own request and to one of no one say of a stored response: pure, on what they mean.
//!
//! ```text
//! own = stored ──────────────────────────── same (noise, if only times and the like differ)
//! own ≠ own ─────────────────────────────── noise: no response is like another
//! own = stored but for what differs in own ─ noise
//! own = bare ────────────────────────────── stale: this is what everybody gets now
//! own ≠ bare, each the same in all rounds ── leak: the response depends on something that the key lacks
//! own refused (4xx), bare = stored ───────── same: what was served is public, and the client sent something wrong
//! own refused (401, 403), bare ≠ stored ──── leak: this client would have got nothing
//! ```
//! A content that changes meanwhile, or servers that disagree, make one of the responses differ from its own kind, so there
//! are several rounds before a leak is found.

use millstream_shadow::{Content, Likeness, Noise};

/// Pairs of requests, after the first request, until a leak is certain. Two servers that disagree pass for a leak in one of
/// 2⁶ suspicions.
pub(super) const ROUNDS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckResult {
    Same,
    Noise,
    Stale,
    Leak,
    /// The upstream failed, or refuses more requests.
    Failed,
    /// The responses cannot be compared.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CheckFinding {
    pub(super) result: CheckResult,
    /// What of a leaked response differs.
    pub(super) differs_by: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inference {
    Finding(CheckFinding),
    AskAgain,
}

/// A stored response that differs from the client's own one.
pub(super) struct Experiment {
    stored: Content,
    own: Content,
    bare: Option<Content>,
    noise: Noise,
    rounds: usize,
}

impl CheckFinding {
    pub(super) fn of(result: CheckResult) -> CheckFinding {
        CheckFinding { result, differs_by: "" }
    }
}

impl Experiment {
    /// `Err`: nothing more is to be asked.
    pub(super) fn begin(stored: Content, own: Content) -> Result<Experiment, CheckFinding> {
        match stored.compare(&own) {
            Likeness::Same => Err(CheckFinding::of(CheckResult::Same)),
            Likeness::Noise => Err(CheckFinding::of(CheckResult::Noise)),
            Likeness::Different => {
                Ok(Experiment { stored, own, bare: None, noise: Noise::default(), rounds: 0 })
            }
        }
    }

    /// One more response to the client's request and to a bare one.
    pub(super) fn judge(&mut self, own: Content, bare: Content) -> Inference {
        let found = |result| Inference::Finding(CheckFinding::of(result));
        let before = self.bare.get_or_insert_with(|| bare.clone());
        let noises = (Noise::between(&self.own, &own), Noise::between(before, &bare));
        let (Some(of_own), Some(of_bare)) = noises else { return found(CheckResult::Noise) };
        self.noise = std::mem::take(&mut self.noise).and(of_own).and(of_bare);
        self.rounds += 1;
        if self.noise.explains(&self.stored, &self.own) {
            return found(CheckResult::Noise);
        }
        // Anyone could send a bad token, and with it turn the cache off for all.
        if (400..500).contains(&self.own.status()) && self.noise.explains(&self.stored, &bare) {
            return found(CheckResult::Same);
        }
        let is_refused = matches!(self.own.status(), 401 | 403) && self.stored.status() < 400;
        if !is_refused && self.noise.explains(&self.own, &bare) {
            return found(CheckResult::Stale);
        }
        if self.rounds < ROUNDS {
            return Inference::AskAgain;
        }
        let differs_by = self.stored.differs_by(&self.own, &self.noise);
        Inference::Finding(CheckFinding { result: CheckResult::Leak, differs_by })
    }
}

/// Whether the upstream serves the client, and refuses only the other request.
pub(super) fn refuses_only_bare(own: &Content, bare: &Content) -> bool {
    own.status() < 400 && (400..500).contains(&bare.status())
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_shadow::{ContentReader, Key};

    /// A status, or JSON.
    fn content(text: &str) -> Content {
        let fields = [(&b"content-type"[..], &b"application/json"[..])];
        let status = text.parse().unwrap_or(200);
        let mut reader =
            ContentReader::begin(&Key::from_seed(3), status, fields.into_iter(), 1_700_000_000_000);
        reader.feed(text.as_bytes());
        reader.finish()
    }

    /// The stored response, the first own one, then rounds of an own and a bare one.
    fn result(stored: &str, own: &str, rounds: &[(&str, &str)]) -> Option<CheckResult> {
        let mut experiment = match Experiment::begin(content(stored), content(own)) {
            Ok(experiment) => experiment,
            Err(found) => return Some(found.result),
        };
        for (own, bare) in rounds {
            if let Inference::Finding(found) = experiment.judge(content(own), content(bare)) {
                return Some(found.result);
            }
        }
        None
    }

    #[test]
    fn a_leak_is_what_is_the_clients_own_in_every_round() {
        let (a, b, c, d) = (r#"{"n":"Ann"}"#, r#"{"n":"Bob"}"#, r#"{"n":"no one"}"#, r#"{"n":"Dan"}"#);
        let timed = (r#"{"n":"Ann","at":1700000000}"#, r#"{"n":"Ann","at":1700000001}"#);
        let counted = |name: &str, views: u32| format!(r#"{{"n":"{name}","views":{views}}}"#);
        let (c1, c2, c3, c4) = (counted("Ann", 1), counted("Ann", 2), counted("Ann", 3), counted("Ann", 4));
        let (b2, b3, b4) = (counted("Bob", 2), counted("Bob", 3), counted("Bob", 4));
        let (x3, x4) = (counted("no one", 3), counted("no one", 4));
        for (stored, own, rounds, expected) in [
            (a, a, &[][..], Some(CheckResult::Same)),
            (timed.0, timed.1, &[], Some(CheckResult::Noise)),
            // No response is like another.
            (a, b, &[(c, d)], Some(CheckResult::Noise)),
            (&c1, &c2, &[(&c3, &c4)], Some(CheckResult::Noise)),
            // What everybody gets now.
            (a, b, &[(b, b)], Some(CheckResult::Stale)),
            (a, "404", &[("404", "404")], Some(CheckResult::Stale)),
            (a, b, &[(b, c), (b, b)], Some(CheckResult::Noise)),
            // The client's own.
            (a, b, &[(b, c), (b, c), (b, c)], Some(CheckResult::Leak)),
            (a, b, &[(b, a), (b, a), (b, a)], Some(CheckResult::Leak)),
            (a, b, &[(b, "401"), (b, "401"), (b, "401")], Some(CheckResult::Leak)),
            (&c1, &b2, &[(&b3, &x3), (&b4, &x4), (&b4, &x4)], Some(CheckResult::Leak)),
            // Refused.
            (a, "403", &[("403", "403"), ("403", "403"), ("403", "403")], Some(CheckResult::Leak)),
            (a, "401", &[("401", b), ("401", b), ("401", b)], Some(CheckResult::Leak)),
            // For what it sent: everyone else gets what was served.
            (a, "401", &[("401", a)], Some(CheckResult::Same)),
            (a, "400", &[("400", a)], Some(CheckResult::Same)),
            (timed.0, "401", &[("401", timed.1)], Some(CheckResult::Same)),
            // The content changed meanwhile, or servers disagree.
            (a, b, &[(b, c), (c, c)], Some(CheckResult::Noise)),
            (a, b, &[(b, c), (b, c), (b, d)], Some(CheckResult::Noise)),
            // Not yet certain.
            (a, b, &[(b, c), (b, c)], None),
        ] {
            assert_eq!(result(stored, own, rounds), expected, "{stored} {own} {rounds:?}");
        }
    }
}
