//! Making coded bodies: whole ones, and streams that are given out piece by piece.
//!
//! Each coding is a library behind `Encoder`; nothing else knows which. What the libraries hold for streams has a bound for the whole
//! process (`EncoderMemory`). Next: `coding`, which says what is made.

use flate2::Compression;
use flate2::write::GzEncoder;
use millstream_conf::model::Settings;
use millstream_wire::Coding;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a coding is made in a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    coding: Coding,
    level: u32,
    /// Of Brotli, as a power of two.
    window: u32,
}

impl Effort {
    /// What a location says of a coding.
    pub fn of(settings: &Settings, coding: Coding) -> Effort {
        let level = match coding {
            Coding::Gzip => settings.gzip.level,
            Coding::Br => settings.brotli.level,
            Coding::Zstd => settings.zstd.level,
        };
        Effort { coding, level, window: settings.brotli.window }
    }

    /// The same for a body of this length, where that is known: a window is no larger than what goes through it.
    pub fn for_length(self, length: Option<u64>) -> Effort {
        let needed = length.map_or(BROTLI_WINDOWS.1, |length| u64::BITS - length.leading_zeros());
        Effort { window: self.window.min(needed.max(BROTLI_WINDOWS.0)), ..self }
    }

    /// Bytes that the library holds for a stream, about. Brotli has a ring of twice its window, and trees of it at its two highest levels.
    fn memory(self) -> usize {
        match self.coding {
            Coding::Gzip => 128 << 10,
            Coding::Br if self.level >= 10 => (2 << 20) + (16 << self.window),
            Coding::Br => (192 << 10) + (2 << self.window),
            Coding::Zstd if self.level > 9 => 16 << 20,
            Coding::Zstd => 1 << 20,
        }
    }

    /// Whether a body of this length is made so soon, in about 0.1 ms, that it is done at once on the worker.
    pub fn is_short(self, length: usize) -> bool {
        // Brotli from its middle levels on and zstd at its high ones take ten times as long.
        let is_slow = match self.coding {
            Coding::Gzip => false,
            Coding::Br => self.level > 3,
            Coding::Zstd => self.level > 9,
        };
        length <= if is_slow { 1024 } else { 8 * 1024 }
    }
}

/// The largest window that every client has memory for, as a power of two (RFC 9659 §3).
const ZSTD_WINDOW: u32 = 23;
/// The highest level whose own window is no larger.
const ZSTD_WITHIN_WINDOW: u32 = 19;
/// Windows of Brotli, as powers of two.
const BROTLI_WINDOWS: (u32, u32) = (10, 24);
/// What encoders may hold together, and what they hold.
#[derive(Debug)]
pub(super) struct EncoderAccount {
    most: usize,
    held: AtomicUsize,
}

/// That of the process.
static ACCOUNT: EncoderAccount = EncoderAccount::new(256 << 20);

impl EncoderAccount {
    pub(super) const fn new(most: usize) -> EncoderAccount {
        EncoderAccount { most, held: AtomicUsize::new(0) }
    }

    /// The memory of an encoder; `None` where there is no room for it.
    pub(super) fn take(&'static self, effort: Effort) -> Option<EncoderMemory> {
        let bytes = effort.memory();
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        // Given back at once where it is too much.
        let taken = EncoderMemory { account: self, bytes };
        (before + bytes <= self.most).then_some(taken)
    }
}

/// The memory of a stream's encoder among that of all, given back by dropping it.
#[derive(Debug)]
pub struct EncoderMemory {
    account: &'static EncoderAccount,
    bytes: usize,
}

impl EncoderMemory {
    /// That of an encoder; `None` where there is no room for it, and the body goes as it is.
    pub fn take(effort: Effort) -> Option<EncoderMemory> {
        ACCOUNT.take(effort)
    }
}

impl Drop for EncoderMemory {
    fn drop(&mut self) {
        self.account.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Output that the Brotli library holds at a time.
const BROTLI_BUFFER: usize = 4 * 1024;

/// A library at work, writing into memory.
enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Br(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(effort: Effort, ready: Vec<u8>) -> io::Result<Encoder> {
        Ok(match effort.coding {
            Coding::Gzip => Encoder::Gzip(GzEncoder::new(ready, gzip_level(effort.level))),
            Coding::Br => {
                let encoder =
                    brotli::CompressorWriter::new(ready, BROTLI_BUFFER, effort.level, effort.window);
                Encoder::Br(Box::new(encoder))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(ready, effort.level as i32)?;
                if effort.level > ZSTD_WITHIN_WINDOW {
                    encoder.window_log(ZSTD_WINDOW)?;
                }
                Encoder::Zstd(encoder)
            }
        })
    }

    fn ready(&mut self) -> &mut Vec<u8> {
        match self {
            Encoder::Gzip(encoder) => encoder.get_mut(),
            Encoder::Br(encoder) => encoder.get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Encoder::Gzip(encoder) => encoder,
            Encoder::Br(encoder) => encoder,
            Encoder::Zstd(encoder) => encoder,
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Br(encoder) => Ok(encoder.into_inner()),
            Encoder::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// The level as this library has it: its first is faster than zlib's and leaves text half as large again, its second does
/// what zlib's, and so nginx's, first does.
fn gzip_level(level: u32) -> Compression {
    Compression::new(level.max(2))
}

/// A coded stream being made.
pub struct Compressor {
    /// Nothing before the first piece, and once it has ended or failed.
    encoder: Option<Encoder>,
    /// How it is made, until the first piece has come.
    effort: Option<Effort>,
    /// Kept for as long as there may be an encoder.
    _memory: EncoderMemory,
    /// Whether it was given something since the last time all of it was given out.
    holds: bool,
    input: u64,
    output: u64,
}

impl Compressor {
    /// The beginning of a stream, which holds no encoder before there is something to code.
    pub fn new(effort: Effort, memory: EncoderMemory) -> Self {
        let effort = Some(effort);
        Compressor { encoder: None, effort, _memory: memory, holds: false, input: 0, output: 0 }
    }

    fn begin(&mut self) {
        if let Some(effort) = self.effort.take() {
            self.encoder = Encoder::new(effort, Vec::new()).ok();
        }
    }

    /// Compresses a piece; what is ready is appended to `out`.
    pub fn compress(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.begin();
        let Some(encoder) = &mut self.encoder else { return };
        self.input += piece.len() as u64;
        self.holds |= !piece.is_empty();
        let written = encoder.writer().write_all(piece);
        self.drain(written, out);
    }

    /// Gives out all that was put in, so that the client can read it now. Each time costs some bytes, so it is for a
    /// source that pauses.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(encoder) = self.encoder.as_mut().filter(|_| std::mem::take(&mut self.holds)) {
            let flushed = encoder.writer().flush();
            self.drain(flushed, out);
        }
    }

    /// Ends the stream. False where it is not whole: a library may be refused the memory that it needs.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        self.begin();
        let rest = self.encoder.take().map(Encoder::finish);
        let Some(Ok(mut rest)) = rest else { return false };
        self.output += rest.len() as u64;
        out.append(&mut rest);
        true
    }

    /// Bytes in and out so far.
    pub fn totals(&self) -> (u64, u64) {
        (self.input, self.output)
    }

    /// Writing into memory only fails where the library itself does: then the stream stays without an end.
    fn drain(&mut self, outcome: io::Result<()>, out: &mut Vec<u8>) {
        if outcome.is_err() {
            self.encoder = None;
        }
        let Some(encoder) = &mut self.encoder else { return };
        let ready = encoder.ready();
        self.output += ready.len() as u64;
        out.append(ready);
    }
}

/// A whole body at once; nothing where the library has no memory for it.
pub fn whole(body: &[u8], effort: Effort) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(effort, Vec::with_capacity(body.len() / 3)).ok()?;
    encoder.writer().write_all(body).ok()?;
    encoder.finish().ok()
}
