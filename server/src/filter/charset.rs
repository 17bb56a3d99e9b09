//! `charset`: the Content-Type of an answer with the charset that the location says.
//!
//! Before: `head`, which asks for each Content-Type that it writes.

use millstream_conf::model::Charset;

/// The value with its charset; `None` where it stays as it is.
pub fn named(settings: &Charset, status: u16, value: &[u8]) -> Option<Vec<u8>> {
    let name = settings.name.as_deref()?;
    if matches!(status, 301 | 302) || value.is_empty() {
        return None;
    }
    let mut parts = value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let media = parts.next().unwrap_or_default();
    let is_charset =
        |part: &&[u8]| part.get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"charset="));
    let others: Vec<&[u8]> = parts.clone().filter(|part| !is_charset(part)).collect();
    let wanted = if parts.any(|part| is_charset(&part)) {
        settings.overrides
    } else {
        let types = settings.types.as_deref();
        types.is_none_or(|types| types.iter().any(|known| media.eq_ignore_ascii_case(known.as_bytes())))
    };
    if !wanted {
        return None;
    }
    let mut made = media.to_vec();
    for other in others {
        made.extend_from_slice(b"; ");
        made.extend_from_slice(other);
    }
    made.extend_from_slice(b"; charset=");
    made.extend_from_slice(name.as_bytes());
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charset_is_said_of_the_types_that_it_holds_for() {
        let types: std::sync::Arc<[Box<str>]> = [Box::from("text/html"), Box::from("text/css")].into();
        for (value, status, overrides, expected) in [
            ("text/html", 200, false, Some("text/html; charset=utf-8")),
            ("TEXT/CSS; a=b", 404, false, Some("TEXT/CSS; a=b; charset=utf-8")),
            ("text/html; charset=koi8-r", 200, false, None),
            ("text/html; Charset=koi8-r", 200, true, Some("text/html; charset=utf-8")),
            ("image/png", 200, true, None),
            ("text/html", 301, false, None),
            ("text/html", 302, true, None),
            ("", 200, true, None),
        ] {
            let settings = Charset { name: Some("utf-8".into()), overrides, types: Some(types.clone()) };
            let made = named(&settings, status, value.as_bytes());
            assert_eq!(made.as_deref(), expected.map(str::as_bytes), "{value}");
            assert_eq!(named(&Charset { name: None, ..settings }, status, value.as_bytes()), None);
        }
    }
}
