//! `syslog:`: a log that goes to a log service, a datagram a line.
//!
//! Words, defaults and bounds are nginx's. Before: `logs`; next: `millstream-telemetry`'s `syslog`, which writes what lines begin with.

use crate::address::PeerAddress;
use crate::declared::log::Syslog;
use crate::reading::Reading;
use crate::tree::Word;

pub(super) const PREFIX: &str = "syslog:";
/// The port of log services (RFC 5426 §3.3).
const PORT: u16 = 514;
/// In bytes (RFC 3164 §4.1.3).
const LONGEST_TAG: usize = 32;
/// By number (RFC 3164 §4.1.1), with nginx's names.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv", "ftp",
    "ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];
/// By number.
const SEVERITIES: [&str; 8] = ["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"];

/// Reads `syslog:server=…[,facility=…]…`; `None` after an error was reported.
pub(super) fn read(word: &Word, reading: &mut Reading<'_>) -> Option<Syslog> {
    let (mut server, mut facility, mut severity) = (None, 23, 6);
    let (mut tag, mut names_host) = ("nginx".to_owned(), true);
    for part in word.text.get(PREFIX.len()..).unwrap_or_default().split(',') {
        let part = Reading::part(word, part);
        match part.text.split_once('=') {
            Some(("server", text)) => {
                server = PeerAddress::parse(text, PORT);
                if server.is_none() {
                    reading
                        .error(part.span, format!("invalid syslog server \"{text}\""))
                        .help("write server=host, server=host:port or server=unix:/path");
                    return None;
                }
            }
            Some(("facility", name)) => facility = number(&FACILITIES, &part, name, reading)?,
            Some(("severity", name)) => severity = number(&SEVERITIES, &part, name, reading)?,
            Some(("tag", name)) => tag = fit(name, &part, reading)?,
            None if part.text == "nohostname" => names_host = false,
            _ => {
                let words = ["server=", "facility=", "severity=", "tag=", "nohostname"];
                reading.not_one_of(&part, &words);
                return None;
            }
        }
    }
    let Some(server) = server else {
        reading.error(word.span, "no syslog server specified").help("write syslog:server=127.0.0.1");
        return None;
    };
    Some(Syslog { server, facility, severity, tag, names_host })
}

fn number(names: &[&str], part: &Word, name: &str, reading: &mut Reading<'_>) -> Option<u8> {
    let name = Reading::part(part, name);
    reading.one_of(&name, names).and_then(|index| u8::try_from(index).ok())
}

fn fit(tag: &str, part: &Word, reading: &mut Reading<'_>) -> Option<String> {
    let wrong = if tag.len() > LONGEST_TAG {
        format!("syslog \"tag\" length exceeds {LONGEST_TAG}")
    } else if tag.is_empty() || !tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        "syslog \"tag\" only allows alphanumeric characters and underscore".to_owned()
    } else {
        return Some(tag.to_owned());
    };
    reading.error(part.span, wrong).help("write a short word, such as tag=shop");
    None
}
