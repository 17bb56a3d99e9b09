//! Files under `root` or `alias`: the type by extension, `index` in directories, validators, not-modified answers and ranges.
//!
//! What may stand in for a file says `precoded`, what for a directory without an index `autoindex`.
//! Opened and read on the worker's loop where the kernel has it in memory, else off it; the kernel sends it where that can be.
//! The URI is normalised before it gets here (`wire::target`); a path that would leave the root all the same is forbidden (`variables/file_path`).

use super::precoded;
use super::{autoindex, fixed, media_type, random_index};
use crate::cached::stored::{self, Unsent};
use crate::client::Client;
use crate::failure::log;
use crate::open_files::{self, FileOrDirectory, OpenFile};
use crate::outcome::Outcome;
use crate::representation::chosen::{self, Extent, Offer};
use crate::request::Request;
use crate::restart::Restart;
use crate::shows::Shows;
use crate::symlinks::RefusedLinks;
use crate::variables::file_path::{self, Unmapped};
use crate::variables::personal::shown_by;
use crate::variables::value;
use millstream_conf::model::Level;
use millstream_net::blocking;
use millstream_wire::conditional::Validators;
use millstream_wire::{Coding, Headers, Method, date};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

const PIECE: u64 = 64 * 1024;
/// Bytes sent by sendfile at a time, as in nginx before other connections get their turn.
const SENT_AT_A_TIME: u64 = 2 * 1024 * 1024;
/// Up to this size reading is cheaper than a second system call to send it.
const READ_UP_TO: u64 = 16 * 1024;
/// Two numbers of 64 bits in hexadecimal, with what is around them.
const LONGEST_TAG: usize = 2 * 16 + 3;
/// Room for the fields of most files, with their names and values.
const USUAL_FIELDS: usize = 6;
const USUAL_BYTES: usize = 192;

pub const EXPLANATION: &str = "the location serves files, which are not cached";

struct ChosenFile {
    of: Arc<OpenFile>,
    coding: Option<Coding>,
    /// Whether other clients get another file.
    varies: bool,
}

pub async fn answer(request: &mut Request, client: &mut Client) -> Outcome {
    if !matches!(request.method, Method::Get | Method::Head | Method::Post) {
        return Outcome::Status(405);
    }
    let path = match file_path::of(request) {
        Ok(path) => path,
        Err(Unmapped::LeavesRoot) => return Outcome::Status(403),
        Err(Unmapped::Rewritten) => {
            let what = "\"alias\" cannot be used in a location whose URI was rewritten";
            log(request, Level::Alert, format_args!("{what}"));
            return Outcome::Status(500);
        }
    };
    if path.contains(&0) {
        return Outcome::Status(404);
    }
    if request.route.uri.ends_with(b"/") {
        return index(request, client, &path).await;
    }
    let path = Path::new(OsStr::from_bytes(&path));
    match best(request, path).await {
        Ok(Some(_)) if request.method == Method::Post => Outcome::Status(405),
        Ok(Some(opened)) => send(request, client, opened).await,
        Ok(None) => fixed::redirect_with_slash(request),
        Err(error) => {
            let status = status_of(&error);
            if status != 404 || request.location().settings.files.log_not_found {
                let what = format_args!("open() \"{}\" failed ({})", path.display(), cause(&error));
                log(request, Level::Error, what);
            }
            Outcome::Status(status)
        }
    }
}

/// As nginx logs it: `2: No such file or directory`.
fn cause(error: &std::io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(code) => format!("{code}: {}", text.split(" (os error").next().unwrap_or(&text)),
        None => text,
    }
}

/// With `random_index` redirects internally to one of the files. Otherwise to the first `index` name that
/// exists or has a leading slash; without any the response is 403.
async fn index(request: &mut Request, client: &mut Client, directory: &[u8]) -> Outcome {
    if request.location().settings.random_index.enabled {
        match random_index::choose(directory).await {
            Ok(Some(name)) => {
                return Outcome::Restart(Restart::path(
                    [request.route.uri.as_slice(), &name].concat(),
                    Shows::NOTHING,
                ));
            }
            Ok(None) => {}
            Err(error) => {
                return autoindex::unreadable(request, Path::new(OsStr::from_bytes(directory)), &error);
            }
        }
    }
    let written = &request.location().settings.files.index;
    let names: Vec<Vec<u8>> = written.iter().map(|name| value(name, request)).collect();
    let shows = |at: usize| written.get(at).map(|name| shown_by(name, request)).unwrap_or_default();
    let shown = directory;
    let followed = RefusedLinks::of(request);
    let found = match look_for(&names, directory, |path| followed.metadata_at_once(path)) {
        Some(found) => found,
        None => {
            let (names, directory) = (names.clone(), directory.to_vec());
            let look = move || look_for(&names, &directory, |path| Some(followed.metadata(path)));
            blocking::run(look).await.unwrap_or_default()
        }
    };
    let name = found.name.and_then(|at| Some((names.get(at)?, shows(at))));
    match (name, found.directory) {
        (Some((name, shows)), _) => {
            let directory: &[u8] = if name.starts_with(b"/") { b"" } else { &request.route.uri };
            Outcome::Restart(Restart::path([directory, name].concat(), shows))
        }
        (None, true) if request.location().settings.autoindex.enabled && request.method != Method::Post => {
            autoindex::answer(request, client, shown.to_vec()).await
        }
        (None, true) => {
            let shown = String::from_utf8_lossy(shown);
            log(request, Level::Error, format_args!("directory index of \"{shown}\" is forbidden"));
            Outcome::Status(403)
        }
        (None, false) => {
            let shown = String::from_utf8_lossy(shown);
            if request.location().settings.files.log_not_found {
                let cause = "2: No such file or directory";
                log(request, Level::Error, format_args!("\"{shown}\" is not found ({cause})"));
            }
            Outcome::Status(404)
        }
    }
}

#[derive(Default)]
struct Index {
    name: Option<usize>,
    directory: bool,
}

fn look_for(
    names: &[Vec<u8>],
    directory: &[u8],
    metadata: impl Fn(&Path) -> Option<std::io::Result<Metadata>>,
) -> Option<Index> {
    for (at, name) in names.iter().enumerate() {
        let path = [directory, name].concat();
        if name.starts_with(b"/")
            || metadata(Path::new(OsStr::from_bytes(&path)))?.is_ok_and(|found| found.is_file())
        {
            return Some(Index { name: Some(at), directory: true });
        }
    }
    let found = metadata(Path::new(OsStr::from_bytes(directory)))?;
    Some(Index { name: None, directory: found.is_ok_and(|found| found.is_dir()) })
}

/// The first existing coded variant, else the path itself; `None` for a directory.
async fn best(request: &Request, path: &Path) -> std::io::Result<Option<ChosenFile>> {
    let (beside, followed) = (precoded::beside(request, path), RefusedLinks::of(request));
    let open = async |path: &Path| open(request, &followed, path).await;
    let mut varies = false;
    for path in &beside.varying {
        varies |= matches!(open(path).await, Ok(FileOrDirectory::File(_)));
    }
    for (coding, path) in &beside.wanted {
        if let Ok(FileOrDirectory::File(of)) = open(path).await {
            return Ok(Some(ChosenFile { of, coding: Some(*coding), varies }));
        }
    }
    match open(path).await? {
        FileOrDirectory::File(of) => Ok(Some(ChosenFile { of, coding: None, varies })),
        FileOrDirectory::Directory => Ok(None),
    }
}

/// Keeps nothing open if links are restricted: another location may have opened what this one refuses.
async fn open(request: &Request, followed: &RefusedLinks, path: &Path) -> std::io::Result<FileOrDirectory> {
    if followed.refuses_some() {
        let (followed, path) = (followed.clone(), path.to_path_buf());
        return FileOrDirectory::of(blocking::run(move || followed.open(&path)).await?.into());
    }
    let settings = &request.location().settings.open_file_cache;
    open_files::open(&request.generation.open_files, settings, path).await
}

fn status_of(error: &std::io::Error) -> u16 {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => 404,
        ErrorKind::PermissionDenied => 403,
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => 403,
        _ => 500,
    }
}

async fn send(request: &mut Request, client: &mut Client, opened: ChosenFile) -> Outcome {
    let settings = &request.location().settings;
    let mut etag = String::with_capacity(LONGEST_TAG);
    // Writing to a String cannot fail.
    _ = write!(etag, "\"{:x}-{:x}\"", opened.of.modified, opened.of.length);
    let tag = settings.ranges.etag.then_some(etag.as_bytes());
    let (validators, length) =
        (Validators { etag: tag, last_modified: Some(opened.of.modified) }, Some(opened.of.length));
    let mut headers = Headers::with_capacity(USUAL_FIELDS, USUAL_BYTES);
    headers.push(b"Content-Type", media_type::of(request));
    // The page of an error says nothing about when the error was made.
    if request.descent.error_status.is_none_or(|status| matches!(status, 200 | 206 | 304)) {
        headers.push(b"Last-Modified", &date::format_http(opened.of.modified));
    }
    if let Some(tag) = tag {
        headers.push(b"ETag", tag);
    }
    if opened.varies && settings.gzip.vary {
        headers.push(b"Vary", b"Accept-Encoding");
    }
    if let Some(coding) = opened.coding {
        headers.push(b"Content-Encoding", coding.name().as_bytes());
    }
    let offer = Offer { status: 200, fields: headers.view(), validators, length, is_stream: false };
    let shape = match chosen::choose(request, &offer).shape(request, headers, 200, length) {
        Ok(shape) => shape,
        Err(unmet) => return Outcome::Status(chosen::refuse(request, unmet)),
    };
    shape.begin(request, client, None);
    send_body(request, client, &opened.of, shape.extent).await
}

async fn send_body(
    request: &mut Request,
    client: &mut Client,
    file: &Arc<OpenFile>,
    extent: Extent,
) -> Outcome {
    let sent = match extent {
        Extent::Nothing => Ok(()),
        Extent::Whole => send_range(request, client, file, 0..file.length).await,
        Extent::Part(range) => send_range(request, client, file, range).await,
        Extent::Parts(layout) => {
            let part = async |request: &mut Request, client: &mut Client, range| {
                send_range(request, client, file, range).await
            };
            layout.send(request, client, part).await
        }
    };
    stored::ended(request, client, None, sent).await
}

async fn send_range(
    request: &mut Request,
    client: &mut Client,
    of: &Arc<OpenFile>,
    mut range: Range<u64>,
) -> Result<(), Unsent> {
    let is_sent_by_kernel = range.end - range.start > READ_UP_TO && client.takes_files();
    while range.start < range.end {
        let part = range.start..range.end.min(range.start + SENT_AT_A_TIME);
        if is_sent_by_kernel && of.file.is_at_hand(&part) {
            range.start = part.end;
            client.send_file(request, &of.file, part).await.map_err(Unsent::Client)?;
            continue;
        }
        client.room(request).await.map_err(Unsent::Client)?;
        let piece = read(of, range.start..range.end.min(range.start + PIECE)).await;
        if piece.is_empty() {
            // It became shorter or unreadable, so the announced length cannot be kept.
            return Err(Unsent::Body);
        }
        range.start += piece.len() as u64;
        client.send(request, piece.into()).await.map_err(Unsent::Client)?;
    }
    Ok(())
}

async fn read(of: &Arc<OpenFile>, part: Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; (part.end - part.start) as usize];
    let read = match of.file.read_at_once(&mut bytes, part.start) {
        Some(read) => read,
        None => {
            let of = of.clone();
            let (read, filled) = blocking::run(move || {
                let read = of.file.file().read_at(&mut bytes, part.start);
                (read, bytes)
            })
            .await;
            bytes = filled;
            read
        }
    };
    bytes.truncate(read.unwrap_or_default());
    bytes
}
