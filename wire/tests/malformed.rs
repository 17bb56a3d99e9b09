//! The corpus of malformed and smuggling messages, judged as far as parsing and framing decide.
//!
//! The messages are data in `corpus/`: id, what must happen, bytes. Each one goes through the same loop a
//! connection runs, whole, byte by byte and cut in two at every place, and must come out the same. What only a
//! running proxy can show (routing, forwarding, closing) is judged by the scenario tests.

#![expect(clippy::unwrap_used, reason = "a broken case file is to fail the test")]

use millstream_wire::h1::chunked::{Decoder, Event};
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::{HeadLimits, Progress, RequestHead, ResponseHead};
use millstream_wire::{Method, octets};

const TRAILERS: usize = 8 * 1024;

#[derive(Debug, PartialEq, Eq, Clone)]
enum End {
    Refused(u16, &'static str),
    /// More bytes are awaited, in a head, a body or between messages.
    Waiting,
    Closed,
    /// The response is whole and these bytes are left over.
    Answered(usize),
}

#[derive(Debug, PartialEq, Eq, Clone)]
struct Outcome {
    bodies: Vec<Vec<u8>>,
    end: End,
}

enum Stage {
    Head,
    Length(u64),
    Chunked(Box<Decoder>),
    Close,
    Over,
}

/// The receiving half of a connection: a buffer and what is expected next.
struct Connection {
    buffer: Vec<u8>,
    answers: Option<Method>,
    request: RequestHead,
    response: ResponseHead,
    stage: Stage,
    body: Vec<u8>,
    persistent: bool,
    outcome: Outcome,
}

impl Connection {
    fn new(answers: Option<Method>) -> Connection {
        Connection {
            buffer: Vec::new(),
            answers,
            request: RequestHead::default(),
            response: ResponseHead::default(),
            stage: Stage::Head,
            body: Vec::new(),
            persistent: true,
            outcome: Outcome { bodies: Vec::new(), end: End::Waiting },
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        while !matches!(self.stage, Stage::Over) {
            match self.step() {
                Ok(true) => {}
                Ok(false) => return,
                Err(end) => {
                    self.outcome.end = end;
                    self.stage = Stage::Over;
                }
            }
        }
        if let End::Answered(left) = &mut self.outcome.end {
            *left = self.buffer.len();
        }
    }

    /// False if more bytes are needed.
    fn step(&mut self) -> Result<bool, End> {
        match &mut self.stage {
            Stage::Over => return Ok(false),
            Stage::Head => {
                return if self.answers.is_some() { self.answer_head() } else { self.request_head() };
            }
            Stage::Close => {
                self.body.append(&mut self.buffer);
                return Ok(false);
            }
            Stage::Length(left) => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(self.buffer.len());
                self.body.extend(self.buffer.drain(..length));
                *left -= length as u64;
                if *left > 0 {
                    return Ok(false);
                }
            }
            Stage::Chunked(decoder) => {
                let (consumed, event) = decoder
                    .decode(&self.buffer)
                    .map_err(|error| End::Refused(error.status(), error.what()))?;
                match event {
                    Event::Data(data) => self.body.extend_from_slice(data),
                    Event::More | Event::End => {}
                }
                let (ended, more) = (event == Event::End, event == Event::More);
                self.buffer.drain(..consumed);
                if !ended {
                    return Ok(!more);
                }
            }
        }
        self.message_over()
    }

    fn message_over(&mut self) -> Result<bool, End> {
        self.outcome.bodies.push(std::mem::take(&mut self.body));
        if self.answers.is_some() {
            return Err(End::Answered(0));
        }
        if !self.persistent {
            return Err(End::Closed);
        }
        self.stage = Stage::Head;
        Ok(true)
    }

    fn request_head(&mut self) -> Result<bool, End> {
        let limits = HeadLimits::default();
        let progress = self
            .request
            .parse(&self.buffer, &limits)
            .map_err(|error| End::Refused(error.status(), error.what()))?;
        if progress == Progress::Partial {
            return Ok(false);
        }
        let view = self.request.view(&self.buffer);
        let framing = framing::request(self.request.version, view)
            .map_err(|error| End::Refused(error.status(), error.what()))?;
        self.persistent = framing::is_persistent(self.request.version, view);
        self.buffer.drain(..self.request.length);
        self.request.clear();
        self.begin(framing)
    }

    fn answer_head(&mut self) -> Result<bool, End> {
        let limits = HeadLimits::default();
        let progress =
            self.response.parse(&self.buffer, &limits).map_err(|error| End::Refused(502, error.what()))?;
        if progress == Progress::Partial {
            return Ok(false);
        }
        let view = self.response.view(&self.buffer);
        let method = self.answers.unwrap_or_default();
        let framing = framing::response(method, self.response.version, self.response.status, view)
            .map_err(|error| End::Refused(502, error.what()))?;
        let interim = self.response.is_interim();
        self.buffer.drain(..self.response.length);
        self.response.clear();
        if interim { Ok(true) } else { self.begin(framing) }
    }

    fn begin(&mut self, framing: Framing) -> Result<bool, End> {
        self.stage = match framing {
            Framing::None => return self.message_over(),
            Framing::Length(length) => Stage::Length(length),
            Framing::Chunked => Stage::Chunked(Box::new(Decoder::new(TRAILERS))),
            Framing::Close => Stage::Close,
        };
        Ok(true)
    }

    /// The peer has closed: a response framed by that is whole now.
    fn close(mut self) -> Outcome {
        if matches!(self.stage, Stage::Close) {
            self.outcome.bodies.push(self.body);
            self.outcome.end = End::Answered(0);
        }
        self.outcome
    }
}

fn run<'a>(answers: Option<Method>, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut connection = Connection::new(answers);
    for piece in pieces {
        connection.receive(piece);
    }
    connection.close()
}

/// Also checks that no way of splitting the bytes gives another outcome.
fn run_cut(id: &str, answers: Option<Method>, bytes: &[u8]) -> Outcome {
    let whole = run(answers, [bytes]);
    assert_eq!(run(answers, bytes.chunks(1)), whole, "{id}: byte by byte");
    let step = (bytes.len() / 1000).max(1);
    for at in (0..bytes.len()).step_by(step) {
        let (first, second) = bytes.split_at(at);
        assert_eq!(run(answers, [first, second]), whole, "{id}: cut at {at}");
    }
    whole
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let length = match rest[0] {
            b'x' => {
                out.push(u8::from_str_radix(std::str::from_utf8(&rest[1..3]).unwrap(), 16).unwrap());
                3
            }
            b'{' => {
                let end = rest.iter().position(|&byte| byte == b'}').unwrap();
                let times = octets::decimal(&rest[1..end]).unwrap() as usize;
                let last = *out.last().unwrap();
                out.resize(out.len() + times - 1, last);
                end + 1
            }
            letter => {
                out.push(match letter {
                    b'r' => b'\r',
                    b'n' => b'\n',
                    b't' => b'\t',
                    other => other,
                });
                1
            }
        };
        rest = &rest[length..];
    }
    out
}

fn cases(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.splitn(7, '|').collect())
}

fn judge(case: &[&str], outcome: &Outcome) -> Option<String> {
    let (kind, statuses) = (case[1], case[4]);
    let (least, most) = case[3].split_once('-').unwrap();
    let (least, most): (usize, usize) = (least.parse().unwrap(), most.parse().unwrap());
    let body = case[5].strip_prefix('=').map(unescape);
    let wrong = |what: &str| Some(format!("{} {} {what}: {outcome:?}", case[0], case[1]));
    let known_status = match outcome.end {
        End::Refused(status, _) => {
            status == 400 || statuses.split(' ').any(|text| text == status.to_string())
        }
        _ => true,
    };
    let refused = matches!(outcome.end, End::Refused(..));
    if outcome.bodies.len() > most {
        return wrong("too many requests");
    }
    if !known_status {
        return wrong("status");
    }
    if let (Some(body), Some(found)) = (&body, outcome.bodies.first())
        && body != found
    {
        return wrong("body");
    }
    match kind {
        "accept" if refused => wrong("refused"),
        "accept" if outcome.bodies.len() < least => wrong("too few requests"),
        "reject" | "not_forwarded" if !refused => wrong("not refused"),
        "reject" | "not_forwarded" | "incomplete" if !outcome.bodies.is_empty() => wrong("a whole request"),
        "either" if !refused && outcome.bodies.is_empty() => wrong("neither refused nor whole"),
        _ => None,
    }
}

#[test]
fn every_request_of_the_corpus_is_taken_or_refused_as_it_must_however_it_is_cut() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in cases(include_str!("corpus/requests.txt")) {
        let outcome = run_cut(case[0], None, &unescape(case[6]));
        wrong.extend(judge(&case, &outcome));
        count += 1;
    }
    assert!(count > 160, "the corpus has {count} cases only");
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_answer_of_the_corpus_is_taken_or_refused_as_it_must_however_it_is_cut() {
    let mut wrong = Vec::new();
    for case in cases(include_str!("corpus/answers.txt")) {
        let (id, kind, method) = (case[0], case[1], Method::of(case[3].as_bytes()));
        let bytes = unescape(case[6]);
        let outcome = run_cut(id, Some(method), &bytes);
        let body = case[5].strip_prefix('=').map(unescape);
        let whole = match outcome.end {
            End::Answered(_) => body.is_none_or(|body| outcome.bodies == [body]),
            _ => false,
        };
        let right = match kind {
            "ok" | "early" => whole,
            "bad502" => matches!(outcome.end, End::Refused(502, _)),
            "abort" => matches!(outcome.end, End::Refused(..) | End::Waiting),
            "clean" => whole || matches!(outcome.end, End::Refused(..)),
            // What stands behind the answer must be seen to be there, so that the connection is not used again.
            "sync" => matches!(outcome.end, End::Answered(left) if left > 0),
            other => panic!("unknown kind {other}"),
        };
        if !right {
            wrong.push(format!("{id} {kind}: {outcome:?}"));
        }
    }
    assert!(wrong.is_empty(), "wrong:\n{}", wrong.join("\n"));
}

#[test]
fn answer_heads_past_every_bound_are_refused() {
    let long = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(15_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: a\r\n".repeat(2_000));
    let line = format!("HTTP/1.1 200 OK\r\nX-A: {}\r\n\r\n", "a".repeat(9_000));
    for bytes in [long, many, line] {
        let outcome = run(Some(Method::Get), [bytes.as_bytes()]);
        assert_eq!(outcome.end, End::Refused(502, "too big header"));
        assert_eq!(run(Some(Method::Get), bytes.as_bytes().chunks(1)), outcome);
    }
}
