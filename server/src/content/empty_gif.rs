//! `empty_gif`: a transparent picture of one pixel, last changed when nginx's was.

use super::fixed;
use crate::client::Client;
use crate::outcome::Outcome;
use crate::representation::chosen::{self, Chosen, Offer};
use crate::request::Request;
use millstream_wire::conditional::Validators;
use millstream_wire::{FieldId, Headers, Method, date};

pub const EXPLANATION: &str = "the location serves a one-pixel GIF (empty_gif)";

/// GIF89a: a screen of one pixel with a table of two colours, the second transparent, and a pixel of that
/// colour.
const PICTURE: &[u8] = b"GIF89a\x01\0\x01\0\x80\x01\0\
    \0\0\0\xff\xff\xff\
    !\xf9\x04\x01\0\0\x01\0\
    ,\0\0\0\0\x01\0\x01\0\0\
    \x02\x02L\x01\0\
    ;";
/// 28 September 1970, 06:00, as nginx's.
const MODIFIED: i64 = 23_349_600;

pub async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    if !matches!(request.method, Method::Get | Method::Head) {
        return Outcome::Status(405);
    }
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"image/gif");
    headers.push(b"Last-Modified", &date::format_http(MODIFIED));
    let validators = Validators { etag: None, last_modified: Some(MODIFIED) };
    let length = Some(PICTURE.len() as u64);
    let offer = Offer { status: 200, fields: headers.view(), validators, length, is_stream: false };
    match chosen::choose(request, &offer) {
        Chosen::NotModified => {
            headers.remove(FieldId::ContentType);
            fixed::whole(request, client, 304, &headers, &[]).await
        }
        Chosen::PreconditionFailed => Outcome::Status(412),
        _ => fixed::whole(request, client, 200, &headers, PICTURE).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_as_long_as_nginx_s() {
        assert_eq!((PICTURE.len(), PICTURE.first(), PICTURE.last()), (43, Some(&b'G'), Some(&b';')));
    }
}
