//! `gzip_static`, `brotli_static`, `zstd_static`: files that stand coded beside others, and which of them a client gets.
//!
//! Of the codings that a client takes, it gets the one that it likes best of those that are there.

use crate::filter::coding;
use crate::request::Request;
use millstream_conf::model::{Precoded, Settings};
use millstream_wire::Coding;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Beside {
    pub wanted: Vec<(Coding, PathBuf)>,
    /// Files that make the response vary if they exist.
    pub varying: Vec<PathBuf>,
}

fn rules(settings: &Settings) -> [(Coding, Precoded, &'static str); 3] {
    [
        (Coding::Br, settings.brotli.precoded, ".br"),
        (Coding::Zstd, settings.zstd.precoded, ".zst"),
        (Coding::Gzip, settings.gzip.precoded, ".gz"),
    ]
}

pub fn beside(request: &Request, path: &Path) -> Beside {
    let rules = rules(&request.location().settings);
    let mut beside = Beside::default();
    if rules.iter().all(|(_, rule, _)| *rule == Precoded::Off) {
        return beside;
    }
    let named = |extension: &str| {
        let mut named = path.as_os_str().to_owned();
        named.push(extension);
        PathBuf::from(named)
    };
    let path_of =
        |wanted: Coding| rules.iter().find(|(coding, ..)| *coding == wanted).map(|rule| named(rule.2));
    let on = rules.iter().filter(|(_, rule, _)| *rule == Precoded::On);
    beside.varying = on.clone().map(|rule| named(rule.2)).collect();
    let taken = coding::by_preference(request, on.map(|(coding, ..)| *coding));
    let always = rules.iter().filter(|(_, rule, _)| *rule == Precoded::Always).map(|(coding, ..)| *coding);
    for coding in taken.into_iter().chain(always) {
        beside.wanted.extend(path_of(coding).map(|path| (coding, path)));
    }
    beside
}

#[cfg(test)]
mod tests {
    use super::beside;
    use crate::fixture::{admitted, worker};
    use std::path::Path;

    #[test]
    fn a_client_gets_the_coded_file_that_it_likes_best() {
        let worker = worker(
            "server { listen 80; gzip_http_version 1.0;
                location /all { gzip_static on; brotli_static on; zstd_static on; }
                location /gzip { gzip_static on; }
                location /always { gzip_static always; brotli_static on; }
                location /plain { gzip on; } }",
        );
        for (target, accepted, wanted, varying) in [
            ("/all", "gzip, br, zstd", "f.br f.zst f.gz", 3),
            ("/all", "gzip;q=1, br;q=0.5", "f.gz f.br", 3),
            ("/all", "zstd, identity;q=0.5, gzip;q=0.2", "f.zst", 3),
            ("/all", "", "", 3),
            ("/all", "*", "f.br f.zst f.gz", 3),
            ("/gzip", "gzip", "f.gz", 1),
            ("/gzip", "gzip;q=0", "", 1),
            ("/always", "br", "f.br f.gz", 1),
            ("/always", "", "f.gz", 1),
            ("/plain", "gzip", "", 0),
        ] {
            let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\n\r\n");
            let found = beside(&admitted(&worker, &head), Path::new("f"));
            let names: Vec<_> = found.wanted.iter().map(|(_, path)| path.display().to_string()).collect();
            assert_eq!(
                (names.join(" ").as_str(), found.varying.len()),
                (wanted, varying),
                "{target} {accepted}"
            );
        }
    }
}
