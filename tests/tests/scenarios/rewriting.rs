//! Scripts, `set`, `if`, `rewrite`, `break` and `return`, as nginx carries them out: the same table holds for nginx itself
//! (`MILLSTREAM_BINARY=/usr/sbin/nginx`).

use super::targets::check;
use millstream_tests::origin::{self, Origin};
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;

fn told(server: &Server, what: &str) {
    wait::until(what, || server.prefix().read("error.log").contains(what));
}

const START: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; worker_processes 1; events { worker_connections 64; }
    http { access_log off; server { listen 127.0.0.1:@PORT@; server_name localhost; root @DIR@; keepalive_requests 10000;";

fn served(locations: &str) -> Server {
    Server::start(&format!("{START} {locations} }} }}"), &[])
}

#[test]
fn a_rewrite_replaces_path_and_query_and_its_flag_says_what_follows() {
    let server = served(
        "location / { return 200 \"$uri?$args\"; }
        location /next { rewrite ^/next/(.*)$ /next2/$1; rewrite ^/next2/(.*)$ /got/$1; }
        location /last { rewrite ^/last/(.*)$ /got/$1 last; return 200 never; }
        location /query { rewrite ^/query/(.*)$ /got?a=$1&b; }
        location /drop { rewrite ^/drop/(.*)$ /got/$1?; }
        location /own { rewrite ^/own/(.*)$ /got?a=$1?; }
        location /value { rewrite ^ /got$arg_x last; }
        location /none { rewrite ^/nothing$ /got last; return 200 \"none $uri\"; }
        location /brk { rewrite ^/brk/(.*)$ /got/$1 break; return 200 never; }
        location /redirect { rewrite ^/redirect/(.*)$ /got/$1 redirect; }
        location /permanent { rewrite ^/permanent/(.*)$ /got/$1?z permanent; }
        location /absolute { rewrite ^/absolute/(.*)$ http://example.com/$1?; }
        location /scheme { rewrite ^ $scheme://example.com$uri; }
        location /named { rewrite ^/named/(?<one>[a-z]+)/(?<two>.*)$ /got/$two/$one last; }
        location /empty { rewrite ^/empty(.*)$ $1 last; }
        location /case { rewrite (?i)^/CASE$ /got last; }",
    );
    check(
        &server,
        &[
            ("/x?y", "200 /x?y"),
            ("/next/a?q=1", "200 /got/a?q=1"),
            ("/last/a%20b?q=1", "200 /got/a b?q=1"),
            ("/query/v?q=1", "200 /got?a=v&b&q=1"),
            ("/query/v", "200 /got?a=v&b"),
            ("/query/a%26b", "200 /got?a=a%26b&b"),
            ("/drop/a?q=1", "200 /got/a?"),
            ("/own/v?q=1", "200 /got?a=v"),
            ("/value?x=?y=1", "200 /got?y=1?x=?y=1"),
            ("/none", "200 none /none"),
            ("/brk/a", "404"),
            ("/redirect/a%2f%20b?q=1", "302 @HERE@/got/a/%20b?q=1"),
            ("/permanent/a?q=1", "301 @HERE@/got/a?z&q=1"),
            ("/absolute/a?q=1", "302 http://example.com/a"),
            ("/scheme?q=1", "302 http://example.com/scheme?q=1"),
            ("/named/abc/def", "200 /got/def/abc?"),
            ("/empty", "500"),
            ("/case", "200 /got?"),
        ],
    );
}

#[test]
fn what_an_outer_expression_names_holds_in_the_locations_inside_it() {
    let origin = Origin::start(|request| origin::answer(200, &[], request.target().as_bytes()));
    let locations = r#"
        location ~ ^/(?<tenant>[a-z]+)/(api)/ {
            location ~ /(?<item>[0-9]+)$ { return 200 "$tenant $item 1:$1 2:$2"; }
            location ~ /css$ { return 200 "$tenant 1:$1"; }
            location ~ /twice/ { location ~ (?<ending>[a-z]+)$ { return 200 "$tenant $ending $1"; } return 200 "$tenant once"; }
            location ~ /same/(?<tenant>[a-z]+) { return 200 "$tenant"; }
            location ~ /proxied$ { proxy_pass http://@ORIGIN@/of/$tenant; }
            location ~ /alias$ { alias @DIR@/$tenant.txt; }
            location ~ /root$ { root @DIR@/$tenant; }
            location ~ /tried$ { root @DIR@; try_files /none /$tenant.txt =404; }
            location ~ /rewritten$ { rewrite ^ /got/$tenant last; }
            location ~ /if$ { if ($tenant = acme) { return 200 "if $tenant"; } }
            location ~ /mapped$ { return 200 $mapped; }
            location ~ /inside$ { error_page 404 = @named; return 404; }
            location ~ /added$ { add_header X-Tenant $tenant; return 200 added; }
            return 200 "$tenant $2";
        }
        location /got/ { return 200 "$uri $tenant"; }
        location @named { return 200 "named $tenant"; }
        location /prefix/ { location ~ ^/prefix/(?<part>[a-z]+)/ {
            location ~ (?<ending>[0-9])$ { return 200 "$part $ending"; } return 200 $part; } }
    "#;
    let maps = "map $tenant $mapped { default none; ~^(?<first>a).*(?<last>.)$ \"$first$last $tenant\"; }";
    let template = START.replace("access_log off;", &format!("access_log off; {maps}"));
    let server = Server::start(&format!("{template} {locations} }} }}"), &[("ORIGIN", &origin.address())]);
    server.prefix().write("acme.txt", "a file of acme");
    server.prefix().write("acme/acme/api/root", "a file below acme");
    check(
        &server,
        &[
            ("/acme/api/17", "200 acme 17 1:17 2:"),
            ("/acme/api/css", "200 acme 1:"),
            ("/acme/api/twice/end", "200 acme end end"),
            ("/acme/api/twice/-", "200 acme once"),
            ("/acme/api/same/other", "200 other"),
            ("/acme/api/proxied", "200 /of/acme"),
            ("/acme/api/alias", "200 a file of acme"),
            ("/acme/api/root", "200 a file below acme"),
            ("/acme/api/tried", "200 a file of acme"),
            ("/acme/api/rewritten", "200 /got/acme acme"),
            ("/acme/api/if", "200 if acme"),
            ("/acme/api/mapped", "200 ae acme"),
            ("/acme/api/inside", "200 named acme"),
            ("/acme/api/other", "200 acme api"),
            ("/prefix/abc/7", "200 abc 7"),
            ("/prefix/abc/x", "200 abc"),
        ],
    );
    assert_eq!(server.get("/acme/api/added").field("x-tenant"), Some("acme"));
}

#[test]
fn an_endless_rewriting_ends_after_ten_changes_and_is_told() {
    let server = served(
        "location / { rewrite ^/(.*)$ /x$1; }
        location /ten { rewrite \"^/ten(x{0,9})$\" /ten$1x last; return 200 $uri; }
        location = /tenxxxxxxxxxx { return 200 ten; }
        location /eleven { rewrite \"^/eleven(x{0,10})$\" /eleven$1x last; return 200 $uri; }",
    );
    check(&server, &[("/a", "500"), ("/ten", "200 ten"), ("/eleven", "500")]);
    told(&server, "rewrite or internal redirection cycle while processing \"/xxxxxxxxxxxa\"");
}

#[test]
fn a_server_s_script_comes_before_its_locations_and_again_after_a_redirect_inside() {
    let server = served(
        "set $seen \"$seen.\"; set $who server;
        if ($arg_return) { return 200 \"server $who\"; }
        if ($arg_to) { rewrite ^ /to/$arg_to? break; }
        rewrite ^/first$ /second; rewrite ^/second$ /third;
        location / { set $who location; return 200 \"$uri $who $seen\"; }
        location /to { return 200 \"to $uri\"; }
        location /page { error_page 404 /paged; return 404; }
        location = /paged { return 200 \"paged $seen\"; }
        location /named { error_page 404 = @named; return 404; }
        location @named { return 200 \"named $uri $seen\"; }",
    );
    check(
        &server,
        &[
            ("/x?return=1", "200 server server"),
            ("/x?to=y", "200 to /to/y"),
            ("/first", "200 /third location ."),
            ("/x", "200 /x location ."),
            ("/page", "404"),
            ("/named", "200 named /named ."),
        ],
    );
    let answer = server.get("/page");
    assert_eq!((answer.status, answer.text().as_str()), (404, "paged .."));
}

#[test]
fn conditions_hold_as_in_nginx() {
    let prefix = Prefix::new();
    prefix.write("file", "x");
    std::fs::create_dir(prefix.join("directory")).expect("it can be made");
    let template = format!(
        "{START}
        location /holds {{ if ($arg_a) {{ return 200 yes; }} return 200 no; }}
        location /equals {{ if ($arg_a = b) {{ return 200 yes; }} if ($arg_a != c) {{ return 200 other; }} return 200 c; }}
        location /template {{ if ($arg_a = \"x$arg_b\") {{ return 200 yes; }} return 200 no; }}
        location /match {{ if ($arg_a ~ ^b(.)$) {{ return 200 \"yes $1\"; }} return 200 \"no $1\"; }}
        location /mismatch {{ if ($arg_a !~ ^b(.)$) {{ return 200 yes; }} return 200 \"no $1\"; }}
        location /nocase {{ if ($arg_a ~* ^B$) {{ return 200 yes; }} if ($arg_a !~* c) {{ return 200 other; }} return 200 c; }}
        location /named {{ if ($arg_a ~ ^(?<part>.)) {{ set $got $part; }} return 200 \"$got\"; }}
        location /f {{ if (-f @DIR@$arg_a) {{ return 200 yes; }} if (!-f @DIR@$arg_a) {{ return 200 no; }} }}
        location /d {{ if (-d @DIR@$arg_a) {{ return 200 yes; }} if (!-d @DIR@$arg_a) {{ return 200 no; }} }}
        location /e {{ if (-e @DIR@$arg_a) {{ return 200 yes; }} if (!-e @DIR@$arg_a) {{ return 200 no; }} }}
        location /x {{ if (-x @DIR@$arg_a) {{ return 200 yes; }} if (!-x @DIR@$arg_a) {{ return 200 no; }} }}
        location /both {{ if (-f @DIR@$arg_a) {{ set $x file; }} if (-d @DIR@$arg_b) {{ set $x \"${{x}}dir\"; }} return 200 \"$x\"; }}
        }} }}"
    );
    let server = Server::start_in(prefix, &template, &[]);
    check(
        &server,
        &[
            ("/holds?a=1", "200 yes"),
            ("/holds?a=0", "200 no"),
            ("/holds?a=00", "200 yes"),
            ("/holds?a=", "200 no"),
            ("/holds", "200 no"),
            ("/equals?a=b", "200 yes"),
            ("/equals?a=B", "200 other"),
            ("/equals?a=c", "200 c"),
            ("/equals", "200 other"),
            ("/template?a=xy&b=y", "200 yes"),
            ("/template?a=xy", "200 no"),
            ("/match?a=bc", "200 yes c"),
            ("/match?a=c", "200 no "),
            ("/mismatch?a=c", "200 yes"),
            ("/mismatch?a=bc", "200 no c"),
            ("/nocase?a=b", "200 yes"),
            ("/nocase?a=xCx", "200 c"),
            ("/nocase?a=x", "200 other"),
            ("/named?a=xyz", "200 x"),
            ("/named", "200 "),
            ("/f?a=/file", "200 yes"),
            ("/f?a=/directory", "200 no"),
            ("/f?a=/nothing", "200 no"),
            ("/f?a=/file/nothing", "200 no"),
            ("/d?a=/directory", "200 yes"),
            ("/d?a=/file", "200 no"),
            ("/e?a=/file", "200 yes"),
            ("/e?a=/directory", "200 yes"),
            ("/e?a=/nothing", "200 no"),
            ("/x?a=/directory", "200 yes"),
            ("/x?a=/file", "200 no"),
            ("/both?a=/file&b=/directory", "200 filedir"),
            ("/both?a=/nothing&b=/directory", "200 dir"),
        ],
    );
}

#[test]
fn of_conditions_that_hold_the_last_one_s_settings_are_in_force() {
    let server = served(
        "location / {
            if ($arg_a) { add_header X-A a; set $x a; }
            if ($arg_b) { add_header X-B b; set $x \"${x}b\"; }
            add_header X-Own own;
            error_page 404 = @shown; return 404;
        }
        location @shown { return 200 $x; }
        location /settings {
            if ($arg_a) { add_header X-A a; }
            if ($arg_b) { add_header X-B b; }
            add_header X-Own own; return 200 \"$arg_a$arg_b\";
        }
        location /root { root @DIR@/none; if ($arg_a) { root @DIR@; } }
        location /page { error_page 403 /one; if ($arg_a) { error_page 403 /two; } return 403; }
        location = /one { return 200 one; } location = /two { return 200 two; }",
    );
    for (target, expected) in [
        ("/settings", [None, None, Some("own")]),
        ("/settings?a=1", [Some("a"), None, None]),
        ("/settings?b=1", [None, Some("b"), None]),
        ("/settings?a=1&b=1", [None, Some("b"), None]),
    ] {
        let answer = server.get(target);
        let fields = ["x-a", "x-b", "x-own"].map(|name| answer.field(name));
        assert_eq!(fields, expected, "{target}");
    }
    server.prefix().write("root", "in root");
    check(&server, &[("/?a=1&b=1", "200 ab"), ("/root", "404"), ("/root?a=1", "200 in root")]);
    for (target, expected) in [("/page", "one"), ("/page?a=1", "two")] {
        let answer = server.get(target);
        assert_eq!((answer.status, answer.text().as_str()), (403, expected), "{target}");
    }
}

#[test]
fn an_if_passes_on_where_its_location_does_or_where_it_says_itself() {
    let [one, other] = ["one", "other"].map(|name| {
        Origin::start(move |request| {
            origin::answer(200, &[], format!("{name} {}", request.target()).as_bytes())
        })
    });
    let server = Server::start(
        &format!(
            "{START}
            location /pass/ {{ proxy_pass http://@ONE@/up/; if ($arg_a) {{ add_header X-If 1; }}
                if ($arg_b) {{ proxy_pass http://@OTHER@; }} }}
            location /brk/ {{ proxy_pass http://@ONE@/up/; rewrite ^/brk/(.*)$ /moved/$1 break; }}
            location /plain/ {{ proxy_pass http://@ONE@; rewrite ^/plain/(.*)$ /moved/$1?n=1 break; }}
            location /kept/ {{ proxy_pass http://@ONE@; rewrite ^/other/(.*)$ /moved/$1 break; }}
            location /args/ {{ proxy_pass http://@ONE@; set $args c=d; }}
            location /stop/ {{ proxy_pass http://@ONE@/up/; rewrite ^/stop/(.*)$ /moved/$1; break; }}
            }} }}"
        ),
        &[("ONE", &one.address()), ("OTHER", &other.address())],
    );
    check(
        &server,
        &[
            ("/pass/x%20y", "200 one /up/x%20y"),
            ("/pass/x?a=1", "200 one /up/x?a=1"),
            ("/pass/x%2fy?b=1", "200 other /pass/x%2fy?b=1"),
            ("/brk/x%20y?q", "200 one /moved/x%20y?q"),
            ("/plain/x?q", "200 one /moved/x?n=1&q"),
            ("/kept/%41?q", "200 one /kept/%41?q"),
            ("/args/%41?q", "200 one /args/A?c=d"),
            ("/stop/x", "200 one /moved/x"),
        ],
    );
}

#[test]
fn set_variables_are_the_request_s_and_one_that_is_not_set_is_empty_and_told() {
    let server = served(
        "location / { set $a one; set $A \"$a two\"; return 200 \"$a|$b\"; }
        location /b { set $b \"\"; return 200 \"[$b]\"; }
        location /quiet { uninitialized_variable_warn off; return 200 \"[$b]\"; }
        location /args { set $args x=1; return 200 \"$args $is_args $arg_x $request_uri\"; }
        location /rate { set $limit_rate $arg_l; return 200 \"$limit_rate[$arg_]\"; }",
    );
    check(&server, &[("/quiet", "200 []"), ("/b", "200 []"), ("/args?y", "200 x=1 ? 1 /args?y")]);
    check(&server, &[("/rate?l=40k&=x", "200 40960[]"), ("/rate", "200 0[]")]);
    told(&server, "invalid $limit_rate \"\"");
    let log = server.prefix().read("error.log");
    assert!(!log.contains("uninitialized"), "{log}");
    check(&server, &[("/", "200 one two|")]);
    told(&server, "using uninitialized \"b\" variable");
}

#[test]
fn rewrite_log_tells_what_matched_and_what_came_of_it() {
    let server = served(
        "rewrite_log on;
        location / { rewrite ^/no$ /x; rewrite ^/(.*)$ /got/$1?a=b break; return 200 never; }
        location /to { if ($arg_x ~ y) { return 204; } rewrite ^ http://example.com/ redirect; }",
    );
    check(&server, &[("/name?c", "404"), ("/to?x=y", "204"), ("/to", "302 http://example.com/")]);
    for line in [
        "\"^/no$\" does not match \"/name\"",
        "\"^/(.*)$\" matches \"/name\"",
        "rewritten data: \"/got/name\", args: \"a=b&c\"",
        "\"y\" matches \"y\"",
        "rewritten redirect: \"http://example.com/\"",
    ] {
        told(&server, line);
    }
}

#[test]
fn a_return_answers_in_its_place_of_the_script() {
    let server = served(
        "location / { return 200 \"$uri\"; return 204; }
        location /if { if ($arg_a = 1) { return 301 /one; } if ($arg_a = 2) { return 403 no; } if ($arg_a = 3) { return 444; } return 405; }
        location /left { return 499; } location /slow { error_page 408 /x; return 408; } location /said { return 408 said; }
        location /cond { set $x 1; if ($x) { return 307 $scheme://other.example$request_uri; } }",
    );
    check(
        &server,
        &[
            ("/x", "200 /x"),
            ("/if?a=1", "301 @HERE@/one"),
            ("/if?a=2", "403"),
            ("/if", "405"),
            ("/said", "408"),
            ("/cond?q", "307 http://other.example/cond?q"),
        ],
    );
    for path in ["/if?a=3", "/left", "/slow"] {
        assert!(server.client().request("GET", path, &[]).is_err(), "{path} closes without a response");
    }
}

#[test]
fn behind_an_if_with_an_upstream_one_that_answers_nothing_is_an_error_and_sends_no_file() {
    let origin = Origin::start(|_| origin::answer(200, &[], b"asked"));
    let prefix = Prefix::new();
    prefix.write("a", "a file");
    let locations = "location / {
        if ($arg_first) { proxy_pass http://@ORIGIN@; }
        if ($arg_second) { add_header X-Second yes; }
        if ($arg_third) { proxy_pass http://@ORIGIN@; }
    }";
    let server =
        Server::start_in(prefix, &format!("{START} {locations} }} }}"), &[("ORIGIN", &origin.address())]);
    for (target, expected) in [
        ("/a", (200, "a file")),
        ("/a?second=1", (200, "a file")),
        ("/a?first=1", (200, "asked")),
        ("/a?first=1&second=1", (500, "")),
        ("/a?first=1&second=1&third=1", (200, "asked")),
    ] {
        let answer = server.get(target);
        assert_eq!(answer.status, expected.0, "{target}");
        assert!(answer.text().starts_with(expected.1) || expected.0 == 500, "{target}");
    }
}

#[test]
fn what_depends_on_the_location_has_the_value_that_it_had_when_it_was_first_read() {
    let server = served(
        "location /got/ { return 200 \"$secure_link|$secure_link_expires\"; }
        location /links/ { secure_link $arg_h,$arg_e; secure_link_md5 \"$uri$arg_e secret\";
            location /links/last/ { if ($secure_link = \"\") { return 403; } rewrite ^ /got/a last; }
            location /links/page/ { if ($secure_link = \"\") { return 403; } error_page 418 =200 @page; return 418; }
            location /links/other/ { set $first $secure_link; rewrite ^ /others/a last; }
            location /links/path/ { set $first $secure_link; set $args \"\"; rewrite ^ /x break; add_header X-Link $secure_link always; }
            location /links/unread/ { rewrite ^ /got/a last; }
            location /links/late/ { rewrite ^ /later/a last; } }
        location @page { return 200 \"page $secure_link\"; }
        location /others/ { secure_link $arg_h; secure_link_md5 \"$uri another\"; return 200 \"$first, $secure_link\"; }
        location /later/ { secure_link $arg_h; secure_link_md5 \"$uri secret\"; return 200 $secure_link; }
        location /own/ { secure_link $arg_h; secure_link_md5 \"$uri secret$secure_link\"; set $q $secure_link; return 200 $q; }
        location /referred/ { valid_referers none host.example; set $first \"[$invalid_referer]\"; rewrite ^ /strict last; }
        location /strict { valid_referers blocked host.example; return 200 \"$first[$invalid_referer]\"; }
        location /unreferred/ { valid_referers none host.example; rewrite ^ /strict last; }
        location /seen/ { modern_browser_value new; modern_browser unlisted; set $first $modern_browser; rewrite ^ /seen2 last; }
        location /seen2 { modern_browser_value newer; modern_browser unlisted; return 200 \"$first $modern_browser\"; }",
    );
    check(
        &server,
        &[
            ("/links/last/a?h=iDst5xhpAcxX8WO9hNaNFw&e=2147483647", "200 1|2147483647"),
            ("/links/last/a?h=YLIrmbdilzjw2yLWhzqyrQ&e=1", "200 0|1"),
            ("/links/last/a?h=wrong&e=1", "403"),
            ("/links/page/a?h=mccvvJnM25Zkux5LyxDUig&e=2147483647", "200 page 1"),
            // The one secret lets in where the other is asked for: what was found of the first link stays.
            ("/links/other/a?h=jgCZhPwauGJls_RIx-FdIw&e=2147483647", "200 1, 1"),
            ("/links/other/a?h=tIVM6r2IpmG2ILuJvpZhAw&e=2147483647", "200 , "),
            ("/links/unread/a?h=4H0Ug4z43bpXxD6DwXBK5g&e=2147483647", "200 |"),
            ("/links/late/a?h=q9762u-ETvn6s9rKDspb5Q", "200 1"),
            ("/own/a?h=0q-D3Ge9Gm7PWLVa6kP45g", "200 1"),
            ("/referred/a", "200 [][]"),
            ("/unreferred/a", "200 [1]"),
            ("/seen/a", "200 new new"),
        ],
    );
}
