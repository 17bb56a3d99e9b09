//! Who somebody may be: `all`, `unix:`, an address or a network in CIDR form.
//!
//! Pure functions of text; names are never resolved. Before: `value`, the other kinds of words;
//! next: `features/right`, `features/forwarded` and `features/access`, which read lists of these.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::value::ValueError;

/// One word of `proxy_cache_purge_allow`, `api_allow`, `allow` or `deny`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    All,
    Unix,
    /// An address, or a network with the number of leading mask bits.
    Ip(IpAddr, u8),
}

/// The flag says whether bits beyond the mask were set; they are cleared, as in nginx.
pub fn parse(text: &str) -> Result<(Network, bool), ValueError> {
    match text {
        "all" => return Ok((Network::All, false)),
        "unix:" => return Ok((Network::Unix, false)),
        _ => {}
    }
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let ip: IpAddr = address.parse().map_err(|_| wrong(text))?;
    let widest = if ip.is_ipv4() { 32 } else { 128 };
    let bits = match mask {
        None => widest,
        Some(mask) => width(mask, ip).filter(|bits| *bits <= widest).ok_or_else(|| wrong(text))?,
    };
    let masked = masked(ip, bits);
    Ok((Network::Ip(masked, bits), masked != ip))
}

/// The number of leading ones: in digits, or for IPv4 as a mask such as `255.255.0.0`.
fn width(mask: &str, ip: IpAddr) -> Option<u8> {
    if mask.bytes().all(|byte| byte.is_ascii_digit()) {
        return mask.parse().ok();
    }
    if ip.is_ipv6() {
        return None;
    }
    let mask = mask.parse::<Ipv4Addr>().ok()?.to_bits();
    (mask.leading_ones() + mask.trailing_zeros() == 32).then_some(mask.leading_ones() as u8)
}

fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

fn wrong(text: &str) -> ValueError {
    let help = match text.parse::<std::net::SocketAddr>() {
        Ok(address) => format!("an address has no port here: write {}", address.ip()),
        Err(_) if text == "localhost" => "write 127.0.0.1 and ::1; names are not resolved here".to_owned(),
        Err(_) => "write an address, a network such as 10.0.0.0/8, unix: or all".to_owned(),
    };
    ValueError { message: format!("\"{text}\" is not an address or a network"), help: Some(help) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_networks_and_the_two_words_are_read() {
        let ip = |text: &str, bits| Network::Ip(text.parse().expect("an address"), bits);
        for (text, expected) in [
            ("all", (Network::All, false)),
            ("unix:", (Network::Unix, false)),
            ("127.0.0.1", (ip("127.0.0.1", 32), false)),
            ("10.0.0.0/8", (ip("10.0.0.0", 8), false)),
            ("10.1.2.3/8", (ip("10.0.0.0", 8), true)),
            ("192.168.0.0/255.255.0.0", (ip("192.168.0.0", 16), false)),
            ("0.0.0.0/0", (ip("0.0.0.0", 0), false)),
            ("::1", (ip("::1", 128), false)),
            ("2001:db8::1/32", (ip("2001:db8::", 32), true)),
            ("::/0", (ip("::", 0), false)),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_help() {
        for text in [
            "",
            "localhost",
            "10.0.0.0/33",
            "::1/129",
            "10.0.0.0/",
            "10.0.0.0/255.0.255.0",
            "10.0.0",
            "unix:/x",
            "127.0.0.1:80",
            "::1/255.0.0.0",
            "10.0.0.0/-1",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.help.is_some(), "{text}");
        }
    }
}
