//! `dav_methods`: what clients change, and what they cannot reach. The tables hold for nginx too (`MILLSTREAM_BINARY`), but where they say so.

use millstream_tests::client::Client;
use millstream_tests::frames::Frames;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

const START: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 2; events { worker_connections 64; }
    http { access_log off; client_body_buffer_size 1k; client_body_temp_path @DIR@/bodies; absolute_redirect off;
        server { listen 127.0.0.1:@PORT@; http2 on; server_name localhost; root @DIR@/www; dav_methods PUT DELETE MKCOL COPY MOVE;";

fn served(locations: &str) -> Server {
    let prefix = Prefix::new();
    for folder in ["www", "www/dir", "www/dir/sub", "www/open", "outside"] {
        fs::create_dir(prefix.join(folder)).expect("it can be made");
        fs::set_permissions(prefix.join(folder), fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    for file in ["www/file", "www/dir/one", "www/dir/sub/two", "outside/secret"] {
        prefix.write(file, file);
    }
    Server::start_in(prefix, &format!("{START} {locations} }} }}"), &[])
}

fn asked(server: &Server, method: &str, target: &str, fields: &str, body: &str) -> (u16, Option<String>) {
    let mut client = server.client();
    let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
    client.send(head + body).expect("sent");
    let answer = client.answer_to(method).expect("an answer");
    (answer.status, answer.field("location").map(str::to_owned))
}

fn status(server: &Server, method: &str, target: &str, fields: &str) -> u16 {
    asked(server, method, target, fields, "").0
}

fn content(server: &Server, path: &str) -> Option<String> {
    fs::read_to_string(server.prefix().join(path)).ok()
}

#[test]
fn a_body_becomes_a_file_whatever_its_framing_and_size() {
    let server = served("");
    let large = "0123456789".repeat(20_000);
    for (at, body) in ["", "small", large.as_str()].into_iter().enumerate() {
        let length = format!("Content-Length: {}\r\n", body.len());
        let path = format!("www/new-{at}");
        assert_eq!(
            asked(&server, "PUT", &format!("/new-{at}"), &length, body),
            (201, Some(format!("/new-{at}")))
        );
        assert_eq!(content(&server, &path).as_deref(), Some(body), "by length");
        server.prefix().write(&path, "before");
        let chunked = if body.is_empty() { String::new() } else { format!("{:x}\r\n{body}\r\n", body.len()) };
        let fields = "Transfer-Encoding: chunked\r\n";
        assert_eq!(
            asked(&server, "PUT", &format!("/new-{at}"), fields, &(chunked + "0\r\n\r\n")),
            (204, None)
        );
        assert_eq!(content(&server, &path).as_deref(), Some(body), "in chunks");
        let pieces: String = body
            .as_bytes()
            .chunks(7)
            .map(|piece| format!("{:x}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece)))
            .collect();
        assert_eq!(
            asked(&server, "PUT", &format!("/new-{at}"), fields, &(pieces + "0\r\n\r\n")),
            (204, None)
        );
        assert_eq!(content(&server, &path).as_deref(), Some(body), "in many chunks");
        let mut frames = Frames::connect(server.port());
        let stream = frames.request("PUT", &format!("/h2-{at}"), &[], false);
        match body {
            "" => frames.data(stream, b"", true),
            body => frames.upload(stream, body.as_bytes()),
        }
        assert_eq!(frames.answer(stream).status, 201);
        assert_eq!(content(&server, &format!("www/h2-{at}")).as_deref(), Some(body), "over HTTP/2");
    }
    wait::until("no temporary file is left", || server.prefix().count_files("bodies") == 0);
    assert_eq!(server.prefix().count_files("www"), 3 + 6, "nor one beside the others");
}

#[test]
fn a_body_that_is_not_whole_or_too_large_changes_nothing() {
    let server = served("client_max_body_size 4k;");
    let cut = |head: &str| {
        let mut client = server.client();
        client.send(head).expect("sent");
        client.finish_writing().expect("closed");
        _ = client.rest_of_connection();
    };
    let half = "x".repeat(2_000);
    cut(&format!("PUT /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n{half}"));
    cut(&format!(
        "PUT /file HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n{half}\r\n"
    ));
    let large = "x".repeat(5_000);
    assert_eq!(asked(&server, "PUT", "/file", "Content-Length: 5000\r\n", &large).0, 413);
    let chunked = format!("1388\r\n{large}\r\n0\r\n\r\n");
    assert_eq!(asked(&server, "PUT", "/file", "Transfer-Encoding: chunked\r\n", &chunked).0, 413);
    assert_eq!(content(&server, "www/file").as_deref(), Some("www/file"));
    wait::until("no temporary file is left", || server.prefix().count_files("bodies") == 0);
}

#[test]
fn each_request_gets_the_status_that_nginx_gives() {
    let server = served(
        "location /min/ { min_delete_depth 3; } location /full/ { create_full_put_path on; dav_access group:r all:r; }
        location /off/ { dav_methods off; } location /put/ { dav_methods put; }
        location /alias/ { alias @DIR@/www/open/; }
        location /except/ { limit_except GET { deny all; } }",
    );
    let one = "Content-Length: 1\r\n";
    let to = |path: &str| format!("Destination: {path}\r\n");
    let port = server.port();
    for (method, target, fields, expected) in [
        ("PUT", "/dir/", one.into(), 409),
        ("PUT", "/dir", one.into(), 409),
        ("PUT", "/file", format!("{one}Content-Range: bytes 0-0/2\r\n"), 501),
        ("PUT", "/missing/file", one.into(), 500),
        ("PUT", "/full/a/b", one.into(), 201),
        ("PUT", "/put/a", one.into(), 500),
        ("PUT", "/off/a", one.into(), 405),
        ("PUT", "/except/a", one.into(), 403),
        ("PUT", "/alias/a%2Fb", one.into(), 500),
        ("PUT", "/alias/a%20b", one.into(), 201),
        ("DELETE", "/put/a", String::new(), 405),
        ("DELETE", "/file", one.into(), 415),
        ("DELETE", "/none", String::new(), 404),
        ("DELETE", "/file/none", String::new(), 409),
        ("DELETE", "/file/", String::new(), 409),
        ("DELETE", "/dir", String::new(), 409),
        ("DELETE", "/dir/", "Depth: 0\r\n".into(), 400),
        ("DELETE", "/file", "Depth: 1\r\n".into(), 400),
        ("DELETE", "/file", "Depth: Infinity\r\n".into(), 400),
        ("DELETE", "/min/a", String::new(), 409),
        ("DELETE", "/min/a/b", String::new(), 404),
        ("MKCOL", "/made", String::new(), 409),
        ("MKCOL", "/made/", one.into(), 415),
        ("MKCOL", "/made/", String::new(), 201),
        ("MKCOL", "/made/", String::new(), 405),
        ("MKCOL", "/none/made/", String::new(), 409),
        ("COPY", "/file", String::new(), 400),
        ("COPY", "/file", to(""), 400),
        ("COPY", "/file", to("copy"), 400),
        ("COPY", "/file", to("ftp://localhost/copy"), 400),
        ("COPY", "/file", to("https://localhost/copy"), 400),
        ("COPY", "/file", to("http://localhost"), 400),
        ("COPY", "/file", to("http://elsewhere/copy"), 400),
        ("COPY", "/file", to("/../outside/secret"), 400),
        ("COPY", "/file", to("/%2e%2e/outside/secret"), 400),
        ("COPY", "/file", to("/copy%"), 400),
        ("COPY", "/file", to("/copy%00"), 400),
        ("COPY", "/file", to("/copy/"), 409),
        ("COPY", "/dir/", to("/copy"), 409),
        ("COPY", "/file", to("/dir"), 409),
        ("COPY", "/file", to("/file"), 403),
        ("COPY", "/file", to("//file"), 403),
        ("COPY", "/dir/", to("/dir/sub/in/"), 403),
        ("COPY", "/dir/sub/", to("/dir/"), 403),
        ("COPY", "/file", format!("Depth: 1\r\n{}", to("/copy")), 400),
        ("MOVE", "/file", format!("Depth: 0\r\n{}", to("/copy")), 400),
        ("COPY", "/file", format!("Overwrite: F\r\n{}", to("/dir/one")), 412),
        ("COPY", "/file", format!("Overwrite: no\r\n{}", to("/copy")), 400),
        ("COPY", "/file", to("/none/copy"), 500),
        ("COPY", "/none", to("/copy"), 404),
        ("COPY", "/dir", to("/copy"), 400),
        ("COPY", "/dir/", to("/none/copy/"), 404),
        (
            "COPY",
            "/file",
            to(&format!("http://LOCALHOST:{port}/copy%20a?x=1")),
            if is_nginx() { 400 } else { 204 },
        ),
        ("COPY", "/file", format!("{one}{}", to("/copy")), 415),
        ("COPY", "/alias/a%20b", to("/al"), 400),
        ("COPY", "/alias/a%20b", to("/alias/copied"), 204),
        ("MOVE", "/alias/copied", to("/alias/new/moved"), 204),
        ("PATCH", "/file", one.into(), 405),
    ] {
        let body = if fields.contains("Content-Length: 1") { "x" } else { "" };
        let got = asked(&server, method, target, &fields, body).0;
        assert_eq!(got, expected, "{method} {target} {fields:?}");
    }
    assert_eq!(content(&server, "www/file").as_deref(), Some("www/file"));
    assert_eq!(content(&server, "outside/secret").as_deref(), Some("outside/secret"));
    assert_eq!(content(&server, "www/open/new/moved").as_deref(), Some("x"));
    let mode =
        |path: &str| fs::metadata(server.prefix().join(path)).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode("www/full/a/b"), 0o644);
    assert_eq!(mode("www/full/a") & 0o700, 0o700);
    assert_eq!(mode("www/open/a b"), 0o600);
}

#[test]
fn files_and_trees_are_copied_moved_and_removed_as_they_are() {
    let server = served("");
    let there = |path: &str| server.prefix().join(path).symlink_metadata().is_ok();
    symlink("../outside", server.prefix().join("www/dir/link")).expect("made");
    let facts = || fs::metadata(server.prefix().join("www/dir/one")).expect("there");
    fs::set_permissions(server.prefix().join("www/dir/one"), fs::Permissions::from_mode(0o754))
        .expect("ours");
    assert_eq!(status(&server, "COPY", "/dir/", "Destination: /copy/\r\n"), 201);
    assert_eq!(content(&server, "www/copy/sub/two").as_deref(), Some("www/dir/sub/two"));
    assert!(!there("www/copy/link"), "a link is not copied");
    let copied = fs::metadata(server.prefix().join("www/copy/one")).expect("there");
    assert_eq!((copied.mode(), copied.mtime()), (facts().mode(), facts().mtime()));
    assert_eq!(status(&server, "MOVE", "/dir/", "Destination: /copy/\r\n"), 201, "in its place");
    assert!(!there("www/dir") && there("www/copy/link"));
    assert_eq!(status(&server, "MOVE", "/copy/one", "Destination: /file\r\n"), 204);
    assert_eq!(content(&server, "www/file").as_deref(), Some("www/dir/one"));
    assert_eq!(status(&server, "DELETE", "/copy/", ""), 204);
    assert!(!there("www/copy") && there("outside/secret"), "a link is removed, and not what it leads to");
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 1\r\n";
    assert_eq!(asked(&server, "PUT", "/dated", date, "x").0, 201);
    assert_eq!(fs::metadata(server.prefix().join("www/dated")).expect("there").mtime(), 784_111_777);
}

#[test]
fn links_are_followed_as_disable_symlinks_allows() {
    skip_on_nginx!("it follows every link here");
    let server = served("disable_symlinks on from=@DIR@; create_full_put_path on;");
    symlink("../outside", server.prefix().join("www/link")).expect("made");
    symlink("../outside/secret", server.prefix().join("www/linked")).expect("made");
    let length = "Content-Length: 1\r\n";
    for (method, target, fields, expected) in [
        ("PUT", "/link/new", length, 403),
        ("PUT", "/link/a/new", length, 403),
        ("MKCOL", "/link/new/", "", 403),
        ("DELETE", "/link/secret", "", 403),
        ("COPY", "/file", "Destination: /link/new\r\n", 403),
        ("COPY", "/link/secret", "Destination: /stolen\r\n", 403),
        ("COPY", "/linked", "Destination: /stolen\r\n", 403),
        ("MOVE", "/file", "Destination: /link/new\r\n", 403),
        ("MOVE", "/link/secret", "Destination: /stolen\r\n", 403),
        ("PUT", "/a/b/new", length, 201),
        ("PUT", "/linked", length, 204),
        ("DELETE", "/linked", "", 204),
    ] {
        let body = if fields == length { "x" } else { "" };
        assert_eq!(asked(&server, method, target, fields, body).0, expected, "{method} {target}");
    }
    assert_eq!(content(&server, "outside/secret").as_deref(), Some("outside/secret"));
    assert_eq!(server.prefix().count_files("outside"), 1);
}

#[test]
fn what_a_link_leads_back_to_itself_is_neither_copied_nor_moved() {
    skip_on_nginx!("it removes the source first");
    let server = served("");
    let www = server.prefix().join("www");
    symlink(".", www.join("here")).expect("made");
    symlink("../dir", www.join("open/back")).expect("made");
    symlink("dir/sub", www.join("inside")).expect("made");
    for (source, destination, expected) in [
        ("/dir/", "/here/dir/", 403),
        ("/here/dir/", "/dir/", 403),
        ("/dir/sub/", "/open/back/sub/", 403),
        ("/dir/", "/open/back/sub/", 403),
        ("/dir/", "/open/back/new/", 403),
        ("/dir/", "/inside/new/", 403),
        ("/inside/", "/dir/", 404), // A link is no collection.
        ("/here/dir/sub/", "/dir/", 403),
        ("/dir/sub/", "/here/dir/", 403),
        ("/file", "/here/file", 403),
        ("/here/dir/one", "/open/back/one", 403),
    ] {
        for method in ["COPY", "MOVE"] {
            let got = status(&server, method, source, &format!("Destination: {destination}\r\n"));
            assert_eq!(got, expected, "{method} {source} {destination}");
            for file in ["www/file", "www/dir/one", "www/dir/sub/two"] {
                assert_eq!(content(&server, file).as_deref(), Some(file), "{method} {source} {destination}");
            }
            assert!(!www.join("dir/new").exists() && !www.join("dir/sub/new").exists());
        }
    }
    assert_eq!(status(&server, "MOVE", "/dir/sub/", "Destination: /here/open/sub/\r\n"), 201);
    assert_eq!(content(&server, "www/open/sub/two").as_deref(), Some("www/dir/sub/two"), "elsewhere");
    assert_eq!(status(&server, "COPY", "/open/back/one", "Destination: /here/copy\r\n"), 204);
    assert_eq!(content(&server, "www/copy").as_deref(), Some("www/dir/one"));
}

#[test]
fn a_file_that_changed_is_seen_by_every_worker_that_keeps_it_open() {
    let server = served("open_file_cache max=100; open_file_cache_valid 1h; open_file_cache_errors on;");
    skip_on_nginx!("its workers look again after open_file_cache_valid");
    // Connections are spread over both workers.
    let mut clients: Vec<Client> = (0..16).map(|_| server.client()).collect();
    let mut seen = |expected: (u16, &str)| {
        for client in &mut clients {
            let got = client.get("/file").expect("an answer");
            assert_eq!(got.status, expected.0);
            assert!(expected.0 != 200 || got.text() == expected.1);
        }
    };
    seen((200, "www/file"));
    assert_eq!(asked(&server, "PUT", "/file", "Content-Length: 3\r\n", "new").0, 204);
    seen((200, "new"));
    assert_eq!(status(&server, "DELETE", "/file", ""), 204);
    seen((404, ""));
    assert_eq!(status(&server, "COPY", "/dir/one", "Destination: /file\r\n"), 204);
    seen((200, "www/dir/one"));
}
