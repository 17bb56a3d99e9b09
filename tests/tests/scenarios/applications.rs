//! Applications in uwsgi and SCGI: asked as nginx asks them, answering with a status line or as CGI does, and cached as any API.

use millstream_tests::application::{Application, Asked, Speaks, answer};
use millstream_tests::server::{Server, is_nginx};

const SITE: &str = site! {
    log "info"
    http "client_header_buffer_size 1k; large_client_header_buffers 8 32k;
        @FAMILY@_cache_path @DIR@/cache keys_zone=pages:1m;
        upstream app { server 127.0.0.1:@APP@; }
        @FAMILY@_param REQUEST_METHOD $request_method;
        @FAMILY@_param CONTENT_LENGTH $content_length;
        @FAMILY@_param QUERY_STRING $query_string if_not_empty;
        @FAMILY@_param HTTP_X_SET ours;"
    server "add_header X-Cache $upstream_cache_status;
        location / { @FAMILY@_pass 127.0.0.1:@APP@; @MORE@ }
        location /cached/ { @FAMILY@_pass app; @FAMILY@_cache pages; @FAMILY@_cache_valid 200 1m; }
        location /streamed/ { @FAMILY@_pass app; @FAMILY@_request_buffering off; }
        location /chosen/ { @FAMILY@_pass $arg_where; }"
};

const BOTH: [(Speaks, &str, &str); 2] =
    [(Speaks::Uwsgi, "uwsgi", "uwsgi_modifier1 5; uwsgi_modifier2 6;"), (Speaks::Scgi, "scgi", "")];

fn each(
    script: impl Fn(&Asked) -> Vec<u8> + Clone + Send + Sync + 'static,
    test: impl Fn(&Server, &Application, Speaks),
) {
    for (speaks, family, more) in BOTH {
        let application = Application::speaking(speaks, script.clone());
        let port = application.port().to_string();
        let server = Server::start(SITE, &[("FAMILY", family), ("APP", &port), ("MORE", more)]);
        test(&server, &application, speaks);
    }
}

#[test]
fn an_application_is_told_of_a_request_and_its_answer_has_a_status_line_or_none() {
    let script = |asked: &Asked| match asked.param("QUERY_STRING") {
        "line" => b"HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nStatus: 500\r\n\r\nmade".to_vec(),
        "status" => b"Status: 202 Accepted\r\nServer: app\r\n\r\nlater".to_vec(),
        "away" => b"Location: /elsewhere\r\n\r\n".to_vec(),
        "odd" => b"HTTP/2 200 OK\r\n\r\n".to_vec(),
        _ => b"Content-Length: 4\r\n\r\nbody and more".to_vec(),
    };
    each(script, |server, application, speaks| {
        for (query, status, text) in
            [("?line", 201, "made"), ("?status", 202, "later"), ("?away", 302, ""), ("", 200, "body")]
        {
            let got = server
                .get_with(&format!("/a{query}"), &[("X-One", "1"), ("X-Set", "theirs"), ("Proxy", "x")]);
            assert_eq!((got.status, got.text().as_str()), (status, text), "{speaks:?} {query}");
            assert_eq!(got.field("status"), None);
            assert_eq!(got.field("server") == Some("app"), query == "?status", "{}", got.head);
        }
        assert_eq!(server.get("/a?odd").status, 502);
        let asked = &application.asked()[3];
        let expected: Vec<(&str, &str)> = match speaks {
            Speaks::Uwsgi => vec![("modifiers", "5 6"), ("REQUEST_METHOD", "GET"), ("CONTENT_LENGTH", "")],
            _ => vec![("CONTENT_LENGTH", "0"), ("REQUEST_METHOD", "GET")],
        };
        let fields = [("HTTP_X_SET", "ours"), ("HTTP_HOST", "localhost"), ("HTTP_X_ONE", "1")];
        let expected: Vec<_> = expected.into_iter().chain(fields).collect();
        let told: Vec<_> = asked.params.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(told, expected, "{speaks:?}");
    });
}

#[test]
fn another_status_line_or_status_of_an_application_says_nothing() {
    let cases: &'static [(&str, u16, u16)] = &[
        ("HTTP/1.1 201 Created\r\nHTTP/1.1 500 Oh\r\n", 201, 200),
        ("Status: 404 Not Found\r\nHTTP/1.1 200 OK\r\n", 404, 404),
        ("Status: 404 Not Found\r\nStatus: 200\r\nStatus: abc\r\n", 404, 404),
        ("HTTP/1.1 404 Not Found\r\nStatus: 202\r\n", 404, 202),
    ];
    let script = move |asked: &Asked| {
        let number: usize = asked.param("QUERY_STRING").parse().unwrap_or(0);
        format!("{}X-Field: yes\r\nContent-Length: 4\r\n\r\nbody", cases[number].0).into_bytes()
    };
    let check = |server: &Server, is_fastcgi: bool| {
        for (number, &(head, application, fastcgi)) in cases.iter().enumerate() {
            let got = server.get(&format!("/?{number}"));
            let expected = if is_fastcgi { fastcgi } else { application };
            assert_eq!((got.status, got.text().as_str()), (expected, "body"), "{is_fastcgi} {head:?}");
            assert_eq!(got.field("x-field"), Some("yes"), "{head:?}");
            assert!(is_nginx() || got.field("status").is_none(), "{head:?}");
        }
    };
    each(script, |server, _, _| check(server, false));
    let application = Application::start(move |asked| answer(&String::from_utf8_lossy(&script(asked))));
    let port = application.port().to_string();
    check(&Server::start(SITE, &[("FAMILY", "fastcgi"), ("APP", &port), ("MORE", "")]), true);
}

#[test]
fn bodies_go_to_an_application_as_they_are_and_their_length_with_them() {
    let script =
        |asked: &Asked| format!("\r\n{} {}", asked.param("CONTENT_LENGTH"), asked.body.len()).into_bytes();
    each(script, |server, application, speaks| {
        let long = "x".repeat(200_000);
        for path in ["/", "/streamed/"] {
            let mut client = server.client();
            let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
            assert_eq!(client.ask(head + &long).text(), "200000 200000", "{speaks:?} {path}");
            let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
            assert_eq!(
                client.ask(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{chunked}")).text(),
                "3 3",
                "{speaks:?} {path}"
            );
        }
        assert_eq!(application.asked()[1].body, b"abc");
    });
}

#[test]
fn what_an_application_says_is_cached_and_a_cut_answer_is_not() {
    let script = |asked: &Asked| match asked.param("QUERY_STRING") {
        "cut" => b"Content-Length: 10\r\n\r\nshort".to_vec(),
        _ => format!("\r\n{}", asked.param("REQUEST_METHOD")).into_bytes(),
    };
    each(script, |server, application, speaks| {
        let cache = |path: &str| server.get(path).field("x-cache").map(str::to_owned);
        let mut client = server.client();
        assert_eq!(client.request("HEAD", "/cached/a", &[]).expect("an answer").status, 200);
        for _ in 0..2 {
            let got = server.get("/cached/a");
            assert_eq!((got.text().as_str(), got.field("x-cache")), ("GET", Some("HIT")), "{speaks:?}");
        }
        assert_eq!(cache("/cached/a?b").as_deref(), Some("MISS"));
        for _ in 0..2 {
            let mut client = server.client();
            client.send("GET /cached/a?cut HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is taken");
            assert!(client.answer().is_err(), "{speaks:?}: the client sees that it is cut");
        }
        assert_eq!(application.asked().len(), 4, "{speaks:?}");
    });
}

#[test]
fn an_address_may_come_from_the_request_and_what_cannot_be_said_is_refused() {
    each(
        |_| b"\r\nhere".to_vec(),
        |server, application, speaks| {
            for address in ["app".to_owned(), format!("127.0.0.1:{}", application.port())] {
                assert_eq!(server.get(&format!("/chosen/?where={address}")).text(), "here", "{speaks:?}");
            }
            let long = "x".repeat(30_000);
            let fields = [("X-A", &*long), ("X-B", &*long), ("X-C", &*long)];
            // uwsgi says the length of all parameters in 16 bits.
            let status = if speaks == Speaks::Uwsgi { 431 } else { 200 };
            assert_eq!(server.get_with("/", &fields).status, status, "{speaks:?}");
            assert_eq!(server.get("/").status, 200, "{speaks:?}: the application is not to blame");
        },
    );
}

#[test]
fn another_spelling_of_a_field_overrides_no_parameter_and_decides_nothing_for_others() {
    let site = site! {
        http "underscores_in_headers on;
            @FAMILY@_cache_path @DIR@/cache keys_zone=pages:1m;
            @FAMILY@_param CONTENT_LENGTH $content_length;"
        server "add_header X-Cache $upstream_cache_status;
            location /set/ { @FAMILY@_pass 127.0.0.1:@APP@; @FAMILY@_param HTTP_X_REAL_IP $remote_addr; }
            location /hidden/ { @FAMILY@_pass 127.0.0.1:@APP@; @FAMILY@_pass_client_address off; }
            location /cached/ { @FAMILY@_pass 127.0.0.1:@APP@; @FAMILY@_cache pages; @FAMILY@_cache_valid 200 1m; }
            location /keyed/ {
                @FAMILY@_pass 127.0.0.1:@APP@; @FAMILY@_cache pages; @FAMILY@_cache_valid 200 1m;
                @FAMILY@_cache_key $uri$http_x_tenant; @FAMILY@_ignore_headers Vary;
            }"
    };
    for (speaks, family) in [(Speaks::FastCgi, "fastcgi"), (Speaks::Uwsgi, "uwsgi"), (Speaks::Scgi, "scgi")] {
        let application = Application::speaking(speaks, move |asked| {
            let mut fields: Vec<_> = asked
                .params
                .iter()
                .filter(|(name, _)| name.starts_with("HTTP_X_") || name.contains("LANG"))
                .collect();
            fields.extend(asked.params.iter().filter(|(name, _)| name.contains("IF_NONE")));
            let text = format!("Vary: X-Tenant, Accept-Language\r\n\r\n{fields:?}");
            if speaks == Speaks::FastCgi { answer(&text) } else { text.into_bytes() }
        });
        let port = application.port().to_string();
        let server = Server::start(site, &[("FAMILY", family), ("APP", &port)]);
        let get = |path: &str, fields: &[(&str, &str)]| server.get_with(path, fields);
        for name in ["X-Real-IP", "X_Real_IP", "X_REAL-IP", "x-real_ip"] {
            let both = [("X-Real-IP", "6.6.6.6"), (name, "7.7.7.7")];
            let expected = "[(\"HTTP_X_REAL_IP\", \"127.0.0.1\")]";
            assert_eq!(get("/set/", &both).text(), expected, "{family} {name}");
            assert_eq!(get("/hidden/", &both).text(), "[]", "{family} {name}");
        }
        let joined = get("/set/", &[("X-A", "1"), ("X_A", "2")]).text();
        assert!(joined.contains("(\"HTTP_X_A\", \"1, 2\")"), "{family}: {joined}");
        for path in ["/cached/", "/keyed/"] {
            for (name, value) in [
                ("X_Tenant", "evil"),
                ("If_None_Match", "*"),
                ("Accept_Language", "de"),
                ("X_Forwarded_Host", "evil"),
            ] {
                let path = format!("{path}{name}");
                get(&path, &[(name, value)]);
                let other = get(&path, &[]);
                assert_eq!(other.text(), "[]", "{family} {path}");
                assert_eq!(other.field("x-cache") == Some("MISS"), name == "X_Tenant", "{family} {path}");
            }
        }
    }
}
