//! An http or https URL in its parts (RFC 3986, RFC 9110 §4.2), as much of it as a request needs.

/// What a URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether it is https.
    pub is_https: bool,
    /// The name or address, an IPv6 one without its brackets.
    pub host: String,
    /// The port, 80 or 443 where none is written.
    pub port: u16,
    /// What `Host` says.
    pub authority: String,
    /// Path and query as they go into the request line.
    pub target: String,
}

impl Url {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn parse(text: &str) -> Result<Url, &'static str> {
        let (is_https, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(_) => return Err("only http:// and https:// can be"),
            None => return Err("a URL begins with http:// or https://"),
        };
        // RFC 3986 §3.5: a fragment is never sent.
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err("a user in a URL is not sent: write -H 'Authorization: …'");
        }
        let (host, port) = host_and_port(authority)?;
        let port = match port {
            None | Some("") if is_https => 443,
            None | Some("") => 80,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|&port| port > 0 && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .ok_or("its port is none between 1 and 65535")?,
        };
        if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err("it has a space or a control character; write %20");
        }
        let mut target = if path.starts_with('/') { String::new() } else { "/".to_owned() };
        for byte in path.bytes() {
            match byte {
                0x80.. => target.push_str(&format!("%{byte:02X}")),
                _ => target.push(char::from(byte)),
            }
        }
        Ok(Url { is_https, host: host.to_owned(), port, authority: authority.to_owned(), target })
    }
}

/// Writes a byte as a URL has it: what no URL may have in it in percent.
pub(crate) fn push_byte(out: &mut String, byte: u8) {
    match byte {
        b'!'..=b'~' if !b"\"#<>\\^`{|}".contains(&byte) => out.push(char::from(byte)),
        _ => out.push_str(&format!("%{byte:02X}")),
    }
}

fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("its address lacks the closing bracket")?;
        host.parse::<std::net::Ipv6Addr>().map_err(|_| "what stands in brackets is no IPv6 address")?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err("behind the bracket only a port can stand"),
        };
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    match host {
        "" => Err("it names no host"),
        _ if !host.bytes().all(is_name) => Err("its host has characters that no name has"),
        _ => Ok((host, port)),
    }
}
