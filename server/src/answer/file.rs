//! Files under `root`: the type by extension, `index` in directories, validators and not-modified answers.
//!
//! Opened and read off the worker's loop, in pieces of bounded size. The URI is normalised before it gets here
//! (`wire::target`); a path that would leave the root all the same is forbidden.

use super::{Outcome, fixed};
use crate::client::{AnswerHead, Client};
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::Types;
use millstream_net::blocking;
use millstream_wire::conditional::{self, Validators};
use millstream_wire::{Headers, Method, date};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Bytes read from a file at a time.
const PIECE: usize = 64 * 1024;

/// A file that was opened.
struct Opened {
    file: File,
    length: u64,
    modified: i64,
}

/// Answers with the file that the URI names.
pub async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    if !matches!(request.method, Method::Get | Method::Head | Method::Post) {
        return Outcome::Status(405);
    }
    if leaves_root(&request.uri) {
        return Outcome::Status(403);
    }
    let mut path = value(&request.location().settings.root, request);
    path.extend_from_slice(&request.uri);
    if path.contains(&0) {
        return Outcome::Status(404);
    }
    if request.uri.ends_with(b"/") {
        return index(request, &path).await;
    }
    let path = PathBuf::from(OsStr::from_bytes(&path));
    let opened = blocking::run({
        let path = path.clone();
        move || open(&path)
    })
    .await;
    match opened {
        Ok(Some(_)) if request.method == Method::Post => Outcome::Status(405),
        Ok(Some(opened)) => send(request, client, &path, opened).await,
        Ok(None) => fixed::redirect_with_slash(request, client).await,
        Err(error) => Outcome::Status(status_of(error.kind())),
    }
}

/// Whether a path has a segment that goes up. One that came is normalised, but an `error_page` with variables makes any.
fn leaves_root(uri: &[u8]) -> bool {
    uri.split(|&byte| byte == b'/').any(|segment| segment == b"..")
}

/// The first `index` name that exists is answered as a path of its own; a directory without one is forbidden.
async fn index(request: &Request, directory: &[u8]) -> Outcome {
    let names: Vec<Vec<u8>> =
        request.location().settings.index.iter().map(|name| value(name, request)).collect();
    let directory = directory.to_vec();
    let found = blocking::run(move || {
        let first = names.into_iter().find(|name| {
            let path = [directory.as_slice(), name].concat();
            Path::new(OsStr::from_bytes(&path)).is_file()
        });
        (first, Path::new(OsStr::from_bytes(&directory)).is_dir())
    })
    .await;
    match found {
        (Some(name), _) => Outcome::Index([request.uri.as_slice(), &name].concat()),
        (None, true) => Outcome::Status(403),
        (None, false) => Outcome::Status(404),
    }
}

/// Opens a regular file; `None` is a directory.
fn open(path: &Path) -> std::io::Result<Option<Opened>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Ok(None);
    }
    if !metadata.is_file() {
        return Err(ErrorKind::NotFound.into());
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let since = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Some(Opened { file, length: metadata.len(), modified: since.as_secs() as i64 }))
}

fn status_of(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => 404,
        ErrorKind::PermissionDenied => 403,
        _ => 500,
    }
}

async fn send(request: &mut Request, client: &mut Client, path: &Path, opened: Opened) -> Outcome {
    let settings = &request.location().settings;
    let media = media_type(&settings.types, &settings.default_type, path);
    let etag = format!("\"{:x}-{:x}\"", opened.modified, opened.length);
    let validators = Validators { etag: Some(etag.as_bytes()), last_modified: Some(opened.modified) };
    let status = match conditional::evaluate(request.method, request.fields(), validators) {
        conditional::Outcome::Proceed => 200,
        conditional::Outcome::NotModified => 304,
        conditional::Outcome::PreconditionFailed => return Outcome::Status(412),
    };
    let mut headers = Headers::default();
    if status == 200 {
        headers.push(b"Content-Type", media.as_bytes());
    }
    // The page of an error says nothing about when the error was made.
    if request.error_status.is_none_or(|status| status == 200) {
        headers.push(b"Last-Modified", &date::format_http(opened.modified));
    }
    headers.push(b"ETag", etag.as_bytes());
    let length = Some(opened.length);
    client
        .begin(request, AnswerHead { status, fields: headers.view(), length, compressible: true, age: None });
    if status == 200 && request.wants_body() {
        return send_body(request, client, opened).await;
    }
    client.end(request, None);
    finish(client.flush(request).await)
}

async fn send_body(request: &mut Request, client: &mut Client, opened: Opened) -> Outcome {
    let (mut file, mut left) = (opened.file, opened.length);
    let mut piece = Vec::with_capacity(PIECE);
    while left > 0 {
        let (returned, buffer, outcome) = blocking::run(move || {
            piece.clear();
            let outcome = (&file).take(left.min(PIECE as u64)).read_to_end(&mut piece);
            (file, piece, outcome)
        })
        .await;
        (file, piece) = (returned, buffer);
        match outcome {
            Ok(count) if count > 0 => left -= count as u64,
            // The file became shorter while it was sent: the length that was announced cannot be kept.
            _ => {
                client.abandon();
                return Outcome::Done;
            }
        }
        if let Err(failure) = client.send(request, &piece).await {
            return Outcome::Client(failure);
        }
    }
    client.end(request, None);
    finish(client.flush(request).await)
}

fn finish(flushed: Result<(), crate::client::ClientFailure>) -> Outcome {
    flushed.map_or_else(Outcome::Client, |()| Outcome::Done)
}

fn media_type(types: &Types, default: &str, path: &Path) -> String {
    path.extension()
        .and_then(OsStr::to_str)
        .and_then(|extension| types.by_extension.get(&extension.to_ascii_lowercase()))
        .map_or_else(|| default.to_owned(), |media| media.to_string())
}
