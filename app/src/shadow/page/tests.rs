//! What a report looks like.

use super::*;
use millstream_shadow::{Ending, Key, Limits, Request, Shadow};
use std::net::{IpAddr, Ipv4Addr};

/// 40 clients ask for the same items, and for a form with a token.
fn report() -> Report {
    let mut shadow = Shadow::new(Key::from_seed(1), Limits { sampled_per_second: u32::MAX });
    for number in 0..6_000_u32 {
        let now = 1_800_000_000_000 + u64::from(number) * 20;
        let token = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let (path, kind, body) = match number % 4 {
            0 => ("/form".to_owned(), "text/html", format!("<input name=\"csrf\" value=\"{token:032x}\">")),
            _ => (format!("/items/{}", 100 + number % 20), "application/json", "{\"item\":1}".to_owned()),
        };
        let request = Request {
            location: 0,
            method: b"GET",
            is_tls: false,
            host: b"a",
            path: path.as_bytes(),
            query: None,
            client: IpAddr::V4(Ipv4Addr::new(10, 0, 0, ((number / 20 + number) % 40) as u8)),
            certificate: None,
        };
        if let Some(mut sampled) = shadow.sent(&request, std::iter::empty(), now) {
            let fields: [(&[u8], &[u8]); 1] = [(b"content-type", kind.as_bytes())];
            sampled.response(200, fields.into_iter(), now + 5);
            sampled.piece(body.as_bytes());
            shadow.ended(*sampled, Ending::Whole, now + 5);
        }
    }
    Report::of(&shadow, "0.1.0", 0.001)
}

#[test]
fn each_route_has_a_row_and_the_answer_comes_first() {
    let page =
        page(&report(), &["http://127.0.0.1:8000".to_owned()], vec!["millstream -c a.conf".to_owned()]);
    let text = page.text(200);
    assert!(text.starts_with("6,000 requests in 120 s: 1 of 2 routes can be cached"), "{text}");
    assert!(text.contains("millstream -c a.conf"), "{text}");
    let line =
        |route: &str| text.lines().find(|line| line.starts_with(route)).unwrap_or_else(|| panic!("{text}"));
    assert!(
        line("/items/{id}").contains("60 s") && line("/items/{id}").contains("would-be hits wrong"),
        "{text}"
    );
    assert!(line("/form").contains("never"), "{text}");
    let html = page.html();
    assert!(html.contains("/items/{id}") && !html.contains("Nothing was measured"), "{html}");
}

#[test]
fn without_a_request_the_report_says_so() {
    let shadow = Shadow::new(Key::from_seed(1), Limits::default());
    let page = page(&Report::of(&shadow, "0.1.0", 0.001), &["http://a".to_owned()], Vec::new());
    assert!(page.text(80).starts_with("No requests received."), "{}", page.text(80));
}
