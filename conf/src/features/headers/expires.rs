//! The words of `expires`: a time from now or from the last change, a time of day, or one of three words.
//!
//! Pure, and used twice: while a configuration is read, and at every request where the word comes from a variable.
//! Nothing here knows what time it is. Before: `headers`, which holds the row; next: `millstream-server`'s `filter/expires`.

use crate::features::templates::Templates;
use crate::template::Template;
use crate::value::{self, ValueError};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expires {
    #[default]
    Off,
    /// 1 January 1970 and `no-cache`.
    Epoch,
    /// The end of 2037 and ten years.
    Max,
    /// Seconds from now; negative: in the past, and `no-cache`.
    Access(i64),
    /// Seconds from the response's last modification.
    Modified(i64),
    /// `@15h30m`: seconds since midnight, local time.
    Daily(u32),
    /// Evaluated per request as one of the words above. The flag is `modified`.
    Variable(Template, bool),
}

impl Templates for Expires {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            Expires::Variable(value, _) => all.push(value),
            Expires::Off
            | Expires::Epoch
            | Expires::Max
            | Expires::Access(_)
            | Expires::Modified(_)
            | Expires::Daily(_) => {}
        }
    }
}

const DAY: u64 = 24 * 3600;

/// With `modified` it must be a time, neither a word nor a time of day. Fractions of a second are dropped.
pub fn parse(text: &str, modified: bool) -> Result<Expires, ValueError> {
    match text {
        "epoch" | "max" | "off" | "" if modified => return Err(not_with_modified(text)),
        "epoch" => return Ok(Expires::Epoch),
        "max" => return Ok(Expires::Max),
        "off" => return Ok(Expires::Off),
        _ => {}
    }
    if let Some(daily) = text.strip_prefix('@') {
        if modified {
            return Err(wrong(
                "daily time cannot be used with \"modified\" parameter",
                "write a time such as 24h",
            ));
        }
        let seconds = value::duration(daily)?.as_secs();
        if seconds > DAY {
            let help = "write hours and minutes, as in @15h30m";
            return Err(wrong("daily time value must be less than 24 hours", help));
        }
        return Ok(Expires::Daily(seconds as u32));
    }
    let (is_past, time) = match text.strip_prefix('-') {
        Some(time) => (true, time),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let seconds = value::duration(time).map_err(|error| ValueError {
        help: Some("write a time such as 30d or -1, @15h30m, epoch, max or off".to_owned()),
        ..error
    })?;
    // A time is at most `i64::MAX` milliseconds, so its seconds can be negated.
    let seconds = seconds.as_secs() as i64;
    let seconds = if is_past { -seconds } else { seconds };
    Ok(if modified { Expires::Modified(seconds) } else { Expires::Access(seconds) })
}

fn not_with_modified(text: &str) -> ValueError {
    wrong(
        &format!("\"{text}\" cannot be used with \"modified\" parameter"),
        "write a time, as in expires modified 24h;",
    )
}

fn wrong(message: &str, help: &str) -> ValueError {
    ValueError { message: message.to_owned(), help: Some(help.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_nginx_is_read() {
        for (text, modified, expected) in [
            ("epoch", false, Expires::Epoch),
            ("max", false, Expires::Max),
            ("off", false, Expires::Off),
            ("24h", false, Expires::Access(86_400)),
            ("+1h30m", false, Expires::Access(5_400)),
            ("0", false, Expires::Access(0)),
            ("-1", false, Expires::Access(-1)),
            ("-2d", true, Expires::Modified(-172_800)),
            ("1y", true, Expires::Modified(31_536_000)),
            ("@15h30m", false, Expires::Daily(55_800)),
            ("@24h", false, Expires::Daily(86_400)),
        ] {
            assert_eq!(parse(text, modified), Ok(expected), "{text} {modified}");
        }
    }

    #[test]
    fn what_nginx_refuses_is_refused_with_help() {
        for (text, modified) in [
            ("max", true),
            ("off", true),
            ("@1h", true),
            ("@25h", false),
            ("@", false),
            ("", false),
            ("", true),
            ("--1", false),
            ("soon", false),
        ] {
            let error = parse(text, modified).expect_err(text);
            assert!(error.help.is_some(), "{text}: {error:?}");
        }
    }
}
