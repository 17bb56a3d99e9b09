//! What an access log asks for: its GET and HEAD requests, each distinct one once, and the order in which they came.
//!
//! The format is nginx's `combined` or `common`, or any other in which the first quoted part is the request line. What is
//! no such line, or another method, is skipped and counted. So a replay has the popularity and the order of real
//! traffic, and its pace where that is asked for; else that is the plan's. Next: `plan`, which makes a load of them.

#[cfg(test)]
mod tests;

use millstream_load::target::escaped;
use millstream_wire::date;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufRead, Read};
use std::net::IpAddr;

pub const LINES: u64 = 10_000_000;
/// Distinct requests; lines with further ones are skipped.
pub const DISTINCT: usize = 1_000_000;
/// Bytes of a line; longer ones are skipped.
const LINE: u64 = 64 * 1024;
/// Bytes without a line end after which the log is refused.
const ENDLESS: u64 = 16 << 20;

const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh"];

/// Statuses due to the moment rather than the request (499: nginx's closed request). A replay does not expect
/// them again.
const OF_THE_HOUR: [u16; 3] = [408, 429, 499];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request {
    pub method: &'static str,
    pub target: String,
    /// The address that the line begins with, if requested.
    pub client: Option<IpAddr>,
}

/// What is read of a log besides its requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// Skips lines without a time.
    pub times: bool,
    pub clients: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Distinct, in order of appearance, each with the 4xx statuses that it had and may have again.
    pub requests: Vec<(Request, BTreeSet<u16>)>,
    /// Indices into `requests`, one per line.
    pub order: Vec<u32>,
    /// Seconds since 1970 of each line, if requested.
    pub times: Vec<i64>,
    pub skipped: BTreeMap<Skip, u64>,
    /// Whether the log has more than [`LINES`].
    pub is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    Method,
    NoRequest,
    Untimed,
    /// Beyond [`DISTINCT`].
    TooMany,
}

impl Skip {
    pub fn words(self) -> &'static str {
        match self {
            Skip::Method => "with a method other than GET and HEAD",
            Skip::NoRequest => "without a request line for a path",
            Skip::Untimed => "without a time in [brackets]",
            Skip::TooMany => "beyond the maximum number of distinct requests",
        }
    }
}

/// Reads a log to its end, or to the bound of lines.
pub fn read(mut log: impl BufRead, wanted: Wanted) -> io::Result<Replay> {
    let mut replay = Replay::default();
    let mut places: HashMap<Request, u32> = HashMap::new();
    let mut line = Vec::new();
    let beginning = log.fill_buf()?;
    if COMPRESSED.iter().any(|mark| beginning.starts_with(mark)) {
        return Err(invalid("it is compressed; decompress it: zcat FILE | millstream bench --log - …"));
    }
    for number in 0.. {
        line.clear();
        let is_end = log.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0;
        if is_end || number == LINES {
            replay.is_cut = !is_end;
            break;
        }
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < LINE;
        if !is_whole && log.by_ref().take(ENDLESS).skip_until(b'\n')? as u64 == ENDLESS {
            return Err(invalid("it has an endless line, so it is not an access log"));
        }
        let time = if wanted.times { time(&line) } else { Some(0) };
        let is_kept = |request: &Request| places.len() < DISTINCT || places.contains_key(request);
        let found = if is_whole { request(&line, wanted.clients) } else { Err(Skip::NoRequest) };
        let (request, status, time) = match (found, time) {
            (Err(why), _) => {
                replay.skip(why);
                continue;
            }
            (Ok(_), None) => {
                replay.skip(Skip::Untimed);
                continue;
            }
            (Ok((request, _)), _) if !is_kept(&request) => {
                replay.skip(Skip::TooMany);
                continue;
            }
            (Ok((request, status)), Some(time)) => (request, status, time),
        };
        let place = *places.entry(request).or_insert_with_key(|request| {
            replay.requests.push((request.clone(), BTreeSet::new()));
            replay.requests.len() as u32 - 1
        });
        replay.order.push(place);
        if wanted.times {
            replay.times.push(time);
        }
        let refused = status.filter(|status| (400..500).contains(status) && !OF_THE_HOUR.contains(status));
        replay.requests[place as usize].1.extend(refused);
    }
    Ok(replay)
}

impl Replay {
    fn skip(&mut self, why: Skip) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// Start of each of `order`, in nanoseconds from the first, `speed` times as fast as in the log. A log
    /// has whole seconds, over which its requests are spread evenly. Lines are written when responses end, so
    /// one may be older than the line before it; it counts as the same second, to keep the order.
    pub fn moments(&self, speed: f64) -> Vec<u64> {
        let mut moments = Vec::with_capacity(self.times.len());
        let (mut left, first) = (self.times.as_slice(), self.times.first().copied().unwrap_or(0));
        while let Some(second) = left.first().copied() {
            let second = second.max(first);
            let count = left.iter().take_while(|time| **time <= second).count();
            let start = (second - first) as f64;
            let each = (0..count).map(|place| (start + place as f64 / count as f64) / speed * 1e9);
            moments.extend(each.map(|moment| moment as u64));
            left = &left[count..];
        }
        moments
    }
}

/// `… [21/Nov/2026:10:00:00 +0100] …` → seconds since 1970.
fn time(line: &[u8]) -> Option<i64> {
    let begin = line.iter().position(|byte| *byte == b'[')? + 1;
    date::parse_clf(line.get(begin..begin + 26)?)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// `… "GET /path HTTP/1.1" 404 …` → the request, and the status if it follows.
fn request(line: &[u8], with_client: bool) -> Result<(Request, Option<u16>), Skip> {
    // A quote within the request line is escaped in the log, so the next one ends it.
    let mut parts = line.split(|byte| *byte == b'"').skip(1);
    let (quoted, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let words: Vec<&[u8]> = quoted.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return Err(Skip::NoRequest) };
    if !version.starts_with(b"HTTP/") {
        return Err(Skip::NoRequest);
    }
    let method = match method {
        b"GET" => "GET",
        b"HEAD" => "HEAD",
        _ => return Err(Skip::Method),
    };
    let target = Some(target).filter(|target| target.starts_with(b"/")).and_then(sent);
    let target = target.ok_or(Skip::NoRequest)?;
    let client = if with_client { client(line) } else { None };
    Ok((Request { method, target, client }, status(rest)))
}

fn client(line: &[u8]) -> Option<IpAddr> {
    let word = line.split(u8::is_ascii_whitespace).next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn status(rest: &[u8]) -> Option<u16> {
    let word = rest.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
    let status = std::str::from_utf8(word).ok().filter(|_| word.len() == 3)?.parse().ok()?;
    (100..600).contains(&status).then_some(status)
}

/// The target without the log's escapes (`\x22`); what a request line may not contain is percent-encoded.
fn sent(target: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(target.len());
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
        out.push(byte);
    }
    Some(escaped(&out))
}
