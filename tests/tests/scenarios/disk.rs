//! The disk beneath the cache: removed, killed, rotten or full, and never a wrong answer.
//!
//! Every body says what it is and fills itself from that (`proof`), so that any mixed, cut or stale-in-the-middle answer is
//! seen.

mod proof;
mod kills;
mod removed;
mod rot;

use millstream_tests::origin::Origin;
use millstream_tests::server::Server;

/// `@ZONE@` are further words of `proxy_cache_path`.
const SITE: &str = site! {
    main "worker_processes 2;"
    http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=pages:10m use_temp_path=off @ZONE@;
        upstream api { server @ORIGIN@; keepalive 8; }"
    server "location / {
            proxy_pass http://api;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_cache pages;
            proxy_cache_key $uri;
            proxy_cache_lock on;
            add_header X-Cache-Status $upstream_cache_status;
        }"
};

fn start(origin: &Origin, zone: &str) -> Server {
    Server::start(SITE, &[("ORIGIN", &origin.address()), ("ZONE", zone)])
}
