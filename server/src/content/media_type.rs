//! The Content-Type of what is made here: that of a response with `X-Accel-Redirect` that led to it, else by the extension of the URI
//! (`types`), else `default_type`.

use crate::request::Request;
use millstream_wire::FieldId;

/// As nginx; an empty type set before does not count.
pub fn of(request: &Request) -> &[u8] {
    let handed_on =
        request.descent.accel_fields.as_ref().and_then(|fields| fields.view().get(FieldId::ContentType));
    if let Some(media) = handed_on.filter(|media| !media.is_empty()) {
        return media;
    }
    let settings = &request.location().settings;
    let known = extension(&request.route.uri)
        .and_then(|extension| std::str::from_utf8(extension).ok())
        .and_then(|extension| {
            let types = &settings.types.by_extension;
            types.get(extension).or_else(|| types.get(&extension.to_ascii_lowercase()))
        });
    known.unwrap_or(&settings.types.default).as_bytes()
}

fn extension(uri: &[u8]) -> Option<&[u8]> {
    let name = uri.rsplit(|&byte| byte == b'/').next()?;
    let dot = memchr::memrchr(b'.', name)?;
    Some(&name[dot + 1..]).filter(|extension| !extension.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_that_of_the_last_segment() {
        for (uri, expected) in [
            ("/a.png", Some("png")),
            ("/a.tar.gz", Some("gz")),
            ("/a.b/c", None),
            ("/a.", None),
            ("/", None),
            ("/a.b/c.D", Some("D")),
        ] {
            assert_eq!(extension(uri.as_bytes()), expected.map(str::as_bytes), "{uri}");
        }
    }
}
