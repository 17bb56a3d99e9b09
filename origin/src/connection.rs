//! HTTP/1.1 for one client of the demo API: heads, bodies thrown away, answers, keep-alive.
//!
//! Bounds: 16 KiB a head, 1 MiB a body, 75 s of silence. Parsing and framing are `millstream-wire`'s.

use crate::pages::Pages;
use crate::work::Workers;
use millstream_net::clock;
use millstream_wire::h1::content::Content;
use millstream_wire::h1::encode;
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::{HeadLimits, Progress, RequestHead};
use millstream_wire::{FieldId, Method, date};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LIMITS: HeadLimits = HeadLimits { line: 8 << 10, total: 16 << 10, fields: 100 };

/// Bytes of a request body, which is read and dropped.
const LARGEST_BODY: u64 = 1 << 20;

const SILENCE: Duration = Duration::from_secs(75);

const READ: usize = 8 << 10;

struct Client {
    stream: TcpStream,
    bytes: Vec<u8>,
}

enum Leaving {
    /// The client is gone or silent, or the API stops.
    Silently,
    Status(u16),
}

impl From<io::Error> for Leaving {
    fn from(_: io::Error) -> Self {
        Leaving::Silently
    }
}

pub(super) fn serve(workers: &Workers, pages: &Pages, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut client = Client { stream, bytes: Vec::new() };
    let mut head = RequestHead::default();
    loop {
        head.clear();
        let (answer, is_persistent) = match exchange(workers, pages, &mut client, &mut head) {
            Ok(told) => told,
            Err(Leaving::Silently) => return Ok(()),
            Err(Leaving::Status(status)) => (plain(status, false, Method::Get), false),
        };
        client.stream.write_all(&answer)?;
        if !is_persistent {
            return Ok(());
        }
    }
}

/// The response to one request, and whether another request may follow.
fn exchange(
    workers: &Workers,
    pages: &Pages,
    client: &mut Client,
    head: &mut RequestHead,
) -> Result<(Vec<u8>, bool), Leaving> {
    client.read_head(head)?;
    let fields = head.view(&client.bytes);
    let framing = framing::request(head.version, fields).map_err(|error| Leaving::Status(error.status()))?;
    let is_persistent = framing::is_persistent(head.version, fields);
    let expects_continue = fields.lists(FieldId::Expect, "100-continue");
    let method = head.method;
    let page = Pages::find(head.path.of(&client.bytes));
    client.bytes.drain(..head.length);
    client.skip_body(framing, expects_continue)?;

    let Some(page) = page else { return Ok((plain(404, is_persistent, method), is_persistent)) };
    if !matches!(method, Method::Get | Method::Head | Method::Post) {
        return Ok((plain(405, is_persistent, method), is_persistent));
    }
    let number = workers.work(page.times).ok_or(Leaving::Silently)?;
    // An answer to POST says what became of that one request.
    let cache_control = if method == Method::Post { "no-store" } else { page.cache_control };
    let mut fields = vec![("Content-Type", page.form.media_type), ("Cache-Control", cache_control)];
    fields.extend(page.set_cookie.map(|cookie| ("Set-Cookie", cookie)));
    Ok((answer(200, &fields, &pages.body(page.form, number), is_persistent, method), is_persistent))
}

impl Client {
    fn read(&mut self) -> Result<(), Leaving> {
        let mut buffer = [0; READ];
        let read = loop {
            match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                told => break told?,
            }
        };
        self.bytes.extend_from_slice(&buffer[..read]);
        if read == 0 { Err(Leaving::Silently) } else { Ok(()) }
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
        let Some(mut content) = Content::of(framing) else { return Ok(()) };
        if matches!(framing, Framing::Length(length) if length > LARGEST_BODY) {
            return Err(Leaving::Status(413));
        }
        if expects_continue && self.bytes.is_empty() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut total = 0;
        loop {
            let (consumed, data, is_whole) =
                content.read(&self.bytes).map_err(|error| Leaving::Status(error.status()))?;
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
    }
}

fn plain(status: u16, is_persistent: bool, method: Method) -> Vec<u8> {
    let fields = [("Content-Type", "application/json"), ("Allow", "GET, HEAD, POST")];
    let fields = if status == 405 { &fields[..] } else { &fields[..1] };
    answer(status, fields, &format!("{{\"status\":{status}}}"), is_persistent, method)
}

/// Without the body for HEAD (RFC 9110 §9.3.2).
fn answer(status: u16, fields: &[(&str, &str)], body: &str, is_persistent: bool, method: Method) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + body.len());
    encode::status_line(&mut out, status);
    encode::field(&mut out, b"Server", b"millstream-demo");
    encode::field(&mut out, b"Date", &date::format_http(clock::wall().seconds));
    encode::field(&mut out, b"Connection", if is_persistent { b"keep-alive" } else { b"close" });
    for (name, value) in fields {
        encode::field(&mut out, name.as_bytes(), value.as_bytes());
    }
    encode::number_field(&mut out, b"Content-Length", body.len() as u64);
    out.extend_from_slice(b"\r\n");
    if method != Method::Head {
        out.extend_from_slice(body.as_bytes());
    }
    out
}
