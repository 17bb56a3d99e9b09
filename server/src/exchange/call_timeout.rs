//! `grpc-timeout`: how long a call may take, as its caller says.
//!
//! The server it goes to counts too; here it bounds the wait for an answer's head, so that a server that is stuck does not outlive the caller's
//! patience. Next: `attempt`, which waits.

use std::time::Duration;

/// gRPC over HTTP/2, "Timeout": at most 8 digits and a unit; `None` if malformed.
pub(super) fn read(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    let value = millstream_wire::octets::decimal(digits)?;
    Some(match unit {
        b'H' => Duration::from_secs(value * 3600),
        b'M' => Duration::from_secs(value * 60),
        b'S' => Duration::from_secs(value),
        b'm' => Duration::from_millis(value),
        b'u' => Duration::from_micros(value),
        b'n' => Duration::from_nanos(value),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::time::Duration;

    #[test]
    fn a_timeout_is_at_most_eight_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("5S", Some(Duration::from_secs(5))),
            ("50m", Some(Duration::from_millis(50))),
            ("1u", Some(Duration::from_micros(1))),
            ("0n", Some(Duration::ZERO)),
            ("100000000n", None),
            ("5", None),
            ("S", None),
            ("", None),
            ("-1S", None),
            ("5s", None),
        ] {
            assert_eq!(read(text.as_bytes()), expected, "{text}");
        }
    }
}
