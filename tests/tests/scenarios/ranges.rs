//! Parts of answers as a client gets them: out of memory, out of files, out of a fill on its way.

use millstream_tests::client::{Answer, Client};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use std::sync::Arc;
use std::time::Duration;

const SITE: &str = site! {
    main "worker_processes 2;"
    http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=answers:1m;
        default_type text/plain;
        upstream api { server @ORIGIN@; keepalive 8; }"
    server "location / {
            proxy_pass http://api;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_cache answers;
            proxy_cache_key $uri;
            proxy_cache_lock on;
            proxy_cache_valid 200 206 1m;
            add_header X-Cache-Status $upstream_cache_status;
            @DIRECTIVES@
        }
        location /plain/ { proxy_pass http://api; proxy_force_ranges on; }
        location /files/ { root @DIR@/html; @FILES@ }"
};

fn start(origin: &Origin, directives: &str) -> Server {
    Server::start(SITE, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives), ("FILES", "")])
}

/// Seven bytes are never the same as seven others nearby.
fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| b'a' + ((at / 26 + at) % 26) as u8).collect()
}

fn api(body: Vec<u8>) -> Origin {
    Origin::start(move |_: &Request| {
        answer(
            200,
            &[
                ("ETag", "\"v1\""),
                ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("Accept-Ranges", "bytes"),
            ],
            &body,
        )
    })
}

fn asked(request: &Request, length: usize) -> Option<(usize, usize)> {
    let (first, last) = request.field("range")?.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        return Some((length - last.parse::<usize>().ok()?, length - 1));
    }
    let last = last.parse().unwrap_or(length - 1);
    first.parse().ok().map(|first| (first, usize::min(last, length - 1)))
}

fn ranged(request: &Request, body: &[u8], tag: &str) -> Vec<Step> {
    let fields = [("ETag", tag), ("Cache-Control", "max-age=60"), ("Accept-Ranges", "bytes")];
    match asked(request, body.len()) {
        Some((first, last))
            if first < body.len() && request.field("if-range").is_none_or(|own| own == tag) =>
        {
            let range = format!("bytes {first}-{last}/{}", body.len());
            let fields = [&fields[..], &[("Content-Range", range.as_str())]].concat();
            answer(206, &fields, &body[first..=last])
        }
        _ => answer(200, &fields, body),
    }
}

fn range(server: &Server, path: &str, value: &str) -> Answer {
    server.get_with(path, &[("Range", value)])
}

fn check_ranges(server: &Server, path: &str, body: &[u8]) {
    let length = body.len();
    for (value, first, last) in [
        ("bytes=0-0".to_owned(), 0, 0),
        ("bytes=5-9".to_owned(), 5, 9),
        (format!("bytes={}-", length - 3), length - 3, length - 1),
        ("bytes=-7".to_owned(), length - 7, length - 1),
        (format!("bytes=3-{}", length + 10), 3, length - 1),
    ] {
        let part = range(server, path, &value);
        assert_eq!((part.status, part.field("accept-ranges")), (206, None), "{value}");
        assert_eq!(
            part.field("content-range"),
            Some(format!("bytes {first}-{last}/{length}").as_str()),
            "{value}"
        );
        assert!(part.body == body[first..=last], "{value}");
    }
    let none = range(server, path, &format!("bytes={length}-"));
    assert_eq!((none.status, none.field("content-range")), (416, Some(format!("bytes */{length}").as_str())));
    let too_much = range(server, path, "bytes=0-,0-0");
    assert!(too_much.status == 200 && too_much.body == body);
    let several = range(server, path, "bytes=1-2,-3");
    assert_eq!(several.status, 206);
    let media = several.field("content-type").expect("a type").to_owned();
    let boundary = media.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let mut expected = Vec::new();
    let inner = "Content-Type: text/plain\r\n";
    for (first, last) in [(1, 2), (length - 3, length - 1)] {
        expected.extend(
            format!("\r\n--{boundary}\r\n{inner}Content-Range: bytes {first}-{last}/{length}\r\n\r\n")
                .into_bytes(),
        );
        expected.extend(&body[first..=last]);
    }
    expected.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
    assert!(several.body == expected, "{}", several.text());
}

#[test]
fn ranges_of_an_answer_in_memory_are_slices_of_it() {
    let body = body(5_000);
    let origin = Origin::fixed(200, &[("Content-Type", "text/plain"), ("Accept-Ranges", "bytes")], &body);
    let server = start(&origin, "");
    assert_eq!(server.get("/").field("accept-ranges"), Some("bytes"));
    check_ranges(&server, "/", &body);
    assert_eq!(origin.count(), 1);
    let whole = server.request("HEAD", "/", &[("Range", "bytes=0-1")]);
    if !is_nginx() {
        assert_eq!((whole.status, whole.field("content-length")), (200, Some("5000")), "RFC 9110 §14.2");
    }
}

#[test]
fn ranges_of_an_answer_on_disk_are_slices_of_it() {
    let body = body(3_000_000);
    let origin = Origin::fixed(200, &[("Content-Type", "text/plain"), ("Accept-Ranges", "bytes")], &body);
    let server = start(&origin, "");
    assert!(server.get("/").body == body);
    wait::until("it is stored", || range(&server, "/", "bytes=0-0").cache_status() == "HIT");
    check_ranges(&server, "/", &body);
    let across = range(&server, "/", "bytes=65000-200000");
    assert!(across.body == body[65_000..=200_000]);
    assert_eq!(origin.count(), 1);
}

#[test]
fn ranges_of_a_file_are_slices_of_it() {
    let prefix = Prefix::new();
    let body = body(200_000);
    std::fs::create_dir_all(prefix.join("html/files")).expect("own directory is writable");
    let file = prefix.join("html/files/a.txt");
    std::fs::write(&file, &body).expect("own directory is writable");
    // A file of this very second could change once more without a change of its date.
    let earlier = std::time::SystemTime::now() - Duration::from_secs(10);
    let opened = std::fs::File::options().append(true).open(&file).expect("it is there");
    opened.set_modified(earlier).expect("it is ours");
    let origin = api(Vec::new());
    let values = [("ORIGIN", origin.address()), ("DIRECTIVES", String::new()), ("FILES", String::new())];
    let values: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start_in(prefix, SITE, &values);
    let whole = server.get("/files/a.txt");
    assert_eq!((whole.status, whole.field("accept-ranges")), (200, Some("bytes")));
    check_ranges(&server, "/files/a.txt", &body);
    let tag = whole.field("etag").expect("a tag").to_owned();
    let ask =
        |value: &str| server.get_with("/files/a.txt", &[("Range", "bytes=0-1"), ("If-Range", value)]).status;
    assert_eq!(
        (ask(&tag), ask("\"other\""), ask(whole.field("last-modified").expect("a date"))),
        (206, 200, 206)
    );
}

#[test]
fn conditions_come_before_ranges() {
    let origin = api(body(100));
    let server = start(&origin, "");
    server.get("/");
    let ask =
        |fields: &[(&str, &str)]| server.get_with("/", &[fields, &[("Range", "bytes=0-1")]].concat()).status;
    assert_eq!(ask(&[("If-None-Match", "\"v1\"")]), 304);
    assert_eq!(ask(&[("If-Match", "\"v2\"")]), 412);
    assert_eq!(ask(&[("If-Match", "\"v1\"")]), 206);
    assert_eq!(ask(&[("If-Range", "\"v1\"")]), 206);
    assert_eq!(ask(&[("If-Range", "\"v2\"")]), 200);
}

#[test]
fn whoever_asks_first_gets_its_range_from_the_stream_and_the_whole_is_stored() {
    let gate = Arc::new(Gate::default());
    let first = b"HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nContent-Length: 10\r\n\r\n01234";
    let origin = Origin::in_two(first, &gate, b"56789");
    let server = start(&origin, "");
    let mut client = server.client();
    let part = client.get_with("/", &[("Range", "bytes=1-3")]).expect("an answer");
    // nginx keeps the connection until all of it has come.
    assert!(gate.open() || is_nginx(), "its part was there");
    assert_eq!((part.status, part.text().as_str(), part.cache_status()), (206, "123", "MISS"));
    assert_eq!(origin.requests()[0].field("range"), None, "the whole is fetched");
    let late = client.get_with("/", &[("Range", "bytes=-2")]).expect("an answer");
    assert_eq!((late.status, late.text().as_str(), late.cache_status()), (206, "89", "HIT"));
    assert_eq!(server.get("/").text(), "0123456789");
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_range_that_does_not_exist_in_a_fill_is_refused_and_the_whole_is_stored() {
    let origin = api(body(10));
    let server = start(&origin, "");
    let none = range(&server, "/", "bytes=50-");
    assert_eq!((none.status, none.field("content-range")), (416, Some("bytes */10")));
    wait::until("it is stored", || server.get("/").cache_status() == "HIT");
    // nginx gives the fill up with the request.
    assert!(is_nginx() || origin.count() == 1);
}

#[test]
fn max_ranges_bounds_and_forbids() {
    let origin = api(body(100));
    let server = start(&origin, "max_ranges 2;");
    assert_eq!(server.get("/").status, 200);
    assert_eq!(range(&server, "/", "bytes=0-1,3-4").status, 206);
    assert_eq!(range(&server, "/", "bytes=0-1,3-4,6-7").status, 200);
    let server = start(&origin, "max_ranges 0;");
    let whole = server.get("/");
    assert_eq!((whole.status, whole.field("accept-ranges")), (200, None));
    assert_eq!(range(&server, "/", "bytes=0-1").status, 200);
}

#[test]
fn an_answer_that_is_compressed_on_its_way_has_no_ranges() {
    let origin = Origin::start(|_| {
        answer(
            200,
            &[("Content-Type", "text/html"), ("Accept-Ranges", "bytes"), ("ETag", "\"v1\"")],
            &body(5_000),
        )
    });
    let server = start(&origin, "gzip on;");
    for _ in 0..2 {
        let fields = [("Range", "bytes=0-1"), ("Accept-Encoding", "gzip")];
        let answer = server.get_with("/", &fields);
        assert_eq!((answer.status, answer.field("content-encoding")), (200, Some("gzip")));
        assert_eq!((answer.field("accept-ranges"), answer.field("content-range")), (None, None));
    }
    assert_eq!(range(&server, "/", "bytes=0-1").status, 206, "a client that takes it plain");
}

#[test]
fn expires_is_reckoned_at_every_answer_and_stands_before_what_is_added() {
    let origin = Origin::start(|_| {
        answer(200, &[("Cache-Control", "max-age=60"), ("Expires", "Sun, 06 Nov 1994 08:49:37 GMT")], b"x")
    });
    let server = start(&origin, "proxy_ignore_headers Expires; expires 1h;");
    for expected in ["MISS", "HIT"] {
        let answer = server.get("/");
        let all: Vec<_> = answer.fields.iter().filter(|(name, _)| name == "Cache-Control").collect();
        assert_eq!(all.len(), 1);
        assert_eq!((answer.field("cache-control"), answer.cache_status()), (Some("max-age=3600"), expected));
        assert_ne!(answer.field("expires"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        let at = |name: &str| answer.fields.iter().position(|(field, _)| field == name).expect("it is there");
        assert!(at("Expires") < at("X-Cache-Status") && at("Cache-Control") < at("X-Cache-Status"));
    }
}

#[test]
fn a_client_that_reads_slowly_gets_its_range_of_a_large_answer_whole() {
    let body = body(2_500_000);
    let origin = api(body.clone());
    let server = start(&origin, "");
    let mut client: Client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=100000-2400000\r\n\r\n").expect("sent");
    wait::until("the whole is stored", || range(&server, "/", "bytes=0-0").cache_status() == "HIT");
    let part = client.answer().expect("an answer");
    assert!(part.status == 206 && part.body == body[100_000..=2_400_000]);
    assert_eq!(origin.count(), 1);
}

fn ranged_api(body: Vec<u8>) -> Origin {
    Origin::start(move |request: &Request| ranged(request, &body, "\"v1\""))
}

#[test]
fn a_range_far_into_an_answer_is_passed_on_and_its_part_answers_what_lies_within() {
    let body = body(5_000);
    let origin = ranged_api(body.clone());
    let server = start(&origin, "proxy_cache_max_range_offset 1000;");
    let far = range(&server, "/", "bytes=2000-2999");
    assert_eq!((far.status, far.cache_status()), (206, "MISS"));
    assert!(far.body == body[2000..=2999]);
    assert_eq!(origin.requests()[0].field("range"), Some("bytes=2000-2999"));
    skip_on_nginx!("it stores no parts");
    for (value, first, last) in [("bytes=2000-2999", 2000, 2999), ("bytes=2100-2199", 2100, 2199)] {
        let within = range(&server, "/", value);
        assert_eq!((within.status, within.cache_status()), (206, "HIT"), "{value}");
        assert_eq!(within.field("content-range"), Some(format!("bytes {first}-{last}/5000").as_str()));
        assert!(within.field("age").is_some() && within.body == body[first..=last]);
    }
    let other = server.get_with("/", &[("Range", "bytes=2100-2199"), ("If-Range", "\"v2\"")]);
    assert!(
        other.status == 200 && other.body == body,
        "the part is of another representation than asked for"
    );
    let near = range(&server, "/", "bytes=1-2");
    assert_eq!((near.status, near.cache_status(), near.body.as_slice()), (206, "HIT", &body[1..=2]));
}

#[test]
fn a_stored_part_is_completed_with_what_is_missing_alone() {
    let body = body(400_000);
    for (first, missing) in [("bytes=0-299999", "bytes=300000-"), ("bytes=-100000", "bytes=0-299999")] {
        let origin = ranged_api(body.clone());
        let server = start(&origin, "proxy_cache_max_range_offset 0;");
        assert_eq!(range(&server, "/", first).status, 206);
        let whole = server.get("/");
        assert!(whole.status == 200 && whole.body == body, "{first}");
        assert_eq!(whole.field("content-range"), None);
        if is_nginx() {
            continue;
        }
        let asked = &origin.requests()[1];
        assert_eq!((asked.field("range"), asked.field("if-range")), (Some(missing), Some("\"v1\"")));
        let again = server.get("/");
        assert!(again.cache_status() == "HIT" && again.body == body);
        assert_eq!(range(&server, "/", "bytes=299990-300010").body, &body[299_990..=300_010]);
        assert_eq!(origin.count(), 2);
    }
}

/// The second response is scripted; the first is a part of `old`, the third the whole of `new`.
fn after_a_part(second: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static, tag: &'static str) -> Origin {
    Origin::numbered(move |request, number| {
        let fields = [("Cache-Control", "max-age=60")];
        match number {
            0 => {
                let part = [("ETag", tag), ("Content-Range", "bytes 0-4/10")];
                answer(206, &[&fields[..], &part].concat(), b"01234")
            }
            1 => second(request),
            _ => answer(200, &[&fields[..], &[("ETag", "\"new\"")]].concat(), b"abcdefghij"),
        }
    })
}

#[test]
fn what_is_not_provably_of_one_representation_is_never_combined() {
    skip_on_nginx!();
    type Case = (&'static str, u16, &'static [(&'static str, &'static str)], &'static str);
    let cases: &[Case] = &[
        ("another tag", 206, &[("ETag", "\"v2\""), ("Content-Range", "bytes 5-9/10")], "fghij"),
        ("no tag", 206, &[("Content-Range", "bytes 5-9/10")], "fghij"),
        ("a weak tag", 206, &[("ETag", "W/\"v1\""), ("Content-Range", "bytes 5-9/10")], "fghij"),
        ("another place", 206, &[("ETag", "\"v1\""), ("Content-Range", "bytes 4-9/10")], "efghij"),
        ("a part of the rest", 206, &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-8/10")], "fghi"),
        ("another length", 206, &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-9/11")], "fghij"),
        ("no length", 206, &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-9/*")], "fghij"),
        ("no range", 206, &[("ETag", "\"v1\"")], "fghij"),
        ("fewer bytes", 206, &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-9/10")], "fgh"),
        (
            "two ranges",
            206,
            &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-9/10"), ("Content-Range", "bytes 0-4/10")],
            "fghij",
        ),
        (
            "another coding",
            206,
            &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-9/10"), ("Content-Encoding", "x")],
            "fghij",
        ),
        (
            "not storable",
            206,
            &[("ETag", "\"v1\""), ("Content-Range", "bytes 5-9/10"), ("Cache-Control", "no-store")],
            "fghij",
        ),
        ("shorter now", 416, &[("Content-Range", "bytes */5")], ""),
    ];
    for &(what, status, fields, text) in cases {
        let origin = after_a_part(move |_| answer(status, fields, text.as_bytes()), "\"v1\"");
        let server = start(&origin, "proxy_cache_max_range_offset 0;");
        assert_eq!(range(&server, "/", "bytes=0-4").status, 206);
        let whole = server.get("/");
        assert_eq!((whole.status, whole.text().as_str()), (200, "abcdefghij"), "{what}");
        assert_eq!((origin.count(), origin.requests()[2].field("range")), (3, None), "{what}");
    }
}

#[test]
fn a_part_with_a_weak_tag_or_none_is_not_completed() {
    skip_on_nginx!();
    for tag in ["W/\"v1\"", "none"] {
        let origin = after_a_part(|_| answer(200, &[], b"abcdefghij"), tag);
        let server = start(&origin, "proxy_cache_max_range_offset 0;");
        assert_eq!(range(&server, "/", "bytes=0-4").status, 206);
        assert_eq!(server.get("/").text(), "abcdefghij", "{tag}");
        assert_eq!(origin.requests()[1].field("range"), None, "{tag}");
    }
}

#[test]
fn an_answer_that_changed_takes_the_place_of_its_part() {
    skip_on_nginx!();
    let origin = after_a_part(|_| answer(200, &[("ETag", "\"v2\"")], b"ABCDEFGHIJ"), "\"v1\"");
    let server = start(&origin, "proxy_cache_max_range_offset 0;");
    assert_eq!(range(&server, "/", "bytes=0-4").text(), "01234");
    assert_eq!(server.get("/").text(), "ABCDEFGHIJ", "If-Range found another representation");
    assert_eq!((range(&server, "/", "bytes=0-4").text().as_str(), origin.count()), ("ABCDE", 2));
}

#[test]
fn the_rest_that_breaks_off_reaches_nobody_as_a_whole_answer() {
    skip_on_nginx!();
    let origin = after_a_part(
        |_| {
            let head = "HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nCache-Control: max-age=60\r\n\
                Content-Range: bytes 5-9/10\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n567\r\n0\r\n\r\n";
            vec![Step::Send(head.into())]
        },
        "\"v1\"",
    );
    let server = start(&origin, "proxy_cache_max_range_offset 0;");
    assert_eq!(range(&server, "/", "bytes=0-4").status, 206);
    assert!(server.client().get("/").is_err(), "seven bytes looked like ten");
    assert_eq!(server.get("/").text(), "abcdefghij");
}

#[test]
fn a_part_that_is_not_what_it_says_is_passed_on_and_not_stored() {
    skip_on_nginx!();
    for value in ["bytes 4-9/10", "bytes 0-4/3", "lines 0-4/10"] {
        let origin = Origin::start(move |_| {
            answer(
                206,
                &[("Cache-Control", "max-age=60"), ("ETag", "\"v1\""), ("Content-Range", value)],
                b"01234",
            )
        });
        let server = start(&origin, "proxy_cache_max_range_offset 0;");
        for asked in 1..=2 {
            let part = range(&server, "/", "bytes=0-4");
            assert_eq!((part.status, part.field("content-range"), origin.count()), (206, Some(value), asked));
        }
    }
}

#[test]
fn a_head_that_is_not_converted_is_passed_on_and_not_stored() {
    let origin = api(body(100));
    let server = start(&origin, "proxy_cache_convert_head off;");
    for asked in 1..=2 {
        let answer = server.request("HEAD", "/", &[]);
        assert_eq!((answer.status, answer.field("content-length")), (200, Some("100")));
        assert!(is_nginx() || origin.count() == asked);
    }
    assert!(origin.requests().iter().all(|request| request.head.starts_with("HEAD ")));
}

#[test]
fn ranges_can_be_forced_out_of_an_api_that_knows_none() {
    let body = body(300_000);
    let origin = Origin::fixed(200, &[], &body);
    let server = start(&origin, "proxy_force_ranges on;");
    for path in ["/", "/plain/"] {
        let part = range(&server, path, "bytes=100000-250000");
        assert_eq!((part.status, part.field("content-range")), (206, Some("bytes 100000-250000/300000")));
        assert!(part.body == body[100_000..=250_000], "{path}");
        assert_eq!(server.get(path).field("accept-ranges"), Some("bytes"), "{path}");
        assert_eq!(range(&server, path, "bytes=300000-").status, 416, "{path}");
    }
}

#[test]
fn a_range_that_does_not_exist_has_the_fields_of_the_response_but_for_what_describes_its_body() {
    let origin = Origin::start(|request: &Request| {
        let cached = if request.target().contains("private") { "private" } else { "max-age=60" };
        answer(
            200,
            &[
                ("Access-Control-Allow-Origin", "https://app.example"),
                ("Vary", "Origin"),
                ("X-Request-ID", "7"),
                ("Content-Security-Policy", "default-src 'self'"),
                ("Cache-Control", cached),
                ("ETag", "\"a\""),
                ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("Content-Type", "video/mp4"),
                ("Content-Encoding", "br"),
                ("Content-Language", "de"),
                ("Content-Disposition", "attachment"),
                ("Repr-Digest", "sha-256=:AAAA:"),
            ],
            &body(1000),
        )
    });
    let directives =
        "add_header X-Every 1 always; add_header X-Good 1; location /paged { proxy_pass http://api;
        proxy_cache answers; proxy_cache_key $uri; error_page 416 /page; }
        location = /page { add_header X-Every 1 always; return 200 page; }
        location /sliced { slice 100; proxy_set_header Range $slice_range; proxy_cache answers;
            proxy_cache_key $uri$slice_range; proxy_pass http://api; add_header X-Every 1 always; }";
    let server = start(&origin, directives);
    let plain = "/plain/";
    for (path, times) in [("/stored", 2), ("/private", 2), ("/paged", 2), ("/sliced", 2), (plain, 1)] {
        for time in 0..times {
            let got = range(&server, path, "bytes=5000-");
            let about = format!("{path} {time}: {}", got.head);
            assert_eq!((got.status, got.field("content-range")), (416, Some("bytes */1000")), "{about}");
            for (name, value) in [
                ("access-control-allow-origin", "https://app.example"),
                ("x-request-id", "7"),
                ("content-security-policy", "default-src 'self'"),
            ] {
                assert_eq!(got.field(name), Some(value), "{name} {about}");
            }
            assert!(got.head.contains("Vary: Origin"), "{about}");
            if is_nginx() {
                continue; // It leaves those of the whole there too, and has those that are always added twice.
            }
            for name in [
                "cache-control",
                "etag",
                "last-modified",
                "content-encoding",
                "content-language",
                "content-disposition",
                "repr-digest",
                "accept-ranges",
                "x-good",
            ] {
                assert_eq!(got.field(name), None, "{name} {about}");
            }
            assert_eq!(got.head.matches("X-Every").count(), usize::from(path != plain), "{about}");
            assert_ne!(got.field("content-type"), Some("video/mp4"), "{about}");
        }
    }
}

#[test]
fn dates_are_compared_as_if_modified_since_says_and_etag_can_be_left_out() {
    let prefix = Prefix::new();
    prefix.write("html/files/a.txt", b"content");
    let origin = api(body(100));
    let (origin_address, later) = (origin.address(), "Mon, 07 Nov 2044 08:49:37 GMT");
    let values = |directives: &'static str| {
        [("ORIGIN", origin_address.clone()), ("DIRECTIVES", directives.into()), ("FILES", directives.into())]
    };
    let mut server = None;
    let mut holder = Some(prefix);
    for (directives, same, after) in [
        ("", 304, 200),
        ("if_modified_since before;", 304, 304),
        ("if_modified_since off; etag off;", 200, 200),
    ] {
        let values = values(directives);
        let values: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        match holder.take() {
            Some(prefix) => server = Some(Server::start_in(prefix, SITE, &values)),
            None => {
                let server = server.as_mut().expect("it was started");
                server.stop(rustix::process::Signal::TERM);
                server.rewrite(SITE, &values);
                server.run().expect("it starts again");
            }
        }
        let server = server.as_ref().expect("it was started");
        for path in ["/files/a.txt", "/"] {
            let whole = server.get(path);
            let date = whole.field("last-modified").expect("a date").to_owned();
            let ask = |value: &str| server.get_with(path, &[("If-Modified-Since", value)]).status;
            assert_eq!((ask(&date), ask(later)), (same, after), "{path} {directives}");
        }
        let tagged = server.get("/files/a.txt").field("etag").is_some();
        assert_eq!(tagged, !directives.contains("etag off"));
    }
}

#[test]
fn a_part_and_a_304_say_what_the_whole_would_say_of_codings() {
    skip_on_nginx!("it says so in the whole alone");
    let body = body(4_000);
    let origin = Origin::fixed(
        200,
        &[("ETag", "\"v1\""), ("Content-Type", "text/plain"), ("Accept-Ranges", "bytes")],
        &body,
    );
    let directives = "gzip on; gzip_vary on; gzip_types text/plain;";
    let site = Prefix::new();
    site.write("html/files/a.txt", &body);
    let values =
        [("ORIGIN", origin.address()), ("DIRECTIVES", directives.into()), ("FILES", directives.into())];
    let values: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start_in(site, SITE, &values);
    for path in ["/a", "/files/a.txt"] {
        let whole = server.get(path);
        let tag = whole.field("etag").expect("a tag").to_owned();
        for fields in [
            &[][..],
            &[("Range", "bytes=0-9")],
            &[("Range", "bytes=0-9,20-29")],
            &[("If-None-Match", tag.as_str())],
        ] {
            let answer = server.get_with(path, fields);
            assert_eq!(answer.field("vary"), Some("Accept-Encoding"), "{path} {fields:?} {}", answer.status);
        }
    }
}

#[test]
fn a_condition_on_what_is_fetched_whole_and_not_stored_is_answered_here() {
    let origin = Origin::start(|request: &Request| {
        let fields: &[_] = match request.target() {
            "/modified" => &[("Last-Modified", "Mon, 28 Sep 1970 06:00:00 GMT")],
            _ => &[("ETag", "\"a\"")],
        };
        answer(200, fields, &body(1000))
    });
    let server = start(&origin, "proxy_no_cache 1;");
    for (path, field, status) in [
        ("/tagged", ("If-None-Match", "\"a\""), 304),
        ("/tagged", ("If-None-Match", "\"b\""), 200),
        ("/modified", ("If-Modified-Since", "Mon, 28 Sep 1970 06:00:00 GMT"), 304),
        ("/tagged", ("If-Match", "\"b\""), 412),
    ] {
        let got = server.get_with(path, &[field]);
        assert_eq!((got.status, got.body.len() == 1000), (status, status == 200), "{path} {field:?}");
        let request = origin.requests().pop().expect("it was asked");
        assert!(request.field(field.0).is_none(), "it might have been stored");
    }
    assert_eq!(origin.count(), 4, "nothing was stored");
}

#[test]
fn a_range_of_what_is_not_stored_is_answered_as_a_range_all_the_same() {
    skip_on_nginx!("it asks for the whole wherever there is a cache, and answers with it");
    let origin = Origin::start(|request: &Request| match request.target() {
        // Says nothing of ranges and is never stored.
        "/private" => answer(200, &[("Cache-Control", "private"), ("ETag", "\"a\"")], &body(1000)),
        _ => match request.field("range") {
            Some("bytes=10-19") => {
                answer(206, &[("Content-Range", "bytes 10-19/1000"), ("ETag", "\"a\"")], &body(1000)[10..20])
            }
            _ => answer(200, &[("ETag", "\"a\"")], &body(1000)),
        },
    });
    let server = start(&origin, "proxy_cache_bypass $http_cookie; proxy_no_cache $http_cookie;");
    let range = ("Range", "bytes=10-19");
    for (path, fields, asked) in [
        ("/personal", &[range, ("Cookie", "a=b")][..], Some("bytes=10-19")),
        ("/private", &[range], None),
        ("/private", &[range, ("If-Range", "\"a\"")], None),
    ] {
        let got = server.get_with(path, fields);
        assert_eq!((got.status, got.body.as_slice()), (206, &body(1000)[10..20]), "{path} {fields:?}");
        assert_eq!(got.field("content-range"), Some("bytes 10-19/1000"), "{path}");
        let request = origin.requests().pop().expect("it was asked");
        assert_eq!(request.field("range"), asked, "{path}");
    }
    let other = server.get_with("/private", &[range, ("If-Range", "\"b\"")]);
    assert_eq!((other.status, other.body.len()), (200, 1000), "it is of another answer");
    assert_eq!(server.get_with("/private", &[("Range", "bytes=5000-")]).status, 416);
    let confirmed = server.get_with("/personal", &[("If-None-Match", "\"a\""), ("Cookie", "a=b")]);
    assert_eq!(confirmed.status, 200, "this API confirms nothing");
    let request = origin.requests().pop().expect("it was asked");
    assert_eq!(
        request.field("if-none-match"),
        Some("\"a\""),
        "a condition that nobody else depends on goes on"
    );
}

#[test]
fn who_has_its_range_waits_for_nothing_more_of_what_is_not_stored() {
    skip_on_nginx!("it passes the whole on, or reads it to its end");
    let gate = Arc::new(Gate::default());
    let origin = Origin::start({
        let gate = gate.clone();
        move |request: &Request| {
            if request.target().ends_with("/small") {
                return answer(200, &[("Cache-Control", "private")], b"small");
            }
            let mut steps = answer(200, &[("Cache-Control", "private")], &body(600_000));
            let Some(Step::Send(bytes)) = steps.pop() else { return steps };
            let (first, rest) = bytes.split_at(500_000);
            steps.extend([Step::Send(first.to_vec()), Step::Pass(gate.clone()), Step::Send(rest.to_vec())]);
            steps
        }
    });
    let server = start(&origin, "");
    let mut client = server.client();
    for path in ["/", "/plain/"] {
        // The second way begins at once where there is an idle connection.
        for range in [10..20, 0..400_000] {
            let value = format!("bytes={}-{}", range.start, range.end - 1);
            let ask = [("Host", "localhost"), ("Range", value.as_str())];
            let part = client.request("GET", &format!("{path}large"), &ask).expect("an answer");
            assert_eq!((part.status, part.body.len()), (206, range.len()), "{path} {value}");
            assert!(part.body == body(600_000)[range], "{path} {value}");
            let next = client.request("GET", &format!("{path}small"), &[("Host", "localhost")]);
            assert_eq!(next.expect("an answer").text(), "small", "{path} {value}");
        }
    }
    assert!(gate.open(), "nobody waited for the rest");
}
