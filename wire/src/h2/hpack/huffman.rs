//! The Huffman code of HPACK (RFC 7541 §5.2, appendix B).
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and shorter ones come
//! first. So the lengths below are all that is written down; the codes and the tables for decoding are made of them by
//! the compiler. Decoding looks at eight bits at a time, which nearly every symbol is told by; what is rarer is found
//! by its length.

/// In bits; the last one is EOS.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14,
    6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
    28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
    22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22,
    22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21,
    26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, //
    30,
];

const EOS: u16 = 256;
const LONGEST: usize = 30;

struct Code {
    /// Right-aligned.
    codes: [u32; 257],
    /// The first eight bits → symbol and length, if a code of at most eight bits starts so; else length 0.
    short: [(u8, u8); 256],
    /// In the order of their codes.
    sorted: [u16; 257],
    /// For each length: the first code, aligned to the left of 32 bits, and its index in `sorted`.
    first: [(u32, u16); LONGEST + 1],
    /// For each length: one more than the last 32 bits that start with a code of it, or of a shorter one.
    end: [u64; LONGEST + 1],
}

static CODE: Code = made();

const fn made() -> Code {
    let mut code = Code {
        codes: [0; 257],
        short: [(0, 0); 256],
        sorted: [0; 257],
        first: [(0, 0); LONGEST + 1],
        end: [0; LONGEST + 1],
    };
    let mut next: u64 = 0;
    let mut place = 0;
    let mut length = 1;
    while length <= LONGEST {
        next <<= 1;
        code.first[length] = ((next << (32 - length)) as u32, place as u16);
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol] as usize == length {
                code.codes[symbol] = next as u32;
                code.sorted[place] = symbol as u16;
                if length <= 8 {
                    let mut index = (next << (8 - length)) as usize;
                    while index < ((next + 1) << (8 - length)) as usize {
                        code.short[index] = (symbol as u8, length as u8);
                        index += 1;
                    }
                }
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        code.end[length] = next << (32 - length);
        length += 1;
    }
    assert!(code.end[LONGEST] == 1 << 32, "the code has no gap");
    code
}

/// Invalid by §5.2: padding of more than seven bits or not of ones, or EOS within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadHuffman;

/// Appends at most eight octets for five coded ones. After an error, what was appended is unusable.
#[inline]
pub fn decode(text: &[u8], out: &mut Vec<u8>) -> Result<(), BadHuffman> {
    out.reserve(text.len() * 8 / 5 + 1);
    // The bits that were not decoded yet, aligned to the left, and their number.
    let (mut word, mut bits) = (0u64, 0u32);
    let mut at = 0;
    loop {
        if let Some(eight) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            word |= u64::from_be_bytes(*eight) >> bits;
            at += (63 - bits as usize) / 8;
            bits |= 56;
        } else {
            while bits <= 56 && at < text.len() {
                word |= u64::from(text[at]) << (56 - bits);
                at += 1;
                bits += 8;
            }
        }
        while bits >= LONGEST as u32 || at == text.len() {
            let (symbol, length) = match CODE.short[(word >> 56) as usize] {
                (_, 0) => long((word >> 32) as u32)?,
                found => found,
            };
            let length = u32::from(length);
            if length > bits {
                return padding(word, bits);
            }
            out.push(symbol);
            word <<= length;
            bits -= length;
        }
    }
}

/// For a code longer than eight bits at the start of these 32.
fn long(start: u32) -> Result<(u8, u8), BadHuffman> {
    let mut length = 9;
    while u64::from(start) >= CODE.end[length] {
        // The last end is 2^32, so this ends.
        length += 1;
    }
    let (first, place) = CODE.first[length];
    let index = usize::from(place) + ((start - first) >> (32 - length)) as usize;
    match CODE.sorted[index] {
        EOS => Err(BadHuffman),
        symbol => Ok((symbol as u8, length as u8)),
    }
}

/// Whether less than eight bits are left, all ones. The bits after them are zeros.
fn padding(word: u64, bits: u32) -> Result<(), BadHuffman> {
    let is_ones = word.leading_ones() >= bits;
    if bits < 8 && is_ones { Ok(()) } else { Err(BadHuffman) }
}

/// Octets that [`encode`] appends.
#[inline]
pub fn encoded_length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// The last octet is filled with ones.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    // The lowest `bits` bits are to be written; there are always less than eight of them between two symbols.
    let (mut word, mut bits) = (0u64, 0u32);
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        word = word << length | u64::from(CODE.codes[usize::from(byte)]);
        bits += length;
        while bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    if bits > 0 {
        out.push((word << (8 - bits)) as u8 | 0xff >> bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, BadHuffman> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn codes_are_those_of_appendix_b() {
        for (symbol, code, length) in [
            (b' ', 0x14, 6),
            (b'0', 0x0, 5),
            (b'a', 0x3, 5),
            (b'z', 0x7b, 7),
            (b'&', 0xf8, 8),
            (b'\\', 0x7fff0, 19),
            (b'\n', 0x3fff_fffc, 30),
            (255, 0x3ff_ffee, 26),
            (249, 0xfff_fffe, 28),
        ] {
            let symbol = usize::from(symbol);
            assert_eq!((CODE.codes[symbol], LENGTHS[symbol]), (code, length), "symbol {symbol}");
        }
        assert_eq!(CODE.codes[usize::from(EOS)], 0x3fff_ffff);
    }

    #[test]
    fn padding_is_less_than_an_octet_of_ones_and_eos_is_an_error() {
        // `0` is five zero bits.
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        assert_eq!(decoded(&[]), Ok(Vec::new()));
        for (coded, why) in [
            (&[0b0000_0110][..], "padding that is not all ones"),
            (&[0b0000_0000], "padding of zeros"),
            (&[0b0000_0111, 0xff], "padding of more than seven bits"),
            (&[0xff], "eight bits of padding alone"),
            (&[0xff, 0xff, 0xff, 0xff], "EOS and padding"),
            (&[0xff, 0xff, 0xff, 0xfc], "EOS and two zero bits"),
            (&[0b0000_0111, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00], "EOS within the text"),
            (&[0xff, 0xea], "a code cut off"),
        ] {
            assert_eq!(decoded(coded), Err(BadHuffman), "{why}");
        }
    }

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(text in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            prop_assert_eq!(coded.len(), encoded_length(&text));
            prop_assert_eq!(decoded(&coded), Ok(text));
        }

        #[test]
        fn what_is_decoded_is_coded_back(coded in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(text) = decoded(&coded) {
                let mut again = Vec::new();
                encode(&text, &mut again);
                prop_assert_eq!(again, coded);
            }
        }
    }
}
