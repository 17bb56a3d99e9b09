//! `dav_methods`: files that clients write, move and remove (RFC 4918, as far as nginx has it).
//!
//! What is asked for is read from the request here and checked; `tree` carries it out on a thread that may block. Statuses are nginx's. Next:
//! `tree`, what happens to files.

mod directory;
mod tree;

use super::fixed;
use crate::client::Client;
use crate::exchange;
use crate::failure;
use crate::open_files;
use crate::outcome::Outcome;
use crate::request::{KeptBody, Request};
use crate::symlinks::RefusedLinks;
use crate::variables::file_path::{self, Unmapped};
use millstream_conf::model::{DavMethod, Level, Replaces, Settings};
use millstream_net::blocking;
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Headers, date, host, target};
use std::ffi::OsString;
use std::fmt::Display;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tree::{CopyOrMove, DavRefusal, Depth, NewContent, Removal, Upload};

pub const EXPLANATION: &str = "the request changes a file (dav_methods)";

enum DavOutcome {
    CreatedHere,
    CreatedThere,
    Changed,
}

pub fn asked(request: &Request, settings: &Settings) -> Option<DavMethod> {
    let methods = &settings.dav.methods;
    if methods.is_empty() {
        return None;
    }
    let method = match request.method_text() {
        b"PUT" => DavMethod::Put,
        b"DELETE" => DavMethod::Delete,
        b"MKCOL" => DavMethod::Mkcol,
        b"COPY" => DavMethod::Copy,
        b"MOVE" => DavMethod::Move,
        _ => return None,
    };
    methods.contains(&method).then_some(method)
}

pub async fn answer(request: &mut Request, client: &mut Client, method: DavMethod) -> Outcome {
    let done = match method {
        DavMethod::Put => put(request, client).await,
        DavMethod::Delete => delete(request).await,
        DavMethod::Mkcol => make_collection(request).await,
        DavMethod::Copy | DavMethod::Move => transfer(request, method == DavMethod::Move).await,
    };
    let status = match done {
        Err(outcome) => return outcome,
        Ok(DavOutcome::Changed) => 204,
        Ok(DavOutcome::CreatedThere) => 201,
        Ok(DavOutcome::CreatedHere) => {
            let mut url = Vec::with_capacity(request.route.uri.len());
            target::escape_uri(&request.route.uri, &mut url);
            fixed::lead_to(request, &url);
            201
        }
    };
    fixed::whole(request, client, status, &Headers::default(), &[]).await
}

async fn put(request: &mut Request, client: &mut Client) -> Result<DavOutcome, Outcome> {
    if is_collection(&request.route.uri) {
        return Err(refuse(request, 409, "cannot PUT to a collection"));
    }
    if request.field(FieldId::ContentRange).is_some() {
        return Err(refuse(request, 501, "PUT with range is unsupported"));
    }
    let path = path(request)?;
    exchange::hold(request, client).await?;
    let content = match &request.received.body {
        KeptBody::Memory(bytes) => NewContent::Bytes(bytes.to_vec()),
        KeptBody::File(file, length) => {
            let named = request.received.body_file.take();
            NewContent::File { file: file.clone(), length: *length, named: named.map(|named| *named) }
        }
        KeptBody::Unread => NewContent::Bytes(Vec::new()),
        KeptBody::Part(_) | KeptBody::Lost(_) | KeptBody::Omitted(_) => {
            return Err(refuse(request, 500, "PUT request body is unavailable"));
        }
    };
    let seconds = request.field(FieldId::Date).and_then(date::parse_http);
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let settings = &request.location().settings.dav;
    let upload = Upload {
        path,
        content,
        mode: settings.mode,
        makes_directories: settings.create_full_put_path,
        modified: seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
    };
    let is_new = run(request, move |links| tree::put(links, upload)).await?;
    Ok(if is_new { DavOutcome::CreatedHere } else { DavOutcome::Changed })
}

async fn delete(request: &mut Request) -> Result<DavOutcome, Outcome> {
    without_body(request, "DELETE with body is unsupported")?;
    let least = request.location().settings.dav.min_delete_depth;
    let inner = request.route.uri.split_last().map_or(&[][..], |(_, inner)| inner);
    let elements = inner.iter().filter(|&&byte| byte == b'/').count() as u64;
    if elements < least {
        return Err(refuse(request, 409, format_args!("insufficient URI depth:{elements} to DELETE")));
    }
    let removal = Removal {
        path: path(request)?,
        is_collection: is_collection(&request.route.uri),
        depth: depth(request),
    };
    run(request, move |links| tree::delete(links, &removal)).await?;
    Ok(DavOutcome::Changed)
}

async fn make_collection(request: &mut Request) -> Result<DavOutcome, Outcome> {
    without_body(request, "MKCOL with body is unsupported")?;
    if !is_collection(&request.route.uri) {
        return Err(refuse(request, 409, "MKCOL can create a collection only"));
    }
    let (path, mode) = (path(request)?, request.location().settings.dav.mode);
    run(request, move |links| tree::make_collection(links, &path, mode)).await?;
    Ok(DavOutcome::CreatedHere)
}

async fn transfer(request: &mut Request, is_move: bool) -> Result<DavOutcome, Outcome> {
    without_body(request, "COPY and MOVE with body are unsupported")?;
    let destination = destination(request)?;
    let is_collection = self::is_collection(&request.route.uri);
    if is_collection != self::is_collection(&destination) {
        let what = "source and \"Destination\" must both be collections or both be files";
        return Err(refuse(request, 409, what));
    }
    let depth_is_good = match depth(request) {
        None | Some(Depth::Infinity) => true,
        Some(Depth::Zero) => !is_move,
        Some(Depth::One | Depth::Invalid) => false,
    };
    if !depth_is_good {
        let wanted = if is_move { "infinity" } else { "0 or infinity" };
        return Err(refuse(request, 400, format_args!("\"Depth\" header must be {wanted}")));
    }
    let overwrites = match request.fields().named(b"Overwrite") {
        None | Some(b"T" | b"t") => true,
        Some(b"F" | b"f") => false,
        Some(_) => {
            return Err(refuse(request, 400, "client sent invalid \"Overwrite\" header"));
        }
    };
    let from = path(request)?;
    let own = std::mem::replace(&mut request.route.uri, destination);
    let to = path(request);
    request.route.uri = own;
    let (from, to) = (merged(from), merged(to?));
    if are_nested(&from, &to, is_collection) {
        let what = "\"Destination\" and the URI are the same location, or one contains the other";
        return Err(refuse(request, 403, what));
    }
    let mode = request.location().settings.dav.mode;
    let transfer = CopyOrMove { from, to, is_move, is_collection, overwrites, mode };
    let is_new = run(request, move |links| tree::transfer(links, &transfer)).await?;
    Ok(if is_new { DavOutcome::CreatedThere } else { DavOutcome::Changed })
}

async fn run<T: Send + 'static>(
    request: &Request,
    work: impl FnOnce(&RefusedLinks) -> Result<T, DavRefusal> + Send + 'static,
) -> Result<T, Outcome> {
    let links = RefusedLinks::of(request);
    let done = blocking::run(move || {
        let done = work(&links);
        open_files::changed();
        done
    })
    .await;
    done.map_err(|refusal| refuse(request, refusal.status, refusal.what))
}

fn refuse(request: &Request, status: u16, what: impl Display) -> Outcome {
    failure::log(request, if status < 500 { Level::Error } else { Level::Crit }, format_args!("{what}"));
    Outcome::Status(status)
}

fn is_collection(uri: &[u8]) -> bool {
    uri.ends_with(b"/")
}

fn without_body(request: &Request, what: &str) -> Result<(), Outcome> {
    match request.received.framing {
        Framing::None | Framing::Length(0) => Ok(()),
        _ => Err(refuse(request, 415, what)),
    }
}

fn path(request: &Request) -> Result<PathBuf, Outcome> {
    match file_path::of(request) {
        Ok(path) if path.contains(&0) => Err(refuse(request, 400, "a path cannot contain a zero byte")),
        Ok(path) => Ok(OsString::from_vec(path).into()),
        Err(Unmapped::LeavesRoot) => Err(refuse(request, 403, "the path points outside its directory")),
        Err(Unmapped::Rewritten) => {
            Err(refuse(request, 500, "\"alias\" cannot be used in a location whose URI was rewritten"))
        }
    }
}

fn depth(request: &Request) -> Option<Depth> {
    Some(match request.fields().named(b"Depth")? {
        b"0" => Depth::Zero,
        b"1" => Depth::One,
        b"infinity" => Depth::Infinity,
        _ => Depth::Invalid,
    })
}

/// The decoded and normalized path of `Destination` on this server (RFC 4918 §10.3).
fn destination(request: &Request) -> Result<Vec<u8>, Outcome> {
    let Some(text) = request.fields().named(b"Destination") else {
        return Err(refuse(request, 400, "client sent no \"Destination\" header"));
    };
    let invalid = || refuse(request, 400, "client sent invalid \"Destination\" header");
    let scheme: &[u8] = if request.connection.tls.is_some() { b"https://" } else { b"http://" };
    let path = match text.split_at_checked(scheme.len()) {
        _ if text.starts_with(b"/") => text,
        Some((start, rest)) if start.eq_ignore_ascii_case(scheme) => {
            let slash = rest.iter().position(|&byte| byte == b'/').ok_or_else(invalid)?;
            let named = host::validate(&rest[..slash]).map_err(|_| invalid())?;
            if request.route.host.is_empty() || !named.host.eq_ignore_ascii_case(&request.route.host) {
                return Err(refuse(request, 400, "\"Destination\" is on a different server than the URI"));
            }
            &rest[slash..]
        }
        _ => return Err(invalid()),
    };
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    let path = &path[..end];
    let mut decoded = Vec::with_capacity(path.len());
    target::decode(path, &mut decoded);
    if decoded.split(|&byte| byte == b'/').any(|segment| segment == b"..") {
        return Err(invalid());
    }
    let mut normal = Vec::new();
    let merges = request.server().settings.client_header.merge_slashes;
    match target::normalise(path, merges, &mut normal) {
        Ok(target::Normal::Unchanged) => normal = path.to_vec(),
        Ok(target::Normal::Written) => {}
        Err(_) => return Err(invalid()),
    }
    // What an alias replaces of the URI it replaces of the destination.
    match request.location().settings.files.root.replaces {
        Replaces::Name(length) if normal.get(..length) != request.route.uri.get(..length) => Err(invalid()),
        _ => Ok(normal),
    }
}

fn merged(path: PathBuf) -> PathBuf {
    path.components().collect()
}

/// Whether the paths are equal, or one collection contains the other.
fn are_nested(from: &std::path::Path, to: &std::path::Path, are_collections: bool) -> bool {
    from == to || are_collections && (from.starts_with(to) || to.starts_with(from))
}
