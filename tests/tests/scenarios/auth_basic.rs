//! Users with passwords: who is let in, what they are told, and what their file may hold.

use millstream_tests::origin::Origin;
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;

const PROTECTED: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
    http {
        access_log @DIR@/access.log combined;
        proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        proxy_cache_valid 1h;
        set_real_ip_from 127.0.0.1;
        server {
            listen 127.0.0.1:@PORT@;
            auth_basic \"closed to $arg_who\";
            auth_basic_user_file @DIR@/users;
            location / {
                proxy_pass http://@ORIGIN@; proxy_cache answers; proxy_cache_key $uri; proxy_set_header Authorization \"\";
            }
            location /own { proxy_pass http://@ORIGIN@; proxy_cache answers; proxy_cache_key $uri; }
            location /open { auth_basic off; proxy_pass http://@ORIGIN@; }
            location /named { auth_basic $arg_realm; proxy_pass http://@ORIGIN@; }
            location /either { satisfy any; allow @ALLOWED@; deny all; proxy_pass http://@ORIGIN@; }
            location /both { allow @ALLOWED@; deny all; proxy_pass http://@ORIGIN@; }
            location /slowly { auth_delay 300ms; proxy_pass http://@ORIGIN@; }
            location /gone { auth_basic_user_file @DIR@/gone; proxy_pass http://@ORIGIN@; }
            location /page { error_page 401 /open/page; proxy_pass http://@ORIGIN@; }
        }
    }";

/// One user per format, all with the password `secret`.
const USERS: &str = "# people\n\
    plain:{PLAIN}secret\n\
    sha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=:a remark\n\
    apr1:$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0\r\n\
    bcrypt:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n\
    sha512:$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1\n\
    costly:$2y$12$abcdefghijklmnopqrstuuQKqSsdYvK1Zt7kHb5Euj4kKkyZ0Gg2q\n\
    odd:no format\n\
    des:abNANd1rDfiNc\n\
    last:{PLAIN}secret";

fn start(origin: &Origin, allowed: &str) -> Server {
    let server = Server::start(PROTECTED, &[("ORIGIN", &origin.address()), ("ALLOWED", allowed)]);
    server.prefix().write("users", USERS);
    server
}

fn basic(credential: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("Basic ");
    for piece in credential.as_bytes().chunks(3) {
        let bits =
            piece.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - piece.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > piece.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

fn status(server: &Server, path: &str, credential: &str) -> u16 {
    server.get_with(path, &[("Authorization", &basic(credential))]).status
}

#[test]
fn a_right_password_in_any_format_lets_in_to_what_is_stored_as_well_and_nothing_else_does() {
    let origin = Origin::fixed(200, &[], b"closed");
    let server = start(&origin, "all");
    for user in ["plain", "sha", "apr1", "bcrypt", "sha512", "des", "last"] {
        for _ in 0..3 {
            assert_eq!(status(&server, "/", &format!("{user}:secret")), 200, "{user}");
        }
        for wrong in ["", "secre", "secrets"] {
            assert_eq!(status(&server, "/", &format!("{user}:{wrong}")), 401, "{user} {wrong:?}");
        }
    }
    assert_eq!(origin.count(), 1, "it is stored, and guarded all the same");
    for nobody in ["people:secret", "# people:secret", ":secret", "plain", "nobody:secret"] {
        assert_eq!(status(&server, "/", nobody), 401, "{nobody}");
    }
    assert_eq!(status(&server, "/", "odd:no format"), 401, "who has no password");
    let answer = server.get("/?who=you");
    assert_eq!(
        (answer.status, answer.field("www-authenticate")),
        (401, Some("Basic realm=\"closed to you\""))
    );
    let told = |what: &str| wait::until(what, || server.log().contains(what));
    told("user \"plain\": password mismatch");
    told("user \"nobody\" was not found in");
    told("no user/password was provided for basic authentication");
    wait::until("the name is logged", || server.prefix().read("access.log").contains(" - bcrypt ["));
}

#[test]
fn realms_addresses_and_pages_go_with_passwords_as_in_nginx() {
    let origin = Origin::fixed(200, &[], b"");
    let inside = start(&origin, "127.0.0.1");
    let outside = start(&origin, "192.0.2.1");
    for (path, credential, from_inside, from_outside) in [
        ("/open", "", 200, 200),
        ("/named?realm=off", "", 200, 200),
        ("/named?realm=on", "", 401, 401),
        ("/either", "", 200, 401),
        ("/either", "plain:secret", 200, 200),
        ("/both", "", 401, 403),
        ("/both", "plain:secret", 200, 403),
        ("/gone", "", 401, 401),
        ("/gone", "plain:secret", 403, 403),
    ] {
        assert_eq!(status(&inside, path, credential), from_inside, "{path} {credential:?} inside");
        assert_eq!(status(&outside, path, credential), from_outside, "{path} {credential:?} outside");
    }
    assert_eq!(inside.get("/either").field("www-authenticate"), None);
    let page = inside.get("/page");
    assert_eq!((page.status, page.field("www-authenticate").is_some()), (401, true));
}

#[test]
fn a_changed_file_holds_soon_for_those_who_were_let_in_before() {
    let origin = Origin::fixed(200, &[], b"");
    let server = start(&origin, "all");
    for _ in 0..8 {
        assert_eq!(status(&server, "/open/not", "bcrypt:secret"), 200);
        assert_eq!(status(&server, "/", "bcrypt:secret"), 200);
    }
    let users = USERS.replace("bcrypt:", "removed:");
    server.prefix().write("users.new", users);
    std::fs::rename(server.prefix().join("users.new"), server.prefix().join("users")).expect("own directory");
    // Each worker forgets for itself.
    wait::until("whoever was removed is kept out", || {
        (0..8).all(|_| status(&server, "/", "bcrypt:secret") == 401)
    });
    assert_eq!(status(&server, "/", "removed:secret"), 200);
}

#[test]
fn what_is_answered_to_one_user_is_not_given_to_another() {
    let origin = Origin::fixed(200, &[], b"closed");
    let server = start(&origin, "all");
    for user in ["plain", "sha", "plain"] {
        assert_eq!(status(&server, "/own", &format!("{user}:secret")), 200, "{user}");
    }
    // nginx gives to everybody what the first was answered.
    assert_eq!(origin.count(), if is_nginx() { 1 } else { 3 }, "RFC 9111 §3.5");
}

#[test]
fn who_is_refused_is_told_after_the_delay() {
    let origin = Origin::fixed(200, &[], b"");
    let server = start(&origin, "all");
    let delay = std::time::Duration::from_millis(300);
    let began = std::time::Instant::now();
    assert_eq!(status(&server, "/slowly", "plain:wrong"), 401);
    assert!(began.elapsed() >= delay, "{:?}", began.elapsed());
    assert_eq!(status(&server, "/slowly", "plain:secret"), 200);
    wait::until("it is told", || server.log().contains("delaying unauthorized request"));
}

#[test]
fn passwords_that_take_long_hold_nobody_else_up() {
    let origin = Origin::fixed(200, &[], b"");
    let server = start(&origin, "all");
    assert_eq!(server.get("/open").status, 200);
    let mut slow: Vec<_> = (0..3).map(|_| server.client()).collect();
    for client in &mut slow {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {}\r\n\r\n", basic("costly:secret"));
        client.send(&head).expect("sent");
    }
    // Each of them takes a core for half a second or more.
    for _ in 0..4 {
        assert_eq!(server.get("/open").status, 200);
        assert_eq!(server.get("/").status, 401);
    }
    let computed = server.log().matches("user \"costly\": password mismatch").count();
    assert!(is_nginx() || computed < slow.len(), "those who wait are overtaken");
    for client in &mut slow {
        assert_eq!(client.answer().expect("an answer").status, 401);
    }
}

#[test]
fn what_is_remembered_or_quickly_compared_waits_for_no_slow_password_of_others() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[], b"");
    let server = start(&origin, "all");
    let users = format!("{USERS}\ncostlier:$2y$13$abcdefghijklmnopqrstuuQKqSsdYvK1Zt7kHb5Euj4kKkyZ0Gg2q\n");
    server.prefix().write("users", users);
    let mut known = server.client();
    let head = |credential: &str, from: &str| {
        let authorization = basic(credential);
        format!("GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: {from}\r\nAuthorization: {authorization}\r\n\r\n")
    };
    let mut status = |credential: &str| known.ask(head(credential, "192.0.2.100")).status;
    for user in ["bcrypt", "sha512", "plain"] {
        assert_eq!(status(&format!("{user}:secret")), 200, "{user}");
    }
    // For a second the file is not even looked at.
    let remembered = std::time::Instant::now();
    wait::until("a second is over", || remembered.elapsed() > std::time::Duration::from_secs(1));
    let slow: Vec<_> = (0..8)
        .map(|number| {
            let mut client = server.client();
            client.send(head("costlier:secret", &format!("192.0.2.{number}"))).expect("sent");
            client
        })
        .collect();
    let computed = || server.log().matches("user \"costlier\": password mismatch").count();
    wait::until("some are computed, and others wait", || computed() > 0);
    for (credential, expected) in [
        ("bcrypt:secret", 200),
        ("sha512:secret", 200),
        ("plain:secret", 200),
        ("sha:secret", 200),
        ("apr1:secret", 200),
        ("des:secret", 200),
        ("plain:wrong", 401),
        ("nobody:secret", 401),
        ("odd:secret", 401),
    ] {
        assert_eq!(status(credential), expected, "{credential}");
    }
    assert!(computed() < slow.len(), "they are overtaken");
}
