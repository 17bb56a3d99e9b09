//! `ssl_conf_command`, `proxy_ssl_conf_command` and the others of the family: OpenSSL's configuration commands.
//!
//! A command takes effect, has no effect because what it asks for always holds (`-t -v` lists it), or is reported: none is
//! dropped silently. As in nginx they apply after the other directives of TLS, in the order in which they are written.
//! Next: `commands`, the vocabulary; `tls` and `pass/secure`, which obey.

use super::commands::{COMMANDS, CommandKind, Fixed, OPTIONS, OptionKind, OptionSwitch};
use super::{PemSource, TlsGroup, TlsVersion, ciphers, groups};
use crate::reading::Reading;
use crate::source::Span;
use crate::suggest;
use crate::tree::{Directive, Word};

/// As OpenSSL's commands name them; the index is the number of a bit.
const VERSIONS: [&str; 6] = ["SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

/// Without SSLv2, which today's OpenSSL no longer has.
const ALL: u8 = 0b11_1110;

#[derive(Debug, Clone)]
enum Command {
    /// Versions by their bits, enabled or disabled, in order.
    Protocol(Vec<(u8, bool)>),
    /// The lowest version, by index.
    Least(usize),
    Most(usize),
    Ciphers(Vec<String>),
    Suites(Vec<String>),
    Groups(Vec<TlsGroup>),
    Certificate(PemSource),
    Key(PemSource),
    Switch(OptionSwitch, bool),
    Tickets(usize),
}

#[derive(Debug, Clone, Default)]
pub struct ConfCommands(Vec<(Command, Span)>);

/// `None` = as the other directives have it.
#[derive(Debug, Default)]
pub(in crate::features) struct Obeyed {
    pub(in crate::features) protocols: Option<Vec<TlsVersion>>,
    /// Suites of TLS 1.2, in the form of `ssl_ciphers`.
    pub(in crate::features) ciphers: Option<Vec<String>>,
    pub(in crate::features) suites: Option<Vec<String>>,
    pub(in crate::features) groups: Option<Vec<TlsGroup>>,
    /// Each replaces pairs with the same kind of key.
    pub(in crate::features) certificates: Vec<(PemSource, PemSource)>,
    pub(in crate::features) session_tickets: Option<bool>,
    pub(in crate::features) server_preference: Option<bool>,
    pub(in crate::features) prioritizes_chacha: Option<bool>,
    pub(in crate::features) compresses_certificates: Option<bool>,
    pub(in crate::features) tickets: Option<usize>,
}

impl ConfCommands {
    pub(in crate::features) fn read(&mut self, directive: &Directive, reading: &mut Reading<'_>) {
        let [name, value] = &directive.args[..] else { return };
        let Some((known, kind)) = COMMANDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name.text))
        else {
            let message = format!("unknown command \"{}\" in \"{}\"", name.text, directive.name.text);
            let help = suggest::did_you_mean(&name.text, COMMANDS.iter().map(|(known, _)| *known));
            let help = help.unwrap_or_else(|| {
                "write a command of OpenSSL's SSL_CONF_cmd, such as MinProtocol".to_owned()
            });
            reading.error(name.span, message).help(help);
            return;
        };
        let command = match kind {
            CommandKind::Protocol => list(value, "version", reading, version).map(Command::Protocol),
            CommandKind::Least => bound(value, 0, reading).map(Command::Least),
            CommandKind::Most => bound(value, VERSIONS.len() - 1, reading).map(Command::Most),
            CommandKind::Ciphers => {
                ciphers::read(value, &format!("{} {known}", directive.name.text), reading)
                    .map(Command::Ciphers)
            }
            CommandKind::Suites => suites(value, reading).map(Command::Suites),
            CommandKind::Groups => group_list(value, reading).map(Command::Groups),
            CommandKind::Certificate => pem(value, "certificate", reading).map(Command::Certificate),
            CommandKind::Key => pem(value, "certificate key", reading).map(Command::Key),
            CommandKind::Tickets => {
                reading.number(value, 0, 100).map(|number| Command::Tickets(number as usize))
            }
            CommandKind::Options => return self.options(directive, value, reading),
            CommandKind::Padding if matches!(value.text.as_str(), "0" | "1") => {
                return note(directive, known, "records are not padded", reading);
            }
            CommandKind::Padding => {
                return refuse(directive, known, "records are not padded", "leave it out", reading);
            }
            CommandKind::Idle(why) => return note(directive, known, why, reading),
            CommandKind::Refused(why, instead) => return refuse(directive, known, why, instead, reading),
        };
        self.0.extend(command.map(|command| (command, directive.span)));
    }

    fn options(&mut self, directive: &Directive, value: &Word, reading: &mut Reading<'_>) {
        let find = |name: &str| OPTIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        for ((name, kind), on) in list(value, "option", reading, find).unwrap_or_default() {
            match kind {
                OptionKind::Switch(switch) => self.0.push((Command::Switch(*switch, on), directive.span)),
                OptionKind::Either(why) => note(directive, name, why, reading),
                OptionKind::Always(Fixed(is, why)) if *is == on => note(directive, name, why, reading),
                OptionKind::Always(Fixed(_, why)) => {
                    let sign = if on { "" } else { "-" };
                    let message =
                        format!("\"{sign}{name}\" in \"{}\" is not supported: {why}", directive.name.text);
                    reading.diagnostics.warning(value.span, message).help("leave it out");
                }
            }
        }
    }

    /// `before`: the versions without the commands; `name`: the directive.
    pub(in crate::features) fn obey(
        &self,
        name: &str,
        before: &[TlsVersion],
        reading: &mut Reading<'_>,
    ) -> Obeyed {
        let mut obeyed = Obeyed::default();
        let (mut certificates, mut keys) = (Vec::new(), Vec::new());
        for (command, span) in &self.0 {
            match command.clone() {
                Command::Protocol(_) | Command::Least(_) | Command::Most(_) => {}
                Command::Ciphers(suites) => obeyed.ciphers = Some(suites),
                Command::Suites(suites) => obeyed.suites = Some(suites),
                Command::Groups(groups) => obeyed.groups = Some(groups),
                Command::Certificate(source) => certificates.push((source, *span)),
                Command::Key(source) => keys.push((source, *span)),
                Command::Switch(OptionSwitch::SessionTicket, on) => obeyed.session_tickets = Some(on),
                Command::Switch(OptionSwitch::ServerPreference, on) => obeyed.server_preference = Some(on),
                Command::Switch(OptionSwitch::PrioritizeChaCha, on) => obeyed.prioritizes_chacha = Some(on),
                Command::Switch(OptionSwitch::CertificateCompression, on) => {
                    obeyed.compresses_certificates = Some(on);
                }
                Command::Tickets(number) => obeyed.tickets = Some(number),
            }
        }
        obeyed.protocols = self.protocols(name, before, reading);
        let (alone, other) = match certificates.len() > keys.len() {
            true => (certificates.get(keys.len()), "PrivateKey"),
            false => (keys.get(certificates.len()), "Certificate"),
        };
        if let Some((source, span)) = alone {
            let message = format!("no \"{other}\" is defined for \"{}\"", source.name().display());
            reading.error(*span, message).help(format!("write {name} {other} with the file of it"));
        }
        obeyed.certificates =
            certificates.into_iter().zip(keys).map(|((one, _), (key, _))| (one, key)).collect();
        obeyed
    }

    /// `None` if no command is about them.
    fn protocols(
        &self,
        name: &str,
        before: &[TlsVersion],
        reading: &mut Reading<'_>,
    ) -> Option<Vec<TlsVersion>> {
        const OFFERED: [(TlsVersion, u8); 2] = [(TlsVersion::Tls12, 1 << 4), (TlsVersion::Tls13, 1 << 5)];
        let mut enabled: u8 =
            OFFERED.iter().filter(|(version, _)| before.contains(version)).map(|(_, bit)| bit).sum();
        let (mut least, mut most, mut last) = (0, VERSIONS.len() - 1, None);
        for (command, span) in &self.0 {
            match command {
                Command::Protocol(changes) => {
                    for (bits, on) in changes {
                        enabled = if *on { enabled | bits } else { enabled & !bits };
                    }
                }
                Command::Least(version) => least = *version,
                Command::Most(version) => most = *version,
                _ => continue,
            }
            last = Some(*span);
        }
        let span = last?;
        let is_left = |place: usize| (least..=most).contains(&place) && enabled & (1 << place) != 0;
        let old: Vec<&str> = (0..4).filter(|place| is_left(*place)).map(|place| VERSIONS[place]).collect();
        let help = format!("write {name} MinProtocol TLSv1.2;");
        let left: Vec<TlsVersion> = (4..)
            .zip(OFFERED)
            .filter(|(place, _)| is_left(*place))
            .map(|(_, (version, _))| version)
            .collect();
        if left.is_empty() {
            reading.error(span, format!("{name} leaves no secure version")).help(help);
            return None;
        }
        if !old.is_empty() {
            let verb = if old.len() == 1 { "is" } else { "are" };
            let message = format!("{} {verb} not offered (RFC 8996)", old.join(", "));
            reading.diagnostics.warning(span, message).help(help);
        }
        Some(left)
    }
}

fn note(directive: &Directive, what: &str, why: &str, reading: &mut Reading<'_>) {
    let message = format!("\"{what}\" in \"{}\" has no effect here: {why}", directive.name.text);
    reading.diagnostics.idle(directive.span, message);
}

/// In `instead`, `@` stands for the family's prefix.
fn refuse(directive: &Directive, what: &str, why: &str, instead: &str, reading: &mut Reading<'_>) {
    let name = directive.name.text.as_str();
    let prefix = name.strip_suffix("conf_command").unwrap_or_default();
    let instead = match (prefix, instead) {
        ("ssl_", "verify") => {
            "write ssl_verify_client with ssl_client_certificate or ssl_trusted_certificate".to_owned()
        }
        (_, "verify") => format!("write {prefix}verify with {prefix}trusted_certificate"),
        (_, other) => other.to_owned(),
    };
    reading.error(directive.span, format!("\"{what}\" in \"{name}\" is not supported: {why}")).help(instead);
}

/// Reads `[+|-]word,…`; `find` knows the words.
fn list<T>(
    value: &Word,
    what: &str,
    reading: &mut Reading<'_>,
    find: impl Fn(&str) -> Option<T>,
) -> Option<Vec<(T, bool)>> {
    let mut found = Vec::new();
    for item in value.text.split(',').map(str::trim) {
        let on = !item.starts_with('-');
        match find(item.strip_prefix(['+', '-']).unwrap_or(item)) {
            Some(one) => found.push((one, on)),
            None => {
                reading
                    .error(value.span, format!("unknown {what} \"{item}\""))
                    .help("write a list of names separated by commas, each with an optional + or -");
                return None;
            }
        }
    }
    Some(found)
}

fn version(name: &str) -> Option<u8> {
    if name.eq_ignore_ascii_case("ALL") {
        return Some(ALL);
    }
    VERSIONS.iter().position(|known| known.eq_ignore_ascii_case(name)).map(|place| 1 << place)
}

/// The index of a version; `None` is the one that sets no bound.
fn bound(value: &Word, none: usize, reading: &mut Reading<'_>) -> Option<usize> {
    if value.text == "None" {
        return Some(none);
    }
    let place = VERSIONS.iter().skip(1).position(|known| *known == value.text).map(|place| place + 1);
    if place.is_none() {
        reading
            .error(value.span, format!("unknown version \"{}\"", value.text))
            .help("write TLSv1.2, TLSv1.3 or None");
    }
    place
}

fn suites(value: &Word, reading: &mut Reading<'_>) -> Option<Vec<String>> {
    let (mut offered, mut others) = (Vec::new(), Vec::new());
    for name in value.text.split(':').map(str::trim).filter(|name| !name.is_empty()) {
        match ciphers::TLS13_SUITES.iter().find(|known| **known == name) {
            Some(known) => offered.push((*known).to_owned()),
            None if name.starts_with("TLS_AES_128_CCM") => others.push(name),
            None => {
                let help = suggest::did_you_mean(name, ciphers::TLS13_SUITES)
                    .unwrap_or_else(|| format!("write {}", ciphers::TLS13_SUITES.join(":")));
                reading.error(value.span, format!("no suite of TLS 1.3 is called \"{name}\"")).help(help);
                return None;
            }
        }
    }
    if !others.is_empty() {
        let verb = if others.len() == 1 { "is" } else { "are" };
        reading
            .diagnostics
            .warning(value.span, format!("{} {verb} not offered", others.join(", ")))
            .help(format!("write {}", ciphers::TLS13_SUITES.join(":")));
    }
    Some(offered)
}

fn group_list(value: &Word, reading: &mut Reading<'_>) -> Option<Vec<TlsGroup>> {
    let groups = groups::read(value, reading)?;
    // The library's own groups in place of those that were asked for would be more than was allowed.
    if groups.is_empty() && !groups::is_automatic(&value.text) {
        reading
            .error(value.span, format!("\"{}\" leaves no group", value.text))
            .help("write some of X25519, prime256v1, secp384r1 and X25519MLKEM768");
        return None;
    }
    Some(groups)
}

/// OpenSSL accepts nothing but a file here.
fn pem(value: &Word, what: &str, reading: &mut Reading<'_>) -> Option<PemSource> {
    Some(PemSource::File(super::pem_file(value, what, reading).0))
}
