//! What a redirect asks for: the request that follows one, as curl's `--location` makes it.
//!
//! 301, 302 and 303 make a GET of what is none (303 leaves HEAD as it is); 307 and 308 change nothing but the target
//! (RFC 9110 §15.4). Never leaves the server: another one would get the fields that were meant for this one, and has no
//! connections. Next: `drive::worker`, which sends it.

use super::Url;
use crate::http2_request::HEAD;
use crate::plan::{PlanError, Target};
use millstream_wire::h1::encode;
use millstream_wire::h1::head::{Progress, RequestHead};
use millstream_wire::reference::Reference;
use millstream_wire::{FieldId, Version};

/// Whether a status is a redirect that can be followed.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The target that a redirect of `from` leads to; `location` is its field's value. Errors: it leads to another server, or to
/// what is no URL.
pub fn redirected(from: &Target, status: u16, location: &str) -> Result<Target, PlanError> {
    let bad = || PlanError(format!("it redirects to \"{location}\", which is not a valid URL"));
    let base = Reference::read(from.url.as_bytes()).ok_or_else(bad)?;
    let to = Reference::read(location.as_bytes()).ok_or_else(bad)?.resolved(&base);
    let mut url = [&to.scheme[..], b"://", &to.authority, &to.path].concat();
    if let Some(query) = &to.query {
        url.extend([b"?", &query[..]].concat());
    }
    let url = String::from_utf8(url).map_err(|_| bad())?;
    let target = Url::parse(&url).map_err(|_| bad())?.target;
    if !to.is_same_origin(&base) {
        return Err(PlanError(format!("it redirects to {url}, another server: load that URL instead")));
    }
    let request = request(from, status, &target).ok_or_else(bad)?;
    Ok(Target { url, request: request.into(), ..from.clone() })
}

/// The request with another target and, where the redirect says so, as a GET without a body.
fn request(from: &Target, status: u16, target: &str) -> Option<Vec<u8>> {
    let (bytes, mut head) = (&from.request[..], RequestHead::default());
    head.parse(bytes, &HEAD).ok().filter(|progress| *progress == Progress::Complete)?;
    let method = head.method_text.of(bytes);
    let becomes_get = match status {
        301 | 302 => method == b"POST",
        303 => method != b"HEAD",
        _ => false,
    };
    let (method, body) = if becomes_get { (&b"GET"[..], &[][..]) } else { (method, &bytes[head.length..]) };
    let mut out = Vec::new();
    encode::request_line(&mut out, method, target.as_bytes(), Version::Http11);
    let is_of_a_body = |id| matches!(id, FieldId::ContentLength | FieldId::ContentType);
    for (_, name, value) in head.view(bytes).iter().filter(|(id, ..)| !(becomes_get && is_of_a_body(*id))) {
        encode::field(&mut out, name, value);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Ask, Permission, resolve};

    fn from(method: &str, body: &str) -> Target {
        let ask = Ask {
            url: "http://127.0.0.1:81/a/b/c?d".into(),
            method: method.into(),
            body: body.into(),
            fields: vec![("Content-Type".into(), "text/plain".into()), ("X-A".into(), "1".into())],
            keep_alive: true,
            ..Ask::default()
        };
        resolve(&ask, Permission::default()).expect("an address of this machine")
    }

    #[test]
    fn a_location_is_taken_relative_to_the_url() {
        for (location, url) in [
            ("/x", "http://127.0.0.1:81/x"),
            ("x?y", "http://127.0.0.1:81/a/b/x?y"),
            ("../x", "http://127.0.0.1:81/a/x"),
            ("../../../x/.", "http://127.0.0.1:81/x/"),
            ("?z", "http://127.0.0.1:81/a/b/c?z"),
            ("//127.0.0.1:81/x", "http://127.0.0.1:81/x"),
            ("http://127.0.0.1:81", "http://127.0.0.1:81/"),
        ] {
            assert_eq!(
                redirected(&from("GET", ""), 302, location).map(|to| to.url),
                Ok(url.to_owned()),
                "{location}"
            );
        }
        for (location, words) in [
            ("https://127.0.0.1:81/x", "another server"),
            ("http://127.0.0.1/x", "another server"),
            ("//other.example/x", "another server"),
            ("/x y", "not a valid URL"),
            ("http://", "not a valid URL"),
        ] {
            let said = redirected(&from("GET", ""), 302, location).expect_err(location).to_string();
            assert!(said.contains(words), "{location}: {said}");
        }
    }

    #[test]
    fn a_post_becomes_a_get_where_curl_makes_one_of_it() {
        let sent = |method, status| {
            let to =
                redirected(&from(method, "hello"), status, "/x").unwrap_or_else(|error| panic!("{error}"));
            String::from_utf8(to.request.to_vec()).expect("ASCII")
        };
        let get = "GET /x HTTP/1.1\r\nHost: 127.0.0.1:81\r\nX-A: 1\r\n\r\n";
        for status in [301, 302, 303] {
            assert_eq!(sent("POST", status), get);
        }
        let post = "POST /x HTTP/1.1\r\nHost: 127.0.0.1:81\r\nContent-Type: text/plain\r\nX-A: 1\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!((sent("POST", 307), sent("POST", 308)), (post.to_owned(), post.to_owned()));
        assert!(sent("PUT", 301).starts_with("PUT /x ") && sent("PUT", 303).starts_with("GET /x "));
        assert!(sent("HEAD", 303).starts_with("HEAD /x "));
    }
}
