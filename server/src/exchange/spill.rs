//! The rest of an answer through a temporary file, so that a slow client does not hold the upstream.
//!
//! Two halves run in one task: one reads the upstream and writes the file, the other reads the file and writes the client.
//! The file never holds more than `proxy_max_temp_file_size`; when it is full the first half waits until the client has
//! all of it, and starts at the file's beginning again. Where no file can be made or written (a full disk) the client has its
//! answer all the same: what the file took is read from it, and the rest comes at the client's pace.

use super::answered::Answered;
use super::request_body::{PIECE, open, read_at, write_at};
use super::watching::watch;
use crate::client::{Client, ClientFailure};
use crate::request::Request;
use millstream_conf::model::Pass;
use millstream_net::clock;
use millstream_upstream::{Connection, ExchangeError, Part, Pool};
use millstream_wire::Headers;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use tokio::sync::Notify;

/// Bytes read from the file at a time: what a slow client holds.
const READ: usize = 32 * 1024;

pub(super) enum SpillEnd {
    Whole,
    Upstream(ExchangeError, Box<Connection>),
    Client(ClientFailure),
    /// The file is full: what it took is in the client's buffer or sent, and this piece comes next.
    NoFile(io::Error, Answered, Vec<u8>),
    Unreadable(io::Error),
}

#[derive(Default)]
pub(super) struct SpillProgress {
    pub(super) written: Cell<u64>,
    read: Cell<u64>,
    pub(super) length: Cell<u64>,
    pub(super) ended: Cell<Option<Instant>>,
    /// Bytes received from and sent to the upstream.
    pub(super) traffic: Cell<(u64, u64)>,
    pub(super) trailers: Cell<Option<Headers>>,
    failed: RefCell<Option<SpillEnd>>,
    /// Wakes the reader.
    pub(super) more: Notify,
    /// Wakes the writer.
    room: Notify,
}

impl SpillProgress {
    pub(super) fn end(&self) {
        self.ended.set(Some(clock::now()));
        self.more.notify_one();
    }
}

/// Moves the rest of a response through a file to the client. Returns connection and turn as soon as
/// possible.
pub(super) async fn through_file(
    client: &mut Client,
    request: &mut Request,
    answered: Answered,
    wanted: u64,
    watching: bool,
    proxy: &Pass,
    pool: &Pool,
) -> (SpillEnd, SpillProgress) {
    let shared = SpillProgress::default();
    let ending = match open(proxy.exchange.temp_path.path.clone()).await {
        Err(error) => SpillEnd::NoFile(error, answered, Vec::new()),
        Ok(file) => {
            let file = Arc::new(file);
            let mut filling = pin!(fill(&shared, &file, answered, wanted, proxy, pool));
            let mut draining = pin!(drain(&shared, (&file, READ), client, request, watching));
            let mut filled = false;
            poll_fn(|context| {
                filled = filled || filling.as_mut().poll(context).is_ready();
                draining.as_mut().poll(context)
            })
            .await
        }
    };
    (ending, shared)
}

async fn fill(
    shared: &SpillProgress,
    file: &Arc<File>,
    mut answered: Answered,
    wanted: u64,
    proxy: &Pass,
    pool: &Pool,
) {
    let mut piece = Vec::with_capacity(PIECE);
    let limit = proxy.exchange.max_temp_file_size.max(PIECE as u64);
    let failed = loop {
        piece.clear();
        let gathered = gather(&mut answered, &mut piece, proxy).await;
        if !piece.is_empty() {
            if shared.written.get() + piece.len() as u64 > limit {
                while shared.read.get() < shared.written.get() {
                    shared.room.notified().await;
                }
                shared.written.set(0);
                shared.read.set(0);
            }
            match write_at(file, piece, shared.written.get()).await {
                Ok(buffer) => piece = buffer,
                Err((error, unwritten)) => {
                    shared.length.set(shared.length.get() + unwritten.len() as u64);
                    break SpillEnd::NoFile(error, answered, unwritten);
                }
            }
            shared.written.set(shared.written.get() + piece.len() as u64);
            shared.length.set(shared.length.get() + piece.len() as u64);
            shared.more.notify_one();
        }
        let ended = match gathered {
            Ok(ended) => ended,
            Err(error) => break SpillEnd::Upstream(error, answered.connection),
        };
        shared.traffic.set(answered.connection.traffic());
        if ended || shared.length.get() >= wanted {
            let now = clock::now();
            let trailers = answered.connection.trailers().filter(|trailers| !trailers.is_empty());
            shared.trailers.set(trailers.map(Headers::from));
            answered.connection.pass_over();
            pool.put(answered.connection, now);
            answered.turn.succeeded(now);
            break SpillEnd::Whole;
        }
    };
    *shared.failed.borrow_mut() = Some(failed);
    shared.end();
}

/// Collects at least something and about a piece at most; whether the body has ended.
pub(super) async fn gather(
    answered: &mut Answered,
    piece: &mut Vec<u8>,
    proxy: &Pass,
) -> Result<bool, ExchangeError> {
    loop {
        match answered.next_part()? {
            Part::Data(data) => {
                piece.extend_from_slice(data);
                if piece.len() >= PIECE {
                    return Ok(false);
                }
            }
            Part::End => return Ok(true),
            Part::Empty if piece.len() >= PIECE / 4 => return Ok(false),
            Part::Empty => {
                let waited =
                    poll_fn(|context| match answered.poll_fill_body(context, proxy.exchange.read_timeout) {
                        Poll::Ready(result) => Poll::Ready(Some(result)),
                        Poll::Pending if !piece.is_empty() => Poll::Ready(None),
                        Poll::Pending => Poll::Pending,
                    });
                match waited.await {
                    Some(result) => result?,
                    None => return Ok(false),
                }
            }
        }
    }
}

/// What is written, to the client, at most `most` bytes at a time.
pub(super) async fn drain(
    shared: &SpillProgress,
    (file, most): (&Arc<File>, usize),
    client: &mut Client,
    request: &mut Request,
    watching: bool,
) -> SpillEnd {
    let mut piece = Vec::new();
    loop {
        let left = shared.written.get() - shared.read.get();
        if left == 0 {
            client.pause();
        }
        if let Err(failure) = client.flush(request).await {
            return SpillEnd::Client(failure);
        }
        let left = shared.written.get() - shared.read.get();
        if left > 0 {
            let size = usize::try_from(left).unwrap_or(most).min(most);
            piece = match read_at(file, piece, shared.read.get(), size).await {
                Ok(piece) => piece,
                Err(error) => return SpillEnd::Unreadable(error),
            };
            client.push(request, &piece);
            shared.read.set(shared.read.get() + size as u64);
            shared.room.notify_one();
        } else if shared.ended.get().is_some() {
            return shared.failed.borrow_mut().take().unwrap_or(SpillEnd::Whole);
        } else {
            let watched = Some(&mut *client).filter(|_| watching);
            if let Err(failure) = watch(watched, shared.more.notified()).await {
                return SpillEnd::Client(failure);
            }
        }
    }
}
