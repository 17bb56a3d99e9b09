//! What stands in `examples/` is copied, so it is safe to copy: nobody gets what was made for another, and what is for
//! everybody is still cached.
//!
//! `flask_example` starts the Flask API itself; here an API stands behind each file whose personal page says nothing of caching.

use std::fs;

use millstream_tests::origin::{Origin, Request, answer};
use millstream_tests::server::Server;
use millstream_tests::{ports, workspace};

const USERS: &[(&str, &str, &str)] = &[
    ("Cookie", "session=alice", "session=bob"),
    ("Cookie", "theme=dark; sid=alice", "theme=dark; sid=bob"),
    ("Authorization", "Bearer alice", "Bearer bob"),
    ("Authorization", "Basic YWxpY2U6eA==", "Basic Ym9iOng="),
    ("X-Api-Key", "alice", "bob"),
    ("X-Auth-Token", "alice", "bob"),
    ("Private-Token", "alice", "bob"),
    ("X-Shop-Session", "alice", "bob"),
    // No credential, and yet it says for whom the answer is.
    ("X-Tenant", "alice", "bob"),
];

/// Personal pages name the client; all others are the same for everybody. Neither has caching fields, except
/// one that is public.
fn api(request: &Request) -> Vec<millstream_tests::origin::Step> {
    let who = USERS.iter().find_map(|(field, ..)| request.field(field)).unwrap_or("nobody");
    let body = if request.target().starts_with("/me") { format!("hello {who}") } else { "hello".to_owned() };
    let lifetime = if request.target() == "/open" { "public, max-age=60" } else { "" };
    let mut fields = vec![("Content-Type", "text/plain"), ("Cache-Control", lifetime)];
    fields.retain(|(_, value)| !value.is_empty());
    answer(200, &fields, body.as_bytes())
}

fn start(folder: &str, upstream: &str) -> (Origin, Server) {
    let origin = Origin::start(api);
    let file = workspace().join("examples").join(folder).join("millstream.conf");
    let text = fs::read_to_string(file).expect("the example is there");
    assert!(text.contains(upstream), "{folder} has another upstream now");
    let text = text
        .replace(upstream, &origin.address())
        .replace("127.0.0.1:8080", "127.0.0.1:@PORT@")
        .replace("127.0.0.1:8081", &format!("127.0.0.1:{}", ports::free()))
        .replace("pid millstream.pid;", "")
        .replacen("events {", "pid @DIR@/nginx.pid;\nevents {", 1);
    let server = Server::start(&text, &[]);
    (origin, server)
}

fn nobody_gets_what_is_anothers(folder: &str, upstream: &str) {
    skip_on_nginx!();
    let (_origin, server) = start(folder, upstream);
    assert!(!server.prefix().read("output").contains("[warn]"), "{}", server.prefix().read("output"));
    for (number, (field, alice, bob)) in USERS.iter().enumerate() {
        // Each order on a page of its own: who comes first is who would be heard by the others.
        let orders =
            [[Some(alice), Some(bob), None], [None, Some(alice), Some(bob)], [Some(bob), None, Some(alice)]];
        for (order, users) in orders.iter().enumerate() {
            let path = format!("/me/{number}/{order}");
            for user in users.iter().chain(users) {
                let fields: Vec<_> = user.iter().map(|value| (*field, **value)).collect();
                let given = server.get_with(&path, &fields);
                let wanted = format!("hello {}", user.unwrap_or(&"nobody"));
                assert_eq!(given.text(), wanted, "{folder} {path} {field} {users:?}");
            }
        }
    }
    let open =
        |cookie| server.get_with("/open", &[("Cookie", cookie)]).field("x-cache-status").map(str::to_owned);
    open("a=1");
    assert_eq!(open("b=2"), Some("HIT".to_owned()), "{folder}: it says that it is public");
    let status = || server.get("/public").field("x-cache-status").unwrap_or_default().to_owned();
    assert_eq!((status(), status()), ("MISS".to_owned(), "HIT".to_owned()), "{folder}");
}

#[test]
fn behind_the_flask_example_nobody_gets_what_was_made_for_another() {
    nobody_gets_what_is_anothers("flask", "unix:api.sock");
}

#[test]
fn behind_the_purging_example_nobody_gets_what_was_made_for_another() {
    nobody_gets_what_is_anothers("purging", "127.0.0.1:8000");
}
