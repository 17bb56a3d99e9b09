//! `geo`: a variable that has its value by the client's address, or another one.
//!
//! Networks may lie in each other, and the smallest counts; ranges may lie in each other or apart. What is read here is laid out flat
//! by `flat`. Next: `declared/made/geo`, what comes of it.

use std::collections::HashMap;
use std::net::IpAddr;

use super::context::HTTP;
use super::made::{lines, wrong_line};
use super::{Apply, Row, often};
use crate::declared::made::Making;
use crate::declared::made::geo::Geo;
use crate::network::{self, Network};
use crate::reading::Reading;
use crate::template::{Part, Template, Variable};
use crate::tree::{Directive, Word};
use crate::variables::Builtin;

mod flat;
mod ranges;

use flat::{Flat, Networks};
use ranges::GeoRanges;

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("geo", HTTP, (1, 2), "[$address] $variable { network value; … }", "",
        "Creates a variable whose value depends on the client's address, or on the address in another variable. Lines contain networks in CIDR \
        notation, of which the smallest matching one applies, or after `ranges;` IPv4 ranges such as `10.0.0.0-10.0.0.9`. `default` applies to all \
        other addresses; `delete` removes a network or range; `include` reads lines from a file. If a client matches `proxy`, its X-Forwarded-For \
        is used: the last address, or with `proxy_recursive;` the last address that does not match `proxy`. With `volatile;`, the value is not cached during \
        a request.",
        Apply::Make(read)),
];

#[derive(Default)]
struct GeoDraft {
    v4: Networks,
    v6: Networks,
    /// `ranges` instead of networks.
    ranges: Option<GeoRanges>,
    proxies: Vec<Network>,
    recursive: bool,
    volatile: bool,
    /// Each once, with its index.
    values: Vec<Box<str>>,
    known: HashMap<Box<str>, u32>,
}

impl GeoDraft {
    fn value(&mut self, word: &Word) -> u32 {
        if let Some(&known) = self.known.get(word.text.as_str()) {
            return known;
        }
        let index = self.values.len() as u32;
        self.values.push(word.text.as_str().into());
        self.known.insert(word.text.as_str().into(), index);
        index
    }
}

fn read(directive: &Directive, reading: &mut Reading<'_>) -> Option<(Making, bool)> {
    let address = match &directive.args[..] {
        [address, _] => Some(variable(address, reading)?),
        _ => None,
    };
    let mut draft = GeoDraft::default();
    // An empty value for whatever no line is about.
    draft.value(&Reading::part(&directive.name, ""));
    for (key, words) in lines(directive, reading) {
        match (key.text.as_str(), words) {
            ("ranges", []) => begin_ranges(&mut draft, key, reading),
            ("proxy_recursive", []) => draft.recursive = true,
            ("volatile", []) => draft.volatile = true,
            ("proxy", [network]) => draft.proxies.extend(cidr(network, reading)),
            (_, [word]) if draft.ranges.is_some() => range(&mut draft, key, word, reading),
            (_, [word]) => line(&mut draft, key, word, reading),
            _ => wrong_line(key, directive, reading),
        }
    }
    let mut source = vec![match &address {
        Some(address) => address.parts[0].clone(),
        None => Part::Variable(Variable::Builtin(Builtin::RemoteAddr)),
    }];
    if !draft.proxies.is_empty() {
        source.push(Part::Variable(Variable::RequestHeader("x-forwarded-for".into())));
    }
    let (v4, v6) = match &draft.ranges {
        // Ranges are of IPv4 alone: all others have what holds outside of them.
        Some(ranges) => (ranges.table(), Flat::new(ranges.default.unwrap_or(0)).table()),
        None => (draft.v4.table(), draft.v6.table()),
    };
    let geo = Geo {
        address,
        source: Template { parts: source.into(), source: "".into() },
        proxies: draft.proxies.into(),
        recursive: draft.recursive,
        v4,
        v6,
        values: draft.values.into(),
    };
    Some((geo.into(), draft.volatile))
}

fn variable(word: &Word, reading: &mut Reading<'_>) -> Option<Template> {
    let template = reading.template(word);
    if matches!(&template.parts[..], [Part::Variable(_)]) {
        return Some(template);
    }
    // An unknown one has been reported.
    if !word.text.starts_with('$') || template.parts.len() > 1 {
        reading
            .error(word.span, format!("invalid variable name \"{}\"", word.text))
            .help("write the variable that has the address, as in geo $arg_address $name");
    }
    None
}

fn begin_ranges(draft: &mut GeoDraft, key: &Word, reading: &mut Reading<'_>) {
    if !draft.v4.is_empty() || !draft.v6.is_empty() {
        reading
            .error(key.span, "the \"ranges\" directive must be the first directive inside \"geo\" block")
            .help("write it before all lines with addresses");
        return;
    }
    draft.ranges.get_or_insert_default();
}

/// A network and its value, or `delete` and a network.
fn line(draft: &mut GeoDraft, key: &Word, word: &Word, reading: &mut Reading<'_>) {
    if key.text == "default" {
        let value = draft.value(word);
        let before = draft.v4.insert(0, 0, value);
        draft.v6.insert(0, 0, value);
        duplicate(draft, "network", key, word, before, reading);
        return;
    }
    let is_deleted = key.text == "delete";
    let net = if is_deleted { word } else { key };
    let Some(Network::Ip(ip, bits)) = cidr(net, reading) else { return };
    let value = if is_deleted { 0 } else { draft.value(word) };
    let (networks, ip) = match ip {
        IpAddr::V4(ip) => (&mut draft.v4, u128::from(ip.to_bits()) << 96),
        IpAddr::V6(ip) => (&mut draft.v6, ip.to_bits()),
    };
    if is_deleted {
        if networks.remove(ip, bits).is_none() {
            nothing_to_delete(reading, net, "network");
        }
        return;
    }
    let before = networks.insert(ip, bits, value);
    duplicate(draft, "network", net, word, before, reading);
}

/// A range and its value, `default` and a value, or `delete` and a range.
fn range(draft: &mut GeoDraft, key: &Word, word: &Word, reading: &mut Reading<'_>) {
    if key.text == "default" {
        let value = draft.value(word);
        let before = draft.ranges.as_mut().and_then(|ranges| ranges.default.replace(value));
        duplicate(draft, "default geo range", key, word, before, reading);
        return;
    }
    let is_deleted = key.text == "delete";
    let net = if is_deleted { word } else { key };
    let Some((start, end)) = ranges::parse(&net.text) else {
        reading
            .error(net.span, format!("invalid range \"{}\"", net.text))
            .help("write the first and the last IPv4 address, as in 10.0.0.0-10.0.0.9");
        return;
    };
    let value = if is_deleted { 0 } else { draft.value(word) };
    let Some(ranges) = &mut draft.ranges else { return };
    if is_deleted {
        if !ranges.remove(start, end) {
            nothing_to_delete(reading, net, "address range");
        }
        return;
    }
    match ranges.insert(start, end, value) {
        Ok(before) => duplicate(draft, "range", net, word, before, reading),
        Err((first, last)) => {
            reading
                .error(net.span, format!("range \"{}\" overlaps \"{first}-{last}\"", net.text))
                .help("a range must be inside another one or apart from it");
        }
    }
}

fn nothing_to_delete(reading: &mut Reading<'_>, net: &Word, what: &str) {
    reading
        .diagnostics
        .warning(net.span, format!("no {what} \"{}\" to delete", net.text))
        .help("delete an entry above it, written the same way");
}

/// Reports a line that replaces an earlier one.
fn duplicate(
    draft: &GeoDraft,
    what: &str,
    net: &Word,
    value: &Word,
    before: Option<u32>,
    reading: &mut Reading<'_>,
) {
    let Some(before) = before.and_then(|before| draft.values.get(before as usize)) else { return };
    let (net_text, value) = (&net.text, &value.text);
    let message = format!("duplicate {what} \"{net_text}\", value: \"{value}\", old value: \"{before}\"");
    reading.diagnostics.warning(net.span, message).help("the later one is used");
}

fn cidr(word: &Word, reading: &mut Reading<'_>) -> Option<Network> {
    match network::parse(&word.text) {
        Ok((network @ Network::Ip(..), has_more_bits)) => {
            if has_more_bits {
                reading
                    .diagnostics
                    .warning(word.span, format!("low address bits of {} are meaningless", word.text))
                    .help("bits outside the mask are ignored; write the network's first address");
            }
            Some(network)
        }
        _ => {
            reading
                .error(word.span, format!("invalid network \"{}\"", word.text))
                .help("write an address or a network, such as 10.0.0.0/8 or 2001:db8::/32");
            None
        }
    }
}
