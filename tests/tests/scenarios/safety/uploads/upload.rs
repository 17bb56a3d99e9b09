//! A random upload: how much, over what, framed how, in which pieces.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use millstream_tests::client::Client;
use millstream_tests::frames::{End, Frames};

use super::super::random::Random;
use super::applications::{Digest, digest};

const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub struct Upload {
    pub seed: u64,
    method: &'static str,
    pub size: usize,
    /// Which of a few bodies of that size.
    body: u8,
    over_http2: bool,
    says_length: bool,
    /// Whether it waits for `100 Continue`.
    expects: bool,
    is_slow: bool,
    pieces: usize,
    /// After how many sent bytes the client leaves.
    pub leaves: Option<usize>,
}

#[derive(Debug)]
pub enum Outcome {
    Answered(u16, String),
    Broken,
    Left,
}

impl Outcome {
    pub fn is_success(&self) -> bool {
        matches!(self, Outcome::Answered(200..=299, _))
    }
}

impl Upload {
    pub fn of(seed: u64, random: &mut Random) -> Upload {
        let exact = random.one(&[0, 1, 4_095, 4_096, 8_191, 8_192, 8_193, 16_384, 65_536]);
        let (small, middle, large) = (random.below(200), random.below(50_000), random.below(2_000_000));
        let size = random.weighted(&[(4, small), (4, exact), (4, middle), (2, large)]);
        Upload {
            seed,
            method: random.one(&["POST", "POST", "POST", "PUT", "PATCH", "GET"]),
            size,
            body: random.below(3) as u8,
            over_http2: random.percent(40),
            says_length: random.percent(50),
            expects: size > 0 && random.percent(15),
            is_slow: random.percent(40),
            pieces: 1 + random.below(6),
            leaves: (size > 0 && random.percent(10)).then(|| random.below(size)),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        // Letters, so that nothing in it looks like the end of a chunked body.
        (0..self.size).map(|at| b'a' + ((at * 7 + at / 26 + usize::from(self.body)) % 26) as u8).collect()
    }

    pub fn digest(&self) -> Digest {
        digest(&self.bytes())
    }

    pub fn send(&self, port: u16, path: &str, random: &mut Random) -> Outcome {
        if self.over_http2 {
            return self.over_http2(port, path, random);
        }
        match self.over_http1(port, path, random) {
            Ok(_) if self.leaves.is_some() => Outcome::Left,
            Ok((status, text)) => Outcome::Answered(status, text),
            Err(_) => Outcome::Broken,
        }
    }

    fn over_http1(&self, port: u16, path: &str, random: &mut Random) -> io::Result<(u16, String)> {
        let mut client = Client::connect(port)?;
        let framing = match self.says_length {
            true => format!("Content-Length: {}", self.size),
            false => "Transfer-Encoding: chunked".to_owned(),
        };
        let expects = if self.expects { "Expect: 100-continue\r\n" } else { "" };
        let head = format!(
            "{} {path} HTTP/1.1\r\nHost: localhost\r\nX-Upload: {}\r\n{expects}{framing}\r\n\r\n",
            self.method, self.seed
        );
        let mut wire = if self.says_length { self.bytes() } else { chunked(&self.bytes(), random) };
        if let Some(leaves) = self.leaves {
            wire.truncate(leaves);
        }
        if self.expects {
            client.send(&head)?;
            let told = client.head()?;
            if told.status != 100 {
                let body = client.body(self.method, &told)?;
                return Ok((told.status, String::from_utf8_lossy(&body).into_owned()));
            }
        } else {
            wire.splice(..0, head.into_bytes());
        }
        let mut rest = &wire[..];
        while !rest.is_empty() {
            let (piece, behind) =
                rest.split_at((1 + random.below(2 * wire.len() / self.pieces + 1)).min(rest.len()));
            rest = behind;
            if client.send(piece).is_err() {
                break; // The answer may be here all the same.
            }
            if self.is_slow && !rest.is_empty() {
                sleep(PAUSE);
            }
        }
        if self.leaves.is_some() {
            return Ok((0, String::new()));
        }
        let answer = client.answer()?;
        Ok((answer.status, answer.text()))
    }

    fn over_http2(&self, port: u16, path: &str, random: &mut Random) -> Outcome {
        let mut frames = Frames::connect(port);
        let (number, length) = (self.seed.to_string(), self.size.to_string());
        let mut fields = vec![("x-upload", number.as_str())];
        if self.says_length {
            fields.push(("content-length", length.as_str()));
        }
        let stream = frames.request(self.method, path, &fields, self.size == 0);
        let bytes = self.bytes();
        let mut rest = &bytes[..self.leaves.unwrap_or(bytes.len())];
        while !rest.is_empty() {
            frames.until("the server takes more of a body", |now| {
                now.room(stream) > 0 || now.has_ended(stream)
            });
            if frames.has_ended(stream) {
                break;
            }
            let most = (1 + random.below(2 * self.size / self.pieces + 1)).min(16_384);
            let (piece, behind) = rest.split_at(rest.len().min(frames.room(stream)).min(most));
            rest = behind;
            frames.data(stream, piece, rest.is_empty() && self.leaves.is_none());
            if self.is_slow && !rest.is_empty() && self.size / most < 50 {
                sleep(PAUSE);
            }
        }
        if self.leaves.is_some() {
            if random.percent(50) {
                frames.give_up(stream);
                frames.round_trip();
            }
            return Outcome::Left;
        }
        let answer = frames.answer(stream);
        match answer.end {
            End::Whole => Outcome::Answered(answer.status, answer.text()),
            End::Open | End::Reset(_) => Outcome::Broken,
        }
    }
}

fn chunked(body: &[u8], random: &mut Random) -> Vec<u8> {
    let (mut wire, mut rest) = (Vec::with_capacity(body.len() + 64), body);
    let most = random.one(&[10, 1_000, 20_000, 3_000_000]).max(body.len() / 500);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at((1 + random.below(most)).min(rest.len()));
        rest = behind;
        wire.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        wire.extend_from_slice(piece);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"0\r\n\r\n");
    wire
}
