//! A connection of HTTP/2 without TLS on which a test decides about every frame, and reads what comes of it.
//!
//! What it sends is as raw as the test wants; what comes is gathered by streams. Unless it is told to be silent it acknowledges SETTINGS
//! and answers PING, as every client does; windows are opened by the test. It reads frames with the product's own code, so that it is no
//! judge of that: h2spec and the clients of others are.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use millstream_wire::h2::PREFACE;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::{Frame, FrameHead, flag, kind};
use millstream_wire::h2::hpack::{HpackDecoder, integer};
use millstream_wire::h2::{read, settings, write};

const PATIENCE: Duration = Duration::from_secs(20);
const LARGEST_FRAME: u32 = 1 << 20;
pub const GENEROUS: u32 = 1 << 30;

pub type Lines = Vec<(String, String)>;

pub struct Frames {
    stream: TcpStream,
    rest: Vec<u8>,
    decoder: HpackDecoder,
    /// An incomplete header block: its stream, whether the stream ends with it, its bytes.
    block: Option<(u32, bool, Vec<u8>)>,
    answers: BTreeMap<u32, Answer>,
    /// In the order in which they ended.
    order: Vec<u32>,
    next: u32,
    /// The server's windows: of the connection, and of each stream.
    window: i64,
    windows: BTreeMap<u32, i64>,
    server: BTreeMap<u16, u32>,
    goaways: Vec<(u32, ErrorCode)>,
    pongs: usize,
    acknowledged: usize,
    is_silent: bool,
    closed: Option<ErrorKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    #[default]
    Open,
    Whole,
    Reset(ErrorCode),
}

#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// 0 while there is none.
    pub status: u16,
    pub interim: Vec<(u16, Lines)>,
    pub fields: Lines,
    pub body: Vec<u8>,
    /// Including empty ones.
    pub pieces: usize,
    pub trailers: Lines,
    pub end: End,
}

impl Answer {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Frames {
    /// Opens all windows wide.
    pub fn connect(port: u16) -> Frames {
        let mut frames = Frames::connect_with(port, &[(settings::INITIAL_WINDOW_SIZE, GENEROUS)]);
        frames.frame(|out| write::window_update(out, 0, GENEROUS));
        frames
    }

    pub fn connect_with(port: u16, said: &[(u16, u32)]) -> Frames {
        let mut frames = Frames::raw(port);
        let mut bytes = PREFACE.to_vec();
        write::settings(&mut bytes, said);
        frames.send(&bytes);
        frames
    }

    pub fn raw(port: u16) -> Frames {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).expect("a TCP socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a TCP socket");
        Frames {
            stream,
            rest: Vec::new(),
            decoder: HpackDecoder::default(),
            block: None,
            answers: BTreeMap::new(),
            order: Vec::new(),
            next: 1,
            window: i64::from(settings::DEFAULT_WINDOW),
            windows: BTreeMap::new(),
            server: BTreeMap::new(),
            goaways: Vec::new(),
            pongs: 0,
            acknowledged: 0,
            is_silent: false,
            closed: None,
        }
    }

    pub fn port(&self) -> u16 {
        self.stream.local_addr().expect("a TCP socket").port()
    }

    /// Acknowledges nothing from here on.
    pub fn be_silent(&mut self) {
        self.is_silent = true;
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).expect("the server takes it");
    }

    /// As `send`, to a server that may have closed.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub fn frame(&mut self, make: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        make(&mut bytes);
        self.send(&bytes);
    }

    pub fn take_number(&mut self) -> u32 {
        let stream = self.next;
        self.next += 2;
        stream
    }

    pub fn get(&mut self, path: &str) -> u32 {
        self.get_with(path, &[])
    }

    pub fn get_with(&mut self, path: &str, fields: &[(&str, &str)]) -> u32 {
        self.request("GET", path, fields, true)
    }

    /// `is_all`: it has no body.
    pub fn request(&mut self, method: &str, path: &str, fields: &[(&str, &str)], is_all: bool) -> u32 {
        let stream = self.take_number();
        self.frame(|out| write::headers(out, stream, &request(method, path, fields), is_all, 16_384));
        stream
    }

    /// RFC 8441 §4.
    pub fn websocket(&mut self, path: &str) -> u32 {
        self.request("CONNECT", path, &[(":protocol", "websocket")], false)
    }

    /// Ignores the windows.
    pub fn data(&mut self, stream: u32, piece: &[u8], is_last: bool) {
        self.frame(|out| {
            write::data_head(out, stream, piece.len() as u32, is_last);
            out.extend_from_slice(piece);
        });
        self.window -= piece.len() as i64;
        *self.window_of(stream) -= piece.len() as i64;
    }

    pub fn upload(&mut self, stream: u32, body: &[u8]) {
        self.upload_to(stream, body, true);
    }

    /// As `upload`, of a body that goes on.
    pub fn upload_part(&mut self, stream: u32, piece: &[u8]) {
        self.upload_to(stream, piece, false);
    }

    fn upload_to(&mut self, stream: u32, body: &[u8], is_all: bool) {
        let mut rest = body;
        while !rest.is_empty() {
            self.until("the server takes more of a body", |now| {
                now.room(stream) > 0 || now.has_ended(stream)
            });
            if self.has_ended(stream) {
                return;
            }
            let (piece, behind) = rest.split_at(rest.len().min(self.room(stream)).min(16_384));
            rest = behind;
            self.data(stream, piece, is_all && rest.is_empty());
        }
    }

    pub fn room(&mut self, stream: u32) -> usize {
        let stream = *self.window_of(stream);
        self.window.min(stream).max(0) as usize
    }

    fn window_of(&mut self, stream: u32) -> &mut i64 {
        let first = self.server.get(&settings::INITIAL_WINDOW_SIZE).copied();
        let first = i64::from(first.unwrap_or(settings::DEFAULT_WINDOW));
        self.windows.entry(stream).or_insert(first)
    }

    pub fn give_up(&mut self, stream: u32) {
        self.frame(|out| write::reset(out, stream, ErrorCode::Cancel));
    }

    /// `stream` 0 is the connection.
    pub fn widen(&mut self, stream: u32, by: u32) {
        self.frame(|out| write::window_update(out, stream, by));
    }

    /// A PING: all that was sent before has been read.
    pub fn round_trip(&mut self) {
        let before = self.pongs;
        self.frame(|out| write::ping(out, false, *b"and back"));
        self.until("a PING is answered", |now| now.pongs > before);
    }

    pub fn so_far(&self, stream: u32) -> &Answer {
        static NONE: LazyLock<Answer> = LazyLock::new(Answer::default);
        self.answers.get(&stream).unwrap_or(&NONE)
    }

    pub fn has_ended(&self, stream: u32) -> bool {
        self.answers.get(&stream).is_some_and(|answer| answer.end != End::Open)
    }

    pub fn answer(&mut self, stream: u32) -> Answer {
        self.until(&format!("the answer on stream {stream} ends"), |now| now.has_ended(stream));
        self.so_far(stream).clone()
    }

    pub fn ask(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let stream = self.get_with(path, fields);
        self.answer(stream)
    }

    pub fn whole(&mut self, path: &str) -> Answer {
        let stream = self.get(path);
        let answer = self.answer(stream);
        assert_eq!(answer.end, End::Whole, "{path}: {answer:?}");
        answer
    }

    pub fn order(&self) -> &[u32] {
        &self.order
    }

    pub fn goaways(&self) -> &[(u32, ErrorCode)] {
        &self.goaways
    }

    pub fn setting(&self, identifier: u16) -> Option<u32> {
        self.server.get(&identifier).copied()
    }

    pub fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// A close before that, or half a minute, fails the test.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Frames) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(self.closed.is_none(), "closed ({:?}, {:?}) before {what}", self.closed, self.goaways);
            assert!(Instant::now() < end, "waited in vain until {what}; {} answers", self.answers.len());
            self.read_within(end);
        }
    }

    /// Reads for so long, or until the close, to find what should not have been sent.
    pub fn read_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while self.closed.is_none() && Instant::now() < end {
            self.read_within(end);
        }
    }

    /// The code of the last GOAWAY; `None` if it is not closed.
    pub fn closes_within(&mut self, time: Duration) -> Option<Option<ErrorCode>> {
        self.read_for(time);
        self.closed.map(|_| self.goaways.last().map(|(_, code)| *code))
    }

    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    fn read_within(&mut self, end: Instant) {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(left)).expect("a TCP socket");
        let mut chunk = [0; 64 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.closed = Some(ErrorKind::UnexpectedEof),
            Ok(count) => self.rest.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
            Err(error) => self.closed = Some(error.kind()),
        }
        let bytes = std::mem::take(&mut self.rest);
        let mut at = 0;
        while let Some((frame, length)) = read::read(&bytes[at..], LARGEST_FRAME)
            .unwrap_or_else(|error| panic!("the server sent {error:?}"))
        {
            at += length;
            self.take(frame);
        }
        self.rest = bytes[at..].to_vec();
    }

    fn take(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::Settings { ack: true, .. } => self.acknowledged += 1,
            Frame::Settings { payload, .. } => {
                self.server.extend(payload);
                self.acknowledge(write::settings_ack);
            }
            Frame::Ping { ack: true, .. } => self.pongs += 1,
            Frame::Ping { payload, .. } => self.acknowledge(|out| write::ping(out, true, payload)),
            Frame::WindowUpdate { stream: 0, increment } => self.window += i64::from(increment),
            Frame::WindowUpdate { stream, increment } => *self.window_of(stream) += i64::from(increment),
            Frame::GoAway { last, code, .. } => self.goaways.push((last, code)),
            Frame::Reset { stream, code } => self.end(stream, End::Reset(code)),
            Frame::Data { stream, data, end, .. } => {
                let answer = self.answers.entry(stream).or_default();
                assert!(answer.status > 0 && answer.end == End::Open, "DATA where none may come: {answer:?}");
                answer.body.extend_from_slice(data);
                answer.pieces += 1;
                if end {
                    self.end(stream, End::Whole);
                }
            }
            Frame::Headers { stream, fragment, end_headers, end, .. } => {
                self.block = Some((stream, end, fragment.to_vec()));
                self.take_block(end_headers);
            }
            Frame::Continuation { fragment, end_headers, .. } => {
                self.block.as_mut().expect("it continues a block").2.extend_from_slice(fragment);
                self.take_block(end_headers);
            }
            other => panic!("the server sent {other:?}"),
        }
    }

    fn acknowledge(&mut self, make: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        make(&mut bytes);
        if !self.is_silent {
            // A server that has closed already needs none.
            _ = self.try_send(&bytes);
        }
    }

    fn take_block(&mut self, is_whole: bool) {
        if !is_whole {
            return;
        }
        let (stream, end, bytes) = self.block.take().expect("it was begun");
        let (mut status, mut lines) = (None, Lines::new());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let decoded = self.decoder.decode(&bytes, usize::MAX, |line| match line.name() {
            b":status" => status = text(line.value()).parse().ok(),
            name => lines.push((text(name), text(line.value()))),
        });
        decoded.expect("a sound header block");
        let answer = self.answers.entry(stream).or_default();
        assert_eq!(answer.end, End::Open, "a header block behind the end of stream {stream}");
        match status {
            Some(status @ 100..=199) => answer.interim.push((status, lines)),
            Some(status) => (answer.status, answer.fields) = (status, lines),
            None => answer.trailers = lines,
        }
        if end {
            self.end(stream, End::Whole);
        }
    }

    fn end(&mut self, stream: u32, end: End) {
        let answer = self.answers.entry(stream).or_default();
        if let (End::Open, _) | (_, End::Reset(_)) = (answer.end, end) {
            answer.end = end;
        }
        self.order.push(stream);
    }
}

pub fn request(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    block(&[&pseudo, fields].concat())
}

/// Literals exactly as given, without any table.
pub fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in lines {
        out.push(0);
        for text in [name, value] {
            integer::encode(&mut out, 0, 7, text.len());
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write::frame_head(&mut out, FrameHead { length: payload.len() as u32, kind, flags, stream });
    out.extend_from_slice(payload);
    out
}

pub fn headers(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, block)
}
