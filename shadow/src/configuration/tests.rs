//! What is written for a report: that it loads, which location a path gets, and the schema.

use super::*;
use crate::report::{KeyValues, Needs, SCHEMA, Totals, schema};
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::load_text;
use serde_json::Value;
use std::path::Path;

fn word(text: &str) -> Segment {
    Segment::Word(text.as_bytes().into())
}

fn route(segments: Vec<Segment>, keep_seconds: Option<u32>) -> RouteReport {
    RouteReport {
        route: segments.iter().map(|segment| format!("/{}", segment.label())).collect(),
        location: 0,
        requests: 41_203,
        clients: 12_004,
        api_seconds: 2_040.0,
        keep_seconds,
        reason: if keep_seconds.is_some() {
            "0 of 38730 would-be hits wrong"
        } else {
            "responses differ by cookie session"
        }
        .to_owned(),
        note: None,
        varies_by: Vec::new(),
        ignores: Vec::new(),
        bypasses: Vec::new(),
        shares: Vec::new(),
        served_only: Vec::new(),
        usual: Vec::new(),
        key_values: None,
        noise: Vec::new(),
        changed_by: Vec::new(),
        would_be_hits: if keep_seconds.is_some() { 38_730 } else { 0 },
        stale: 0,
        stale_age_seconds: None,
        leaks: 0,
        hit_ratio: if keep_seconds.is_some() { [0.93, 0.95] } else { [0.0, 0.0] },
        saved_seconds: 1_900.0,
        needs: None,
        is_explicit: false,
        has_explicit: false,
        segments,
        words: Vec::new(),
        selected: Vec::new(),
        shared: Vec::new(),
        unstored: Vec::new(),
        bypassed: Vec::new(),
        ignored: Vec::new(),
    }
}

fn report() -> Report {
    let mut items = route(vec![word("api"), word("items"), Segment::Any(Fold::Number)], Some(60));
    items.varies_by = vec!["header accept-language".to_owned()];
    items.selected =
        vec![(Sort::Field, "accept-language".to_owned()), (Sort::Field, "user-agent".to_owned())];
    items.shared = vec![
        (Sort::Cookie, "_ga".to_owned()),
        (Sort::Cookie, "ab.c".to_owned()),
        (Sort::Field, "x-key".to_owned()),
    ];
    items.shares = vec!["cookie _ga".to_owned(), "cookie ab.c".to_owned()];
    items.unstored = vec![(Sort::Cookie, "ab.c".to_owned()), (Sort::Field, "x-key".to_owned())];
    items.served_only = vec!["cookie ab.c".to_owned(), "header x-key".to_owned()];
    items.bypassed = vec![
        (Sort::Field, "authorization".to_owned()),
        (Sort::Certificate, String::new()),
        (Sort::Argument, "api_key".to_owned()),
    ];
    let usual = |field: &str, values: Option<&[&str]>| UsualField {
        field: field.to_owned(),
        values: values.map(|values| values.iter().map(|value| (*value).to_owned()).collect()),
    };
    items.usual = vec![
        usual("accept", Some(&["*/*", "application/json;q=0.9, text/html", ""])),
        usual("accept-language", Some(&["de", "DE"])),
        usual("origin", Some(&[""])),
        usual("x-requested-with", Some(&["", "XMLHttpRequest"])),
        usual("x-ticks", None),
    ];
    let key = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    items.key_values = Some(KeyValues {
        names: vec!["header accept-language".to_owned(), "header user-agent".to_owned()],
        values: vec![key(&["de", "dark"]), key(&["de", ""]), key(&["DE", ""]), key(&["e|n", "x"])],
    });
    items.bypasses = vec!["header authorization".to_owned(), "certificate".to_owned()];
    let mut search = route(vec![word("search")], Some(10));
    search.ignored = vec!["utm_source".to_owned(), "gclid".to_owned()];
    search.has_explicit = true;
    search.note = Some("all clients were in 192.0.2.0/24".to_owned());
    let mut users = route(vec![word("users"), Segment::Any(Fold::Word)], Some(30));
    users.words = vec!["ann".to_owned(), "b.ob".to_owned()];
    let mut forms = route(vec![word("users"), Segment::Any(Fold::Word), word("form")], Some(5));
    forms.words = vec!["ann".to_owned()];
    let mut pairs = route(
        vec![word("p"), Segment::Any(Fold::Word), Segment::Any(Fold::Number), Segment::Any(Fold::Word)],
        Some(5),
    );
    pairs.words = vec!["ann/one".to_owned(), "bob/two".to_owned()];
    let mut prices = route(vec![word("prices")], None);
    prices.needs = Some(Needs { requests: 212, clients: 3 });
    Report {
        schema: SCHEMA,
        millstream: "0.1.0".to_owned(),
        duration_seconds: 3_600.0,
        stale_budget: 0.001,
        totals: Totals { requests: 60_000, routes: 8, cached_routes: 5, ..Totals::default() },
        locations: Vec::new(),
        routes: vec![
            items,
            search,
            prices,
            users,
            pairs,
            route(vec![word("users"), word("me")], None),
            route(vec![word("users"), Segment::Any(Fold::Number)], None),
            route(vec![word("users"), word("new"), word("form")], None),
            forms,
            route(vec![word("c"), Segment::Any(Fold::Hash)], Some(5)),
        ],
    }
}

fn text() -> String {
    report().configuration(
        0,
        Front {
            http: "events {}\nhttp {\n",
            server: "    server {\n        listen 127.0.0.1:8080;\n",
            pass: "            proxy_pass http://127.0.0.1:8000;\n",
        },
    )
}

#[test]
fn the_configuration_loads_without_an_error() {
    let loaded = load_text("shadow", &text(), Path::new("/"));
    let errors = loaded.diagnostics.sorted().iter().filter(|of| of.severity == Severity::Error).count();
    assert!(loaded.configuration.is_some() && errors == 0, "{}", text());
}

#[test]
fn each_line_of_a_cache_has_its_evidence() {
    let text = text();
    for line in text.lines().filter(|line| line.contains("proxy_cache") && !line.contains("_path")) {
        assert!(line.contains(";  # "), "{line}");
    }
    assert!(text.contains("proxy_cache_valid 200 60s;  # 0 of 38,730 would-be hits wrong, 12,004 clients"));
    assert!(text.contains(
        "proxy_cache_key \"$scheme$http_host$request_uri $http_accept_language $http_user_agent\";"
    ));
    assert!(text.contains("\n        # all clients were in 192.0.2.0/24\n"));
    assert!(text.contains("proxy_cache_ignore_args utm_source gclid;"));
    let fields = "$has_field_5318c21a $rare_accept_46dba6b8 $rare_accept_language_a3594906 $rare_origin $rare_x_requested_with_926d627f $rare_key_7b123f2f";
    let flags = format!(
        "$has_cookie_not__5fga_not_ab_2ec $has_credential_not_x_2dkey $has_certificate $has_argument_api_key {fields}"
    );
    assert!(text.contains(&format!("proxy_cache_bypass {flags};")), "{text}");
    // A request with one client's own credential is served, but what it gets is not stored.
    let stored = flags.replace("_not_ab_2ec", "").replace("_not_x_2dkey", "");
    assert!(text.contains(&format!("proxy_no_cache {stored};")), "{text}");
    assert!(text.contains("map $http_cookie $has_cookie_not__5fga { \"\" \"\"; \"~^(?: *(?:_ga)="), "{text}");
    let fields = "map $credential_fields $has_credential_not_x_2dkey { \"\" \"\"; \"~^(?:(?:x-key)(?:,|$))+$\" \"\"; default 1; }";
    assert!(text.contains(fields), "{text}");
    assert!(text.contains("map $arg_api_key $has_argument_api_key { \"\" \"\"; default 1; }"));
    assert!(text.contains("proxy_cache_credentials public;"));
    for map in [
        "map $unlisted_fields $has_field { \"\" \"\"; default 1; }",
        "map $unlisted_fields $has_field_5318c21a { \"\" \"\"; \"~^(?:(?:x-requested-with|x-ticks)(?:,|$))+$\" \"\"; default 1; }",
        "map $http_accept $rare_accept_46dba6b8 { \"\" \"\"; \"*/*\" \"\"; \"application/json;q=0.9, text/html\" \"\"; default 1; }",
        "map $http_accept_language $rare_accept_language_a3594906 { \"de\" \"\"; default 1; }",
        "map $http_origin $rare_origin { \"\" \"\"; default 1; }",
        "map \"$http_accept_language|$http_user_agent\" $rare_key_7b123f2f { \"de|\" \"\"; \"de|dark\" \"\"; default 1; }",
    ] {
        assert!(text.contains(map), "{map}: {text}");
    }
}

#[test]
fn a_request_with_any_cookie_that_is_not_proved_is_passed_on() {
    let text = text();
    let map = text.lines().find(|line| line.contains("map $http_cookie $has_cookie_not__5fga_not_ab_2ec "));
    let expression = map.and_then(|map| map.split('"').find(|part| part.starts_with('~')));
    let expression = expression.expect("it has one").trim_start_matches('~');
    for (cookies, is_shared) in [
        ("_ga=1", true),
        ("_ga=GA1.2; ab.c=x=y", true),
        ("ab.c=1;_ga=2;", true),
        ("ab-c=1", false),
        ("_ga=1; sid=forged", false),
        ("sid=forged; _ga=1", false),
        ("connect.sid=s%3Aforged", false),
        ("__Host-sid=forged", false),
        ("_ga", false),
        ("_ga=1; sid", false),
        ("x_ga=1", false),
        ("_GA=1", false),
    ] {
        assert_eq!(matches(expression, cookies), is_shared, "{cookies}");
    }
}

/// The lines of the location that nginx would choose: exact, else the first expression.
fn chosen(path: &str) -> String {
    let text = text();
    let blocks: Vec<&str> = text.split("        location ").skip(1).collect();
    let exact = blocks.iter().find(|block| block.starts_with(&format!("= \"{path}\" ")));
    let matching = || {
        blocks.iter().find(|block| {
            block
                .strip_prefix("~ \"")
                .and_then(|rest| rest.split_once("\" {"))
                .is_some_and(|(expression, _)| matches(expression, path))
        })
    };
    exact.or_else(matching).map_or_else(String::new, |block| (*block).to_owned())
}

fn matches(expression: &str, path: &str) -> bool {
    fancy_regex::Regex::new(expression).expect("it is an expression").is_match(path).expect("it ends")
}

#[test]
fn no_route_that_is_not_cached_falls_into_one_that_is() {
    for (path, is_cached) in [
        ("/api/items/17", true),
        ("/api/items/x17", false),
        ("/api/items/17/", false),
        ("/search", true),
        ("/prices", false),
        ("/users/ann", true),
        ("/users/b.ob", true),
        ("/users/b-ob", false),
        ("/users/carl", false),
        ("/users/admin", false),
        ("/p/ann/7/one", true),
        ("/p/ann/7/two", false),
        ("/p/ann/x/one", false),
        ("/users/me", false),
        ("/users/42", false),
        ("/users/ann/form", true),
        ("/users/new/form", false),
        ("/users/me/form", false),
        ("/c/9f86d081", true),
        ("/c/a1B2c3D4e5F6", true),
        ("/c/12345678", false),
        ("/c/settings", false),
        ("/c/settings2024", false),
        ("/other", false),
    ] {
        assert_eq!(chosen(path).contains("proxy_cache shadow"), is_cached, "{path}: {}", chosen(path));
    }
}

#[test]
fn the_published_schema_is_the_present_one_and_fits_the_report() {
    let published = include_str!("../../report.schema.json");
    assert!(published == schema(), "write this to shadow/report.schema.json:\n{}", schema());
    let schema: Value = serde_json::from_str(published).expect("the schema is JSON");
    let document: Value = serde_json::from_str(&report().json()).expect("the report is JSON");
    assert_eq!(breaches(&schema, &schema, &document, "$"), Vec::<String>::new());
    let mut broken = document.clone();
    broken["routes"][0]["requests"] = Value::from("many");
    assert_eq!(breaches(&schema, &schema, &broken, "$").len(), 1);
    broken["routes"][1]["leaks"].take();
    assert_eq!(breaches(&schema, &schema, &broken, "$").len(), 2);
}

/// As much of JSON Schema as the published one uses.
fn breaches(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = &root["$defs"][name.trim_start_matches("#/$defs/")];
        return breaches(root, definition, value, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|schema| breaches(root, schema, value, at).is_empty());
        return if fits { Vec::new() } else { vec![format!("{at}: fits none")] };
    }
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind)) {
        return vec![format!("{at}: not {kinds:?}")];
    }
    let mut found = Vec::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            found.push(format!("{at}: no {name}"));
        }
    }
    for (name, of) in value.as_object().into_iter().flatten() {
        found.extend(breaches(root, &schema["properties"][name], of, &format!("{at}.{name}")));
    }
    for (number, of) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(breaches(root, &schema["items"], of, &format!("{at}[{number}]")));
    }
    found
}

#[test]
fn a_cookie_of_the_key_that_comes_twice_keeps_a_request_from_the_cache() {
    let mut route = route(vec![Segment::Word(b"a".as_slice().into())], Some(60));
    route.selected = vec![(Sort::Cookie, "lang".to_owned())];
    let expression = no_other_cookies(&["_ga", "lang"], &route);
    let expression = fancy_regex::Regex::new(expression.trim_start_matches('~')).expect("an expression");
    for (cookies, is_known) in [
        ("lang=de", true),
        ("_ga=1; lang=de", true),
        ("lang=de; lang=fr", false),
        ("lang=de;lang=fr", false),
        ("_ga=lang=de; lang=fr", true),
        ("_ga=1; _ga=2; lang=fr", true),
    ] {
        assert_eq!(expression.is_match(cookies).expect("it ends"), is_known, "{cookies}");
    }
}
