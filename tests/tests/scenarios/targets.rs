//! Targets and what they are answered, as tables that hold for nginx as well.

use millstream_tests::server::Server;

/// `200 body`, or the status and the Location.
pub(crate) fn asked(server: &Server, target: &str) -> String {
    let answer = server.get(target);
    match (answer.status, answer.field("location")) {
        (200, _) => format!("200 {}", answer.text()),
        (status, Some(location)) => format!("{status} {location}"),
        (status, None) => status.to_string(),
    }
}

/// `@HERE@` in the expected text stands for the server's address.
#[track_caller]
pub(crate) fn check(server: &Server, cases: &[(&str, &str)]) {
    for (target, expected) in cases {
        let expected = expected.replace("@HERE@", &format!("http://localhost:{}", server.port()));
        assert_eq!(asked(server, target), expected, "{target}");
    }
}
