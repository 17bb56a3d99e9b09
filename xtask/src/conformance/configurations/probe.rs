//! The same questions to nginx and to this server, started in turn on one configuration in front of one echoing origin.
//!
//! Asked are the plain listeners: each location's path by several methods and with the fields that change an answer.
//! What is compared is the status, the fields and the body; not what names the program or the moment.

use super::nodes::Node;
use flate2::read::GzDecoder;
use millstream_tests::client::{Answer, Client};
use millstream_tests::origin::{Origin, Request, answer};
use millstream_tests::process::Running;
use millstream_tests::wait;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);

/// Most paths asked for on one listener.
const PATHS: usize = 16;

/// Paths that configurations often treat specially.
const USUAL: &[&str] = &["/", "/index.php", "/some/where?a=1", "/style.css", "/image.png", "/.git/config"];

/// Name, method, further fields.
type Way = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const WAYS: &[Way] = &[
    ("GET", "GET", &[]),
    ("HEAD", "HEAD", &[]),
    ("POST", "POST", &[("Content-Length", "0")]),
    ("range", "GET", &[("Range", "bytes=0-3")]),
    ("condition", "GET", &[("If-None-Match", "\"one\"")]),
    ("encoding", "GET", &[("Accept-Encoding", "gzip, br")]),
    ("upgrade", "GET", &[("Upgrade", "websocket"), ("Connection", "upgrade")]),
];

pub(super) struct Question {
    port: u16,
    host: String,
    path: String,
}

pub(super) struct Compared {
    pub(super) asked: usize,
    /// One line per differing response: the first difference, then the request.
    pub(super) different: Vec<String>,
}

pub(super) fn questions(tree: &[Node]) -> Vec<Question> {
    let http = tree.iter().filter(|node| node.name() == "http").flat_map(|http| http.block.iter().flatten());
    http.filter(|node| node.name() == "server").flat_map(of_server).collect()
}

fn of_server(server: &Node) -> Vec<Question> {
    let inside = || server.block.iter().flatten();
    let plain = |node: &&Node| {
        let special = |word: &str| matches!(word, "ssl" | "quic" | "proxy_protocol" | "http2");
        node.name() == "listen" && !(1..8).any(|at| node.argument(at).is_some_and(special))
    };
    let address =
        inside().find(plain).and_then(|node| node.argument(1)?.strip_prefix("127.0.0.1:")?.parse().ok());
    let name = inside().find(|node| node.name() == "server_name").and_then(|node| node.argument(1));
    let host =
        name.filter(|name| !name.contains(['*', '~', '_', '$']) && !name.is_empty()).unwrap_or("localhost");
    let mut paths: BTreeSet<String> = USUAL.iter().map(|path| (*path).to_owned()).collect();
    for location in inside().filter(|node| node.name() == "location") {
        let path = match (location.argument(1), location.argument(2)) {
            (Some("=" | "^~"), Some(path)) | (Some(path), None) if path.starts_with('/') => path,
            _ => continue,
        };
        paths.insert(path.to_owned());
        paths.insert(format!("{}/x", path.trim_end_matches('/')));
    }
    let paths = paths.into_iter().take(PATHS);
    address.map_or_else(Vec::new, |port| {
        paths.map(|path| Question { port, host: host.to_owned(), path }).collect()
    })
}

/// An origin that echoes the request.
pub(super) fn origin() -> Origin {
    Origin::start(|request: &Request| {
        let mut lines = request.head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let mut fields: Vec<&str> = lines.collect();
        fields.sort_unstable();
        let body = if first.starts_with("HEAD ") {
            String::new()
        } else {
            format!("{first}\n{}\n", fields.join("\n"))
        };
        answer(
            200,
            &[("Content-Type", "text/plain"), ("ETag", "\"one\""), ("X-Origin", "yes")],
            body.as_bytes(),
        )
    })
}

/// Starts the programs in turn and compares their responses. `folder` is restored in between.
pub(super) fn compare(
    ours: &Path,
    nginx: &Path,
    folder: &Path,
    questions: &[Question],
) -> Result<Compared, String> {
    let [theirs, here] = [nginx, ours].map(|program| all(program, folder, questions));
    let (theirs, here) = (theirs?, here?);
    let mut different = Vec::new();
    for ((asked, one), (_, other)) in theirs.iter().zip(&here) {
        if let Some(what) = difference(one, other) {
            different.push(format!("{what}: {asked}"));
        }
    }
    Ok(Compared { asked: theirs.iter().filter(|(_, answer)| answer.is_ok()).count(), different })
}

type Said = Vec<(String, io::Result<Answer>)>;

fn all(program: &Path, folder: &Path, questions: &[Question]) -> Result<Said, String> {
    let copy = folder.with_extension("running");
    let _ = std::fs::remove_dir_all(&copy);
    let kept = Command::new("cp").arg("-a").arg(folder).arg(&copy).status();
    kept.map_err(|error| format!("cp: {error}"))?;
    let said = running(program, folder, questions);
    // Caches and logs are the other program's own.
    std::fs::remove_dir_all(folder)
        .and_then(|()| std::fs::rename(&copy, folder))
        .map_err(|error| super::told_of(folder, &error))?;
    said
}

fn running(program: &Path, folder: &Path, questions: &[Question]) -> Result<Said, String> {
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")).args(["-g", "daemon off;"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _running = Running::start(&mut command).map_err(|error| super::told_of(program, &error))?;
    for question in questions {
        wait::within(Duration::from_secs(10), || Client::connect(question.port).ok())
            .ok_or_else(|| format!("{} does not listen on {}", program.display(), question.port))?;
    }
    let ask = |question: &Question, (way, method, fields): &Way| {
        let Question { port, host, path } = question;
        let mut all = vec![("Host", host.as_str())];
        all.extend_from_slice(fields);
        let client = Client::connect_with_patience(*port, PATIENCE);
        let answer = client.and_then(|mut client| client.request(method, path, &all));
        (format!("{way} {host}{path}"), answer)
    };
    Ok(questions.iter().flat_map(|question| WAYS.iter().map(move |way| ask(question, way))).collect())
}

/// Fields that name the program or the moment, or how a connection goes on.
const PASSING: &[&str] =
    &["date", "server", "connection", "keep-alive", "transfer-encoding", "content-length"];

/// Fields that `docs/differences.md` announces on cached responses.
const ANNOUNCED: &[&str] = &["age", "accept-ranges"];

fn difference(one: &io::Result<Answer>, other: &io::Result<Answer>) -> Option<String> {
    let (one, other) = match (one, other) {
        (Ok(one), Ok(other)) => (one, other),
        (Err(_), Err(_)) => return None,
        (Err(_), _) => return Some("no answer from nginx".to_owned()),
        (_, Err(_)) => return Some("no answer here".to_owned()),
    };
    if (one.status, other.status) == (200, 206) {
        // Announced too: what the cache has whole is given in parts, whether or not its origin said so.
        return None;
    }
    if one.status != other.status {
        return Some(format!("status {} here {}", one.status, other.status));
    }
    let [fields, here] = [one, other].map(|answer| {
        let lines = answer.fields.iter().filter(|(name, _)| {
            let name = name.to_ascii_lowercase();
            !PASSING.contains(&&*name) && !ANNOUNCED.contains(&&*name)
        });
        let lines =
            lines.map(|(name, value)| format!("{}: {}", name.to_ascii_lowercase(), without_ids(value)));
        lines.collect::<BTreeSet<_>>()
    });
    if fields != here {
        let lacking = fields.difference(&here).map(|line| format!("-{line}"));
        let added = here.difference(&fields).map(|line| format!("+{line}"));
        return Some(format!("fields {}", lacking.chain(added).collect::<Vec<_>>().join(" ")));
    }
    let [body, here] = [one, other].map(|answer| {
        let text = without_ids(&decoded(answer).to_ascii_lowercase()).replace("millstream", "nginx");
        text.split('\n')
            .map(|line| line.split("nginx/").next().unwrap_or(line).to_owned())
            .collect::<Vec<_>>()
    });
    let line = body.iter().zip(&here).find(|(one, other)| one != other);
    match line {
        Some((one, other)) => Some(format!("body `{one}` here `{other}`")),
        None if body.len() != here.len() => Some("length of the body".to_owned()),
        None => None,
    }
}

/// The decoded body: two compressors need not produce the same bytes.
fn decoded(answer: &Answer) -> String {
    let mut text = Vec::new();
    let is_whole = answer.field("content-encoding") == Some("gzip")
        && GzDecoder::new(answer.body.as_slice()).read_to_end(&mut text).is_ok();
    if is_whole { String::from_utf8_lossy(&text).into_owned() } else { answer.text() }
}

/// Replaces each `$request_id`, 32 digits that no two requests share, by `ID`.
fn without_ids(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for run in text.split_inclusive(|letter: char| !letter.is_ascii_hexdigit()) {
        let digits = run.trim_end_matches(|letter: char| !letter.is_ascii_hexdigit());
        out += if digits.len() == 32 { "ID" } else { digits };
        out += &run[digits.len()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_like_a_request_id_is_left_out_of_the_comparison() {
        let id = "0123456789abcdef0123456789abcdef";
        for (text, expected) in [
            (format!("a {id}, b"), "a ID, b".to_owned()),
            (id.to_owned(), "ID".to_owned()),
            (format!("{id}0 {}", &id[1..]), format!("{id}0 {}", &id[1..])),
            ("no number".to_owned(), "no number".to_owned()),
        ] {
            assert_eq!(without_ids(&text), expected);
        }
    }
}
