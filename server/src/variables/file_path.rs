//! The file that a URI names: below `root`, or where an `alias` puts it.
//!
//! The one place that makes such a path, for files, `index`, `try_files`, `proxy_store` and `$request_filename`. No path leaves the
//! directory that the configuration wrote: `/i../x` is no way out of an `alias` without a slash at the end of its location.

use super::evaluate;
use crate::request::Request;
use millstream_conf::model::Replaces;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmapped {
    /// `..` would leave the root.
    LeavesRoot,
    /// A rewrite moved the URI out of the location whose name `alias` replaces.
    Rewritten,
}

pub fn root(request: &Request) -> Vec<u8> {
    root_of(request, 0)
}

/// With room for a name.
fn root_of(request: &Request, room: usize) -> Vec<u8> {
    let root = &request.location().settings.files.root;
    let mut path = Vec::with_capacity(root.prefix.len() + root.path.source.len() + room);
    evaluate(&root.path, request, &mut path);
    if !path.starts_with(b"/") {
        path.splice(0..0, root.prefix.bytes());
    }
    path
}

pub fn of(request: &Request) -> Result<Vec<u8>, Unmapped> {
    let rest = match request.location().settings.files.root.replaces {
        Replaces::Name(length) => request.route.uri.get(length..).unwrap_or_default(),
        Replaces::Whole if !request.route.extends_alias => &[],
        Replaces::Nothing | Replaces::Whole => &request.route.uri,
    };
    below(request, rest)
}

pub fn below(request: &Request, name: &[u8]) -> Result<Vec<u8>, Unmapped> {
    let settings = &request.location().settings.files.root;
    if settings.replaces != Replaces::Nothing && request.route.is_outside {
        return Err(Unmapped::Rewritten);
    }
    let mut path = root_of(request, name.len());
    path.extend_from_slice(name);
    // The configuration may go up, what comes with a request may not.
    let written = ups(settings.path.source.as_bytes()) + ups(settings.prefix.as_bytes());
    if ups(name) > 0 || ups(&path) > written { Err(Unmapped::LeavesRoot) } else { Ok(path) }
}

/// Whether variables add `..` that the configuration does not have: they would lead out of its directory.
pub fn goes_up(path: &[u8], written: &[u8]) -> bool {
    ups(path) > ups(written)
}

fn ups(path: &[u8]) -> usize {
    if !path.windows(2).any(|two| two == b"..") {
        return 0;
    }
    path.split(|&byte| byte == b'/').filter(|segment| *segment == b"..").count()
}

#[cfg(test)]
mod tests {
    use super::{Unmapped, of};
    use crate::fixture::{admitted, worker};

    #[test]
    fn a_uri_names_a_file_below_root_or_where_its_alias_puts_it_and_nowhere_else() {
        let worker = worker(
            "server { listen 80; root /top/;
                location /i { alias /data/w/; location /i/deep/ { } location ~ ^/i/re { } }
                location /dot { alias /data/.; }
                location = /exact { alias /data/file; }
                location ~ ^/re/(.*)$ { alias /data/$1; }
                location /arg/ { alias $arg_d/x/; }
                location /up/ { alias /data/../other/; } }",
        );
        for (target, expected) in [
            ("/a/b", Ok("/top/a/b")),
            ("/i/a", Ok("/data/w//a")),
            ("/i", Ok("/data/w/")),
            ("/i../a", Err(Unmapped::LeavesRoot)),
            ("/i..", Err(Unmapped::LeavesRoot)),
            ("/i..a", Ok("/data/w/..a")),
            ("/i%2e%2e/a", Err(Unmapped::LeavesRoot)),
            ("/dot./a", Err(Unmapped::LeavesRoot)),
            ("/i/deep/a", Ok("/data/w//deep/a")),
            ("/i/re", Ok("/data/w//re")),
            ("/exact", Ok("/data/file")),
            ("/re/a/b", Ok("/data/a/b")),
            ("/arg/a?d=/v", Ok("/v/x/a")),
            ("/arg/a?d=v", Ok("/nowhere/v/x/a")),
            ("/arg/a?d=/v/..", Err(Unmapped::LeavesRoot)),
            ("/up/a", Ok("/data/../other/a")),
        ] {
            let request = admitted(&worker, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let path = of(&request).map(|path| String::from_utf8_lossy(&path).into_owned());
            assert_eq!(path, expected.map(str::to_owned), "{target}");
        }
    }

    #[test]
    fn an_alias_replaces_nothing_of_a_uri_that_a_rewrite_took_out_of_its_location() {
        let worker = worker("server { listen 80; location /a/ { alias /data/; } }");
        let mut request = admitted(&worker, "GET /a/b HTTP/1.1\r\nHost: a\r\n\r\n");
        request.route.is_outside = true;
        assert_eq!(of(&request), Err(Unmapped::Rewritten));
    }
}
