//! The PROXY protocol, versions 1 and 2: what a proxy in front says of a connection before its first byte.
//!
//! The header is looked at where it lies and then taken, byte for byte: what follows it is left for TLS or HTTP. Before: `stream`; next:
//! `written`, what we say ourselves.

mod written;

pub use written::header;

use crate::stream::Stream;
use crate::timer::{Deadline, is_elapsed};
use millstream_conf::model::ProxyProtocolTlv;
use rustix::net::{RecvFlags, recv};
use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxied {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Additional values (version 2): type, length, value in sequence.
    values: Box<[u8]>,
}

/// Bytes before the sub-values of TLS: what the client did, and whether its certificate is valid.
const TLS_FIXED: usize = 5;
const TLS: u8 = 0x20;

impl Proxied {
    pub fn new(source: SocketAddr, destination: SocketAddr) -> Proxied {
        Proxied { source, destination, values: Box::default() }
    }

    /// `None` if the value is missing.
    pub fn write_tlv(&self, wanted: ProxyProtocolTlv, out: &mut Vec<u8>) -> Option<()> {
        let of_tls = || value(&self.values, TLS)?.split_at_checked(TLS_FIXED);
        match wanted {
            ProxyProtocolTlv::Value(kind) => out.extend_from_slice(value(&self.values, kind)?),
            ProxyProtocolTlv::OfTls(kind) => out.extend_from_slice(value(of_tls()?.1, kind)?),
            ProxyProtocolTlv::TlsVerify => {
                let number = of_tls()?.0.last_chunk::<4>().copied().map(u32::from_be_bytes)?;
                _ = write!(out, "{number}");
            }
        }
        Some(())
    }
}

/// Stops at a truncated value.
fn value(mut values: &[u8], kind: u8) -> Option<&[u8]> {
    loop {
        let ([found, high, low], rest) = values.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        if *found == kind {
            return Some(value);
        }
        values = rest;
    }
}

#[derive(Debug)]
pub enum HeaderError {
    Broken(Vec<u8>),
    Io(io::Error),
    Timeout,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Broken(bytes) => write!(f, "broken header: \"{}\"", shown(bytes).escape_ascii()),
            HeaderError::Io(error) => write!(f, "{error}"),
            HeaderError::Timeout => write!(f, "timed out"),
        }
    }
}

/// For lines only the first, as a request's fields may contain secrets.
fn shown(bytes: &[u8]) -> &[u8] {
    match bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(end) if end > 0 => &bytes[..end],
        _ => bytes,
    }
}

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Of version 1.
const LONGEST_LINE: usize = 107;
/// Of version 2, as nginx reads it.
const LONGEST: usize = 4096;
/// Bytes of the input that an error shows.
const SHOWN: usize = LONGEST_LINE;

/// Takes the header off a connection; `None` if the proxy speaks for itself, or for an unknown client.
pub async fn read(stream: &mut Stream, deadline: &mut Deadline) -> Result<Option<Proxied>, HeaderError> {
    let mut header = Vec::new();
    loop {
        // Nothing behind it is ever taken with it.
        if let Parsed::Whole(_, said) = parse(&header) {
            return Ok(said);
        }
        stream.readable(deadline).await.map_err(failed)?;
        let known = header.len();
        header.resize(LONGEST, 0);
        let seen = recv(stream.as_fd(), &mut header[known..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        let seen = match seen {
            Ok((count, _)) => count,
            Err(rustix::io::Errno::AGAIN) => 0,
            Err(error) => return Err(HeaderError::Io(error.into())),
        };
        header.truncate(known + seen);
        let wanted = match parse(&header) {
            Parsed::Whole(length, _) => length - known,
            // With nothing seen this waits for a byte, or finds the end.
            Parsed::Partial => seen.max(1),
            Parsed::Broken => {
                header.truncate(SHOWN);
                return Err(HeaderError::Broken(header));
            }
        };
        header.truncate(known);
        take(stream, wanted, &mut header, deadline).await?;
    }
}

fn failed(error: io::Error) -> HeaderError {
    if is_elapsed(&error) { HeaderError::Timeout } else { HeaderError::Io(error) }
}

async fn take(
    stream: &mut Stream,
    count: usize,
    into: &mut Vec<u8>,
    deadline: &mut Deadline,
) -> Result<(), HeaderError> {
    let end = into.len() + count;
    while into.len() < end {
        let left = end - into.len();
        if stream.read_into(into, left, deadline).await.map_err(failed)? == 0 {
            return Err(HeaderError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    Whole(usize, Option<Proxied>),
    Partial,
    Broken,
}

fn parse(bytes: &[u8]) -> Parsed {
    let common = bytes.len().min(SIGNATURE.len());
    if bytes[..common] == SIGNATURE[..common] {
        return if common < SIGNATURE.len() { Parsed::Partial } else { second(bytes) };
    }
    first(bytes)
}

fn first(bytes: &[u8]) -> Parsed {
    const START: &[u8] = b"PROXY ";
    let common = bytes.len().min(START.len());
    if bytes[..common] != START[..common] {
        return Parsed::Broken;
    }
    let Some(end) = bytes.iter().take(LONGEST_LINE).position(|&byte| byte == b'\n') else {
        return if bytes.len() < LONGEST_LINE { Parsed::Partial } else { Parsed::Broken };
    };
    let line = bytes[..end].strip_suffix(b"\r").and_then(|line| std::str::from_utf8(&line[common..]).ok());
    match line.and_then(said) {
        Some(said) => Parsed::Whole(end + 1, said),
        None => Parsed::Broken,
    }
}

fn said(line: &str) -> Option<Option<Proxied>> {
    let (family, rest) = line.split_once(' ').unwrap_or((line, ""));
    if family == "UNKNOWN" {
        return Some(None);
    }
    let mut words = rest.split(' ');
    let mut address = || -> Option<IpAddr> {
        let word = words.next()?;
        match family {
            "TCP4" => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (source, destination) = (address()?, address()?);
    let mut port = || -> Option<u16> {
        // Digits alone, where Rust takes a sign as well.
        words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
    };
    let (source, destination) = (SocketAddr::new(source, port()?), SocketAddr::new(destination, port()?));
    words.next().is_none().then_some(Some(Proxied::new(source, destination)))
}

fn second(bytes: &[u8]) -> Parsed {
    const FIXED: usize = 16;
    let Some(fixed) = bytes.get(SIGNATURE.len()..FIXED) else { return Parsed::Partial };
    let [version_command, family_transport, high, low] = *fixed else { return Parsed::Broken };
    let length = FIXED + usize::from(u16::from_be_bytes([high, low]));
    if version_command >> 4 != 2 || length > LONGEST {
        return Parsed::Broken;
    }
    let Some(body) = bytes.get(FIXED..length) else { return Parsed::Partial };
    // LOCAL is the proxy itself; of other transports than TCP there are no addresses that count.
    if version_command & 0xf != 1 || family_transport & 0xf != 1 {
        return Parsed::Whole(length, None);
    }
    let pair = match family_transport >> 4 {
        1 => pair(body, |octets: [u8; 4]| IpAddr::V4(octets.into())),
        2 => pair(body, |octets: [u8; 16]| IpAddr::V6(octets.into())),
        _ => return Parsed::Whole(length, None),
    };
    pair.map_or(Parsed::Broken, |pair| Parsed::Whole(length, Some(pair)))
}

fn pair<const N: usize>(body: &[u8], address: impl Fn([u8; N]) -> IpAddr) -> Option<Proxied> {
    let at =
        |place: usize| body.get(place..place + N).and_then(|octets| octets.try_into().ok()).map(&address);
    let port = |place: usize| body.get(place..place + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    Some(Proxied {
        source: SocketAddr::new(at(0)?, port(2 * N)?),
        destination: SocketAddr::new(at(N)?, port(2 * N + 2)?),
        values: body.get(2 * N + 4..).unwrap_or_default().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(source: &str, destination: &str) -> Option<Proxied> {
        let address = |text: &str| text.parse().expect("it is an address");
        Some(Proxied::new(address(source), address(destination)))
    }

    fn binary(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u16).to_be_bytes();
        [SIGNATURE, &[command, family, length[0], length[1]][..], body].concat()
    }

    #[test]
    fn headers_of_both_versions_say_both_addresses() {
        let four = proxied("192.0.2.1:4000", "198.51.100.2:443");
        let mut six = proxied("[2001:db8::1]:4000", "[2001:db8::2]:443");
        let plain_six = six.clone();
        let v4 = [192, 0, 2, 1, 198, 51, 100, 2, 0x0f, 0xa0, 0x01, 0xbb];
        let mut v6 = Vec::new();
        for address in ["2001:db8::1", "2001:db8::2"] {
            v6.extend_from_slice(&address.parse::<Ipv6Addr>().expect("it is one").octets());
        }
        v6.extend_from_slice(&[0x0f, 0xa0, 0x01, 0xbb, 0x04, 0, 1, 9]);
        six.as_mut().expect("it is one").values = [0x04, 0, 1, 9].into();
        for (header, expected) in [
            (b"PROXY TCP4 192.0.2.1 198.51.100.2 4000 443\r\n".to_vec(), four.clone()),
            (b"PROXY TCP6 2001:db8::1 2001:db8::2 4000 443\r\n".to_vec(), plain_six),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN and whatever follows\r\n".to_vec(), None),
            (binary(0x21, 0x11, &v4), four),
            (binary(0x21, 0x21, &v6), six),
            (binary(0x20, 0x00, b""), None),
            (binary(0x21, 0x12, &v4), None),
            (binary(0x21, 0x31, &[0; 216]), None),
        ] {
            let behind = [&header[..], b"GET / HTTP/1.1\r\n"].concat();
            assert_eq!(
                parse(&behind),
                Parsed::Whole(header.len(), expected.clone()),
                "{}",
                header.escape_ascii()
            );
            for cut in 0..header.len() {
                assert_eq!(parse(&header[..cut]), Parsed::Partial, "{} of {}", cut, header.escape_ascii());
            }
        }
        for broken in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROXY TCP4 192.0.2.1 198.51.100.2 4000\r\n",
            b"PROXY TCP4 192.0.2.1 198.51.100.2 4000 65536\r\n",
            b"PROXY TCP4 2001:db8::1 2001:db8::2 4000 443\r\n",
            b"PROXY TCP4 192.0.2.1 198.51.100.2 4000 443 1\r\n",
            b"PROXY UNKNOWN\n",
            &[b"PROXY UNKNOWN ", &[b'x'; 100][..]].concat(),
            &binary(0x11, 0x11, &v4),
            &binary(0x21, 0x11, &v4[..8]),
            &binary(0x21, 0x11, &[0; 5000]),
        ] {
            assert_eq!(parse(broken), Parsed::Broken, "{}", broken.escape_ascii());
        }
    }

    #[test]
    fn values_beside_the_addresses_are_found_by_their_kind_and_none_behind_one_that_is_cut_off() {
        let address: SocketAddr = "192.0.2.1:1".parse().expect("it is an address");
        let said = |values: &[u8], wanted| {
            let proxied = Proxied { source: address, destination: address, values: values.into() };
            let mut out = Vec::new();
            proxied.write_tlv(wanted, &mut out).map(|()| out)
        };
        let (alpn, tls, name) =
            (ProxyProtocolTlv::Value(1), ProxyProtocolTlv::TlsVerify, ProxyProtocolTlv::OfTls(0x22));
        let values = b"\x02\0\x01x\x01\0\x02h2\x20\0\x0a\x07\0\0\x01\x02\x22\0\x02me";
        assert_eq!(said(values, alpn).as_deref(), Some(&b"h2"[..]));
        assert_eq!(said(values, tls).as_deref(), Some(&b"258"[..]));
        assert_eq!(said(values, name).as_deref(), Some(&b"me"[..]));
        assert_eq!(said(values, ProxyProtocolTlv::Value(0xea)), None);
        for cut in 0..values.len() {
            assert_eq!(said(&values[..cut], name), None);
        }
    }
}
