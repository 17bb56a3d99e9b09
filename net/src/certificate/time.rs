//! Points in time in certificates and in lists of what is revoked, as seconds since the epoch (RFC 5280 §4.1.2.5).
//!
//! Of the two forms the later may be used before 2050 too, and either may leave out the seconds or be of another zone: OpenSSL
//! reads them all. `der` has no time before 1970. Before: `element`; next: `certificate`.

use crate::element::Element;
use millstream_wire::date;

pub(crate) const UTC: u8 = 0x17;
pub(crate) const GENERALIZED: u8 = 0x18;

/// Reads `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`.
pub(crate) fn read(time: Element<'_>) -> Option<i64> {
    let mut rest = time.content;
    let year = match (time.tag, two(&mut rest)?) {
        (UTC, year @ 0..50) => 2000 + year,
        (UTC, year) => 1900 + year,
        (GENERALIZED, century) => 100 * century + two(&mut rest)?,
        _ => return None,
    };
    let (month, day, hour, minute) = (two(&mut rest)?, two(&mut rest)?, two(&mut rest)?, two(&mut rest)?);
    let second = two(&mut rest).unwrap_or(0);
    if time.tag == GENERALIZED
        && let [b'.' | b',', fraction @ ..] = rest
    {
        let digits = fraction.iter().take_while(|digit| digit.is_ascii_digit()).count();
        rest = fraction.get(digits..).filter(|_| (1..=3).contains(&digits))?;
    }
    let east = match rest {
        b"Z" => 0,
        b"" if time.tag == GENERALIZED => 0,
        [sign @ (b'+' | b'-'), zone @ ..] => {
            let mut zone = zone;
            let seconds = two(&mut zone)? * 3600 + two(&mut zone)? * 60;
            zone.is_empty().then_some(if *sign == b'+' { seconds } else { -seconds })?
        }
        _ => return None,
    };
    if second > 59 {
        return None;
    }
    Some(date::unix(year, month, day, hour, minute, second)? - east)
}

/// Takes two digits off, if they are there.
fn two(text: &mut &[u8]) -> Option<i64> {
    let (digits, rest) = text.split_first_chunk::<2>()?;
    let [tens, ones] = digits.map(|digit| i64::from(digit) - i64::from(b'0'));
    ((0..10).contains(&tens) && (0..10).contains(&ones)).then_some(())?;
    *text = rest;
    Some(tens * 10 + ones)
}
