//! HTTP/1.1 for one client of the demo API: heads, bodies thrown away, answers, keep-alive.
//!
//! Bounds: 16 KiB a head, 1 MiB a body, 75 s of silence. Parsing and framing are `millstream-wire`'s.

use super::pages::{Pages, Resource};
use super::work::Workers;
use crate::content::Content;
use millstream_net::clock;
use millstream_wire::h1::encode;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::{HeadLimits, Progress, RequestHead};
use millstream_wire::{FieldId, Method, date};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LIMITS: HeadLimits = HeadLimits { line: 8 << 10, total: 16 << 10, fields: 100 };

/// Bytes of a request body; it is read and forgotten.
const LARGEST_BODY: u64 = 1 << 20;

/// Longest silence of a client, and longest wait for it to take an answer.
const SILENCE: Duration = Duration::from_secs(75);

/// Bytes read at once.
const READ: usize = 8 << 10;

/// A client's bytes that are not used yet.
struct Input {
    stream: TcpStream,
    bytes: Vec<u8>,
}

/// Why a connection ends.
enum Leaving {
    /// The client is gone or silent, or the API stops.
    Silently,
    /// An error answer is due first.
    Status(u16),
}

impl From<io::Error> for Leaving {
    fn from(_: io::Error) -> Self {
        Leaving::Silently
    }
}

/// Serves requests until the client or an error ends it.
pub(super) fn serve(workers: &Workers, pages: &Pages, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut input = Input { stream, bytes: Vec::new() };
    let mut head = RequestHead::default();
    let mut out = Vec::new();
    loop {
        head.clear();
        out.clear();
        match exchange(workers, pages, &mut input, &mut head, &mut out) {
            Ok(is_persistent) => {
                input.stream.write_all(&out)?;
                if !is_persistent {
                    return Ok(());
                }
            }
            Err(Leaving::Silently) => return Ok(()),
            Err(Leaving::Status(status)) => {
                out.clear();
                plain(&mut out, status, false, Method::Get);
                return input.stream.write_all(&out);
            }
        }
    }
}

/// One request and its answer, which is left in `out`. Returns whether another may follow.
fn exchange(
    workers: &Workers,
    pages: &Pages,
    input: &mut Input,
    head: &mut RequestHead,
    out: &mut Vec<u8>,
) -> Result<bool, Leaving> {
    input.read_head(head)?;
    let fields = head.view(&input.bytes);
    let framing = framing::request(head.version, fields).map_err(|error| Leaving::Status(error.status()))?;
    let is_persistent = framing::is_persistent(head.version, fields);
    let expects_continue = fields.lists(FieldId::Expect, "100-continue");
    let method = head.method;
    let page = Pages::find(head.path.of(&input.bytes));
    input.bytes.drain(..head.length);
    input.skip_body(framing, expects_continue)?;

    let Some(page) = page else {
        plain(out, 404, is_persistent, method);
        return Ok(is_persistent);
    };
    if !matches!(method, Method::Get | Method::Head | Method::Post) {
        plain(out, 405, is_persistent, method);
        return Ok(is_persistent);
    }
    let number = workers.work(page.times).ok_or(Leaving::Silently)?;
    answer(out, pages, page, number, is_persistent, method);
    Ok(is_persistent)
}

impl Input {
    /// Appends what has arrived; the client's end is an error.
    fn read(&mut self) -> Result<(), Leaving> {
        let before = self.bytes.len();
        self.bytes.resize(before + READ, 0);
        let read = loop {
            match self.stream.read(&mut self.bytes[before..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.bytes.truncate(before + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(Leaving::Silently),
            _ => Ok(()),
        }
    }

    fn read_head(&mut self, head: &mut RequestHead) -> Result<(), Leaving> {
        loop {
            match head.parse(&self.bytes, &LIMITS) {
                Ok(Progress::Complete) => return Ok(()),
                Ok(Progress::Partial) => self.read()?,
                Err(error) => return Err(Leaving::Status(error.status())),
            }
        }
    }

    fn skip_body(&mut self, framing: Framing, expects_continue: bool) -> Result<(), Leaving> {
        if framing == Framing::None || framing == Framing::Length(0) {
            return Ok(());
        }
        if matches!(framing, Framing::Length(length) if length > LARGEST_BODY) {
            return Err(Leaving::Status(413));
        }
        if expects_continue && self.bytes.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut content = Content::of(framing);
        let mut total = 0;
        while let Some(left) = &mut content {
            let (consumed, data, is_whole) =
                left.read(&self.bytes).map_err(|error| Leaving::Status(error.status()))?;
            total += data.len() as u64;
            self.bytes.drain(..consumed);
            if total > LARGEST_BODY {
                return Err(Leaving::Status(413));
            }
            if is_whole {
                return Ok(());
            }
            if self.bytes.is_empty() {
                self.read()?;
            }
        }
        Ok(())
    }
}

/// Writes a page's answer; its body is left out for HEAD (RFC 9110 §9.3.2).
fn answer(
    out: &mut Vec<u8>,
    pages: &Pages,
    page: &Resource,
    number: u64,
    is_persistent: bool,
    method: Method,
) {
    let (kind, body) = pages.body(page, number);
    // An answer to POST says what became of that one request.
    let cache_control = if method == Method::Post { "no-store" } else { page.cache_control };
    begin(out, 200, is_persistent);
    encode::field(out, b"Content-Type", kind.as_bytes());
    encode::field(out, b"Cache-Control", cache_control.as_bytes());
    if let Some(cookie) = page.set_cookie {
        encode::field(out, b"Set-Cookie", cookie.as_bytes());
    }
    end(out, &body, method);
}

/// Writes an answer that only says its status.
fn plain(out: &mut Vec<u8>, status: u16, is_persistent: bool, method: Method) {
    let body = format!("{{\"status\":{status}}}");
    begin(out, status, is_persistent);
    if status == 405 {
        encode::field(out, b"Allow", b"GET, HEAD, POST");
    }
    encode::field(out, b"Content-Type", b"application/json");
    end(out, body.as_bytes(), method);
}

fn begin(out: &mut Vec<u8>, status: u16, is_persistent: bool) {
    encode::status_line(out, status);
    encode::field(out, b"Server", b"millstream-demo");
    encode::field(out, b"Date", &date::format_http(clock::wall().seconds));
    encode::field(out, b"Connection", if is_persistent { b"keep-alive" } else { b"close" });
}

fn end(out: &mut Vec<u8>, body: &[u8], method: Method) {
    encode::number_field(out, b"Content-Length", body.len() as u64);
    out.extend_from_slice(b"\r\n");
    if method != Method::Head {
        out.extend_from_slice(body);
    }
}
