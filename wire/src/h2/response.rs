//! Responses of HTTP/2, for a client (RFC 9113 §8.3.2): a status, and fields.
//!
//! The same rules for fields as in requests. Whether an interim response or the last one comes is for whoever asked.

use super::field_rules::{self, FieldsError};
use super::hpack::{HpackDecoder, LineName, Pseudo};
use crate::h1::limits::HeadLimits;
use crate::headers::Headers;

/// Decodes the block of a response, interim ones included. Returns the status, 100 to 999; `headers` is
/// emptied first. `limits.total` is counted as in [`HpackDecoder::decode`]. After an error the block was
/// decoded to its end unless it is [`FieldsError::Compression`].
pub fn decode_response(
    decoder: &mut HpackDecoder,
    block: &[u8],
    headers: &mut Headers,
    limits: &HeadLimits,
) -> Result<u16, FieldsError> {
    headers.clear();
    let mut status = None;
    let mut outcome = Ok(());
    let extent = decoder.decode(block, limits.total, |line| {
        if outcome.is_err() {
            return;
        }
        outcome = match line.called {
            // RFC 9113 §8.3.2: it comes first, and alone.
            LineName::Pseudo(Pseudo::Status) if status.is_none() && headers.view().is_empty() => {
                number(line.value()).map(|number| status = Some(number))
            }
            LineName::Pseudo(_) => Err(FieldsError::Malformed("an invalid pseudo-header")),
            LineName::Field(id) => field_rules::keep(headers, id, line, limits),
        };
    });
    field_rules::finished(extent, outcome)?;
    status.ok_or(FieldsError::Malformed("a response without \":status\""))
}

fn number(value: &[u8]) -> Result<u16, FieldsError> {
    match value {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Ok([a, b, c].into_iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')))
        }
        _ => Err(FieldsError::Malformed("invalid \":status\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::field_rules::decode_trailers;
    use crate::h2::hpack::encoder;

    fn block(lines: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        lines.iter().for_each(|(name, value)| encoder::field(&mut out, name.as_bytes(), value.as_bytes()));
        out
    }

    fn decoded(lines: &[(&str, &str)]) -> Result<(u16, Headers), FieldsError> {
        let mut headers = Headers::new();
        let limits = HeadLimits { line: 30, total: 300, fields: 3 };
        decode_response(&mut HpackDecoder::default(), &block(lines), &mut headers, &limits)
            .map(|status| (status, headers))
    }

    #[test]
    fn a_status_and_fields_are_read() {
        let mut expected = Headers::new();
        expected.push(b"server", b"x");
        expected.push(b"x-a", b"");
        assert_eq!(decoded(&[(":status", "103"), ("server", "x"), ("x-a", "")]), Ok((103, expected)));
    }

    #[test]
    fn what_no_response_may_be_is_malformed_or_too_large() {
        for lines in [
            &[][..],
            &[("server", "x")],
            &[("server", "x"), (":status", "200")],
            &[(":status", "200"), (":status", "200")],
            &[(":status", "99")],
            &[(":status", "2000")],
            &[(":status", "200"), (":path", "/")],
            &[(":status", "200"), ("connection", "close")],
            &[(":status", "200"), ("x-a", "1 ")],
        ] {
            assert!(matches!(decoded(lines), Err(FieldsError::Malformed(_))), "{lines:?}");
        }
        let long = "x".repeat(30);
        let many = [(":status", "200"), ("a", ""), ("b", ""), ("c", ""), ("d", "")];
        for lines in [&[(":status", "200"), ("a", &long)][..], &many] {
            assert_eq!(decoded(lines), Err(FieldsError::TooLarge), "{lines:?}");
        }
    }

    #[test]
    fn trailers_are_fields_and_nothing_else() {
        let limits = HeadLimits { line: 30, total: 100, fields: 3 };
        let decoded =
            |lines: &[(&str, &str)]| decode_trailers(&mut HpackDecoder::default(), &block(lines), &limits);
        let mut expected = Headers::new();
        expected.push(b"grpc-status", b"0");
        assert_eq!(decoded(&[("grpc-status", "0")]), Ok(expected));
        assert_eq!(decoded(&[]), Ok(Headers::new()));
        for lines in [&[(":status", "200")][..], &[("x", "1"), (":path", "/")], &[("upgrade", "x")]] {
            assert!(matches!(decoded(lines), Err(FieldsError::Malformed(_))), "{lines:?}");
        }
        assert_eq!(decoded(&[("a", ""), ("b", ""), ("c", ""), ("d", "")]), Err(FieldsError::TooLarge));
    }
}
