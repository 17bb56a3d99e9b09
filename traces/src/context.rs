//! `traceparent`: which trace a request belongs to, and the span that it came from (W3C Trace Context §3.2).
//!
//! It is read strictly: what is not well-formed is nothing, and a new trace begins. Before: `id`; next: `span`.

use crate::id::{SpanId, TraceId, number};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: TraceId,
    pub span: SpanId,
    pub sampled: bool,
}

/// Bytes of version 00.
const LENGTH: usize = 55;
/// Offset of the span's id.
const SPAN: usize = 36;

impl TraceContext {
    /// Reads later versions as version 00, as §3.2.4 asks.
    pub fn parse(value: &[u8]) -> Option<TraceContext> {
        let (known, further) = value.split_at_checked(LENGTH)?;
        let [a, b, b'-', rest @ ..] = known else { return None };
        let version = number(&[*a, *b])?;
        let further_is_fit = match version {
            0 => further.is_empty(),
            0xff => false,
            _ => further.is_empty() || further.starts_with(b"-"),
        };
        if !further_is_fit || rest[32] != b'-' || rest[49] != b'-' {
            return None;
        }
        let flags = number(&rest[50..])?;
        Some(TraceContext {
            trace: TraceId::parse(&rest[..32])?,
            span: SpanId::parse(&rest[33..49])?,
            sampled: flags & 1 != 0,
        })
    }

    /// Appends it as version 00; returns where in that the span's id starts.
    pub fn write(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.extend_from_slice(b"00-");
        self.trace.write(out);
        out.push(b'-');
        self.span.write(out);
        out.extend_from_slice(if self.sampled { b"-01" } else { b"-00" });
        start + SPAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_not_well_formed_is_nothing() {
        let is_read = |text: &str| TraceContext::parse(text.as_bytes()).is_some();
        assert!(is_read(GOOD));
        for wrong in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-extra",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01extra",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
            "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert!(!is_read(wrong), "{wrong}");
        }
        assert!(is_read("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what.comes.later"));
        assert!(is_read("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    }

    #[test]
    fn of_the_flags_one_counts() {
        for (flags, sampled) in [("00", false), ("01", true), ("02", false), ("03", true), ("ff", true)] {
            let text = format!("{}{flags}", &GOOD[..53]);
            assert_eq!(
                TraceContext::parse(text.as_bytes()).map(|read| read.sampled),
                Some(sampled),
                "{flags}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_what_is_read_is_written_alike(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            _ = TraceContext::parse(&bytes);
        }

        #[test]
        fn one_that_is_written_is_read_and_names_its_span_where_it_says(
            (high, low, span) in (1u64.., 0u64.., 1u64..), sampled in any::<bool>(),
        ) {
            let text = format!("00-{high:016x}{low:016x}-{span:016x}-{:02x}", u8::from(sampled));
            let read = TraceContext::parse(text.as_bytes()).expect("well-formed");
            prop_assert_eq!(read.sampled, sampled);
            let mut written = b"before".to_vec();
            let at = read.write(&mut written);
            prop_assert_eq!(&written[6..], text.as_bytes());
            let digits = read.span.digits();
            prop_assert_eq!(&written[at..at + SpanId::DIGITS], &digits[..]);
        }

        #[test]
        fn a_changed_byte_is_never_overlooked(at in 0usize..53, byte in any::<u8>()) {
            let mut text = GOOD.as_bytes().to_vec();
            prop_assume!(text[at] != byte);
            text[at] = byte;
            let read = TraceContext::parse(&text);
            // Versions to come are read alike.
            prop_assert!(at < 2 || read != TraceContext::parse(GOOD.as_bytes()));
        }
    }
}
