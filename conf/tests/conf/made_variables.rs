//! `map`, `geo` and `split_clients` as configurations write them: what they come to, and what is refused.

use millstream_conf::diagnostics::Severity;
use millstream_conf::model::{Geo, Making, Map};

use crate::fixture::{self, text};

fn read(directives: &str) -> millstream_conf::Loaded {
    text(&fixture::in_http(&format!("{directives} server {{ listen 8080; return 204; }}")))
}

fn findings(text: &str, severity: Severity) -> Vec<String> {
    let loaded = read(text);
    let found = loaded.diagnostics.sorted().into_iter();
    found.filter(|found| found.severity == severity).map(|found| found.message.clone()).collect()
}

fn making(text: &str) -> Making {
    let loaded = read(text);
    let found: Vec<_> = loaded.diagnostics.sorted().into_iter().map(|found| found.message.clone()).collect();
    let configuration = loaded.configuration.unwrap_or_else(|| panic!("{text}: {found:#?}"));
    configuration.http.made.into_iter().next().and_then(|made| made.making).expect("one variable")
}

fn map(lines: &str) -> Map {
    match making(&format!("map $uri $a {{ {lines} }}")) {
        Making::Map(map) => map,
        other => panic!("{other:?}"),
    }
}

fn geo(lines: &str) -> Geo {
    match making(&format!("geo $a {{ {lines} }}")) {
        Making::Geo(geo) => geo,
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_the_keys_of_a_map_the_exact_one_counts_then_the_longest_name() {
    let map = map(
        "hostnames; default none; example.com exact; *.example.com leading; *.a.example.com longer; \
                   .dot.example.com both; www.example.* trailing; www.* shorter; \\default escaped; \"\" empty; .x x;",
    );
    let find = |text: &str| map.keys.find(text.as_bytes()).map(|value| &*map.values[*value as usize].source);
    for (text, expected) in [
        ("example.com", Some("exact")),
        ("b.example.com", Some("leading")),
        (".example.com", Some("leading")),
        ("a.example.com", Some("leading")),
        ("b.a.example.com", Some("longer")),
        ("c.b.a.example.com", Some("longer")),
        ("dot.example.com", Some("both")),
        ("a.dot.example.com", Some("both")),
        ("www.example.org", Some("trailing")),
        ("www.example", Some("shorter")),
        ("www.a.b", Some("shorter")),
        ("www", None),
        ("default", Some("escaped")),
        ("", Some("empty")),
        ("example.org", None),
        ("xexample.com", None),
    ] {
        assert_eq!(find(text), expected, "{text}");
    }
    assert_eq!(map.default.map(|value| &*map.values[value as usize].source), Some("none"));
}

#[test]
fn the_same_words_are_one_value_and_keys_have_no_case() {
    let map = map("A 1; b 1; c 2; ~*^x 2; ~Y 3;");
    assert_eq!((map.values.len(), map.expressions.len()), (3, 2));
    assert_eq!(map.keys.find(b"a"), map.keys.find(b"b"));
    assert!(map.default.is_none());
}

#[test]
fn what_nginx_refuses_in_these_blocks_is_refused_in_its_words() {
    for (text, expected) in [
        ("map $uri a { }", "invalid variable name \"a\""),
        ("map $uri $host { }", "the duplicate \"host\" variable"),
        ("map $uri $a { default 1; default 2; }", "duplicate default map parameter"),
        ("map $uri $a { x 1; X 2; }", "conflicting parameter \"X\""),
        ("map $uri $a { hostnames; .x.y 1; *.x.y 2; }", "conflicting parameter \"*.x.y\""),
        ("map $uri $a { hostnames; x.y 1; .x.y 2; }", "conflicting parameter \".x.y\""),
        ("map $uri $a { hostnames; x.*.y 1; }", "invalid hostname or wildcard \"x.*.y\""),
        ("map $uri $a { hostnames; *.x.* 1; }", "invalid hostname or wildcard \"*.x.*\""),
        ("map $uri $a { x 1 2; }", "invalid number of the map parameters"),
        ("map $uri $a { x; }", "invalid number of the map parameters"),
        ("map $uri $a { x { y z; } }", "\"x\" cannot have a block here"),
        ("map $uri $a { x $no_such; }", "unknown \"no_such\" variable"),
        ("map $a $a { default 1; }", "cycle while evaluating variable \"a\""),
        ("geo $a { default 1 2; }", "invalid number of the geo parameters"),
        ("geo $a { 10.0.0.0/33 x; }", "invalid network \"10.0.0.0/33\""),
        ("geo $a { all x; }", "invalid network \"all\""),
        ("geo $a { ranges; 10.0.0.9-10.0.0.1 x; }", "invalid range \"10.0.0.9-10.0.0.1\""),
        ("geo $a { ranges; 0.0.0.0-255.255.255.255 x; }", "invalid range \"0.0.0.0-255.255.255.255\""),
        (
            "geo $a { ranges; 10.0.0.0-10.0.0.9 x; 10.0.0.5-10.0.0.12 y; }",
            "range \"10.0.0.5-10.0.0.12\" overlaps \"10.0.0.0-10.0.0.9\"",
        ),
        (
            "geo $a { 10.0.0.0/8 x; ranges; }",
            "the \"ranges\" directive must be the first directive inside \"geo\" block",
        ),
        ("geo $uri/x $a { }", "invalid variable name \"$uri/x\""),
        ("split_clients $uri $a { 60% a; 50% b; }", "percent total is greater than 100%"),
        ("split_clients $uri $a { * a; 1% b; }", "percent total is greater than 100%"),
        ("split_clients $uri $a { 0% a; }", "invalid percent value \"0%\""),
        ("split_clients $uri $a { 0.001% a; }", "invalid percent value \"0.001%\""),
    ] {
        assert_eq!(findings(text, Severity::Error), [expected], "{text}");
    }
}

#[test]
fn what_nginx_only_warns_of_is_a_warning() {
    for (text, expected) in [
        ("geo $a { default 1; default 2; }", "duplicate network \"default\", value: \"2\", old value: \"1\""),
        (
            "geo $a { 10.0.0.0/8 1; 10.0.0.0/8 2; }",
            "duplicate network \"10.0.0.0/8\", value: \"2\", old value: \"1\"",
        ),
        ("geo $a { 10.0.0.1/8 1; }", "low address bits of 10.0.0.1/8 are meaningless"),
        ("geo $a { delete 10.0.0.0/8; }", "no network \"10.0.0.0/8\" to delete"),
        ("geo $a { ranges; delete 10.0.0.0-10.0.0.1; }", "no address range \"10.0.0.0-10.0.0.1\" to delete"),
        ("map $uri $a { default 1; } geo $a { default 1; }", "the duplicate \"a\" variable"),
    ] {
        assert_eq!(findings(text, Severity::Warning), [expected], "{text}");
    }
}

#[test]
fn variables_may_name_each_other_whatever_their_order() {
    assert_eq!(
        findings(
            "map $b $a { default $c; } map $uri $b { default 1; } geo $c { default 2; }",
            Severity::Error
        ),
        [""; 0]
    );
    // Only one of its values leads back: a request may get another.
    assert_eq!(findings("map $uri $a { x $b; } map $uri $b { y $a; }", Severity::Error), [""; 0]);
    let cycle = findings("map $b $a { } map $a $b { } map $a $c { }", Severity::Error);
    assert_eq!(cycle.len(), 2, "{cycle:#?}");
}

#[test]
fn the_smallest_network_counts_and_a_deleted_one_does_not() {
    let geo = geo(
        "default d; 10.0.0.0/8 a; 10.1.0.0/16 b; 10.1.1.1 c; 10.2.0.0/16 a; 192.0.2.0/24 x; delete 192.0.2.0/24; \
                   255.255.255.255 none; 2001:db8::/32 six; 2001:db8::1 one; 128.0.0.0/1 upper;",
    );
    for (address, expected) in [
        ("0.0.0.0", "d"),
        ("9.255.255.255", "d"),
        ("10.0.0.0", "a"),
        ("10.1.0.0", "b"),
        ("10.1.1.0", "b"),
        ("10.1.1.1", "c"),
        ("10.1.1.2", "b"),
        ("10.1.255.255", "b"),
        ("10.2.0.0", "a"),
        ("10.255.255.255", "a"),
        ("11.0.0.0", "d"),
        ("192.0.2.1", "upper"),
        ("255.255.255.254", "upper"),
        ("::ffff:10.1.1.1", "c"),
        ("2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "d"),
        ("2001:db8::", "six"),
        ("2001:db8::1", "one"),
        ("2001:db8::2", "six"),
        ("2001:db9::", "d"),
        ("::", "d"),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "d"),
    ] {
        assert_eq!(geo.find(address.parse().ok()), expected, "{address}");
    }
    assert_eq!(geo.find(None), "none");
}

#[test]
fn ranges_lie_in_each_other_or_apart_and_are_cut_where_nginx_cuts_them() {
    let geo = geo(
        "ranges; default d; 10.0.0.0-10.2.255.255 a; 10.1.0.0-10.1.255.255 b; 10.2.0.0-10.2.0.9 c; \
                   10.2.255.250-10.2.255.255 e; 10.0.5.5-10.0.5.5 f; 10.3.0.0-10.3.0.1 g; delete 10.3.0.0-10.3.0.1; \
                   0.0.0.0-0.0.0.9 z;",
    );
    for (address, expected) in [
        ("0.0.0.0", "z"),
        ("0.0.0.10", "d"),
        ("9.255.255.255", "d"),
        ("10.0.0.0", "a"),
        ("10.0.5.4", "a"),
        ("10.0.5.5", "f"),
        ("10.0.5.6", "a"),
        ("10.1.0.0", "b"),
        ("10.1.255.255", "b"),
        ("10.2.0.0", "c"),
        ("10.2.0.10", "a"),
        ("10.2.255.249", "a"),
        ("10.2.255.250", "e"),
        ("10.3.0.0", "d"),
        ("255.255.255.255", "d"),
        ("::ffff:10.1.0.1", "b"),
        ("::1", "d"),
    ] {
        assert_eq!(geo.find(address.parse().ok()), expected, "{address}");
    }
}

/// Against the plain way: of all networks that contain an address, the one with the longest mask.
#[test]
fn a_flat_table_says_what_the_networks_say() {
    let mut number = 1u32;
    let mut next = || {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        number
    };
    let networks: Vec<(u32, u32, usize)> = (0..500)
        .map(|index| {
            let bits = next() >> 27;
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            (next() & 0x1f1f_ffff & mask, bits, index % 40)
        })
        .collect();
    let address = |bits| std::net::Ipv4Addr::from_bits(bits);
    let lines: String = networks
        .iter()
        .map(|(first, bits, value)| format!("{}/{bits} v{value};\n", address(*first)))
        .collect();
    let geo = geo(&lines);
    for _ in 0..20_000 {
        let ip = next() & 0x1f1f_ffff;
        let within = networks.iter().filter(|(first, bits, _)| (first ^ ip).leading_zeros() >= *bits);
        let expected = within
            .max_by_key(|(_, bits, _)| *bits)
            .map_or(String::new(), |(_, _, value)| format!("v{value}"));
        assert_eq!(geo.find(Some(address(ip).into())), expected, "{}", address(ip));
    }
}

#[test]
fn a_hundred_thousand_networks_are_one_table() {
    let lines: String = (0..100_000u32)
        .map(|number| format!("{}/24 v{};\n", std::net::Ipv4Addr::from_bits(number << 8), number % 250))
        .collect();
    let geo = geo(&lines);
    assert_eq!(geo.v4.starts.len(), 100_001);
    assert_eq!(geo.find("0.1.2.3".parse().ok()), "v8");
}

#[test]
fn a_variable_made_of_a_cookie_counts_as_the_cookie() {
    let shared = "are stored and sent to every client";
    for (key, is_warned) in
        [("$uri$group", false), ("$uri$behind", false), ("$uri$place", true), ("$uri", true)]
    {
        let loaded = text(&fixture::in_http(&format!(
            "proxy_cache_path memory keys_zone=z:1m;
             map $cookie_session $group {{ default some; '' none; }} map $uri $behind {{ default $group; }}
             map $host $place {{ default here; }}
             server {{ listen 8080; location / {{ proxy_cache z; proxy_cache_valid 200 1m; proxy_cache_key {key};
             proxy_pass http://127.0.0.1:8000; }} }}"
        )));
        let found = loaded.diagnostics.sorted().into_iter().any(|found| found.message.contains(shared));
        assert_eq!(found, is_warned, "{key}");
    }
}
