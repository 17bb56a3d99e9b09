//! Where `bench` takes its requests from and where it sends them: rows of a file, a log's own moments, other addresses, a socket
//! in the file system.

use crate::bench;
use millstream_tests::origin::Origin;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use std::collections::BTreeMap;

#[test]
fn urls_fields_and_bodies_are_made_of_the_rows_of_a_file() {
    let origin = Origin::fixed(200, &[], b"ok");
    let prefix = Prefix::new();
    let write = |name: &str, text: &str| prefix.write(name, text).display().to_string();
    let csv = write("rows.csv", "id,name\n1,a b\n2,\"c,d\"\n3,e\n");
    let json = write(
        "rows.jsonl",
        "{\"id\":1,\"name\":\"a b\"}\n{\"id\":2,\"name\":\"c,d\"}\n{\"id\":3,\"name\":\"e\"}\n",
    );
    let url = format!("http://{}/item/{{{{id}}}}?n={{{{name}}}}", origin.address());
    for (file, order) in [(&csv, "sequence"), (&json, "random")] {
        let before = origin.count();
        let (status, told, complained) = bench(&[
            "-n",
            "6",
            "-c",
            "1",
            "-t",
            "1",
            "--data-file",
            file,
            "--data-order",
            order,
            "-H",
            "X-Id: {{id}}",
            "-b",
            "{\"name\": \"{{name}}\"}",
            &url,
        ]);
        assert_eq!((status, complained.as_str()), (0, ""), "{told}");
        // A POST is made as often as was asked for, and no more.
        let requests = origin.requests();
        let loaded = &requests[before..];
        assert_eq!(loaded.len(), 6);
        let mut counts = BTreeMap::new();
        for request in loaded {
            *counts.entry(request.target().to_owned()).or_insert(0) += 1;
            let id = request.target().strip_prefix("/item/").and_then(|rest| rest.get(..1));
            assert_eq!(request.field("x-id"), id);
        }
        let each_twice = ["/item/1?n=a%20b", "/item/2?n=c,d", "/item/3?n=e"].map(|url| (url.to_owned(), 2));
        assert_eq!(counts, BTreeMap::from(each_twice), "{order}");
        if order == "sequence" {
            assert!(loaded[0].target().starts_with("/item/1") && loaded[4].target().starts_with("/item/2"));
        }
    }
    for (file, url, words) in [
        (
            &csv,
            "http://127.0.0.1:1/{{nam}}",
            "the URL, column 20: the data file has no \"nam\"; it has id, name",
        ),
        (
            &write("bad.csv", "id\n1\n2,3\n"),
            "http://127.0.0.1:1/",
            "bad.csv:3: field 2: the row has 2 fields",
        ),
        (
            &write("open.csv", "id,name\n1,\"a\n2,b\n"),
            "http://127.0.0.1:1/",
            "open.csv:2: field 2: the quote is not closed",
        ),
        (
            &write("bad.jsonl", "{\"id\":1}\n{\"id\":oops}\n"),
            "http://127.0.0.1:1/",
            "bad.jsonl:2:7: expected",
        ),
        (&"/nowhere.csv".to_owned(), "http://127.0.0.1:1/", "/nowhere.csv cannot be read"),
    ] {
        let (status, _, complained) = bench(&["--data-file", file, url]);
        assert!(status == 1 && complained.contains(words) && complained.lines().count() == 1, "{complained}");
    }
}

#[test]
fn what_looks_like_a_template_is_told_where_nothing_fills_it() {
    let origin = Origin::fixed(200, &[], b"ok");
    let at = |target: &str| format!("http://{}/{target}", origin.address());
    let prefix = Prefix::new();
    let rows = prefix.write("rows.csv", "id\n1\n2\n").display().to_string();
    for (arguments, words) in [
        (&[at("{{id}}")][..], "{{id}} is sent literally: only --data-file replaces it"),
        (&[at("{id}")], "{id} is sent literally: use {{id}} and --data-file to replace it"),
        (&["-b".to_owned(), "{{name}}".to_owned(), at("")], "{{name}} is sent literally"),
        (&["-b".to_owned(), "{\"a\":{\"b\":1}}".to_owned(), at("")], ""),
        (&["--data-file".to_owned(), rows.clone(), at("{id}")], "contains a column of"),
        (&["--data-file".to_owned(), rows, at("{{id}}")], ""),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (status, told, complained) = bench(&[&["-n", "2", "-c", "1"], &arguments[..]].concat());
        assert_eq!(status, 0, "{complained}");
        assert!(complained.contains(words), "{arguments:?}: {complained}");
        assert_eq!(complained.is_empty(), words.is_empty(), "{arguments:?}: {complained} {told}");
    }
}

#[test]
fn a_log_is_replayed_at_its_own_moments_or_faster() {
    let origin = Origin::fixed(200, &[], b"ok");
    let prefix = Prefix::new();
    let line = |second: u32, path: &str| {
        format!("::1 - - [21/Nov/2026:10:00:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 2 \"-\" \"-\"\n")
    };
    let log = (0..20).map(|number| line(number / 10 * 2, &format!("/{number}"))).collect::<String>();
    let log = prefix.write("access.log", &log).display().to_string();
    let url = format!("http://{}", origin.address());
    let json = prefix.join("run.json").display().to_string();
    // Ten in the first second, ten in the third: four times as fast in three quarters of one.
    let (status, told, complained) =
        bench(&["-t", "1", "--log", &log, "--speed", "4", "--json", &json, &url]);
    assert_eq!(status, 0, "{complained}");
    assert!(told.contains("at 4 times the log's own pace"), "{told}");
    let run: serde_json::Value = serde_json::from_str(&prefix.read("run.json")).expect("it is JSON");
    let seconds = run["seconds"].as_f64().expect("a number");
    assert!((0.7..0.8).contains(&seconds), "{seconds}");
    assert_eq!(run["schedule"]["log"]["speed"], 4.0);
    let due = run["counts"]["answers"].as_u64().zip(run["counts"]["unfinished"].as_u64()).map(|(a, b)| a + b);
    assert_eq!(due, Some(20));
    let in_the_middle: u64 = run["slices"]
        .as_array()
        .expect("slices")
        .iter()
        .filter(|slice| slice["at_seconds"].as_f64().is_some_and(|at| (0.35..0.45).contains(&at)))
        .filter_map(|slice| slice["answers"].as_u64())
        .sum();
    assert_eq!(in_the_middle, 0, "nothing was asked in the second second: {run}");
    let untimed = prefix.write("untimed.log", "\"GET / HTTP/1.1\" 200 5\n").display().to_string();
    let (status, _, complained) = bench(&["--log", &untimed, "--speed", "1", &url]);
    assert!(status == 1 && complained.contains("with its time in [brackets]"), "{complained}");
}

#[test]
fn another_address_and_a_socket_in_the_file_system_take_the_place_of_the_urls_own() {
    let origin = Origin::fixed(200, &[], b"ok");
    let to = format!("api.invalid:99::{}", origin.port());
    let to_here = to.replace("::", ":127.0.0.1:");
    let (status, told, complained) =
        bench(&["-n", "10", "-c", "1", "--connect-to", &to_here, "http://api.invalid:99/x"]);
    assert_eq!((status, complained.as_str()), (0, ""), "{told}");
    assert_eq!(
        origin.requests().last().and_then(|last| last.field("host").map(str::to_owned)),
        Some("api.invalid:99".to_owned())
    );
    let (status, _, complained) = bench(&["--connect-to", &to, "http://api.invalid:99/x"]);
    assert!(
        status == 1 && complained.contains("no such host: \"api.invalid\""),
        "the host stays: {complained}"
    );
    let (status, _, complained) = bench(&["--connect-to", "a:b:c:1", "http://api.invalid/"]);
    assert!(status == 1 && complained.contains("column 3: invalid port \"b\""), "{complained}");
    let site = "error_log @DIR@/error.log; pid @DIR@/nginx.pid; events {} http { access_log off;
        server { listen 127.0.0.1:@PORT@; listen unix:@DIR@/socket; location / { return 200 $host; } } }";
    let server = Server::start_in(Prefix::new(), site, &[]);
    let socket = server.prefix().join("socket").display().to_string();
    for more in [&[][..], &["--rate", "50", "-d", "300ms"]] {
        let mut arguments = vec!["--unix-socket", &socket, "http://api.invalid/x"];
        arguments.extend(if more.is_empty() { &["-n", "20", "-c", "2"][..] } else { more });
        let (status, told, complained) = bench(&arguments);
        assert_eq!((status, complained.as_str()), (0, ""), "{told}");
        assert!(told.contains("Errors: none"), "{told}");
    }
    let (status, _, complained) = bench(&["--unix-socket", "/nowhere/socket", "http://api.invalid/x"]);
    assert!(status == 1 && complained.contains("unix:/nowhere/socket cannot be reached"), "{complained}");
}
