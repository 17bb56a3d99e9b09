//! Variables that a configuration makes out of others: each has the value that it has in nginx.

use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;

const SPLIT: &str = r#"pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        split_clients $arg_x $variant { 51.2% ".one"; 10% ".two"; 0.01% tiny; 33% ".three"; }
        split_clients $arg_x $half { 50% a; 50% b; }
        server { listen 127.0.0.1:@PORT@; return 200 "$variant $half"; }
    }"#;

/// The shares are those of Debian's nginx 1.22.
#[test]
fn a_client_is_in_the_share_that_nginx_puts_it_in() {
    let server = Server::start(SPLIT, &[]);
    let mut client = server.client();
    for (who, expected) in [
        ("", ".one a"),
        ("a", ".two b"),
        ("ab", ".one a"),
        ("abc", ".one a"),
        ("abcd", ".one a"),
        ("abcde", ".one a"),
        ("10.0.0.1", ".three b"),
        ("10.0.0.3", ".one a"),
        ("client-1", ".three b"),
        ("client-2", ".one a"),
        ("client-3", ".three b"),
        ("the-quick-brown-fox", ".one a"),
    ] {
        let answer = client.get(&format!("/?x={who}")).expect("an answer");
        assert_eq!(answer.text(), expected, "{who}");
    }
}

const MAP: &str = r#"pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off; default_type text/plain;
        map $arg_x $by_key {
            hostnames;
            default                     default;
            ""                          empty;
            example.com                 exact;
            *.example.com               leading;
            example.*                   trailing;
            .both.org                   both;
            \default                    escaped;
            ~^(?<word>[a-z]+)/(\d+)$     "$word-$2";
            ~*^UPPER\.LOWER$             whole;
            ~^upper                     first;
            more                        $arg_y;
            include                     @DIR@/lines.conf;
        }
        map "$request_method:$arg_x" $joined { "GET:a" "a of $by_key"; }
        map $uri $volatile_uri { volatile; default $uri; }
        map $uri $kept_uri { default $uri; }
        map $arg_x $around { here $around; default "[$around]"; }
        server {
            listen 127.0.0.1:@PORT@;
            location / { return 200 "$by_key"; }
            location /joined { return 200 "$joined"; }
            location ~ ^/(captured) { return 200 "$by_key $1 $word"; }
            location /around { return 200 "($around)"; }
            location /index/ { root @DIR@; index no$volatile_uri$kept_uri /after; }
            location /after { return 200 "$volatile_uri $kept_uri"; }
        }
    }"#;

fn mapped() -> Server {
    let prefix = Prefix::new();
    prefix.write("lines.conf", "included yes;\n");
    std::fs::create_dir(prefix.join("index")).expect("a directory");
    Server::start_in(prefix, MAP, &[])
}

#[test]
fn a_map_has_the_value_of_the_key_that_nginx_takes() {
    let server = mapped();
    let mut client = server.client();
    for (path, expected) in [
        ("/?x=other", "default"),
        ("/", "empty"),
        ("/?x=example.com", "exact"),
        ("/?x=EXAMPLE.com.", "exact"),
        ("/?x=a.b.example.com", "leading"),
        ("/?x=example.org", "trailing"),
        ("/?x=both.org", "both"),
        ("/?x=a.both.org", "both"),
        ("/?x=default", "escaped"),
        ("/?x=abc/12", "abc-12"),
        ("/?x=ABC/12", "default"),
        ("/?x=upper.lower", "whole"),
        ("/?x=upper", "first"),
        ("/?x=more&y=further", "further"),
        ("/?x=included", "yes"),
        ("/joined?x=a", "a of default"),
        ("/joined?x=b", ""),
        // What an expression of a map captures is what `$1` is from there on.
        ("/captured?x=abc/12", "abc-12 abc abc"),
        ("/captured?x=b", "default captured "),
    ] {
        assert_eq!(client.get(path).expect("an answer").text(), expected, "{path}");
    }
}

#[test]
fn a_map_keeps_its_value_for_the_request_unless_it_is_volatile() {
    let server = mapped();
    assert_eq!(server.get("/index/").text(), "/after /index/");
}

#[test]
fn a_map_that_comes_back_to_itself_has_no_value_and_the_log_says_so() {
    let server = mapped();
    assert_eq!(server.get("/around?x=here").status, 200);
    wait::until("the error log says why", || {
        server.log().contains("cycle while evaluating variable \"around\"")
    });
}

const GEO: &str = r#"pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off; default_type text/plain;
        geo $client { default other; 127.0.0.0/8 loopback; 127.0.0.1 one; }
        geo $arg_ip $by_argument { default default; 10.0.0.0/8 ten; 10.1.0.0/16 inner; 2001:db8::/32 six; 255.255.255.255 none; }
        geo $arg_ip $by_range { ranges; default default; 10.0.0.0-10.2.0.9 a; 10.1.0.0-10.1.255.255 b; }
        geo $proxied { proxy 127.0.0.1; default default; 192.0.2.0/24 test; 127.0.0.0/8 loopback; }
        geo $recursive { proxy 127.0.0.1; proxy 10.0.0.0/8; proxy_recursive; default default; 192.0.2.0/24 test; 10.0.0.0/8 ten; }
        server {
            listen 127.0.0.1:@PORT@;
            location / { return 200 "$client $by_argument $by_range"; }
            location /proxied { return 200 "$proxied $recursive"; }
        }
    }"#;

#[test]
fn geo_goes_by_the_address_that_it_is_told() {
    let server = Server::start(GEO, &[]);
    let mut client = server.client();
    for (ip, expected) in [
        ("10.9.9.9", "one ten default"),
        ("10.1.2.3", "one inner b"),
        ("::ffff:10.2.0.9", "one ten a"),
        ("2001:db8::5", "one six default"),
        ("9.9.9.9", "one default default"),
        ("nothing", "one none default"),
    ] {
        assert_eq!(client.get(&format!("/?ip={ip}")).expect("an answer").text(), expected, "{ip}");
    }
}

#[test]
fn geo_believes_its_proxies_alone() {
    let server = Server::start(GEO, &[]);
    for (fields, expected) in [
        (&[][..], "loopback default"),
        (&["192.0.2.1"], "test test"),
        (&["192.0.2.1, 10.0.0.1"], "default test"),
        (&["192.0.2.1", "10.0.0.1"], "default test"),
        (&["203.0.113.1, 10.0.0.1, 127.0.0.1"], "loopback default"),
        (&["no address"], "loopback default"),
        (&["192.0.2.1:8080"], "test test"),
        (&["192.0.2.7, nonsense, 10.0.0.1"], "default ten"),
    ] {
        let fields: Vec<_> = fields.iter().map(|value| ("X-Forwarded-For", *value)).collect();
        assert_eq!(server.get_with("/proxied", &fields).text(), expected, "{fields:?}");
    }
}
