//! What `-v` and `-V` say. Scripts made for nginx look for its words in them.

use millstream_server::variables::NGINX_VERSION;
use std::process::ExitCode;

/// `-v`: name and version, on standard error as nginx does.
pub fn short() -> ExitCode {
    eprintln!("millstream version: millstream/{}", env!("CARGO_PKG_VERSION"));
    ExitCode::SUCCESS
}

/// `-V`: version, the nginx version whose behaviour is claimed, and what is built in.
pub fn long() -> ExitCode {
    short();
    eprintln!("nginx version: nginx/{NGINX_VERSION} (behaviour claimed for the directives in the manual)");
    eprintln!("TLS SNI support enabled");
    eprintln!(
        "configure arguments: --with-http_ssl_module --without-http_fastcgi_module --without-http_uwsgi_module \
         --without-http_scgi_module --without-http_grpc_module --without-http_memcached_module \
         --without-http_mirror_module --without-http_empty_gif_module --without-http_browser_module \
         --without-http_userid_module --without-http_autoindex_module"
    );
    ExitCode::SUCCESS
}
