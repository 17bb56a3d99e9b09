//! `try_files`: which of several files stands for a request, and where it goes on without any of them.
//!
//! The names are looked for on the worker's loop where the kernel has them in its memory, else off it, all in one go. As in nginx the file that is there becomes the URI
//! of the request, which stays in its location. Before: `rewrite`; next: `phase`, which waits for it.

use crate::request::Request;
use crate::restart::Restart;
use crate::rewrite::file_test::{self, FileTest};
use crate::shows::Shows;
use crate::variables::personal::shown_by;
use crate::variables::{file_path, value};
use millstream_conf::model::{FileKind, Otherwise, Replaces, Template};

pub struct FileTries {
    tests: Vec<FileTest>,
    uris: Vec<(TriedUri, Shows)>,
}

#[derive(Debug, PartialEq, Eq)]
enum TriedUri {
    Same,
    Uri(Vec<u8>),
    /// Appended to an `alias` that is a whole path.
    Appended(Vec<u8>),
}

pub fn begin(request: &Request) -> Option<FileTries> {
    let written = request.location().settings.try_files.as_ref()?;
    let mut tries = FileTries { tests: Vec::new(), uris: Vec::new() };
    for candidate in &written.candidates {
        let name = name(&candidate.name, request);
        // What leads out of its directory is not there.
        let Some(path) = path(request, &name) else { continue };
        let kind = if candidate.is_directory { FileKind::Directory } else { FileKind::File };
        tries.tests.push(FileTest { path, kind });
        let uri = match request.location().settings.files.root.replaces {
            Replaces::Nothing => TriedUri::Uri(name),
            Replaces::Name(length) => {
                let kept = request.route.uri.get(..length).unwrap_or(&request.route.uri);
                TriedUri::Uri([kept, &name].concat())
            }
            Replaces::Whole if candidate.is_directory => TriedUri::Same,
            Replaces::Whole => TriedUri::Appended(name),
        };
        tries.uris.push((uri, shown_by(&candidate.name, request)));
    }
    Some(tries)
}

impl FileTries {
    /// Continues with the first existing file, whose URI is then in force. `Err` if it would block: use
    /// [`FileTries::ask`].
    pub fn ask_at_once(mut self, request: &mut Request) -> Result<bool, FileTries> {
        match file_test::first_at_once(&self.tests, request) {
            Some(found) => Ok(take(request, found.map(|at| self.uris.swap_remove(at)))),
            None => Err(self),
        }
    }

    pub async fn ask(mut self, request: &mut Request) -> bool {
        let found = file_test::first(self.tests, request).await;
        take(request, found.map(|at| self.uris.swap_remove(at)))
    }
}

fn take(request: &mut Request, found: Option<(TriedUri, Shows)>) -> bool {
    let Some((found, shows)) = found else { return false };
    request.route.shows.path |= shows;
    match found {
        TriedUri::Same => {}
        TriedUri::Uri(uri) => request.route.uri = uri,
        TriedUri::Appended(uri) => {
            request.route.uri = uri;
            request.route.extends_alias = true;
        }
    }
    true
}

/// The fallback. The error is a status.
pub fn otherwise(request: &Request) -> Result<Restart, u16> {
    match request.location().settings.try_files.as_ref().map(|written| &written.otherwise) {
        Some(Otherwise::Uri(uri)) => Ok(Restart::read(&name(uri, request), shown_by(uri, request))),
        Some(Otherwise::Status(status)) => Err(*status),
        None => Err(404),
    }
}

/// With variables it is a URI, in which an `alias` replaces the location's name, as in nginx.
fn name(template: &Template, request: &Request) -> Vec<u8> {
    let mut name = value(template, request);
    if let Replaces::Name(length) = request.location().settings.files.root.replaces
        && template.as_literal().is_none()
        && let Some(replaced) = request.route.uri.get(..length)
        && name.starts_with(replaced)
    {
        name.drain(..length);
    }
    name
}

/// `None` if it would leave its directory, or reach one whose name only starts the same.
fn path(request: &Request, name: &[u8]) -> Option<Vec<u8>> {
    let is_root = request.location().settings.files.root.replaces == Replaces::Nothing;
    if is_root && !name.starts_with(b"/") {
        return None;
    }
    file_path::below(request, name).ok()
}

#[cfg(test)]
mod tests {
    use super::{TriedUri, begin, otherwise};
    use crate::fixture::{admitted, worker};
    use crate::restart::Restart;

    fn tried(server: &str, target: &str) -> Vec<String> {
        let worker = worker(&format!("server {{ listen 80; {server} }}"));
        let request = admitted(&worker, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let tries = begin(&request).expect("it tries files");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut all: Vec<String> = (tries.tests.iter().zip(&tries.uris))
            .map(|(test, (uri, _))| match uri {
                TriedUri::Same => format!("{:?} {}", test.kind, text(&test.path)),
                TriedUri::Uri(uri) => format!("{:?} {} as {}", test.kind, text(&test.path), text(uri)),
                TriedUri::Appended(uri) => format!("{:?} {} with {}", test.kind, text(&test.path), text(uri)),
            })
            .collect();
        all.push(match otherwise(&request) {
            Ok(Restart::Uri { path, query, .. }) => {
                format!("{}?{}", text(&path), text(&query.unwrap_or_default()))
            }
            Ok(Restart::Named { name, .. }) => text(&name),
            Err(status) => status.to_string(),
        });
        all
    }

    #[test]
    fn names_are_below_root_or_alias_and_nowhere_else() {
        let root = "root /r; location / { try_files $uri $uri/ $arg_f /x.html /index.php?q=$uri&$args; }";
        let fallback = "/index.php?q=/a/&f=/../b";
        assert_eq!(
            tried(root, "/a/?f=/../b"),
            ["File /r/a/ as /a/", "Directory /r/a/ as /a/", "File /r/x.html as /x.html", fallback]
        );
        assert!(!tried(root, "/a?f=-beside").iter().any(|one| one.contains("/r-beside")));
        let alias = "location /a/ { alias /d/; try_files $uri $uri/ /f $arg_f /a//a/index.php?$args; }";
        assert_eq!(
            tried(alias, "/a/b?f=../b"),
            ["File /d/b as /a/b", "Directory /d/b as /a/b", "File /d//f as /a//f", "/a/index.php?f=../b"]
        );
        let whole = "location ~ ^/a/(.*)$ { alias /d/$1; try_files $uri /e/ =403; }";
        assert_eq!(tried(whole, "/a/b"), ["File /d/b/a/b with /a/b", "Directory /d/b/e", "403"]);
        let named = "location / { try_files /m.html @app; } location @app { return 200; }";
        assert_eq!(tried(named, "/a"), ["File /nowhere/html/m.html as /m.html", "@app"]);
    }
}
