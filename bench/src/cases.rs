//! What is measured: a table, one row per kind of work.
//!
//! Millstream and nginx get the same file, most often a seed configuration as its article has it. Each peer gets what
//! its own manual advises for that work, see `bench/conf/`.

use crate::product::Product::{self, Floor, Haproxy, Millstream, Nginx, Origin, Varnish};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) target: &'static str,
    pub(crate) fields: &'static [&'static str],
    /// `wrk`'s connections, if the case needs another number than `--connections`.
    pub(crate) connections: Option<u32>,
    /// Bytes of the body before compression, checked before measuring.
    pub(crate) size: usize,
    pub(crate) products: &'static [Product],
    pub(crate) nginx: &'static str,
    pub(crate) haproxy: &'static str,
    pub(crate) varnish: &'static str,
    /// Whether the report has the number of requests that reached the origin.
    pub(crate) counts_origin: bool,
    pub(crate) tls: bool,
    /// The most CPU per request, as a multiple of nginx's.
    pub(crate) bar: Option<f64>,
}

const NONE: Case = Case {
    name: "",
    about: "",
    target: "",
    fields: &[],
    connections: None,
    size: 0,
    products: &[],
    nginx: "",
    haproxy: "",
    varnish: "",
    counts_origin: false,
    tls: false,
    bar: None,
};

pub(crate) const ALL: &[Case] = &[
    Case {
        name: "direct",
        about: "the API alone: the origin without a proxy, 900 B of JSON",
        target: "/api?size=900",
        size: 900,
        products: &[Origin],
        ..NONE
    },
    Case {
        name: "proxied",
        about: "proxied with keep-alive on both sides, 900 B of JSON, nothing cached",
        target: "/api?size=900",
        size: 900,
        products: &[Millstream, Nginx, Haproxy],
        nginx: "bench/conf/proxied.conf",
        haproxy: "bench/conf/proxied.cfg",
        bar: Some(0.85),
        ..NONE
    },
    Case {
        name: "hit",
        about: "cache hit, 900 B of JSON, `api-5` with its buffered log (HAProxy's cache and `bare epoll` write none)",
        target: "/api?size=900&age=86400",
        size: 900,
        products: &[Millstream, Nginx, Haproxy, Floor],
        nginx: "tests/seed-configs/api-5-buffered-log.conf",
        haproxy: "bench/conf/hit.cfg",
        bar: Some(0.45),
        ..NONE
    },
    Case {
        name: "page",
        about: "cache hit, 60 KB of varied text, plain",
        target: "/page?size=61440&kind=text&age=86400",
        size: 61_440,
        products: &[Millstream, Nginx, Varnish],
        nginx: "tests/seed-configs/api-5-buffered-log.conf",
        varnish: "bench/conf/plain.vcl",
        bar: Some(0.55),
        ..NONE
    },
    Case {
        name: "hit-tls",
        about: "cache hit over TLS, 900 B of JSON, keep-alive",
        target: "/api?size=900&age=86400",
        size: 900,
        products: &[Millstream, Nginx],
        nginx: "bench/conf/tls.conf",
        tls: true,
        bar: Some(0.46),
        ..NONE
    },
    Case {
        name: "guarded",
        about: "cache hit, 900 B of JSON, behind `map`, `if` and `limit_req`",
        target: "/api?size=900&age=86400",
        size: 900,
        products: &[Millstream, Nginx],
        nginx: "bench/conf/guarded.conf",
        bar: Some(0.6),
        ..NONE
    },
    Case {
        name: "large",
        about: "cache hit, 1 MiB",
        target: "/large?size=1048576&age=86400",
        connections: Some(50),
        size: 1 << 20,
        products: &[Millstream, Nginx],
        nginx: "tests/seed-configs/api-5-buffered-log.conf",
        bar: Some(0.95),
        ..NONE
    },
    Case {
        name: "huge",
        about: "cache hit, 10 MiB, out of a file",
        target: "/huge?size=10485760&age=86400",
        connections: Some(20),
        size: 10 << 20,
        products: &[Millstream, Nginx],
        nginx: "tests/seed-configs/api-5-buffered-log.conf",
        bar: Some(1.0),
        ..NONE
    },
    Case {
        name: "file",
        about: "a static file of 900 B",
        target: "/900.json",
        size: 900,
        products: &[Millstream, Nginx],
        nginx: "bench/conf/files.conf",
        bar: Some(0.95),
        ..NONE
    },
    Case {
        name: "open-file",
        about: "a static file of 900 B, kept open by `open_file_cache`",
        target: "/open/900.json",
        size: 900,
        products: &[Millstream, Nginx],
        nginx: "bench/conf/files.conf",
        bar: Some(0.95),
        ..NONE
    },
    Case {
        name: "return",
        about: "`return 200` with a text",
        target: "/return",
        size: 36,
        products: &[Millstream, Nginx],
        nginx: "bench/conf/files.conf",
        bar: Some(0.95),
        ..NONE
    },
    Case {
        name: "page-gzip",
        about: "cache hit, 60 KB of varied text, `Accept-Encoding: gzip`, level 2",
        target: "/page?size=61440&kind=text&age=86400",
        fields: &["Accept-Encoding: gzip"],
        size: 61_440,
        products: &[Millstream, Nginx, Varnish],
        nginx: "tests/seed-configs/api-5-buffered-log.conf",
        varnish: "bench/conf/gzip.vcl",
        ..NONE
    },
    Case {
        name: "microcache",
        about: "microcache of 1 s with lock, in front of a page that takes 0.18 to 0.66 s (`blog-3`), 60 KB of text",
        target: "/page?size=61440&kind=text&delay=180-660",
        connections: Some(10),
        size: 61_440,
        products: &[Millstream, Nginx, Varnish],
        nginx: "tests/seed-configs/blog-3-microcache-lock.conf",
        varnish: "bench/conf/microcache.vcl",
        counts_origin: true,
        ..NONE
    },
];

pub(crate) fn named(name: &str) -> Option<&'static Case> {
    ALL.iter().find(|case| case.name == name)
}
