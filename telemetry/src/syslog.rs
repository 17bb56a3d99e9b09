//! What lines to a log service begin with, and where it is.
//!
//! The form is RFC 3164's, as nginx writes it: `<priority>Mmm dd hh:mm:ss host tag: `. Nothing is sent here. Next: `log_writer`, which sends a
//! datagram a line.

use crate::local_time;
use millstream_conf::model::{Level, Syslog};
use millstream_wire::date;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogService {
    Udp(SocketAddr),
    /// A unix datagram socket, usually `/dev/log`.
    Unix(PathBuf),
}

#[derive(Debug, Clone)]
pub struct Header {
    facility: u8,
    severity: u8,
    /// Host and tag, with what surrounds them.
    names: Box<str>,
}

impl Header {
    pub fn new(syslog: &Syslog) -> Header {
        let host = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
        let names =
            if syslog.names_host { format!("{host} {}: ", syslog.tag) } else { format!("{}: ", syslog.tag) };
        Header { facility: syslog.facility, severity: syslog.severity, names: names.into() }
    }

    pub fn begin(&self, line: &mut Vec<u8>) {
        self.append(self.severity, line);
    }

    /// Levels are in the order of severities.
    pub fn begin_error(&self, level: Level, line: &mut Vec<u8>) {
        self.append(level as u8, line);
    }

    fn append(&self, severity: u8, line: &mut Vec<u8>) {
        let now = local_time::now();
        line.extend_from_slice(
            format!("<{}>", u32::from(self.facility) * 8 + u32::from(severity)).as_bytes(),
        );
        line.extend_from_slice(&date::format_syslog(now.seconds, now.utc_offset));
        line.push(b' ');
        line.extend_from_slice(self.names.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_conf::model::PeerAddress;

    #[test]
    fn a_line_begins_with_priority_time_host_and_tag() {
        let unix = PeerAddress::Unix("/dev/log".into());
        let mut syslog =
            Syslog { server: unix, facility: 23, severity: 6, tag: "nginx".into(), names_host: false };
        let begun = |syslog: &Syslog, level: Option<Level>| {
            let (header, mut line) = (Header::new(syslog), Vec::new());
            match level {
                Some(level) => header.begin_error(level, &mut line),
                None => header.begin(&mut line),
            }
            String::from_utf8(line).expect("text")
        };
        assert_eq!(begun(&syslog, None), "<190>Jan  1 00:00:00 nginx: ");
        assert_eq!(begun(&syslog, Some(Level::Emerg)), "<184>Jan  1 00:00:00 nginx: ");
        syslog.facility = 1;
        assert_eq!(begun(&syslog, Some(Level::Debug)), "<15>Jan  1 00:00:00 nginx: ");
        syslog.names_host = true;
        let named = begun(&syslog, None);
        assert_eq!(named.split(' ').count(), 7, "{named}");
    }
}
