//! Variables that a configuration makes out of others: each has the value that it has in nginx.

use millstream_tests::server::Server;

const SPLIT: &str = r#"pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        split_clients $arg_x $variant { 51.2% ".one"; 10% ".two"; 0.01% tiny; 33% ".three"; }
        split_clients $arg_x $half { 50% a; 50% b; }
        server { listen 127.0.0.1:@PORT@; return 200 "$variant $half"; }
    }"#;

/// The shares are those that Debian's nginx 1.22 puts these clients in.
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
