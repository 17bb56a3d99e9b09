//! Dates as strftime(3) writes them, in the C locale, for `$date_local` and `$date_gmt`.
//!
//! Before: `wire::date`, the calendar; next: `variables`, which says when.

use millstream_wire::date::{self, Civil};
use std::io::Write;

/// nginx's default `timefmt`.
pub const DEFAULT: &[u8] = b"%A, %d-%b-%Y %H:%M:%S %Z";

/// Bytes of a date; as in nginx a longer one is dropped.
const LONGEST: usize = 2048;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// `offset` is seconds east of UTC. False, with nothing appended, if the date is empty or too long.
pub fn append(format: &[u8], seconds: i64, offset: i32, zone: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let moment = Moment { civil: date::civil(seconds, offset), seconds, offset, zone };
    let mut rest = format;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind.split_first()) {
            (b'%', Some((&conversion, behind))) => {
                rest = behind;
                moment.convert(conversion, out);
            }
            _ => out.push(byte),
        }
        if out.len() - start >= LONGEST {
            out.truncate(start);
            return false;
        }
    }
    out.len() > start
}

struct Moment<'z> {
    civil: Civil,
    seconds: i64,
    offset: i32,
    zone: &'z [u8],
}

impl Moment<'_> {
    fn convert(&self, conversion: u8, out: &mut Vec<u8>) {
        let Civil { year, month, day, hour, minute, second, weekday } = self.civil;
        let (day_name, month_name) = (DAYS[usize::from(weekday)], MONTHS[usize::from(month) - 1]);
        let twelve = if hour % 12 == 0 { 12 } else { hour % 12 };
        // Writing to memory does not fail.
        _ = match conversion {
            b'a' => write!(out, "{}", &day_name[..3]),
            b'A' => write!(out, "{day_name}"),
            b'b' | b'h' => write!(out, "{}", &month_name[..3]),
            b'B' => write!(out, "{month_name}"),
            b'c' => return self.all(b"%a %b %e %H:%M:%S %Y", out),
            b'C' => write!(out, "{:02}", year / 100),
            b'd' => write!(out, "{day:02}"),
            b'D' | b'x' => return self.all(b"%m/%d/%y", out),
            b'e' => write!(out, "{day:2}"),
            b'F' => return self.all(b"%Y-%m-%d", out),
            b'g' => write!(out, "{:02}", self.week().0 % 100),
            b'G' => write!(out, "{}", self.week().0),
            b'H' => write!(out, "{hour:02}"),
            b'I' => write!(out, "{twelve:02}"),
            b'j' => write!(out, "{:03}", self.day_of_year() + 1),
            b'k' => write!(out, "{hour:2}"),
            b'l' => write!(out, "{twelve:2}"),
            b'm' => write!(out, "{month:02}"),
            b'M' => write!(out, "{minute:02}"),
            b'n' => out.write_all(b"\n"),
            b'p' => write!(out, "{}", if hour < 12 { "AM" } else { "PM" }),
            b'P' => write!(out, "{}", if hour < 12 { "am" } else { "pm" }),
            b'r' => return self.all(b"%I:%M:%S %p", out),
            b'R' => return self.all(b"%H:%M", out),
            b's' => write!(out, "{}", self.seconds),
            b'S' => write!(out, "{second:02}"),
            b't' => write!(out, "\t"),
            b'T' | b'X' => return self.all(b"%H:%M:%S", out),
            b'u' => write!(out, "{}", if weekday == 0 { 7 } else { weekday }),
            b'U' => write!(out, "{:02}", (self.day_of_year() + 7 - i64::from(weekday)) / 7),
            b'V' => write!(out, "{:02}", self.week().1),
            b'w' => write!(out, "{weekday}"),
            b'W' => write!(out, "{:02}", (self.day_of_year() + 7 - i64::from((weekday + 6) % 7)) / 7),
            b'y' => write!(out, "{:02}", year % 100),
            b'Y' => write!(out, "{year}"),
            b'z' => {
                let (sign, minutes) = (if self.offset < 0 { '-' } else { '+' }, self.offset.abs() / 60);
                write!(out, "{sign}{:02}{:02}", minutes / 60, minutes % 60)
            }
            b'Z' => out.write_all(self.zone),
            b'%' => write!(out, "%"),
            other => out.write_all(&[b'%', other]),
        };
    }

    fn all(&self, format: &[u8], out: &mut Vec<u8>) {
        for part in format.chunk_by(|_, next| *next != b'%') {
            match part {
                [b'%', conversion, behind @ ..] => {
                    self.convert(*conversion, out);
                    out.extend_from_slice(behind);
                }
                other => out.extend_from_slice(other),
            }
        }
    }

    fn day_of_year(&self) -> i64 {
        let Civil { year, month, day, .. } = self.civil;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        BEFORE[usize::from(month) - 1] + i64::from(is_leap && month > 2) + i64::from(day) - 1
    }

    /// ISO 8601: weeks start on Monday and belong to the year of their Thursday.
    fn week(&self) -> (i64, i64) {
        let thursday = self.seconds + (3 - i64::from((self.civil.weekday + 6) % 7)) * 86_400;
        let of = Moment { civil: date::civil(thursday, self.offset), ..*self };
        (i64::from(of.civil.year), of.day_of_year() / 7 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_written_as_strftime_writes_it() {
        for (seconds, offset, format, expected) in [
            (784_111_777, 0, &b"%A, %d-%b-%Y %H:%M:%S %Z"[..], "Sunday, 06-Nov-1994 08:49:37 ZONE"),
            (
                784_111_777,
                3600,
                b"%c|%D|%F|%r|%R|%T|%x|%X",
                "Sun Nov  6 09:49:37 1994|11/06/94|1994-11-06|09:49:37 AM|09:49|09:49:37|11/06/94|09:49:37",
            ),
            (784_111_777, -12_600, b"%z %s %e %k %l %j %p", "-0330 784111777  6  5  5 310 AM"),
            (784_111_777, 0, b"%u %w %U %V %W %g %G %C %y", "7 0 45 44 44 94 1994 19 94"),
            (1_104_537_600, 0, b"%G-W%V-%u %U %W", "2004-W53-6 00 00"),
            (1_230_768_000, 0, b"%G-W%V-%u %j", "2009-W01-4 001"),
            (951_782_400, 0, b"%j %B %h", "060 February Feb"),
            (0, 0, b"%I %P %n%t%% %q %", "12 am \n\t% %q %"),
        ] {
            let mut out = b"x".to_vec();
            assert!(append(format, seconds, offset, b"ZONE", &mut out));
            assert_eq!(String::from_utf8_lossy(&out[1..]), expected);
        }
        let mut out = Vec::new();
        assert!(!append(&b"%c".repeat(200), 0, 0, b"", &mut out) && out.is_empty(), "it is too long");
        assert!(!append(b"", 0, 0, b"", &mut out), "it is nothing");
    }
}
