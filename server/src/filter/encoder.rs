//! The libraries that make coded bodies, each behind `Encoder`; nothing else knows which.
//!
//! Next: `compressor`, which makes streams with them.

use super::stored_blocks;
use brotli::enc::BrotliEncoderParams;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use millstream_conf::model::Settings;
use millstream_wire::Coding;
use std::io::{self, Write};
use zstd::zstd_safe::CParameter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    coding: Coding,
    level: u32,
    /// Of Brotli and zstd, as a power of two.
    window: u32,
    /// Bytes of the body; an upper bound.
    most: usize,
}

impl Effort {
    /// The window is no larger than a body of known length.
    pub fn of(settings: &Settings, coding: Coding, length: Option<u64>) -> Effort {
        let (level, window, least) = match coding {
            Coding::Gzip => (settings.gzip.level, 0, 0),
            Coding::Br => (settings.brotli.level, settings.brotli.window, BROTLI_WINDOW),
            Coding::Zstd => (settings.zstd.level, zstd_window(settings.zstd.level), ZSTD_WINDOWS.0),
        };
        let needed = length.map_or(u64::BITS, |length| u64::BITS - length.leading_zeros());
        let most = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
        let mut effort = Effort { coding, level, window: window.min(needed.max(least)), most };
        while effort.memory(false) > MOST_EACH && effort.window > least {
            effort.window -= 1;
        }
        effort
    }

    pub fn coding(self) -> Coding {
        self.coding
    }

    /// The window that a stream announces: at Brotli's lowest levels larger than requested.
    pub(super) fn brotli_window(self) -> u32 {
        if self.level < 2 { self.window.max(18) } else { self.window }
    }

    /// `goes_on`: continues another encoder's stream.
    fn brotli_level(self, goes_on: bool) -> u32 {
        match self.level {
            // For a small window these have tables of 32 MiB, and no use of them.
            5..=9 if self.window < BROTLI_WINDOW => 4,
            // What is fast about the lowest levels cannot go on.
            0..=1 if goes_on => 2,
            level => level,
        }
    }

    /// Peak memory of the library, as measured: tables by level, and what grows with the window.
    pub(super) fn memory(self, goes_on: bool) -> usize {
        const MEGABYTE: usize = 1 << 20;
        match self.coding {
            Coding::Gzip => 340 << 10,
            Coding::Br => {
                let ring = 2 << self.window;
                // What is known of a part of the body until that is coded.
                let part = ring.min(16 * MEGABYTE).min(self.most);
                match self.brotli_level(goes_on) {
                    0..=1 => 256 << 10,
                    2..=3 => ring + MEGABYTE,
                    4 => ring + 4 * part + 5 * MEGABYTE / 2,
                    5 => ring + 4 * part + 3 * MEGABYTE,
                    6 => ring + 4 * part + 4 * MEGABYTE,
                    7 => ring + 4 * part + 10 * MEGABYTE,
                    8 => ring + 4 * part + 18 * MEGABYTE,
                    9 => ring + 4 * part + 38 * MEGABYTE,
                    _ => 5 * ring + 24 * part + 2 * MEGABYTE,
                }
            }
            Coding::Zstd => {
                let tables = match self.level {
                    0..=1 => 0,
                    2..=3 => 1,
                    4 => 2,
                    5..=6 => 3,
                    7..=8 => 6,
                    9 => 12,
                    10..=11 => 24,
                    12 | 14 | 17 | 18 => 49,
                    _ => 34,
                };
                tables * MEGABYTE + (2 << self.window) + 3 * MEGABYTE / 4
            }
        }
    }

    /// Whether it takes only about 0.1 ms and can be done on the worker.
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

/// Memory of one encoder; a larger window is reduced.
const MOST_EACH: usize = 64 << 20;
/// Powers of two: the smallest window, and the largest that every client supports (RFC 9659 §3).
const ZSTD_WINDOWS: (u32, u32) = (10, 23);
const ZSTD_TABLES: u32 = 22;
/// The smallest window that helps Brotli.
const BROTLI_WINDOW: u32 = 17;

fn zstd_window(level: u32) -> u32 {
    match level {
        0..=1 => 19,
        2 => 20,
        3..=8 => 21,
        9..=16 => 22,
        _ => ZSTD_WINDOWS.1,
    }
}

/// A flush of deflate ends with an empty stored block (RFC 1951 §3.2.4); and how often the library is asked
/// for it.
const DEFLATE_MARK: [u8; 4] = [0, 0, 0xff, 0xff];
const MOST_FLUSHES: usize = 8;
/// Output that the Brotli library holds.
const BROTLI_BUFFER: usize = 4 * 1024;

pub(super) enum Encoder {
    /// The compressor writes gzip's header and trailer.
    Gzip(DeflateEncoder<Vec<u8>>),
    /// And whether it continues another encoder's stream.
    Br(Box<brotli::CompressorWriter<Vec<u8>>>, bool),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// For the start of a stream, or after a part that ends at a byte boundary.
    pub(super) fn new(effort: Effort, goes_on: bool, ready: Vec<u8>) -> io::Result<Encoder> {
        Ok(match effort.coding {
            Coding::Gzip => Encoder::Gzip(DeflateEncoder::new(ready, gzip_level(effort.level))),
            Coding::Br => {
                let params = BrotliEncoderParams {
                    quality: effort.brotli_level(goes_on) as i32,
                    lgwin: effort.window as i32,
                    // It refers to nothing before itself, and has no header.
                    catable: goes_on,
                    bare_stream: goes_on,
                    ..BrotliEncoderParams::default()
                };
                let encoder = brotli::CompressorWriter::with_params(ready, BROTLI_BUFFER, &params);
                Encoder::Br(Box::new(encoder), goes_on)
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(ready, effort.level as i32)?;
                encoder.window_log(effort.window)?;
                if matches!(effort.level, 15 | 19..) {
                    // These have tables of 64 to 640 MiB.
                    encoder.set_parameter(CParameter::ChainLog(ZSTD_TABLES))?;
                    encoder.set_parameter(CParameter::HashLog(ZSTD_TABLES))?;
                }
                Encoder::Zstd(encoder)
            }
        })
    }

    pub(super) fn ready(&mut self) -> &mut Vec<u8> {
        match self {
            Encoder::Gzip(encoder) => encoder.get_mut(),
            Encoder::Br(encoder, _) => encoder.get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut(),
        }
    }

    pub(super) fn writer(&mut self) -> &mut dyn Write {
        match self {
            Encoder::Gzip(encoder) => encoder,
            Encoder::Br(encoder, _) => encoder,
            Encoder::Zstd(encoder) => encoder,
        }
    }

    /// Flushes to a byte boundary; there must be input since the last flush.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Encoder::Gzip(encoder) = self else { return self.writer().flush() };
        // Of more than its buffer takes, the library leaves the rest for the next time, and with it the mark of the end.
        for _ in 0..MOST_FLUSHES {
            encoder.flush()?;
            if encoder.get_ref().ends_with(&DEFLATE_MARK) {
                return Ok(());
            }
        }
        Err(io::ErrorKind::Other.into())
    }

    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Br(encoder, goes_on) => {
                let mut rest = encoder.into_inner();
                rest.extend(goes_on.then_some(stored_blocks::BROTLI_END));
                Ok(rest)
            }
            Encoder::Zstd(encoder) => encoder.finish(),
        }
    }

    /// Ends a part at a byte boundary, so that another encoder can go on. `holds`: there is input since the
    /// last flush.
    pub(super) fn leave(mut self, holds: bool) -> io::Result<Vec<u8>> {
        if let Encoder::Zstd(encoder) = self {
            return encoder.finish();
        }
        if holds {
            self.flush()?;
        }
        Ok(std::mem::take(self.ready()))
    }
}

/// This library's first level is faster than zlib's but leaves text half as large again; its second equals
/// zlib's, and so nginx's, first.
fn gzip_level(level: u32) -> Compression {
    Compression::new(level.max(2))
}

/// `None` if the library has no memory.
pub fn whole(body: &[u8], effort: Effort) -> Option<Vec<u8>> {
    let mut ready = Vec::with_capacity(body.len() / 3);
    if effort.coding == Coding::Gzip {
        stored_blocks::begin_gzip(&mut ready);
    }
    let mut encoder = Encoder::new(effort, false, ready).ok()?;
    encoder.writer().write_all(body).ok()?;
    let mut out = encoder.finish().ok()?;
    if effort.coding == Coding::Gzip {
        let mut sum = Crc::new();
        sum.update(body);
        stored_blocks::end_gzip(&sum, &mut out);
    }
    Some(out)
}
