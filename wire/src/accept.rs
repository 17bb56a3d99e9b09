//! `Accept` (RFC 9110 §12.5.1), as far as it chooses between a page for people and one for programs.

/// Whether a client prefers JSON to HTML: it names JSON, and HTML not at all or with less weight. A range
/// such as `*/*` names neither.
pub fn prefers_json(accept: &[u8]) -> bool {
    let (mut json, mut html) = (0, 0);
    for one in accept.split(|&byte| byte == b',') {
        let mut parts = one.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(weight).unwrap_or(1000);
        if kind == b"application/json" || kind.starts_with(b"application/") && kind.ends_with(b"+json") {
            json = json.max(weight);
        } else if matches!(&*kind, b"text/html" | b"application/xhtml+xml" | b"text/*") {
            html = html.max(weight);
        }
    }
    json > html
}

/// `q=0.5` in thousandths; `None` if it cannot be read.
fn weight(part: &[u8]) -> Option<u32> {
    let value = part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q="))?;
    let value: f32 = std::str::from_utf8(value).ok()?.parse().unwrap_or(0.0);
    Some((value.clamp(0.0, 1.0) * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_preferred_if_it_is_named_and_html_is_not_wanted_as_much() {
        for (accept, expected) in [
            ("application/json", true),
            ("application/problem+json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json, text/plain, */*", true),
            ("application/vnd.api+json;q=0.1", true),
            ("text/html;q=0.5, application/json", true),
            ("text/html, application/json;q=0.9", false),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false),
            ("application/json, text/html", false),
            ("*/*", false),
            ("", false),
            ("application/json;q=0", false),
            ("application/json;q=nan", false),
            ("text/json", false),
        ] {
            assert_eq!(prefers_json(accept.as_bytes()), expected, "{accept}");
        }
    }
}
