//! Our own end of connections to upstreams: `proxy_bind`. The same holds for nginx.

use millstream_tests::ports;
use millstream_tests::server::Server;

#[test]
fn a_connection_comes_from_the_address_that_proxy_bind_says_and_is_kept_for_it_alone() {
    let port = ports::free().to_string();
    let server = Server::start(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 1; events {}
        http {
            access_log off;
            upstream told { server 127.0.0.1:@TOLD@; }
            server { listen 127.0.0.1:@TOLD@; return 200 $remote_addr; }
            server {
                listen 127.0.0.1:@PORT@;
                proxy_bind 127.0.0.2;
                location /inherited { proxy_pass http://told; }
                location /own { proxy_pass http://told; proxy_bind 127.0.0.3:0; proxy_socket_keepalive on; }
                location /said { proxy_pass http://told; proxy_bind $arg_from; }
                location /off { proxy_pass http://told; proxy_bind off; }
            }
        }",
        &[("TOLD", &port)],
    );
    for (path, expected) in [
        ("/inherited", "127.0.0.2"),
        ("/own", "127.0.0.3"),
        ("/off", "127.0.0.1"),
        ("/said?from=127.0.0.4", "127.0.0.4"),
        ("/said?from=127.0.0.5", "127.0.0.5"),
        ("/said", "127.0.0.1"),
        ("/said?from=nobody", "127.0.0.1"),
        ("/inherited", "127.0.0.2"),
    ] {
        assert_eq!(server.get(path).text(), expected, "{path}");
    }
    server.says("invalid local address \"nobody\"");
}
