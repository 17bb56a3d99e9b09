//! `proxy_store`: whole answers become files, and nothing else does.

use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::time::Duration;

fn start(origin: &Origin) -> Server {
    let template = site! {
        main "worker_processes 2;"
        http "upstream api { server @ORIGIN@; keepalive 8; }"
        server "location / {
                root @DIR@/html;
                proxy_pass http://api;
                proxy_store on;
                proxy_store_access user:rw group:rw all:r;
            }
            location /named/ {
                proxy_pass http://api;
                proxy_store @DIR@/named/$arg_name;
            }
            location /query/ { proxy_method POST; proxy_set_body it; proxy_pass http://api; proxy_store @DIR@/named/query; }"
    };
    let prefix = Prefix::new();
    for folder in ["html", "named"] {
        let folder = prefix.join(folder);
        // Workers that root has started are somebody else.
        std::fs::create_dir(&folder).expect("own directory is writable");
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    }
    Server::start_in(prefix, template, &[("ORIGIN", &origin.address())])
}

fn content(server: &Server, path: &str) -> Option<Vec<u8>> {
    std::fs::read(server.prefix().join(path)).ok()
}

#[test]
fn a_whole_answer_becomes_a_file_with_its_time_and_its_mode() {
    let body: Vec<u8> = (0..300_000u32).map(|at| at as u8).collect();
    let origin = Origin::fixed(200, &[("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")], &body);
    let server = start(&origin);
    let got = server.get("/a/b/file.bin");
    assert!(got.status == 200 && got.body == body);
    wait::until("the file is there", || {
        content(&server, "html/a/b/file.bin").is_some_and(|file| file == body)
    });
    let facts = std::fs::metadata(server.prefix().join("html/a/b/file.bin")).expect("it is there");
    assert_eq!((facts.mtime(), facts.permissions().mode() & 0o777), (784_111_777, 0o664));
    assert!(server.get("/named/x?name=deep/file").body == body);
    wait::until("the file is there", || content(&server, "named/deep/file").is_some());
    let facts = std::fs::metadata(server.prefix().join("named/deep/file")).expect("it is there");
    assert_eq!(facts.permissions().mode() & 0o777, 0o600);
    // What is sent in place of a GET changes nothing for whom it is kept.
    assert!(server.get("/query/x").body == body);
    wait::until("the file is there", || content(&server, "named/query").is_some());
}

#[test]
fn what_is_not_a_whole_answer_of_200_to_a_get_becomes_no_file() {
    let origin = Origin::start(|request: &Request| match request.target() {
        "/cut" => vec![
            Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive.".to_vec()),
            Step::Pause(Duration::from_millis(200)),
            Step::Close,
        ],
        "/missing" => answer(404, &[], b"not here"),
        "/part" => answer(206, &[("Content-Range", "bytes 0-3/10")], b"part"),
        "/empty" => answer(200, &[], b""),
        _ => answer(200, &[], b"made"),
    });
    let server = start(&origin);
    assert!(server.client().get("/cut").is_err());
    assert_eq!(server.get("/missing").status, 404);
    assert_eq!(server.get_with("/part", &[("Range", "bytes=0-3")]).status, 206);
    assert_eq!(server.get("/empty").status, 200);
    let posted = server.request("POST", "/posted", &[("Content-Length", "0")]);
    assert_eq!(posted.status, 200);
    assert_eq!(server.get("/last").text(), "made");
    wait::until("the last file is there", || content(&server, "html/last").is_some());
    assert_eq!(content(&server, "html/empty").as_deref(), Some(&b""[..]));
    for path in ["cut", "missing", "part"] {
        assert_eq!(content(&server, &format!("html/{path}")), None, "{path}");
    }
    assert!(is_nginx() || content(&server, "html/posted").is_none());
    assert_eq!(server.prefix().count_files("html"), 2 + usize::from(is_nginx()), "no temporary file is left");
}

#[test]
fn a_path_that_leads_up_is_refused() {
    skip_on_nginx!("it writes wherever a variable leads");
    let origin = Origin::fixed(200, &[], b"evil");
    let server = start(&origin);
    for name in ["../evil", "a/../../evil", "..", ""] {
        let got = server.get(&format!("/named/x?name={name}"));
        assert_eq!((got.status, got.text().as_str()), (200, "evil"), "it is answered all the same");
    }
    assert_eq!(content(&server, "evil"), None);
    server.says("proxy_store path");
}

#[test]
fn a_client_that_leaves_does_not_stop_the_storing() {
    let gate = Arc::new(Gate::default());
    let origin = Origin::in_two(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234", &gate, b"56789");
    let server = start(&origin);
    let mut client = server.client();
    client.send("GET /left HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    client.head().expect("a head");
    drop(client);
    gate.open();
    wait::until("the file is there", || {
        content(&server, "html/left").is_some_and(|file| file == b"0123456789")
    });
}
