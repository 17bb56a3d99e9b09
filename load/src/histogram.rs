//! A distribution of durations as text: HdrHistogram's own encoding, so that its other tools read it too.
//!
//! Microseconds, three significant digits. What is read back comes from a file and may be anything: every damage is an
//! error. Next: `outcome::Latency`, which carries the text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};

/// The longest text that is read back: far more than a histogram of a day has (one of 24 hours is below 200 KB).
const LONGEST: usize = 4 << 20;

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
    let mut bytes = Vec::new();
    // It fails only where the sink does or where a count passes i64, which no run of a day can reach.
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// The histogram of a text; the error says what is wrong with the text.
pub fn decode(text: &str) -> Result<Histogram<u64>, String> {
    if text.len() > LONGEST {
        return Err(format!("the histogram is longer than {LONGEST} characters"));
    }
    let bytes = STANDARD.decode(text).map_err(|error| format!("the histogram is not Base64: {error}"))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("the histogram is not HdrHistogram's V2 encoding: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_again() {
        let mut histogram = empty();
        for value in 1..50_000 {
            histogram.saturating_record(value);
        }
        histogram.saturating_record(u64::MAX);
        assert_eq!(decode(&encode(&histogram)), Ok(histogram));
        assert_eq!(decode(&encode(&empty())), Ok(empty()));
    }

    #[test]
    fn damaged_text_is_an_error_in_words() {
        assert!(decode("§").is_err_and(|error| error.contains("Base64")));
        assert!(decode("AAAA").is_err_and(|error| error.contains("V2")));
        assert!(decode("").is_err());
        let text = encode(&empty());
        for length in 0..text.len() {
            let _ = decode(&text[..length]);
        }
    }
}
