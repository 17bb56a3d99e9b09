//! A distribution of durations as text: HdrHistogram's own encoding, so that its other tools read it too.
//!
//! Microseconds, three significant digits. What is read back comes from a file and may be anything: every damage is an
//! error. The encoding, V2, is a header and the counts in the order of their values, as ZigZag numbers: a negative one
//! stands for so many values without any. Next: `outcome::Latency`, which carries the text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;
use std::io::{Read as _, Write as _};
use std::iter;

/// The longest text that is read back: far more than a histogram of a day has (one of 24 hours is below 200 KB).
const LONGEST: usize = 4 << 20;
/// The longest encoding that is read back, inflated.
const LONGEST_INFLATED: u64 = 64 << 20;

/// The first bytes of the encoding.
const V2: u32 = 0x1c84_9313;
/// The first bytes of a deflated one.
const V2_DEFLATED: u32 = 0x1c84_9314;
/// The longest number: its last byte has eight bits.
const LONGEST_NUMBER: usize = 9;

pub const DIGITS: u8 = 3;

/// The longest duration that is told apart from longer ones, microseconds: an hour.
pub const LONGEST_MICROSECONDS: u64 = 3_600_000_000;

/// An empty histogram of microseconds up to [`LONGEST_MICROSECONDS`]; record with `saturating_record`.
pub fn empty() -> Histogram<u64> {
    of_digits(DIGITS)
}

/// The same of so many significant decimal digits, 1 to 5.
pub(crate) fn of_digits(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_MICROSECONDS, digits)
        .expect("bounds and digits are constants that fit")
}

/// The text of a histogram: V2, deflated, in Base64.
pub fn encode(histogram: &Histogram<u64>) -> String {
    let mut deflated = ZlibEncoder::new(Vec::new(), Compression::default());
    // A Vec takes everything.
    _ = deflated.write_all(&v2(histogram));
    let deflated = deflated.finish().unwrap_or_default();
    let words = [V2_DEFLATED, deflated.len() as u32].map(u32::to_be_bytes);
    STANDARD.encode([words.as_flattened(), &deflated].concat())
}

fn v2(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut numbers: Vec<i64> = Vec::new();
    let values = iter::successors(Some(0), |&value| next(histogram, value));
    for value in values.take_while(|&value| value <= histogram.max()) {
        match (histogram.count_at(value), numbers.last_mut()) {
            (0, Some(zeros @ ..=0)) => *zeros = (*zeros - 1).min(-2),
            // No run of a day reaches half of what a u64 counts.
            (count, _) => numbers.push(i64::try_from(count).unwrap_or(i64::MAX)),
        }
    }
    let mut counts = Vec::new();
    numbers.into_iter().for_each(|number| put(&mut counts, number));
    // The offset of the first index is 0, and the factor from whole numbers to fractions 1.
    let words = [V2, counts.len() as u32, 0, u32::from(histogram.sigfig())].map(u32::to_be_bytes);
    let bounds = [histogram.low(), histogram.high(), 1_f64.to_bits()].map(u64::to_be_bytes);
    [words.as_flattened(), bounds.as_flattened(), &counts].concat()
}

/// The next value that is told apart from this one.
fn next(histogram: &Histogram<u64>, value: u64) -> Option<u64> {
    Some(histogram.next_non_equivalent(value)).filter(|next| !histogram.equivalent(value, *next))
}

fn put(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 1..LONGEST_NUMBER {
        if rest < 0x80 {
            break;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// The histogram of a text; the error says what is wrong with the text.
pub fn decode(text: &str) -> Result<Histogram<u64>, String> {
    if text.len() > LONGEST {
        return Err(format!("the histogram is longer than {LONGEST} characters"));
    }
    let bytes = STANDARD.decode(text).map_err(|error| format!("the histogram is not Base64: {error}"))?;
    read(&bytes).ok_or_else(|| "the histogram is not HdrHistogram's V2 encoding".to_owned())
}

fn read(bytes: &[u8]) -> Option<Histogram<u64>> {
    let mut inflated = Vec::new();
    let mut bytes = bytes;
    if u32::from_be_bytes(*bytes.first_chunk()?) == V2_DEFLATED {
        ZlibDecoder::new(bytes.get(8..)?).take(LONGEST_INFLATED).read_to_end(&mut inflated).ok()?;
        bytes = &inflated;
    }
    let mut words = || take(&mut bytes).map(u32::from_be_bytes);
    let (V2, length, 0, digits) = (words()?, words()?, words()?, words()?) else { return None };
    let mut words = || take(&mut bytes).map(u64::from_be_bytes);
    let (low, high, factor) = (words()?, words()?, words()?);
    if f64::from_bits(factor) != 1.0 {
        return None;
    }
    let mut histogram = Histogram::new_with_bounds(low, high, digits.try_into().ok()?).ok()?;
    let (mut numbers, mut value) = (bytes.get(..length as usize)?, Some(0));
    while !numbers.is_empty() {
        let number = number(&mut numbers)?;
        if number > 0 {
            histogram.record_n(value?, number.unsigned_abs()).ok()?;
        }
        for _ in 0..number.min(-1).unsigned_abs() {
            value = next(&histogram, value?);
        }
    }
    Some(histogram)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<i64> {
    let mut number = 0;
    for index in 0..LONGEST_NUMBER {
        let [byte] = take(bytes)?;
        if byte < 0x80 || index + 1 == LONGEST_NUMBER {
            number |= u64::from(byte) << (7 * index);
            break;
        }
        number |= u64::from(byte & 0x7f) << (7 * index);
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bounds: (u64, u64, u8), counts: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram =
            Histogram::new_with_bounds(bounds.0, bounds.1, bounds.2).expect("bounds of a histogram");
        for (value, count) in counts {
            histogram.record_n(*value, *count).expect("within the bounds");
        }
        histogram
    }

    /// Histograms and what another implementation (HdrHistogram for Rust, 7.6.0) encodes them as: whole, and deflated.
    fn known() -> [(Histogram<u64>, &'static str, &'static str); 3] {
        let various = [
            (1, 3),
            (2, 1),
            (4, 63),
            (5, 64),
            (1000, 8191),
            (1001, 8192),
            (1003, 1),
            (2047, 7),
            (2048, 7),
            (2049, 1),
            (5000, 300),
            (1_000_000, 1 << 40),
            (3_400_000_000, (1 << 55) - 1),
            (3_500_000_000, 1 << 55),
            (3_600_000_000, (1 << 62) - 1),
        ];
        let coarse = [0, 1, 999, 1000, 5_000, 123_456, 99_999_999].map(|value| (value, 1));
        [
            (
                empty(),
                "HISTEwAAAAEAAAAAAAAAAwAAAAAAAAABAAAAANaTpAA/8AAAAAAAAAA=",
                "HISTFAAAAB94nJNpmSzMwMDAyAABzFAazL82eQmD/QeoCABVgwSI",
            ),
            (
                of((1, LONGEST_MICROSECONDS, DIGITS), &various),
                "HISTEwAAAD8AAAAAAAAAAwAAAAAAAAABAAAAANaTpAA/8AAAAAAAAAAGAgB+gAHDD/5/gIABAAKlEA4QwRPYBPt6gICAgIBA5boB\
                 /v///////39bgICAgICAgIABXf7/////////fw==",
                "HISTFAAAAFF4nJNpmSzMwMBgzwABzFCaEURcm7yEwf4DVISNiaGugfEw/7/6hgZGBqalAnwCB4VvsPyuagABh6e7GP/9B4P6aLBI\
                 Q0MDYyxU6H89ANhEJh0=",
            ),
            (
                of((1000, 100_000_000, 2), &coarse),
                "HISTEwAAAAoAAAAAAAAAAgAAAAAAAAPoAAAAAAX14QA/8AAAAAAAAAQEDQLNAwKXEwI=",
                "HISTFAAAACt4nJNpmSzMwMDAxQABTBCK+QWIZP36kMH+A0SEhYWX6Swz03RhJgCayAbd",
            ),
        ]
    }

    #[test]
    fn the_encoding_is_that_of_other_tools() {
        for (histogram, whole, deflated) in known() {
            assert_eq!(STANDARD.encode(v2(&histogram)), whole);
            for text in [whole, deflated, &encode(&histogram)] {
                assert_eq!(decode(text), Ok(histogram.clone()), "{text}");
            }
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_again() {
        let mut histogram = empty();
        for value in 1..50_000 {
            histogram.saturating_record(value);
        }
        histogram.saturating_record(u64::MAX);
        assert_eq!(decode(&encode(&histogram)), Ok(histogram));
        assert_eq!(decode(&encode(&empty())), Ok(empty()));
        let largest = of((1, u64::MAX, 1), &[(u64::MAX, 1), (0, i64::MAX as u64)]);
        let found = decode(&encode(&largest)).expect("what was encoded");
        assert_eq!((found.len(), found.count_at(0), found.count_at(u64::MAX)), (1 << 63, i64::MAX as u64, 1));
    }

    #[test]
    fn damaged_text_is_an_error_in_words() {
        assert!(decode("§").is_err_and(|error| error.contains("Base64")));
        assert!(decode("AAAA").is_err_and(|error| error.contains("V2")));
        assert!(decode("").is_err());
        for text in known().into_iter().flat_map(|(_, whole, deflated)| [whole, deflated]) {
            for length in 0..text.len() {
                let _ = decode(&text[..length]);
            }
            let bytes = STANDARD.decode(text).expect("Base64");
            for index in 0..bytes.len() {
                for bit in 0..8 {
                    let mut damaged = bytes.clone();
                    damaged[index] ^= 1 << bit;
                    let _ = read(&damaged);
                }
            }
        }
        // A number that goes on beyond the end, and more zeros than there are values.
        for counts in [&[0x80][..], &[0xff; 9], &[0xff; 8], &[0x81, 0x80, 0x80, 0x80, 0x7f, 2]] {
            let mut bytes = v2(&empty())[..40].to_vec();
            bytes[7] = counts.len() as u8;
            bytes.extend(counts);
            assert_eq!(read(&bytes), None, "{counts:?}");
        }
    }
}
