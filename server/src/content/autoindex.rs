//! `autoindex`: the files of a directory as a page, read off the worker's loop.
//!
//! As in nginx no name that begins with a dot is shown. Next: `page`, which writes the list.

mod page;

use super::fixed;
use crate::client::Client;
use crate::failure::log;
use crate::filter::charset;
use crate::outcome::Outcome;
use crate::request::Request;
use millstream_conf::model::{AutoindexFormat, Level};
use millstream_net::{blocking, clock};
use millstream_wire::{Headers, target};
use page::{DirectoryEntry, Kind, Look};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Entries shown: a page of about 20 MB.
const MOST: usize = 100_000;
const LONGEST_CALLBACK: usize = 128;

struct Listing {
    entries: Vec<DirectoryEntry>,
    is_cut: bool,
}

pub async fn answer(request: &mut Request, client: &mut Client, directory: Vec<u8>) -> Outcome {
    let settings = &request.location().settings.autoindex;
    let (format, look) = (settings.format, look(request));
    let Ok(callback) = callback(request, format) else { return Outcome::Status(400) };
    let path = PathBuf::from(OsString::from_vec(directory));
    let uri = request.route.uri.clone();
    let (path, made) = blocking::run(move || {
        let made = read(&path).map(|listing| {
            let text = match format {
                AutoindexFormat::Html => page::html(&uri, &listing.entries, &look),
                AutoindexFormat::Xml => page::xml(&listing.entries),
                AutoindexFormat::Json | AutoindexFormat::Jsonp => {
                    page::json(&listing.entries, callback.as_deref())
                }
            };
            (text, listing.is_cut)
        });
        (path, made)
    })
    .await;
    match made {
        Ok((text, is_cut)) => {
            if is_cut {
                let what = format_args!("directory \"{}\" has more files than are listed", path.display());
                log(request, Level::Error, what);
            }
            let mut headers = Headers::default();
            headers.push(b"Content-Type", media_type(format));
            fixed::whole(request, client, 200, &headers, &text).await
        }
        Err(error) => unreadable(request, &path, &error),
    }
}

pub(super) fn unreadable(request: &Request, directory: &Path, error: &io::Error) -> Outcome {
    log(request, Level::Error, format_args!("opendir() \"{}\" failed ({error})", directory.display()));
    Outcome::Status(match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => 404,
        ErrorKind::PermissionDenied => 403,
        _ => 500,
    })
}

fn media_type(format: AutoindexFormat) -> &'static [u8] {
    match format {
        AutoindexFormat::Html => b"text/html",
        AutoindexFormat::Xml => b"text/xml; charset=utf-8",
        AutoindexFormat::Json => b"application/json",
        AutoindexFormat::Jsonp => b"application/javascript",
    }
}

fn look(request: &Request) -> Look {
    let settings = &request.location().settings.autoindex;
    Look {
        exact_size: settings.exact_size,
        utc_offset: if settings.localtime { clock::utc_offset(clock::wall().seconds) } else { 0 },
        is_utf8: charset::named(request, 200, b"text/html", false)
            .is_some_and(|named| named.to_ascii_lowercase().ends_with(b"charset=utf-8")),
    }
}

/// The callback in the query; an error if it is no valid name.
fn callback(request: &Request, format: AutoindexFormat) -> Result<Option<Vec<u8>>, ()> {
    let named = request.query().and_then(|query| target::argument(query, b"callback"));
    let Some(name) = named.filter(|name| format == AutoindexFormat::Jsonp && !name.is_empty()) else {
        return Ok(None);
    };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    if name.len() > LONGEST_CALLBACK || !name.iter().all(is_plain) {
        let shown = String::from_utf8_lossy(name);
        log(request, Level::Info, format_args!("client sent invalid callback name: \"{shown}\""));
        return Err(());
    }
    Ok(Some(name.to_vec()))
}

fn read(directory: &Path) -> io::Result<Listing> {
    let mut listing = Listing { entries: Vec::new(), is_cut: false };
    for found in std::fs::read_dir(directory)? {
        let found = found?;
        let name = found.file_name();
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        if listing.entries.len() == MOST {
            listing.is_cut = true;
            break;
        }
        listing.entries.extend(entry(&found.path(), name)?);
    }
    let key = |entry: &DirectoryEntry| entry.kind != Kind::Directory;
    listing.entries.sort_unstable_by(|one, other| (key(one), &one.name).cmp(&(key(other), &other.name)));
    Ok(listing)
}

/// A link counts as its target; one that leads nowhere as a link. `None` for what cannot be read.
fn entry(path: &Path, name: OsString) -> io::Result<Option<DirectoryEntry>> {
    let metadata = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(None),
        Err(_) => match path.symlink_metadata() {
            // Removed while the directory was read.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found?,
        },
        Ok(metadata) => metadata,
    };
    let kind = match metadata.file_type() {
        file if file.is_dir() => Kind::Directory,
        file if file.is_file() => Kind::File,
        _ => Kind::Other,
    };
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (modified, size) = (modified.as_secs() as i64, metadata.len());
    Ok(Some(DirectoryEntry { name: name.into_vec(), kind, modified, size }))
}
