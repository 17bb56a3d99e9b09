//! What `return` answers, form by form, as nginx answers it.

use millstream_tests::server::Server;

const FORMS: &str = site! {
    server "location = /301 { return 301; }
        location = /308 { return 308 \"\"; }
        location = /200 { return 200; }
        location = /300 { return 300; }
        location = /404 { return 404 \"\"; }
        location = /500 { return 500 text; }"
};

#[test]
fn a_return_without_a_text_is_answered_as_in_nginx() {
    let server = Server::start(FORMS, &[]);
    let mut client = server.client();
    for (status, location, media, body) in [
        (301, Some(""), "text/html", "<html>"),
        (308, Some(""), "text/html", "<html>"),
        (200, None, "text/plain", ""),
        (300, None, "text/plain", ""),
        (404, None, "text/html", "<html>"),
        (500, None, "text/plain", "text"),
    ] {
        let answer = client.request("GET", &format!("/{status}"), &[]).expect("an answer");
        assert_eq!(answer.status, status);
        assert_eq!(answer.field("location"), location, "{status}");
        assert_eq!(answer.field("content-type"), Some(media), "{status}");
        assert!(answer.text().starts_with(body) && answer.text().is_empty() == body.is_empty(), "{status}");
    }
}
