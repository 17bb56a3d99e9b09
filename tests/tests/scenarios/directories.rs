//! Directories shown as lists, files that stand coded beside others, links that are not followed, and the page of counts. What holds for
//! nginx's own modules holds for nginx itself (`MILLSTREAM_BINARY=/usr/sbin/nginx`).

use super::targets::check;
use millstream_tests::client::Client;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use std::fs;
use std::os::unix::fs::symlink;

const START: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; worker_processes 1; events { worker_connections 64; }
    http { access_log off; types { text/html html; text/plain txt; } server { listen 127.0.0.1:@PORT@; server_name localhost;
    root @DIR@/www;";

fn served(prefix: Prefix, locations: &str) -> Server {
    Server::start_in(prefix, &format!("{START} {locations} }} }}"), &[])
}

#[test]
fn a_directory_without_an_index_is_listed_where_that_is_on() {
    let prefix = Prefix::new();
    for folder in ["www", "www/list", "www/list/zoo", "www/index", "www/list/.git"] {
        fs::create_dir(prefix.join(folder)).expect("it can be made");
    }
    for file in ["www/list/a b.txt", "www/list/<i>.txt", "www/list/.hidden", "www/index/index.html"] {
        prefix.write(file, "four");
    }
    symlink(prefix.join("nowhere"), prefix.join("www/list/dangling")).expect("it can be made");
    let server = served(
        prefix,
        "location / { autoindex on; location /list/forms/ { alias @DIR@/www/list/; autoindex_format json;
            location /list/forms/xml/ { alias @DIR@/www/list/; autoindex_format xml; }
            location /list/forms/p/ { alias @DIR@/www/list/; autoindex_format jsonp; } } }
        location /off/ { alias @DIR@/www/list/; }",
    );
    let list = server.get("/list/");
    assert_eq!((list.status, list.field("content-type")), (200, Some("text/html")));
    let links: Vec<String> = list
        .text()
        .split("<a href=\"")
        .skip(1)
        .filter_map(|rest| Some(rest.split('"').next()?.to_owned()))
        .collect();
    assert_eq!(links, ["../", "zoo/", "%3Ci%3E.txt", "a%20b.txt", "dangling"]);
    assert!(list.text().contains("<h1>Index of /list/</h1>"), "{}", list.text());
    let json = server.get("/list/forms/");
    assert_eq!(json.field("content-type"), Some("application/json"));
    assert!(json.text().contains("{ \"name\":\"a b.txt\", \"type\":\"file\", \"mtime\":"), "{}", json.text());
    assert!(json.text().contains("\"size\":4 }"), "{}", json.text());
    let xml = server.get("/list/forms/xml/");
    assert_eq!(xml.field("content-type"), Some("text/xml; charset=utf-8"));
    assert!(xml.text().contains("size=\"4\">&lt;i&gt;.txt</file>\r\n"), "{}", xml.text());
    assert!(server.get("/list/forms/p/?callback=f.g").text().starts_with("/* callback */\r\nf.g([\r\n{"));
    assert!(server.get("/list/forms/p/").text().starts_with("[\r\n{"));
    check(
        &server,
        &[
            ("/list/forms/p/?callback=f(1)", "400"),
            ("/list", "301 @HERE@/list/"),
            ("/index/", "200 four"),
            ("/off/", "403"),
            ("/none/", "404"),
        ],
    );
    let posted =
        server.client().request("POST", "/list/", &[("Content-Length", "0")]).expect("it is answered");
    assert_eq!(posted.status, 403);
    let head = server.client().request("HEAD", "/list/", &[]).expect("it is answered");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn a_file_that_stands_coded_beside_another_goes_to_who_takes_it() {
    let prefix = Prefix::new();
    fs::create_dir(prefix.join("www")).expect("it can be made");
    for (file, text) in
        [("a.html", "plain"), ("a.html.gz", "zipped"), ("b.html", "alone"), ("c.html.gz", "only")]
    {
        prefix.write(&format!("www/{file}"), text);
    }
    let server = served(
        prefix,
        "gzip_vary on; location / { gzip_static on; }
        location /always/ { alias @DIR@/www/; gzip_static always; }",
    );
    for (path, accepted, expected, coding, vary) in [
        ("/a.html", "gzip", "zipped", Some("gzip"), true),
        ("/a.html", "gzip;q=0", "plain", None, true),
        ("/a.html", "", "plain", None, true),
        ("/b.html", "gzip", "alone", None, false),
        ("/c.html", "gzip", "only", Some("gzip"), true),
        ("/always/a.html", "", "zipped", Some("gzip"), false),
    ] {
        let answer = server.get_with(path, &[("Accept-Encoding", accepted)]);
        let told = (answer.text(), answer.field("content-encoding"), answer.field("vary").is_some());
        assert_eq!(told, (expected.to_owned(), coding, vary), "{path} {accepted}");
        assert_eq!(answer.field("content-type"), Some("text/html"), "{path} {accepted}");
        let etag = answer.field("etag").expect("it has one").to_owned();
        let fields = [("Accept-Encoding", accepted), ("If-None-Match", etag.as_str())];
        assert_eq!(server.get_with(path, &fields).status, 304, "{path} {accepted}");
        let fields = [("Accept-Encoding", accepted), ("Range", "bytes=1-2")];
        let part = server.get_with(path, &fields);
        assert_eq!((part.status, part.text().as_str()), (206, &expected[1..3]), "{path} {accepted}");
    }
    check(&server, &[("/c.html", "404")]);
}

#[test]
fn brotli_and_zstd_files_stand_in_as_gzip_ones_do() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    fs::create_dir(prefix.join("www")).expect("it can be made");
    for (file, text) in [("a.html", "plain"), ("a.html.gz", "gz"), ("a.html.br", "br"), ("a.html.zst", "zst")]
    {
        prefix.write(&format!("www/{file}"), text);
    }
    let server = served(prefix, "gzip_static on; brotli_static on; zstd_static on;");
    for (accepted, expected) in
        [("gzip, br, zstd", "br"), ("gzip, zstd", "zst"), ("br;q=0.1, gzip", "gz"), ("*;q=0", "plain")]
    {
        assert_eq!(
            server.get_with("/a.html", &[("Accept-Encoding", accepted)]).text(),
            expected,
            "{accepted}"
        );
    }
}

#[test]
fn files_behind_symbolic_links_are_refused_where_links_are_disabled() {
    let prefix = Prefix::new();
    for folder in ["www", "www/real", "www/on", "www/on/sub"] {
        fs::create_dir(prefix.join(folder)).expect("it can be made");
    }
    prefix.write("www/real/file", "file");
    prefix.write("www/real/index.html", "index");
    prefix.write("www/on/plain", "plain");
    symlink(prefix.join("www/real"), prefix.join("www/on/link")).expect("it can be made");
    symlink(prefix.join("www/real/file"), prefix.join("www/on/alias")).expect("it can be made");
    let server = served(
        prefix,
        "location /on/ { disable_symlinks on; location /on/sub/ { try_files /on/alias /on/plain; } }
        location /owned/ { alias @DIR@/www/on/; disable_symlinks if_not_owner; }
        location /from/ { alias @DIR@/www/on/; disable_symlinks on from=@DIR@/www/on/link; }
        location /off/ { alias @DIR@/www/on/; }",
    );
    check(
        &server,
        &[
            ("/on/plain", "200 plain"),
            ("/on/alias", "403"),
            ("/on/link/file", "403"),
            ("/on/sub/x", "200 plain"),
            ("/owned/alias", "200 file"),
            ("/owned/link/file", "200 file"),
            ("/from/link/file", "200 file"),
            ("/from/alias", "403"),
            ("/off/link/", "200 index"),
            ("/off/alias", "200 file"),
        ],
    );
}

#[test]
fn a_picture_of_one_pixel_is_a_file_that_never_changes() {
    let prefix = Prefix::new();
    fs::create_dir(prefix.join("www")).expect("it can be made");
    let server = served(prefix, "location = /pixel { empty_gif; }");
    let date = "Mon, 28 Sep 1970 06:00:00 GMT";
    let picture = server.get("/pixel");
    assert_eq!((picture.status, picture.field("content-type")), (200, Some("image/gif")));
    assert_eq!(picture.field("last-modified"), Some(date));
    assert!(picture.body.len() == 43 && picture.body.starts_with(b"GIF89a"));
    for (method, name, value, status) in [
        ("GET", "If-Modified-Since", date, 304),
        ("GET", "If-Unmodified-Since", "Mon, 28 Sep 1970 05:59:59 GMT", 412),
        ("GET", "Range", "bytes=0-1", 200),
        ("HEAD", "Accept", "*/*", 200),
        ("POST", "Content-Length", "0", 405),
    ] {
        let answer = server.client().request(method, "/pixel", &[(name, value)]).expect("it is answered");
        assert_eq!(answer.status, status, "{method} {name}: {value}");
    }
}

#[test]
fn the_page_of_counts_says_what_connections_do() {
    let prefix = Prefix::new();
    fs::create_dir(prefix.join("www")).expect("it can be made");
    let server = served(
        prefix,
        "location = /status { stub_status; add_header X-Active $connections_active; add_header X-Waiting $connections_waiting; }",
    );
    let mut watcher = server.client();
    let mut counts = || -> (String, Vec<u64>) {
        let page = watcher.get("/status").expect("it is answered");
        assert_eq!((page.status, page.field("content-type")), (200, Some("text/plain")));
        let text = page.text();
        let numbers =
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        (text, numbers)
    };
    let (text, numbers) = counts();
    let [active, accepted, handled, requests, rest @ ..] = &numbers[..] else { panic!("it has numbers") };
    assert_eq!((*active, accepted, rest), (1, handled, &[0, 1, 0][..]), "{text}");
    assert_eq!(
        text,
        format!(
            "Active connections: 1 \nserver accepts handled requests\n {accepted} {handled} {requests} \n\
             Reading: 0 Writing: 1 Waiting: 0 \n"
        )
    );
    let mut other = server.client();
    let mut settles = |expected: [u64; 4]| {
        millstream_tests::wait::until("the counts are as expected", || {
            let (_, counted) = counts();
            [counted[0], counted[4], counted[5], counted[6]] == expected
        });
    };
    settles([2, 0, 1, 1]);
    other.send("GET /status HTTP/1.1\r\nHost: lo").expect("it is sent");
    settles([2, 1, 1, 0]);
    let answer = other.ask("calhost\r\n\r\n");
    assert_eq!((answer.field("x-active"), answer.field("x-waiting")), (Some("2"), Some("1")));
    settles([2, 0, 1, 1]);
    let mut third: Client = server.client();
    assert_eq!(third.request("POST", "/status", &[("Content-Length", "0")]).expect("answered").status, 405);
}

#[test]
fn a_directory_is_answered_with_one_of_its_files_by_chance_where_that_is_on() {
    let prefix = Prefix::new();
    for folder in ["www", "www/pick", "www/pick/folder", "www/bare", "www/bare/folder"] {
        fs::create_dir(prefix.join(folder)).expect("it can be made");
    }
    for file in
        ["www/pick/a.txt", "www/pick/b?c.txt", "www/pick/.hidden", "www/pick/folder/d.txt", "www/linked"]
    {
        prefix.write(file, file);
    }
    prefix.write("www/bare/folder/index.html", "index");
    for (to, link) in
        [("www/linked", "www/pick/link"), ("www/bare", "www/pick/up"), ("nowhere", "www/pick/dangling")]
    {
        symlink(prefix.join(to), prefix.join(link)).expect("it can be made");
    }
    let server = served(
        prefix,
        "location / { random_index on; location ^~ /pick/nested/ { alias @DIR@/www/pick/; }
            location /bare/folder/ { random_index off; } location ~ \\.txt$ { add_header X-Type text; } }
        location /off/ { alias @DIR@/www/pick/; }",
    );
    let mut seen: Vec<String> = (0..200).map(|_| server.get("/pick/").text()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["www/linked", "www/pick/a.txt", "www/pick/b?c.txt"]);
    assert!(seen.contains(&server.get("/pick/nested/?q=1").text()));
    let typed = |answer: &millstream_tests::client::Answer| answer.field("X-Type").is_some();
    let answers: Vec<_> = (0..20).map(|_| server.get("/pick/")).collect();
    assert!(
        answers.iter().all(|answer| typed(answer) == answer.text().ends_with(".txt")),
        "locations are looked for anew"
    );
    for (path, status) in [("/bare/", 403), ("/bare/folder/", 200), ("/nowhere/", 404), ("/off/", 403)] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    let mut client: Client = server.client();
    assert_eq!(client.ask("DELETE /pick/ HTTP/1.1\r\nHost: a\r\n\r\n").status, 405);
}
