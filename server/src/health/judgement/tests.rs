//! All forms of `match`, on one answer.

use super::judge;
use crate::exchange::Probed;
use crate::fixture;
use crate::health::question;
use millstream_conf::model::{HealthQuestion, LocationId, ServerId};
use millstream_wire::Headers;
use std::rc::Rc;

fn told(tests: &str) -> Result<(), String> {
    let conf = format!(
        "map $uri $path {{ default $uri; }} map $uri $zero {{ default 0; }} upstream api {{ server 127.0.0.1:1; }}
        match wanted {{ {tests} }}
        server {{ location / {{ proxy_pass http://api; health_check uri=/well match=wanted; }} }}"
    );
    let worker = fixture::worker(&conf);
    let generation = worker.generation();
    let http = generation.http();
    let index = http.locations.iter().position(|location| location.settings.health_check.is_some());
    let location = LocationId(index.expect("the location checks") as u32);
    let mut request =
        question::make(&worker, &generation, (ServerId(0), location), "/well").expect("a request");
    let mut fields = Headers::new();
    for (name, value) in [("X", "one"), ("X", "two"), ("Content-Type", "text/html")] {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    let fields = Rc::new(fields);
    request.tries.headers = Some(fields.clone());
    let answer = Probed { status: 404, fields, body: b"Welcome to\nthe API".to_vec() };
    let check = &http.location(location).settings.health_check.as_ref().expect("it is the one").check;
    let HealthQuestion::Get { matches, .. } = &check.question else { panic!("it asks for a path") };
    judge(matches.as_deref(), &answer, &request)
}

/// Hits its limit on that body.
const UNDECIDED: [&str; 2] =
    [r#"body ~ "(?=W)([\w\s]|[\w\s]|[\w\s])*\1P";"#, r#"body !~ "(?=W)([\w\s]|[\w\s]|[\w\s])*\1P";"#];

#[test]
fn every_form_of_match_is_what_it_says() {
    let right = "";
    for (tests, wrong) in [
        ("status 404;", right),
        ("status 200-299 400-410;", right),
        ("status 200-399;", "the status is 404"),
        ("status ! 500;", right),
        ("status ! 400-499;", "the status is 404"),
        ("header x;", right),
        ("header Y;", "header \"Y\" is missing"),
        ("header ! Y;", right),
        ("header ! X;", "header \"X\" is \"one\""),
        ("header Content-Type = text/html;", right),
        ("header X = two;", right),
        ("header X = three;", "header \"X\" is \"one\""),
        ("header X != three;", right),
        ("header X != two;", "header \"X\" is \"one\""),
        ("header X ~ ^t;", right),
        ("header X ~ ^z;", "header \"X\" is \"one\""),
        ("header X !~ ^z;", right),
        ("header Content-Type !~ html;", "header \"Content-Type\" is \"text/html\""),
        ("body ~ \"Welcome to\\sthe\";", right),
        ("body ~ Good;", "the body does not match \"Good\""),
        ("body !~ Good;", right),
        ("body !~ API;", "the body matches \"API\""),
        (UNDECIDED[0], "\"(?=W)([\\w\\s]|[\\w\\s]|[\\w\\s])*\\1P\" reached its backtracking limit"),
        (UNDECIDED[1], "\"(?=W)([\\w\\s]|[\\w\\s]|[\\w\\s])*\\1P\" reached its backtracking limit"),
        ("require $path $upstream_http_x;", right),
        ("require $path $zero;", "\"$zero\" is empty or 0"),
        ("require $http_cookie;", "\"$http_cookie\" is empty or 0"),
        ("status 404; header X; body ~ API;", right),
        ("status 404; header X; body ~ Api;", "the body does not match \"Api\""),
    ] {
        assert_eq!(told(tests).err().unwrap_or_default(), wrong, "{tests}");
    }
}
