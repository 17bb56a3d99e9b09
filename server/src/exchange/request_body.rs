//! The client's body on its way upstream: read whole before anybody is asked (`proxy_request_buffering on`), in memory or
//! past `client_body_buffer_size` in a file, or passed on as it comes.
//!
//! A body that is kept can be sent once more, so a request with one can be retried. Files have no name, unless somebody is to read them
//! (`client_body_in_file_only`, `$request_body_file`), and are read and written off the worker's loop; how much one may hold is `client_max_body_size`.

use super::request_head::RequestFraming;
use super::{Proxied, report};
use crate::client::{BodyProgress, Client};
use crate::outcome::Outcome;
use crate::request::{BodyFile, KeptBody, PASSED_ON, Request, UNWRITABLE};
use crate::variables;
use millstream_conf::model::{DavMethod, InFileOnly, Level, Pass};
use millstream_net::{blocking, temporary};
use millstream_wire::h1::framing::Framing;
use millstream_wire::{FieldId, Method};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub(super) const PIECE: usize = 64 * 1024;

/// Fewest bytes written to a file at a time, if `client_body_buffer_size` is smaller.
const LEAST_PIECE: usize = 4 * 1024;

pub(super) enum RequestBody {
    None,
    /// May be empty with an announced length.
    Memory(Rc<Vec<u8>>),
    File(Arc<File>, u64),
    Stream {
        length: Option<u64>,
        /// Received at first and sent with the head. Kept as long as nothing else was sent.
        first: Vec<u8>,
        /// Whether anything was sent that is not kept.
        begun: bool,
    },
}

impl RequestBody {
    pub(super) fn framed(&self) -> RequestFraming {
        match self {
            RequestBody::None => RequestFraming::None,
            RequestBody::Memory(bytes) => RequestFraming::Length(bytes.len() as u64),
            RequestBody::File(_, length) | RequestBody::Stream { length: Some(length), .. } => {
                RequestFraming::Length(*length)
            }
            RequestBody::Stream { length: None, .. } => RequestFraming::Chunked,
        }
    }

    /// `u64::MAX` if unknown.
    pub(super) fn octets(&self) -> u64 {
        match self.framed() {
            RequestFraming::None => 0,
            RequestFraming::Length(length) => length,
            RequestFraming::Chunked => u64::MAX,
        }
    }

    /// Whether it can be sent from its first byte, perhaps again.
    pub(super) fn is_replayable(&self) -> bool {
        !matches!(self, RequestBody::Stream { begun: true, .. })
    }
}

pub(super) fn kept(request: &Request) -> Result<RequestBody, Proxied> {
    match &request.received.body {
        KeptBody::Memory(bytes) => Ok(RequestBody::Memory(Rc::clone(bytes))),
        KeptBody::File(file, length) => Ok(RequestBody::File(Arc::clone(file), *length)),
        KeptBody::Lost(status) => Err(lost(request, *status)),
        KeptBody::Omitted(_) => Ok(RequestBody::Memory(Rc::default())),
        KeptBody::Unread | KeptBody::Part(_) if request.received.framing == Framing::Length(0) => {
            Ok(RequestBody::Memory(Rc::default()))
        }
        KeptBody::Unread | KeptBody::Part(_) => Ok(RequestBody::None),
    }
}

/// A streamed body cannot be sent again, and half a body is useless.
fn lost(request: &Request, status: u16) -> Proxied {
    if status == PASSED_ON {
        let what = format_args!("the request body was streamed to an upstream and cannot be sent again");
        report::write(request, Level::Error, what, None);
    }
    Proxied::Failed(status)
}

/// For whatever runs next: what was kept of a stream is all of it if the client has nothing more to send.
pub(super) fn give_back(request: &mut Request, body: RequestBody, client: Option<&Client>) {
    let RequestBody::Stream { begun, first, .. } = body else { return };
    request.received.body = match client.is_some_and(Client::body_pending) {
        _ if begun => KeptBody::Lost(PASSED_ON),
        true if first.is_empty() => KeptBody::Unread,
        true => KeptBody::Part(first),
        false => KeptBody::Memory(Rc::new(first)),
    };
}

fn in_memory(request: &mut Request, bytes: Vec<u8>) -> RequestBody {
    let bytes = Rc::new(bytes);
    request.received.body = KeptBody::Memory(Rc::clone(&bytes));
    RequestBody::Memory(bytes)
}

/// Applies `proxy_set_body` and `proxy_pass_request_body`.
pub(super) fn as_sent(body: RequestBody, request: &Request, proxy: &Pass) -> RequestBody {
    match proxy.http().and_then(|http| http.body.as_ref()) {
        Some(template) => RequestBody::Memory(Rc::new(variables::value(template, request))),
        None if proxy.exchange.passes_body => body,
        None => RequestBody::None,
    }
}

pub(super) async fn read(
    request: &mut Request,
    client: &mut Client,
    proxy: &Pass,
) -> Result<RequestBody, Proxied> {
    if !client.body_pending() && lacks_empty_file(request) && is_buffered(proxy) {
        return whole(request, client, Vec::new()).await;
    }
    if !client.body_pending() || request.received.body.is_lost() {
        return kept(request);
    }
    let bytes = begun(request);
    let length = announced(request);
    // HTTP/1.0 has no chunks, and an application wants to be told: a body of unknown length must be counted first.
    if !is_buffered(proxy) && (length.is_some() || proxy.takes_unknown_length()) {
        return stream(request, client, bytes, length).await;
    }
    whole(request, client, bytes).await
}

/// One that is not passed on is read too, for a file or a variable.
fn is_buffered(proxy: &Pass) -> bool {
    proxy.exchange.request_buffering
        || !proxy.exchange.passes_body
        || proxy.http().is_some_and(|http| http.body.is_some())
}

/// Whether an announced empty body needs a file (`client_body_in_file_only`).
pub(super) fn lacks_empty_file(request: &Request) -> bool {
    let is_zero = |value: &[u8]| value.iter().all(|digit| *digit == b'0');
    let is_announced = || match request.received.framing {
        Framing::Length(length) => length == 0,
        // A stream that ends with its head has no framing, whatever length it announces.
        Framing::None => request.is_on_stream() && request.field(FieldId::ContentLength).is_some_and(is_zero),
        Framing::Chunked | Framing::Close => false,
    };
    request.location().settings.client_body.in_file_only != InFileOnly::Off
        && request.descent.wanted.is_none()
        && matches!(request.received.body, KeptBody::Unread)
        && is_announced()
}

/// Reads the whole body for whatever runs next, upstream or not. The error is [`Outcome::Client`] or [`Outcome::Status`].
pub async fn hold(request: &mut Request, client: &mut Client) -> Result<(), Outcome> {
    if !client.body_known() {
        client.expect_body(request).map_err(Outcome::Client)?;
    }
    if client.body_pending() && !request.received.body.is_lost() || lacks_empty_file(request) {
        let bytes = begun(request);
        whole(request, client, bytes).await.map_err(|failed| match failed {
            Proxied::ClientFailed(failure) => Outcome::Client(failure),
            Proxied::Failed(status) => Outcome::Status(status),
            _ => Outcome::Status(500),
        })?;
    }
    Ok(())
}

/// Takes what was read before. Until complete the body counts as lost: half of it is useless.
fn begun(request: &mut Request) -> Vec<u8> {
    match std::mem::replace(&mut request.received.body, KeptBody::Lost(PASSED_ON)) {
        KeptBody::Part(bytes) => bytes,
        _ => Vec::new(),
    }
}

fn announced(request: &Request) -> Option<u64> {
    match request.received.framing {
        Framing::Length(length) => Some(length),
        Framing::None | Framing::Chunked | Framing::Close => None,
    }
}

async fn whole(
    request: &mut Request,
    client: &mut Client,
    mut bytes: Vec<u8>,
) -> Result<RequestBody, Proxied> {
    let settings = &request.location().settings.client_body;
    let (room, is_named) = (settings.buffer_size, settings.in_file_only != InFileOnly::Off);
    let expected = announced(request).map_or(0, |length| length.min(room as u64) as usize);
    bytes.reserve(expected.saturating_sub(bytes.len()));
    if fill(request, client, &mut bytes, room).await? && !is_named {
        Ok(in_memory(request, bytes))
    } else {
        read_to_file(request, client, bytes).await
    }
}

/// One that has arrived completely is kept, so that it can be sent again.
async fn stream(
    request: &mut Request,
    client: &mut Client,
    mut first: Vec<u8>,
    length: Option<u64>,
) -> Result<RequestBody, Proxied> {
    let room = request.location().settings.client_body.buffer_size;
    let taken = client.take_body_at_hand(request, &mut first, room).await;
    match taken.map_err(Proxied::ClientFailed)? {
        BodyProgress::End => Ok(in_memory(request, first)),
        BodyProgress::More => {
            request.received.body = KeptBody::Unread;
            Ok(RequestBody::Stream { length, first, begun: false })
        }
    }
}

/// Reads this many bytes, or to the end; whether that is reached. A slow client's body takes no more memory.
async fn fill(
    request: &mut Request,
    client: &mut Client,
    bytes: &mut Vec<u8>,
    size: usize,
) -> Result<bool, Proxied> {
    let mut ended = !client.body_pending();
    while !ended && bytes.len() < size {
        let room = size - bytes.len();
        let progress = client.read_body_within(request, bytes, room).await.map_err(Proxied::ClientFailed)?;
        ended = progress == BodyProgress::End;
    }
    Ok(ended)
}

/// Whether a body read for the cache's key is also needed in a file (`client_body_in_file_only`).
pub(super) fn lacks_file(request: &Request, proxy: &Pass) -> bool {
    matches!(request.received.body, KeptBody::Memory(_))
        && request.location().settings.client_body.in_file_only != InFileOnly::Off
        && is_buffered(proxy)
        && request.received.body_file.is_none()
}

pub(super) async fn put_in_file(request: &mut Request) -> Result<(), Proxied> {
    let KeptBody::Memory(bytes) = &request.received.body else { return Ok(()) };
    let bytes = bytes.to_vec();
    let folder = request.location().settings.client_body.temp_path.path.clone();
    let written = match named_file(request, &folder).await {
        Ok(file) => write_at(&Arc::new(file), bytes, 0).await.map_err(|(error, _)| error),
        Err(error) => Err(error),
    };
    written.map(drop).map_err(|error| unwritable(request, &folder, &error))
}

async fn read_to_file(
    request: &mut Request,
    client: &mut Client,
    mut bytes: Vec<u8>,
) -> Result<RequestBody, Proxied> {
    let settings = &request.location().settings.client_body;
    let folder = settings.temp_path.path.clone();
    let is_named = settings.in_file_only != InFileOnly::Off
        || request.generation.shared.reads.body_files
        || request.method == Method::Put && request.location().settings.dav.methods.contains(&DavMethod::Put);
    let opened = if is_named { named_file(request, &folder).await } else { open(folder.clone()).await };
    let file = match opened {
        Ok(file) => Arc::new(file),
        Err(error) => return Err(lost_to_disk(request, &folder, &error)),
    };
    let size = request.location().settings.client_body.buffer_size.max(LEAST_PIECE);
    let mut written = 0;
    let mut ended = false;
    while !ended {
        ended = fill(request, client, &mut bytes, size).await?;
        match write_at(&file, bytes, written).await {
            Ok(buffer) => {
                written += buffer.len() as u64;
                bytes = buffer;
                bytes.clear();
            }
            Err((error, _)) => return Err(lost_to_disk(request, &folder, &error)),
        }
    }
    request.received.body = KeptBody::File(Arc::clone(&file), written);
    Ok(RequestBody::File(file, written))
}

/// Whatever runs next fails the same way if it needs the body.
fn lost_to_disk(request: &mut Request, folder: &Path, error: &io::Error) -> Proxied {
    request.received.body = KeptBody::Lost(UNWRITABLE);
    unwritable(request, folder, error)
}

fn unwritable(request: &Request, folder: &Path, error: &io::Error) -> Proxied {
    report::lost_file(request, folder, error);
    Proxied::Failed(UNWRITABLE)
}

/// Creates the folder again if it was removed since the start.
pub(super) async fn open(folder: PathBuf) -> io::Result<File> {
    blocking::run(move || match temporary::file_in(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            temporary::make_folder(&folder)?;
            temporary::file_in(&folder)
        }
        result => result,
    })
    .await
}

async fn named_file(request: &mut Request, folder: &Path) -> io::Result<File> {
    let stays = request.location().settings.client_body.in_file_only == InFileOnly::On;
    let (file, named) = open_named(folder.to_path_buf(), stays).await?;
    request.received.body_file = Some(Box::new(named));
    Ok(file)
}

/// `stays`: not removed with the request.
async fn open_named(folder: PathBuf, stays: bool) -> io::Result<(File, BodyFile)> {
    blocking::run(move || {
        let (file, path) = match temporary::named_file_in(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                temporary::make_folder(&folder)?;
                temporary::named_file_in(&folder)?
            }
            result => result?,
        };
        let named = if stays {
            BodyFile { path: path.keep().map_err(|kept| kept.error)?, removed_by: None }
        } else {
            BodyFile { path: path.to_path_buf(), removed_by: Some(path) }
        };
        Ok((file, named))
    })
    .await
}

pub(super) async fn write_at(
    file: &Arc<File>,
    buffer: Vec<u8>,
    offset: u64,
) -> Result<Vec<u8>, (io::Error, Vec<u8>)> {
    let file = Arc::clone(file);
    blocking::run(move || match file.write_all_at(&buffer, offset) {
        Ok(()) => Ok(buffer),
        Err(error) => Err((error, buffer)),
    })
    .await
}

pub(super) async fn read_at(
    file: &Arc<File>,
    mut buffer: Vec<u8>,
    offset: u64,
    length: usize,
) -> io::Result<Vec<u8>> {
    let file = Arc::clone(file);
    blocking::run(move || {
        buffer.resize(length, 0);
        file.read_exact_at(&mut buffer, offset).map(|()| buffer)
    })
    .await
}
