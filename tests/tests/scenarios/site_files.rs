//! Which file answers: `internal`, `alias`, `try_files`, as nginx has them: the same tables hold for nginx itself
//! (`MILLSTREAM_BINARY=/usr/sbin/nginx`), but for what Millstream keeps back where nginx does not.

use super::targets::check;
use millstream_tests::origin::{self, Origin};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;

const START: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; worker_processes 1; events { worker_connections 64; }
    http { access_log off; server { listen 127.0.0.1:@PORT@; server_name localhost; root @DIR@/www; keepalive_requests 10000;";

fn served(locations: &str, values: &[(&str, &str)]) -> Server {
    let prefix = Prefix::new();
    for folder in ["www", "www/dir", "www/none", "other", "other/sub"] {
        std::fs::create_dir(prefix.join(folder)).expect("it can be made");
    }
    for file in
        ["secret", "www/page", "www/dir/index.html", "www/internal", "other/file", "other/sub/index.html"]
    {
        prefix.write(file, file);
    }
    Server::start_in(prefix, &format!("{START} {locations} }} }}"), values)
}

#[test]
fn an_internal_location_is_reached_from_inside_only() {
    let origin =
        Origin::start(|_| origin::answer(200, &[("X-Accel-Redirect", "/internal?from=upstream")], b"no"));
    let server = served(
        "location /internal { internal; error_page 404 = @refused; location /internal/nested { return 200 nested; } }
        location @refused { return 200 refused; }
        location = /exact { internal; return 200 \"exact $uri\"; }
        location /accelerated { proxy_pass http://@ORIGIN@; }
        location /error { error_page 403 =200 /internal; return 403; }
        location /rewritten { rewrite ^ /exact last; }
        location /tried { try_files /nothing /exact?x; }
        location /index/ { alias @DIR@/www/; index /internal; }
        location /if { internal; if ($arg_a) { return 200 inside; } }",
        &[("ORIGIN", &origin.address())],
    );
    check(
        &server,
        &[
            ("/internal", "200 refused"),
            ("/internal/nested", "200 refused"),
            ("/exact", "404"),
            ("/%65xact", "404"),
            ("//exact", "404"),
            ("/if?a=1", "404"),
            ("/accelerated", "200 www/internal"),
            ("/error", "200 www/internal"),
            ("/rewritten", "200 exact /exact"),
            ("/tried", "200 exact /exact"),
            ("/index/", "200 www/internal"),
            ("/exact", "404"),
        ],
    );
}

#[test]
fn an_alias_takes_the_place_of_its_location() {
    let server = served(
        "location /a/ { alias @DIR@/other/; location ~ /f { } }
        location /bare { alias @DIR@/other; }
        location = /exact { alias @DIR@/other/file; }
        location ~ ^/re/(.*)$ { alias @DIR@/other/$1; }
        location /arg/ { alias @DIR@/$arg_d/; }
        location /if/ { alias @DIR@/other/; if ($arg_a) { add_header X-A 1; } if ($arg_r) { root @DIR@; } }
        location /says/ { alias @DIR@/other/; return 200 \"$document_root $request_filename\"; }
        location /moved/ { alias @DIR@/other/; rewrite ^ /elsewhere break; }",
        &[],
    );
    let directory = server.prefix().path().to_str().expect("it is text").to_owned();
    check(
        &server,
        &[
            ("/a/file", "200 other/file"),
            ("/a/sub", "301 @HERE@/a/sub/"),
            ("/a/sub?q", "301 @HERE@/a/sub/?q"),
            ("/a/sub/", "200 other/sub/index.html"),
            ("/a/", "403"),
            ("/a", "404"),
            ("/bare/file", "200 other/file"),
            ("/bare", "301 @HERE@/bare/"),
            ("/exact", "200 other/file"),
            ("/re/file", "200 other/file"),
            ("/re/sub/", "200 other/sub/index.html"),
            ("/re/nothing", "404"),
            ("/arg/file?d=other", "200 other/file"),
            ("/if/file", "200 other/file"),
            ("/if/file?a=1", "200 other/file"),
            ("/if/file?r=1", "404"),
            ("/says/x%20y", &format!("200 {directory}/other/ {directory}/other/x y")),
            ("/moved/file", "500"),
        ],
    );
    assert_eq!(server.get("/if/file?a=1").field("x-a"), Some("1"));
}

#[test]
fn no_request_leads_out_of_an_alias() {
    skip_on_nginx!("it serves what lies beside it");
    let server = served(
        "location /i { alias @DIR@/www/; }
        location /dot { alias @DIR@/www/.; }
        location ~ ^/re(.*)$ { alias @DIR@/www/$1; }
        location /arg/ { alias @DIR@/www/$arg_d; }
        location /tried { root @DIR@/www; try_files $arg_f /../secret =404; }
        location /below { alias @DIR@/www/; try_files $arg_f /../secret =404; }",
        &[],
    );
    check(
        &server,
        &[
            ("/i/page", "200 www/page"),
            ("/i../secret", "403"),
            ("/i..%2fsecret", "403"),
            ("/i%2e%2e/secret", "403"),
            ("/dot./secret", "403"),
            ("/re../secret", "403"),
            ("/re/page", "200 www/page"),
            ("/arg/page?d=../", "403"),
            ("/tried?f=/../secret", "404"),
            ("/tried?f=/page", "200 www/page"),
            ("/below?f=../secret", "404"),
        ],
    );
}

#[test]
fn try_files_takes_the_first_that_is_there_and_else_goes_on() {
    let server = served(
        "location / { try_files $uri $uri/ /said?u=$uri&$args; }
        location = /said { return 200 \"said $uri?$args\"; }
        location /plain/ { try_files /nothing /page =404; }
        location /code/ { try_files /nothing =403; error_page 403 =200 /page; }
        location /named/ { try_files /nothing @named; }
        location @named { return 200 \"named $uri?$args\"; }
        location /nobody/ { try_files /nothing @nobody; }
        location /bare/ { try_files /nothing /said; }
        location /dir-as-file/ { try_files /dir =404; }
        location /file-as-dir/ { try_files /page/ =404; }
        location /dir-as-dir/ { try_files /dir/ =404; }
        location /stays/ { try_files /page =404; add_header X-Stays $uri; }
        location /if/ { try_files /nothing =403; if ($arg_a) { add_header X-A 1; } }
        location /nested/ { try_files /nothing =403; location /nested/inner { } }
        location /loop/ { try_files /nothing /loop/; }
        location /a/ { alias @DIR@/other/; try_files $uri $uri/ /a//a/file?$args; }
        location ~ ^/re/(.*)$ { alias @DIR@/other; try_files /$1 =404; }",
        &[],
    );
    check(
        &server,
        &[
            ("/page", "200 www/page"),
            ("/dir", "301 @HERE@/dir/"),
            ("/dir/", "200 www/dir/index.html"),
            ("/none/", "403"),
            ("/x%20y?q", "200 said /said?u=/x y&q"),
            ("/page/x", "200 said /said?u=/page/x&"),
            ("/plain/x", "200 www/page"),
            ("/code/x", "200 www/page"),
            ("/named/x?q", "200 named /named/x?q"),
            ("/nobody/x", "500"),
            ("/bare/x?q", "200 said /said?"),
            ("/dir-as-file/", "404"),
            ("/file-as-dir/", "404"),
            ("/dir-as-dir/", "301 @HERE@/dir/"),
            ("/if/x", "403"),
            ("/if/x?a=1", "404"),
            ("/nested/x", "403"),
            ("/nested/inner", "404"),
            ("/loop/x", "500"),
            ("/a/file", "200 other/file"),
            ("/a/sub/", "200 other/sub/index.html"),
            ("/a/nothing", "200 other/file"),
            ("/re/file", "200 other/file"),
            ("/re/nothing", "404"),
        ],
    );
    assert_eq!(server.get("/stays/x").field("x-stays"), Some("/page"));
}

#[test]
fn try_files_of_a_server_holds_where_no_location_does() {
    let server = served("try_files $uri =403; location /in/ { }", &[]);
    check(&server, &[("/page", "200 www/page"), ("/nothing", "403"), ("/in/nothing", "404")]);
}

#[test]
fn what_try_files_found_or_did_not_find_goes_to_the_upstream_of_the_location() {
    let origin = Origin::start(|request| origin::answer(200, &[], request.target().as_bytes()));
    let server = served(
        "location / { try_files /nothing @app; }
        location @app { proxy_pass http://@ORIGIN@; }
        location /found/ { try_files /page =404; proxy_pass http://@ORIGIN@; }
        location /kept/ { try_files /nothing /kept2/x?y; proxy_pass http://@ORIGIN@; }
        location /kept2/ { proxy_pass http://@ORIGIN@/up/; }",
        &[("ORIGIN", &origin.address())],
    );
    check(
        &server,
        &[
            ("/settings.py?q", "200 /settings.py?q"),
            ("/page", "200 /page"),
            ("/found/%78?q", "200 /found/%78?q"),
            ("/kept/a?q", "200 /up/x?y"),
        ],
    );
}

#[test]
fn what_is_not_there_is_told_unless_log_not_found_is_off() {
    let server = served("location /quiet { log_not_found off; }", &[]);
    check(&server, &[("/quiet", "404"), ("/quiet/", "404"), ("/told", "404")]);
    wait::until("it is told", || server.prefix().read("error.log").contains("/www/told\" failed"));
    let log = server.prefix().read("error.log");
    assert!(!log.contains("/www/quiet"), "{log}");
}

#[test]
fn files_stay_as_they_were_opened_for_as_long_as_open_file_cache_says() {
    let server = served(
        "open_file_cache max=100; open_file_cache_valid 1h;
        location /kept/ { alias @DIR@/other/; }
        location /often/ { alias @DIR@/other/; open_file_cache max=100; open_file_cache_min_uses 3; }
        location /errors/ { alias @DIR@/other/; open_file_cache max=100; open_file_cache_errors on; }
        location /moment/ { alias @DIR@/other/; open_file_cache max=100; open_file_cache_valid 0; }
        location /one/ { alias @DIR@/other/; open_file_cache max=1; }
        location /never/ { alias @DIR@/other/; open_file_cache off; }",
        &[],
    );
    let replace = |name: &str, text: &str| {
        let new = server.prefix().write("new", text);
        std::fs::rename(new, server.prefix().join(name)).expect("it takes its place");
    };
    replace("other/file", "old");
    let before = [
        ("/kept/file", "200 old"),
        ("/often/file", "200 old"),
        ("/moment/file", "200 old"),
        ("/one/file", "200 old"),
        ("/never/file", "200 old"),
        ("/kept/none", "404"),
        ("/errors/none", "404"),
        ("/one/sub/index.html", "200 other/sub/index.html"),
    ];
    check(&server, &before);
    replace("other/file", "changed");
    replace("other/none", "now");
    check(
        &server,
        &[
            ("/kept/file", "200 old"),
            // Its first use was not often enough, and neither is its second; from its third on it is kept.
            ("/often/file", "200 changed"),
            ("/often/file", "200 changed"),
            ("/moment/file", "200 changed"),
            // Another file took the only place.
            ("/one/file", "200 changed"),
            ("/never/file", "200 changed"),
            ("/kept/none", "200 now"),
            ("/errors/none", "404"),
        ],
    );
    replace("other/file", "last");
    check(&server, &[("/often/file", "200 changed"), ("/kept/file", "200 old"), ("/never/file", "200 last")]);
}

#[test]
fn a_file_goes_out_whole_and_in_parts_whatever_its_length() {
    let server = served("location /kept/ { alias @DIR@/www/; open_file_cache max=10; }", &[]);
    // Read, sent by the kernel, and sent in several turns.
    for length in [0, 1, 16 * 1024, 16 * 1024 + 1, 300_000, 5_000_000] {
        let whole: Vec<u8> = (0..length).map(|at| b'a' + (at % 23) as u8).collect();
        server.prefix().write(&format!("www/{length}"), &whole);
        for path in [format!("/{length}"), format!("/kept/{length}"), format!("/kept/{length}")] {
            let answer = server.get(&path);
            assert!(answer.status == 200 && answer.body == whole, "{path}");
            if length > 10 {
                let part = server.get_with(&path, &[("Range", "bytes=5-")]);
                assert!(part.status == 206 && part.body == whole[5..], "{path}, a part");
                let parts = server.get_with(&path, &[("Range", "bytes=5-,0-1")]);
                assert!(parts.status == 206 && parts.body.len() > length - 3, "{path}, parts");
            }
        }
    }
}
