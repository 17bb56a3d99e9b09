//! What an access log asks for: its GET and HEAD requests, each distinct one once, and the order in which they came.
//!
//! The format is nginx's `combined` or `common`, or any other in which the first quoted part is the request line. What is
//! no such line, or another method, is skipped and counted. So a replay has the popularity and the order of real
//! traffic; its pace is the plan's. Next: `target`, which makes targets of them.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

/// Lines that are read at the most, those that are not replayed included.
pub const LINES: u64 = 10_000_000;
/// Distinct requests that are kept at the most; lines with further ones are skipped.
pub const DISTINCT: usize = 1_000_000;
/// The longest line; a longer one is skipped.
const LINE: u64 = 64 * 1024;
/// What has not ended after so many bytes more is no line.
const ENDLESS: usize = 16 << 20;

/// How compressed files begin.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh"];

/// A log's requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// The distinct ones, method (`GET` or `HEAD`) and target, as they first came.
    pub requests: Vec<(&'static str, String)>,
    /// Places in `requests`, as the lines came.
    pub order: Vec<u32>,
    /// Lines that are not replayed.
    pub skipped: u64,
    /// Whether there were more than [`LINES`].
    pub is_cut: bool,
}

/// Reads a log to its end, or to the bound of lines.
///
/// # Errors
/// The log cannot be read, is compressed, or is no text of lines.
pub fn read(mut log: impl BufRead) -> io::Result<Replay> {
    let mut replay = Replay::default();
    let mut places: HashMap<(&'static str, String), u32> = HashMap::new();
    let mut line = Vec::new();
    let beginning = log.fill_buf()?;
    if COMPRESSED.iter().any(|mark| beginning.starts_with(mark)) {
        return Err(invalid("it is compressed; unpack it: zcat FILE | millstream bench --log - …"));
    }
    for number in 0.. {
        line.clear();
        if log.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if number == LINES {
            replay.is_cut = true;
            break;
        }
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < LINE;
        if !is_whole {
            skip_line(&mut log)?;
        }
        let Some(request) = request(&line).filter(|_| is_whole) else {
            replay.skipped += 1;
            continue;
        };
        let next = places.len();
        match places.get(&request) {
            Some(place) => replay.order.push(*place),
            None if next >= DISTINCT => replay.skipped += 1,
            None => {
                replay.order.push(next as u32);
                replay.requests.push(request.clone());
                places.insert(request, next as u32);
            }
        }
    }
    Ok(replay)
}

/// Passes over what is left of a line.
fn skip_line(log: &mut impl BufRead) -> io::Result<()> {
    let mut passed = 0;
    while passed < ENDLESS {
        let bytes = log.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(bytes.len(), |end| end + 1);
        log.consume(length);
        passed += length;
        if end.is_some() {
            return Ok(());
        }
    }
    Err(invalid("it has a line that does not end, so it is no access log"))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// `… "GET /path HTTP/1.1" …` → the method and the target as it is sent.
fn request(line: &[u8]) -> Option<(&'static str, String)> {
    // A quote within the request line is escaped in the log, so the next one ends it.
    let quoted = line.split(|byte| *byte == b'"').nth(1)?;
    let mut words = quoted.split(|byte| *byte == b' ');
    let method = match words.next()? {
        b"GET" => "GET",
        b"HEAD" => "HEAD",
        _ => return None,
    };
    let target = words.next().filter(|target| target.starts_with(b"/"))?;
    let is_http = words.next().is_some_and(|version| version.starts_with(b"HTTP/"));
    if !is_http || words.next().is_some() {
        return None;
    }
    Some((method, sent(target)?))
}

/// The target with the log's own escapes (`\x22`) taken off and what no request line may hold written in percent.
fn sent(target: &[u8]) -> Option<String> {
    let mut out = String::with_capacity(target.len());
    let mut at = 0;
    while let Some(&byte) = target.get(at) {
        at += 1;
        let byte = match (byte, target.get(at..at + 3)) {
            (b'\\', Some([b'x', high, low])) => {
                at += 3;
                (char::from(*high).to_digit(16)? << 4 | char::from(*low).to_digit(16)?) as u8
            }
            _ => byte,
        };
        match byte {
            b'!'..=b'~' if !b"\"#<>\\^`{|}".contains(&byte) => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Some(out)
}
