//! What an idle connection costs, measured from outside.

use millstream_tests::client::Client;
use millstream_tests::origin::Origin;
use millstream_tests::process::{allow_open_files, resident_bytes};
use millstream_tests::profile_directory;
use millstream_tests::server::Server;

const CONNECTIONS: usize = 5_000;

const SITE: &str = site! {
    main "worker_rlimit_nofile 20000;" events "worker_connections 16000;"
    http "keepalive_timeout 600;
        upstream api { server @ORIGIN@; keepalive 16; }"
    server "location / { proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection \"\"; }"
};

fn open(server: &Server, count: usize) -> Vec<Client> {
    (0..count)
        .map(|_| {
            let mut client = server.client();
            assert_eq!(client.get("/").expect("an answer").status, 200);
            client
        })
        .collect()
}

#[test]
fn five_thousand_idle_connections_cost_little_more_than_their_state() {
    assert!(allow_open_files(CONNECTIONS as u64 + 2_000), "ulimit -n has to allow {CONNECTIONS} connections");
    let origin = Origin::fixed(200, &[], &[b'x'; 900]);
    let server = Server::start(SITE, &[("ORIGIN", &origin.address())]);
    drop(open(&server, 100));
    let before = resident_bytes(server.id());
    let clients = open(&server, CONNECTIONS);
    let each = resident_bytes(server.id()).saturating_sub(before) / CONNECTIONS as u64;
    drop(clients);
    // The promise is the release build's; unoptimised futures are several times as large.
    let bound = if profile_directory().ends_with("release") { 1536 } else { 16 * 1024 };
    assert!(each <= bound, "{each} bytes each");
    assert_eq!(server.get("/").status, 200);
}
