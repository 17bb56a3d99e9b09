//! Certificates whose names have variables, kept between handshakes: `ssl_certificate_cache` and the others of the family.
//!
//! Without the directive a pair stays for as long as its files are as they were, which is looked at each time. With it they are not
//! looked at for `valid`, and a pair that nobody asks for for `inactive` goes. Nothing here looks at a file or a clock. Next:
//! `pair_reader`, which does.

use super::stamp::Stamp;
use millstream_conf::model::{CertificateCache, PemSource};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What holds without the directive.
const UNWRITTEN: CertificateCache =
    CertificateCache { max: 512, inactive: Duration::MAX, valid: Duration::ZERO };

/// How the files of a certificate and its key were.
pub(super) type Stamps = (Option<Stamp>, Option<Stamp>);

/// The pairs of a server, each as what was made of it.
pub(super) struct KeptPairs<T> {
    bounds: CertificateCache,
    pairs: HashMap<Box<[u8]>, KeptPair<T>>,
}

struct KeptPair<T> {
    were: Stamps,
    /// When the files were looked at last.
    looked_at: Instant,
    asked_for: Instant,
    made: T,
}

impl<T: Clone> KeptPairs<T> {
    pub(super) fn new(bounds: Option<CertificateCache>) -> KeptPairs<T> {
        KeptPairs { bounds: bounds.unwrap_or(UNWRITTEN), pairs: HashMap::new() }
    }

    /// A pair whose files need not be looked at yet.
    pub(super) fn find(&mut self, sources: &(PemSource, PemSource), now: Instant) -> Option<T> {
        let (valid, inactive) = (self.bounds.valid, self.bounds.inactive);
        // Without the directive nothing is ever taken unlooked at.
        if valid.is_zero() {
            return None;
        }
        let known = self.pairs.get_mut(&key(sources))?;
        if now.duration_since(known.looked_at) > valid || now.duration_since(known.asked_for) > inactive {
            return None;
        }
        known.asked_for = now;
        Some(known.made.clone())
    }

    /// A pair whose files are as they were.
    pub(super) fn find_unchanged(
        &mut self,
        sources: &(PemSource, PemSource),
        are: Stamps,
        now: Instant,
    ) -> Option<T> {
        let known = self.pairs.get_mut(&key(sources)).filter(|known| known.were == are)?;
        (known.looked_at, known.asked_for) = (now, now);
        Some(known.made.clone())
    }

    /// Keeps a pair that was read; where there are too many, the one goes that nobody has asked for for the longest. As in nginx one whose
    /// key was sealed by a password is never taken unlooked at.
    pub(super) fn keep(
        &mut self,
        sources: (PemSource, PemSource),
        are: Stamps,
        made: T,
        is_sealed: bool,
        now: Instant,
    ) {
        let inactive = self.bounds.inactive;
        self.pairs.retain(|_, known| now.duration_since(known.asked_for) <= inactive);
        let key = key(&sources);
        if is_sealed && !self.bounds.valid.is_zero() {
            self.pairs.remove(&key);
            return;
        }
        // As in nginx a key counts as much as its certificate.
        let most = (self.bounds.max / 2).max(1);
        if self.pairs.len() >= most && !self.pairs.contains_key(&key) {
            let oldest = self.pairs.iter().min_by_key(|(_, known)| known.asked_for);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.pairs.remove(&oldest);
            }
        }
        self.pairs.insert(key, KeptPair { were: are, looked_at: now, asked_for: now, made });
    }
}

/// What tells pairs apart. Names and PEM have no zero bytes in them.
fn key((certificate, key): &(PemSource, PemSource)) -> Box<[u8]> {
    let mut bytes = Vec::new();
    for source in [certificate, key] {
        match source {
            PemSource::Data(text) => bytes.extend_from_slice(text.as_bytes()),
            named => {
                bytes.push(1);
                bytes.extend_from_slice(named.name().as_os_str().as_encoded_bytes());
            }
        }
        bytes.push(0);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn sources(name: &str) -> (PemSource, PemSource) {
        let file = |end: &str| PemSource::named(&format!("{name}.{end}"), Path::new("/"));
        (file("crt"), file("key"))
    }

    #[test]
    fn a_pair_is_taken_unlooked_at_while_it_is_valid_and_goes_when_nobody_asks_for_it() {
        let (seconds, now) = (Duration::from_secs, crate::clock::now());
        let bounds = CertificateCache { max: 4, inactive: seconds(10), valid: seconds(60) };
        let mut kept = KeptPairs::new(Some(bounds));
        let is_known = |kept: &mut KeptPairs<()>, name: &str, at: u64| {
            kept.find(&sources(name), now + seconds(at)).is_some()
        };
        kept.keep(sources("one"), (None, None), (), false, now);
        for at in [5, 14, 23, 33, 43, 53, 60] {
            assert!(is_known(&mut kept, "one", at), "{at}");
        }
        assert!(!is_known(&mut kept, "one", 61));
        assert!(kept.find_unchanged(&sources("one"), (None, None), now + seconds(61)).is_some());
        assert!(is_known(&mut kept, "one", 70));
        assert!(!is_known(&mut kept, "one", 81));
        // The next one to be kept takes the place of what is over, then of what was asked for least lately.
        kept.keep(sources("two"), (None, None), (), false, now + seconds(81));
        kept.keep(sources("three"), (None, None), (), false, now + seconds(82));
        assert!(is_known(&mut kept, "two", 83));
        kept.keep(sources("four"), (None, None), (), false, now + seconds(84));
        assert!(is_known(&mut kept, "two", 85) && is_known(&mut kept, "four", 85));
        assert!(!is_known(&mut kept, "three", 85));
        kept.keep(sources("four"), (None, None), (), true, now + seconds(86));
        assert!(!is_known(&mut kept, "four", 86), "its key is sealed now");
    }

    #[test]
    fn without_the_directive_files_are_looked_at_each_time() {
        let now = crate::clock::now();
        let mut kept = KeptPairs::new(None);
        kept.keep(sources("one"), (None, None), (), true, now);
        assert!(kept.find(&sources("one"), now).is_none());
        let later = now + Duration::from_secs(24 * 60 * 60);
        assert!(kept.find_unchanged(&sources("one"), (None, None), later).is_some());
    }
}
