//! FastCGI applications: asked as nginx asks them, cached as any API, and never believed.

use millstream_tests::application::{Application, answer, record};
use millstream_tests::client::Answer;
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};
use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

const APPLICATION: &str = site! {
    log "info"
    http "fastcgi_cache_path @DIR@/cache keys_zone=pages:1m;
        upstream php { server 127.0.0.1:@APP@; keepalive 4; }
        fastcgi_param SCRIPT_FILENAME /srv$fastcgi_script_name;
        fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_param CONTENT_LENGTH $content_length;
        fastcgi_param QUERY_STRING $query_string;
        fastcgi_param PATH_INFO $fastcgi_path_info;"
    server "add_header X-Cache $upstream_cache_status;
        error_page 503 /sorry;
        fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
        location / { fastcgi_pass 127.0.0.1:@APP@; fastcgi_index index.php; }
        location /kept/ { fastcgi_pass php; fastcgi_keep_conn on; }
        location /cached/ { fastcgi_pass php; fastcgi_cache pages; fastcgi_cache_valid 200 1m; fastcgi_cache_bypass $arg_new; }
        location /streamed/ { fastcgi_pass php; fastcgi_request_buffering off; }
        location /guarded/ { fastcgi_pass php; fastcgi_catch_stderr fatal; fastcgi_intercept_errors on; }
        location /if/ { root @DIR@; if ($arg_php) { fastcgi_pass php; } }
        location /chosen/ { fastcgi_pass $arg_where; }
        location /sorry { return 503 sorry; }
        location /found { return 200 found; }"
};

fn start(application: &Application) -> Server {
    Server::start(APPLICATION, &[("APP", &application.port().to_string())])
}

fn got(bytes: Vec<u8>, path: &str) -> (Answer, Server) {
    let application = Application::start(move |_| bytes.clone());
    let server = start(&application);
    (server.get(path), server)
}

#[test]
fn an_application_is_asked_in_fastcgi_and_answers_as_cgi_does() {
    let application = Application::start(|_| {
        answer("Status: 201 Created\r\nX-Powered-By: test\r\nContent-Type: text/plain\r\n\r\nhello")
    });
    let server = start(&application);
    let got = server.get_with("/blog/?a=b", &[("X-One", "1")]);
    assert_eq!((got.status, got.text().as_str()), (201, "hello"));
    assert_eq!((got.field("x-powered-by"), got.field("status")), (Some("test"), None));
    let asked = &application.asked()[0];
    let told = |name: &str| asked.param(name).to_owned();
    assert_eq!(told("SCRIPT_FILENAME"), "/srv/blog/index.php");
    assert_eq!([told("REQUEST_METHOD"), told("QUERY_STRING"), told("HTTP_X_ONE")], ["GET", "a=b", "1"]);
    assert!(!asked.keep);
}

#[test]
fn a_location_alone_is_a_redirect_and_x_accel_redirect_leads_to_another_location() {
    let (redirect, _) = got(answer("Location: /elsewhere\r\n\r\n"), "/");
    assert_eq!((redirect.status, redirect.field("location")), (302, Some("/elsewhere")));
    let (found, _) = got(answer("X-Accel-Redirect: /found\r\n\r\nnot this"), "/");
    assert_eq!((found.status, found.text().as_str()), (200, "found"));
    let (page, _) = got(answer("Status: 503\r\n\r\ninternals"), "/guarded/");
    assert_eq!((page.status, page.text().as_str()), (503, "sorry"));
}

#[test]
fn an_if_of_a_location_may_choose_the_application() {
    let application = Application::start(|asked| answer(&format!("X: y\n\n{}", asked.param("QUERY_STRING"))));
    let server = start(&application);
    server.prefix().write("if/page", "static");
    assert_eq!(server.get("/if/page").text(), "static");
    assert_eq!(server.get("/if/page?php=1").text(), "php=1");
    assert_eq!(server.get("/if/none?php=2").text(), "php=2");
}

#[test]
fn a_location_takes_the_parting_of_its_uri_from_its_server() {
    let application = Application::start(|_| answer("X: y\n\nhello"));
    let server = start(&application);
    assert_eq!(server.get("/run.php/a/b").text(), "hello");
    let asked = &application.asked()[0];
    assert_eq!((asked.param("SCRIPT_FILENAME"), asked.param("PATH_INFO")), ("/srv/run.php", "/a/b"));
}

#[test]
fn bodies_go_to_an_application_however_they_come() {
    let application = Application::start(|asked| {
        answer(&format!("Content-Type: text/plain\n\n{} {}", asked.param("CONTENT_LENGTH"), asked.body.len()))
    });
    let server = start(&application);
    let long = "x".repeat(200_000);
    for path in ["/", "/streamed/", "/kept/"] {
        let mut client = server.client();
        let mut post = |rest: &str| client.ask(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{rest}")).text();
        assert_eq!(post(&format!("Content-Length: 200000\r\n\r\n{long}")), "200000 200000", "{path}");
        // An application wants to know the length, so what comes in chunks is counted first.
        assert_eq!(post("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "3 3", "{path}");
    }
    assert_eq!(application.asked()[1].body, b"abc");
}

#[test]
fn a_kept_connection_is_asked_again() {
    let application = Application::start(|_| answer("X: y\n\nhello"));
    let server = start(&application);
    for _ in 0..3 {
        assert_eq!(server.get("/kept/").text(), "hello");
    }
    assert!(application.asked().iter().all(|asked| asked.keep && asked.connection == 0));
}

#[test]
fn a_coding_that_a_client_names_to_refuse_it_is_not_asked_of_a_cached_application() {
    let application =
        Application::start(|_| answer("Cache-Control: max-age=60\r\nVary: Accept-Encoding\r\n\r\nx"));
    let server = start(&application);
    for (accepted, asked) in
        [("gzip;q=0", "identity"), ("deflate, gzip;q=0", "deflate"), ("gzip, br;q=0", "gzip")]
    {
        server.get_with("/cached/", &[("Accept-Encoding", accepted)]);
        let last = application.asked().pop().expect("it was asked");
        assert_eq!(last.param("HTTP_ACCEPT_ENCODING"), asked, "{accepted}");
    }
}

#[test]
fn what_an_application_says_is_cached_and_a_cut_answer_is_not() {
    let application = Application::start(|asked| {
        let text = answer("Content-Type: text/plain\r\n\r\nonce");
        if asked.param("SCRIPT_FILENAME").ends_with("cut") { text[..text.len() - 16].to_vec() } else { text }
    });
    let server = start(&application);
    let cache = |path: &str| server.get(path).field("x-cache").map(str::to_owned);
    assert_eq!(cache("/cached/a").as_deref(), Some("MISS"));
    assert_eq!(cache("/cached/a").as_deref(), Some("HIT"));
    assert_eq!(cache("/cached/a?new=1").as_deref(), Some("BYPASS"));
    assert_eq!(application.asked().len(), 2);
    for _ in 0..2 {
        let mut client = server.client();
        client.send("GET /cached/cut HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is taken");
        assert!(client.answer().is_err(), "the client sees that it is cut");
    }
    assert_eq!(application.asked().len(), 4, "it was not stored");
}

#[test]
fn complaints_of_an_application_are_in_the_error_log_and_may_make_its_answer_invalid() {
    let complaint = |text: &[u8]| [record(7, text), answer("X: y\n\nhello")].concat();
    let (fine, server) = got(complaint(b"PHP message: oh dear.\n"), "/");
    assert_eq!(fine.text(), "hello");
    let told = "FastCGI sent in stderr: \"PHP message: oh dear\" while reading";
    wait::until("it is told", || server.log().contains(told));
    server.says("upstream: \"fastcgi://127.0.0.1:");
    let (bad, _) = got(complaint(b"a fatal one"), "/guarded/");
    assert_eq!(bad.status, 502);
    let flood = [record(7, &[b'x'; 60_000]).repeat(50), answer("X: y\n\nhello")].concat();
    let (fine, server) = got(flood, "/");
    assert_eq!(fine.text(), "hello");
    wait::until("it is told", || server.log().contains("FastCGI sent in stderr: \"xxx"));
    assert!(server.log().lines().all(|line| line.len() < 4096), "a line is bounded");
}

#[test]
fn what_is_no_answer_is_a_502_that_says_why() {
    let check = |bytes: Vec<u8>, says: &str| {
        let (answer, server) = got(bytes, "/");
        assert_eq!(answer.status, 502, "{says}");
        wait::until(says, || server.log().contains(says));
    };
    check(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), "unsupported FastCGI protocol version: 72");
    check(vec![1, 6, 0, 9, 0, 0, 0, 0], "unexpected FastCGI request id: 9");
    check(vec![1, 11, 0, 1, 0, 0, 0, 0], "invalid FastCGI record type: 11");
    check(record(3, &[0; 8]), "prematurely closed FastCGI stdout");
    check(vec![1, 6, 0, 1, 0xff, 0xff, 0xff, 0, b'X'], "upstream prematurely closed connection");
    check(record(6, &[b'x'; 9000]), "upstream sent too big header");
    check(answer("Status: abc\r\n\r\n"), "upstream sent invalid status");
    check(answer("no field\r\n\r\n"), "upstream sent invalid header");
}

#[test]
fn an_answer_in_thousands_of_records_of_one_byte_is_one_text() {
    let text = format!("Content-Type: text/plain\r\n\r\n{}", "0123456789".repeat(1000));
    let mut bytes: Vec<u8> = text.bytes().flat_map(|byte| record(6, &[byte])).collect();
    bytes.extend(record(3, &[0; 8]));
    let (answer, _) = got(bytes, "/");
    assert_eq!(answer.text(), "0123456789".repeat(1000));
}

#[test]
fn an_address_with_variables_is_asked_and_one_that_is_none_is_a_500() {
    let application = Application::start(|_| answer("X: y\n\nhello"));
    let server = start(&application);
    assert_eq!(server.get(&format!("/chosen/?where=127.0.0.1:{}", application.port())).text(), "hello");
    assert_eq!(server.get("/chosen/?where=php").text(), "hello", "the name of an upstream");
    assert_eq!(server.get("/chosen/").status, 500);
}

#[test]
fn php_fpm_answers_through_the_parameters_of_debian() {
    let program = ["/usr/sbin/php-fpm8.2", "/usr/sbin/php-fpm8.3", "/usr/sbin/php-fpm8.4"];
    let Some(program) = program.into_iter().find(|path| std::path::Path::new(path).exists()) else {
        eprintln!("skipped: php-fpm is not installed");
        return;
    };
    let prefix = millstream_tests::prefix::Prefix::new();
    prefix.write(
        "index.php",
        "<?php error_log('from php'); header('X-Sapi: ' . PHP_SAPI); \
        echo $_SERVER['REQUEST_URI'], ' ', $_SERVER['SCRIPT_NAME'], ' ', file_get_contents('php://input');",
    );
    let (socket, folder) = (prefix.join("php.sock"), prefix.path().display().to_string());
    let pool = format!(
        "[global]\nerror_log = {folder}/fpm.log\n[www]\nlisten = {folder}/php.sock\nlisten.mode = 0666\npm = static\npm.max_children = 2\n"
    );
    let pool = prefix.write("fpm.conf", &pool);
    let mut fpm = std::process::Command::new(program);
    fpm.args(["-F", "-R", "-n", "-y"]).arg(pool).stdin(std::process::Stdio::null());
    let _fpm = millstream_tests::process::Running::start(&mut fpm).expect("PHP-FPM starts");
    wait::until("PHP-FPM listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    let configuration = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
        http { access_log off; server {
            listen 127.0.0.1:@PORT@;
            root @DIR@;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param SCRIPT_NAME $fastcgi_script_name;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param DOCUMENT_ROOT $document_root;
            fastcgi_param SERVER_PROTOCOL $server_protocol;
            fastcgi_param HTTPS $https if_not_empty;
            fastcgi_param SERVER_ADDR $server_addr;
            fastcgi_param REDIRECT_STATUS 200;
            location / { fastcgi_pass unix:@DIR@/php.sock; fastcgi_index index.php; fastcgi_keep_conn on; }
        } }";
    let server = Server::start_in(prefix, configuration, &[]);
    for _ in 0..3 {
        let got = server.get("/?a=b");
        assert_eq!((got.status, got.text().as_str()), (200, "/?a=b /index.php "), "{}", server.log());
        assert_eq!(got.field("x-sapi"), Some("fpm-fcgi"));
    }
    assert_eq!(
        server.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody").text(),
        "/ /index.php body"
    );
    assert_eq!(server.get("/none.php").status, 404);
    wait::until("what PHP logs is told", || {
        server.log().contains("FastCGI sent in stderr: \"PHP message: from php")
    });
}

/// No output arrives from an application that is still to write.
const QUIET: Duration = Duration::from_millis(200);

#[test]
fn an_application_has_its_connection_until_it_has_ended_the_request() {
    skip_on_nginx!();
    let (listener, port) = ports::listener();
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {} http { access_log off; server { listen 127.0.0.1:@PORT@;
            location / { fastcgi_pass 127.0.0.1:@APP@; fastcgi_read_timeout 20s; }
            location /kept { fastcgi_pass 127.0.0.1:@APP@; fastcgi_keep_conn on; fastcgi_read_timeout 20s; } } }",
        &[("APP", &port.to_string())],
    );
    for path in ["/", "/kept"] {
        let mut client = server.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).expect("sent");
        let (mut application, _) = listener.accept().expect("it asks");
        read_request(&mut application);
        application
            .write_all(&[record(6, b"Status: 200 OK\r\n\r\ntext"), record(6, b"")].concat())
            .expect("written");
        application.set_read_timeout(Some(QUIET)).expect("a socket");
        let early = application.read(&mut [0]);
        assert!(
            early.is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "{path}: it closed before END_REQUEST"
        );
        application.write_all(&record(3, &[0; 8])).expect("written");
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status, answer.text().as_str()), (200, "text"), "{path}");
    }
    // One that closes the text before the head, or before the body that it announced, has failed at once.
    for (number, text) in ["Status: 200 OK\r\n", "Content-Length: 9\r\n\r\ntext"].iter().enumerate() {
        let mut client = server.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
        let (mut application, _) = listener.accept().expect("it asks");
        application.write_all(&[record(6, text.as_bytes()), record(6, b"")].concat()).expect("written");
        let told = "upstream prematurely closed FastCGI stdout";
        wait::until("the error log says so", || server.log().matches(told).count() == number + 1);
    }
}

/// Parameters and an empty body, which end with an empty record.
fn read_request(application: &mut impl std::io::Read) {
    let mut asked = Vec::new();
    while !asked.ends_with(&record(5, b"")) {
        let mut piece = [0; 4096];
        let length = application.read(&mut piece).expect("the request");
        assert!(length > 0, "it closed within the request");
        asked.extend_from_slice(&piece[..length]);
    }
}

#[test]
fn a_connection_whose_length_is_reached_is_kept_once_the_request_is_ended() {
    skip_on_nginx!("its client waits for the record");
    let (listener, port) = ports::listener();
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log; worker_processes 1; events {} http { access_log off;
            fastcgi_cache_path @DIR@/cache keys_zone=pages:1m; upstream php { server 127.0.0.1:@APP@; keepalive 4; }
            server { listen 127.0.0.1:@PORT@; fastcgi_keep_conn on;
            location / { fastcgi_pass php; }
            location /cached { fastcgi_pass php; fastcgi_cache pages; fastcgi_cache_valid 1m; fastcgi_cache_key $uri; } } }",
        &[("APP", &port.to_string())],
    );
    let text = record(6, b"Content-Length: 4\r\n\r\ntext");
    let end = record(3, &[0; 8]);
    let mut client = server.client();
    let ask = |client: &mut millstream_tests::client::Client, path: &str| {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).expect("sent");
    };
    ask(&mut client, "/");
    let (mut application, _) = listener.accept().expect("it asks");
    application.set_read_timeout(Some(QUIET)).expect("a socket");
    for next in ["/cached/1", "/2", "/cached/2", "/3"] {
        read_request(&mut application);
        application.write_all(&text).expect("written");
        assert_eq!(client.answer().expect("an answer").text(), "text", "the client waits for no record");
        let early = application.read(&mut [0]);
        assert!(
            early.is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "it closed before END_REQUEST"
        );
        // The last record may come in pieces.
        let (first, last) = end.split_at(5);
        application.write_all(&[&record(6, b""), first].concat()).expect("written");
        application.write_all(last).expect("written");
        ask(&mut client, next);
    }
    // Text behind the length belongs to nothing, and the connection is closed.
    read_request(&mut application);
    application.write_all(&text).expect("written");
    assert_eq!(client.answer().expect("an answer").text(), "text");
    application.write_all(&record(6, b"more")).expect("written");
    wait::until(
        "it is closed",
        || !matches!(&application.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock),
    );
}
