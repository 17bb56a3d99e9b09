//! `proxy_store`: an answer kept as a plain file, for good.
//!
//! The answer goes to a file beside its place as it arrives, and from there to the client, so neither a slow client nor one
//! that leaves holds it up. Only a whole 200 to a GET gets its name, by renaming: nobody ever finds half a file under it.
//! A path that leads up by `..` is refused, for what a variable holds is not normalised.

use super::answer_head::passed_trailers;
use super::answered::Answered;
use super::request_body::{PIECE, write_at};
use super::spill::{SpillEnd, SpillProgress, drain, gather};
use super::{Passing, Proxied, report};
use crate::client::Client;
use crate::request::Request;
use crate::variables::{file_path, value};
use millstream_conf::model::{Level, Pass, Store};
use millstream_net::{blocking, clock};
use millstream_upstream::{Connection, ExchangeError};
use millstream_wire::h1::head::ResponseHead;
use millstream_wire::{FieldId, Headers, Method, date};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::{NamedTempFile, TempPath};

#[derive(Clone)]
struct StoreTarget {
    path: PathBuf,
    mode: u32,
    modified: Option<SystemTime>,
}

enum StoringFailure {
    Upstream(ExchangeError),
    Disk(io::Error),
}

fn place(passing: &Passing<'_>, head: &ResponseHead, connection: &Connection) -> Option<StoreTarget> {
    let asked = passing.request.method == Method::Get && head.status == 200;
    let path = if asked { path(passing.request, &passing.proxy.store.place)? } else { return None };
    let path = match path {
        Ok(path) => path,
        Err(path) => {
            let what = format_args!("proxy_store path \"{}\" is not allowed", String::from_utf8_lossy(&path));
            report::write(passing.request, Level::Error, what, None);
            return None;
        }
    };
    let modified = head.view(connection.head_bytes()).get(FieldId::LastModified);
    let seconds = modified.and_then(date::parse_http).and_then(|seconds| u64::try_from(seconds).ok());
    let modified = seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    Some(StoreTarget { path, mode: passing.proxy.store.mode, modified })
}

pub(super) struct Keeping {
    place: StoreTarget,
    file: NamedTempFile,
}

impl Keeping {
    /// `None` where nothing is to be kept, or nothing can be.
    pub(super) async fn begin(
        passing: &Passing<'_>,
        head: &ResponseHead,
        connection: &Connection,
    ) -> Option<Keeping> {
        passing.client.as_ref()?;
        let place = place(passing, head, connection)?;
        let beside = place.clone();
        match blocking::run(move || temporary(&beside)).await {
            Ok(file) => Some(Keeping { place, file }),
            Err(error) => {
                complain(passing.request, &place.path, &error);
                None
            }
        }
    }

    pub(super) async fn keep(
        self,
        passing: &mut Passing<'_>,
        client: &mut Client,
        mut answered: Answered,
    ) -> Proxied {
        let Keeping { place, file } = self;
        let (file, name) = file.into_parts();
        let file = Arc::new(file);
        let shared = SpillProgress::default();
        let (request, proxy) = (&mut *passing.request, passing.proxy);
        let writing = async {
            let path = place.path.clone();
            let outcome = write(&shared, &file, &mut answered, proxy).await;
            let named = match &outcome {
                Ok(()) => give_name(file.clone(), name, place).await,
                Err(_) => Ok(()),
            };
            shared.end();
            (path, named, outcome.err())
        };
        let reading = drain(&shared, (&file, PIECE), client, request, false);
        let ((path, named, failed), served) = tokio::join!(writing, reading);
        if let Err(error) = named {
            complain(passing.request, &path, &error);
        }
        let length = shared.written.get();
        let trailers = {
            let came = answered.connection.trailers().filter(|_| failed.is_none());
            passed_trailers(passing.proxy, passing.request, came)
        };
        match &failed {
            None => answered.finish(passing, length, clock::now()),
            Some(StoringFailure::Upstream(error)) => passing.broke_off(&answered.connection, error, length),
            Some(StoringFailure::Disk(error)) => {
                complain(passing.request, &path, error);
                passing.note_end(&answered.connection, length, clock::now());
            }
        }
        if let SpillEnd::Unreadable(error) = &served {
            complain(passing.request, Path::new("a stored file"), error);
            client.abandon();
        }
        match (served, failed) {
            (SpillEnd::Client(failure), _) => Proxied::ClientFailed(failure),
            (_, Some(_)) => client.cut(passing.request).await.into(),
            (_, None) => client.finish(passing.request, trailers.as_ref().map(Headers::view)).await.into(),
        }
    }
}

/// `None` for an empty path, which as in nginx stores nothing; the error is a refused path.
fn path(request: &Request, store: &Store) -> Option<Result<PathBuf, Vec<u8>>> {
    let path = match store {
        Store::Off => return None,
        Store::Root => match file_path::of(request) {
            Ok(path) => path,
            Err(_) => return Some(Err(request.route.uri.clone())),
        },
        Store::Path(template) => value(template, request),
    };
    if path.is_empty() {
        return None;
    }
    let leads_up = path.split(|&byte| byte == b'/').any(|segment| segment == b"..");
    let refused = leads_up || path.contains(&0) || !path.starts_with(b"/") || path.ends_with(b"/");
    Some(if refused { Err(path) } else { Ok(PathBuf::from(OsStr::from_bytes(&path))) })
}

async fn write(
    shared: &SpillProgress,
    file: &Arc<File>,
    answered: &mut Answered,
    proxy: &Pass,
) -> Result<(), StoringFailure> {
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        piece.clear();
        let gathered = gather(answered, &mut piece, proxy).await;
        if !piece.is_empty() {
            piece = write_at(file, piece, shared.written.get())
                .await
                .map_err(|(error, _)| StoringFailure::Disk(error))?;
            shared.written.set(shared.written.get() + piece.len() as u64);
            shared.more.notify_one();
        }
        if gathered.map_err(StoringFailure::Upstream)? {
            return Ok(());
        }
    }
}

/// In the final directory, so that renaming stays on one filesystem; its name is unpredictable.
fn temporary(place: &StoreTarget) -> io::Result<NamedTempFile> {
    make_folder(place)?;
    let folder = place.path.parent().ok_or(ErrorKind::InvalidInput)?;
    tempfile::Builder::new().prefix(".millstream-").rand_bytes(16).tempfile_in(folder)
}

async fn give_name(file: Arc<File>, name: TempPath, place: StoreTarget) -> io::Result<()> {
    blocking::run(move || {
        finish(&file, &place)?;
        name.persist(&place.path).map_err(|failed| failed.error)
    })
    .await
}

/// Sets `proxy_store_access` and the time of Last-Modified.
fn finish(file: &File, place: &StoreTarget) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(place.mode))?;
    place.modified.map_or(Ok(()), |modified| file.set_modified(modified))
}

/// Read permission implies search permission, as in nginx.
fn make_folder(place: &StoreTarget) -> io::Result<()> {
    let mode = place.mode | (place.mode & 0o444) >> 2;
    let Some(folder) = place.path.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(mode).create(folder)
}

fn complain(request: &Request, path: &Path, error: &io::Error) {
    let what = format_args!("storing \"{}\" failed: {error}", path.display());
    report::write(request, Level::Crit, what, None);
}
