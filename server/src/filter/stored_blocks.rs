//! Coded bodies without an encoder: blocks in which each format holds bytes as they are.
//!
//! A stream that has no memory for an encoder goes on in them, or consists of nothing else. What precedes a block ends at a byte's end.
//! Next: `encoder`, which takes less room for the same; `compressor`, which decides between the two.

use flate2::Crc;
use millstream_wire::Coding;

/// Member header without name and time (RFC 1952 §2.3).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// An empty last block (RFC 1951 §3.2.4).
const DEFLATE_END: [u8; 5] = [1, 0, 0, 0xff, 0xff];
/// An empty last meta-block (RFC 7932 §9.2).
pub(super) const BROTLI_END: u8 = 0b11;
/// Frame header without length and checksum, with a window of 128 KiB (RFC 8878 §3.1.1.1).
const ZSTD_HEADER: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
const DEFLATE_BLOCK: usize = 0xffff;
const BROTLI_BLOCK: usize = 1 << 16;
const ZSTD_BLOCK: usize = 128 << 10;

pub(super) fn begin_gzip(out: &mut Vec<u8>) {
    out.extend_from_slice(&GZIP_HEADER);
}

/// RFC 1952 §2.3.1.
pub(super) fn end_gzip(content: &Crc, out: &mut Vec<u8>) {
    out.extend_from_slice(&content.sum().to_le_bytes());
    out.extend_from_slice(&content.amount().to_le_bytes());
}

/// The window, and an empty meta-block up to a byte boundary (RFC 7932 §9.1, §9.2).
pub(super) fn begin_brotli(window: u32, out: &mut Vec<u8>) {
    let (window, bits) = match window {
        16 => (0, 1),
        17 => (1, 7),
        window @ 18.. => ((window - 17) << 1 | 1, 4),
        window => ((window - 8) << 4 | 1, 7),
    };
    let header = (window | 0b110 << bits) as u16;
    out.extend_from_slice(&header.to_le_bytes()[..(bits + 6usize).div_ceil(8)]);
}

pub(super) fn write(coding: Coding, piece: &[u8], out: &mut Vec<u8>) {
    match coding {
        Coding::Gzip => {
            for block in piece.chunks(DEFLATE_BLOCK) {
                let length = block.len() as u16;
                out.push(0);
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(&(!length).to_le_bytes());
                out.extend_from_slice(block);
            }
        }
        Coding::Br => {
            for block in piece.chunks(BROTLI_BLOCK) {
                let header = (block.len() as u32 - 1) << 3 | 1 << 19;
                out.extend_from_slice(&header.to_le_bytes()[..3]);
                out.extend_from_slice(block);
            }
        }
        Coding::Zstd => frame(piece, out),
    }
}

pub(super) fn end(coding: Coding, out: &mut Vec<u8>) {
    match coding {
        Coding::Gzip => out.extend_from_slice(&DEFLATE_END),
        Coding::Br => out.push(BROTLI_END),
        Coding::Zstd => frame(b"", out),
    }
}

/// A stream of zstd may have several frames (RFC 8878 §3).
fn frame(piece: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&ZSTD_HEADER);
    let mut rest = piece;
    loop {
        let (block, behind) = rest.split_at(rest.len().min(ZSTD_BLOCK));
        let header = (block.len() as u32) << 3 | u32::from(behind.is_empty());
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.extend_from_slice(block);
        if behind.is_empty() {
            return;
        }
        rest = behind;
    }
}
