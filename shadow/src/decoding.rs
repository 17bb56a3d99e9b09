//! Undoes the coding of a body as it passes (RFC 9110 §8.4.1), so that what is inside is compared.
//!
//! gzip, deflate and br are decoded, in Rust alone; a zstd body is compared as a whole, because its decoder is C, and almost all
//! clients that take it take br as well, which is then asked for instead. A body that is broken, or that was coded twice, stays whole.
//! At most [`MOST`] bodies are decoded at a time. Next: `digest`.

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::{Decompress, FlushDecompress, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bodies that are decoded at a time: each takes some 50 KB, and for br no more than it has in it, so up to 1 MiB.
pub(crate) const MOST: usize = 64;

/// Bytes that are decoded in one step.
const STEP: usize = 8 << 10;

/// The coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain,
    Gzip,
    /// zlib, or what is inside of it alone, as some send it.
    Deflate,
    Brotli,
    /// Another one, or several.
    Unknown,
}

impl Coding {
    /// By the values of Content-Encoding.
    pub(crate) fn of<'a>(values: impl Iterator<Item = &'a [u8]>) -> Coding {
        let names = values.flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
        let is = |name: &[u8], known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let mut coding = Coding::Plain;
        for name in names.filter(|name| !name.is_empty() && !is(name, "identity")) {
            coding = match coding {
                Coding::Plain if is(name, "gzip") || is(name, "x-gzip") => Coding::Gzip,
                Coding::Plain if is(name, "deflate") => Coding::Deflate,
                Coding::Plain if is(name, "br") => Coding::Brotli,
                _ => Coding::Unknown,
            };
        }
        coding
    }
}

/// How many bodies are decoded now.
#[derive(Clone, Default)]
pub(crate) struct Decoders(Arc<AtomicUsize>);

impl Decoders {
    /// The right to decode one. `None`: [`MOST`] are being decoded.
    pub(crate) fn right(&self) -> Option<Right> {
        let right = Right(self.0.clone());
        (self.0.fetch_add(1, Ordering::Relaxed) < MOST).then_some(right)
    }
}

/// The right to decode one body, until it is dropped.
pub(crate) struct Right(Arc<AtomicUsize>);

impl Drop for Right {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct Decoder {
    of: Of,
    is_over: bool,
    _right: Right,
}

enum Of {
    /// Whether it is in a frame is seen by its first byte.
    Deflate,
    Inflate(Decompress),
    Brotli(Box<Brotli>),
}

type Alloc = brotli::enc::StandardAlloc;
type Brotli = BrotliState<Alloc, Alloc, Alloc>;

/// What one step has done.
struct Stepped {
    consumed: usize,
    produced: usize,
    is_over: bool,
}

impl Decoder {
    /// `None`: there is nothing to decode, or it is not known how.
    pub(crate) fn new(coding: Coding, right: Right) -> Option<Decoder> {
        let of = match coding {
            Coding::Gzip => Of::Inflate(Decompress::new_gzip(15)),
            Coding::Deflate => Of::Deflate,
            Coding::Brotli => {
                let alloc = Alloc::default;
                Of::Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())))
            }
            Coding::Plain | Coding::Unknown => return None,
        };
        Some(Decoder { of, is_over: false, _right: right })
    }

    /// Gives the decoded bytes to `take`, which says whether it wants more. False: it cannot be decoded, or no more is wanted.
    pub(crate) fn feed(&mut self, mut piece: &[u8], mut take: impl FnMut(&[u8]) -> bool) -> bool {
        let mut out = [0_u8; STEP];
        let mut is_full = false;
        while !piece.is_empty() || is_full {
            // Bytes behind the end belong to no body that is known.
            if self.is_over {
                return piece.is_empty();
            }
            let Some(step) = self.step(piece, &mut out) else { return false };
            self.is_over = step.is_over;
            let is_stuck = step.consumed == 0 && step.produced == 0 && !step.is_over;
            if is_stuck && !piece.is_empty() || !take(&out[..step.produced]) {
                return false;
            }
            piece = &piece[step.consumed..];
            // Then more may be inside.
            is_full = step.produced == out.len();
        }
        true
    }

    /// Whether the end of the coded body was reached.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    fn step(&mut self, piece: &[u8], out: &mut [u8; STEP]) -> Option<Stepped> {
        if matches!(self.of, Of::Deflate) {
            let Some(first) = piece.first() else {
                return Some(Stepped { consumed: 0, produced: 0, is_over: false });
            };
            // RFC 1950 §2.2: method 8, and a window of at most 32 KiB.
            let is_framed = first & 0x0f == 8 && first >> 4 <= 7;
            self.of = Of::Inflate(Decompress::new(is_framed));
        }
        match &mut self.of {
            Of::Inflate(decoder) => {
                let (before_in, before_out) = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(piece, out, FlushDecompress::None).ok()?;
                Some(Stepped {
                    consumed: (decoder.total_in() - before_in) as usize,
                    produced: (decoder.total_out() - before_out) as usize,
                    is_over: status == Status::StreamEnd,
                })
            }
            Of::Brotli(state) => {
                let (mut left, mut consumed) = (piece.len(), 0);
                let (mut room, mut produced, mut total) = (out.len(), 0, 0);
                let result = BrotliDecompressStream(
                    &mut left,
                    &mut consumed,
                    piece,
                    &mut room,
                    &mut produced,
                    out,
                    &mut total,
                    state,
                );
                let is_over = matches!(result, BrotliResult::ResultSuccess);
                (!matches!(result, BrotliResult::ResultFailure)).then_some(Stepped {
                    consumed,
                    produced,
                    is_over,
                })
            }
            Of::Deflate => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write;

    fn coded(coding: &str, text: &[u8]) -> Vec<u8> {
        let level = Compression::default();
        match coding {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), level);
                encoder.write_all(text).and_then(|()| encoder.finish()).expect("memory takes it")
            }
            "zlib" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(text).and_then(|()| encoder.finish()).expect("memory takes it")
            }
            "deflate" => {
                let mut encoder = DeflateEncoder::new(Vec::new(), level);
                encoder.write_all(text).and_then(|()| encoder.finish()).expect("memory takes it")
            }
            _ => {
                let mut out = Vec::new();
                brotli::CompressorWriter::new(&mut out, 4_096, 5, 22)
                    .write_all(text)
                    .expect("memory takes it");
                out
            }
        }
    }

    fn decoder(coding: &str) -> Decoder {
        let known = match coding {
            "zlib" | "deflate" => Coding::Deflate,
            name => Coding::of(std::iter::once(name.as_bytes())),
        };
        Decoders::default().right().and_then(|right| Decoder::new(known, right)).expect("it is known")
    }

    fn decoded(coding: &str, bytes: &[u8], size: usize, most: usize) -> Option<Vec<u8>> {
        let (mut decoder, mut text) = (decoder(coding), Vec::new());
        let all = bytes.chunks(size).all(|piece| {
            decoder.feed(piece, |plain| {
                text.extend_from_slice(plain);
                text.len() <= most
            })
        });
        (all && decoder.is_over()).then_some(text)
    }

    #[test]
    fn what_was_coded_is_the_same_in_pieces_of_any_size() {
        let text: Vec<u8> = (0..60_000_u32).flat_map(|number| format!("{number},").into_bytes()).collect();
        for coding in ["gzip", "zlib", "deflate", "br"] {
            let bytes = coded(coding, &text);
            for size in [1, 7, 1_448, bytes.len()] {
                assert!(decoded(coding, &bytes, size, usize::MAX).as_ref() == Some(&text), "{coding} {size}");
            }
        }
    }

    #[test]
    fn what_is_cut_broken_or_too_long_is_not_decoded() {
        let text = vec![b'x'; 40 << 20];
        for coding in ["gzip", "zlib", "br"] {
            let bytes = coded(coding, &text);
            assert_eq!(decoded(coding, &bytes, 1_448, 1 << 20), None, "{coding}: a bomb");
            let bytes = coded(coding, b"a short text, of which nothing may be missing");
            assert_eq!(decoded(coding, &bytes[..bytes.len() - 6], 5, 1 << 20), None, "{coding}: cut");
            let mut longer = bytes.clone();
            longer.extend_from_slice(b"more");
            assert_eq!(decoded(coding, &longer, 5, 1 << 20), None, "{coding}: more behind its end");
        }
        assert_eq!(decoded("gzip", b"no gzip at all", 5, 1 << 20), None);
    }

    #[test]
    fn only_so_many_are_decoded_at_a_time() {
        let decoders = Decoders::default();
        let mut rights: Vec<Right> = (0..MOST).filter_map(|_| decoders.right()).collect();
        assert!(rights.len() == MOST && decoders.right().is_none() && decoders.right().is_none());
        rights.pop();
        assert!(decoders.right().is_some());
    }

    #[test]
    fn a_coding_is_known_by_its_name_and_two_are_not() {
        for (values, expected) in [
            (&[][..], Coding::Plain),
            (&["identity"], Coding::Plain),
            (&["GZIP"], Coding::Gzip),
            (&["deflate"], Coding::Deflate),
            (&["br"], Coding::Brotli),
            (&["zstd"], Coding::Unknown),
            (&["gzip, br"], Coding::Unknown),
            (&["gzip", "gzip"], Coding::Unknown),
        ] {
            assert_eq!(Coding::of(values.iter().map(|value| value.as_bytes())), expected, "{values:?}");
        }
    }
}
