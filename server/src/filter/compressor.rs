//! Coded bodies that are given out piece by piece.
//!
//! What the encoders of all streams hold has a bound for the whole process (`EncoderMemory`). A stream keeps its encoder until another
//! needs the memory: then those give theirs up that have been given nothing for a second, because their client or their source stalls.
//! Each goes on with a new one, or in stored blocks. Before: `encoder`; next: `coding`, which decides what is made.

use super::encoder::{Effort, Encoder};
use super::stored_blocks;
use flate2::Crc;
use millstream_net::clock;
use millstream_wire::Coding;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// A stream without input for this long may lose its encoder.
const STALLED: Duration = Duration::from_secs(1);
/// Streams that give up their encoders for another one; each encodes what it holds.
const AT_ONCE: usize = 4;

pub(super) struct EncoderAccount {
    most: usize,
    held: AtomicUsize,
    /// Streams with memory of it. A thread that holds this lock waits for no other.
    streams: Mutex<Vec<Weak<Mutex<Coder>>>>,
}

static ACCOUNT: EncoderAccount = EncoderAccount::new(256 << 20);

impl EncoderAccount {
    pub(super) const fn new(most: usize) -> EncoderAccount {
        EncoderAccount { most, held: AtomicUsize::new(0), streams: Mutex::new(Vec::new()) }
    }

    /// Takes memory from stalled streams if needed; `None` if there is no room.
    pub(super) fn take(&'static self, bytes: usize, now: Instant) -> Option<EncoderMemory> {
        self.take_free(bytes).or_else(|| {
            self.reclaim(bytes, now);
            self.take_free(bytes)
        })
    }

    fn take_free(&'static self, bytes: usize) -> Option<EncoderMemory> {
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        // Given back at once where it is too much.
        let taken = EncoderMemory { account: self, bytes };
        (before + bytes <= self.most).then_some(taken)
    }

    fn reclaim(&self, bytes: usize, now: Instant) {
        let mut stalled: Vec<(Instant, Arc<Mutex<Coder>>)> = {
            let mut streams = locked(&self.streams);
            streams.retain(|stream| stream.strong_count() > 0);
            let since = |stream: &Mutex<Coder>| {
                // Who works on it now does not stall.
                let coder = stream.try_lock().ok()?;
                let is_long = now.saturating_duration_since(coder.used) >= STALLED;
                (coder.memory.is_some() && coder.left.is_empty() && is_long).then_some(coder.used)
            };
            streams.iter().filter_map(Weak::upgrade).filter_map(|it| Some((since(&it)?, it))).collect()
        };
        stalled.sort_unstable_by_key(|(since, _)| *since);
        for (_, stream) in stalled.iter().take(AT_ONCE) {
            if self.held.load(Ordering::Relaxed) + bytes <= self.most {
                return;
            }
            if let Ok(mut coder) = stream.try_lock() {
                coder.release();
            }
        }
    }

    fn enter(&self, stream: &Arc<Mutex<Coder>>) {
        let mut streams = locked(&self.streams);
        if streams.len() == streams.capacity() {
            streams.retain(|stream| stream.strong_count() > 0);
        }
        streams.push(Arc::downgrade(stream));
    }
}

/// An encoder's share, given back on drop.
pub struct EncoderMemory {
    account: &'static EncoderAccount,
    bytes: usize,
}

impl EncoderMemory {
    pub fn take(effort: Effort) -> Option<EncoderMemory> {
        ACCOUNT.take(effort.memory(false), clock::now())
    }

    fn shrink(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.account.held.fetch_sub(less, Ordering::Relaxed);
    }
}

impl Drop for EncoderMemory {
    fn drop(&mut self) {
        self.account.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

pub struct Compressor {
    coder: Arc<Mutex<Coder>>,
    input: u64,
    output: u64,
}

impl Compressor {
    pub fn new(effort: Effort, memory: EncoderMemory) -> Self {
        let account = memory.account;
        let coder = Arc::new(Mutex::new(Coder {
            effort,
            account,
            memory: Some(memory),
            encoder: None,
            left: Vec::new(),
            has_begun: false,
            has_failed: false,
            holds: false,
            used: clock::now(),
            content: Crc::new(),
        }));
        account.enter(&coder);
        Compressor { coder, input: 0, output: 0 }
    }

    pub fn compress(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if !piece.is_empty() {
            self.input += piece.len() as u64;
            self.step(out, |coder, out| coder.compress(piece, out));
        }
    }

    /// Flushes everything for the client to read now. Each time costs some bytes, so only when the source
    /// pauses.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.step(out, Coder::flush);
    }

    /// False if the library lacked memory, so the stream is not whole.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        self.step(out, Coder::finish)
    }

    pub fn totals(&self) -> (u64, u64) {
        (self.input, self.output)
    }

    fn step<T>(&mut self, out: &mut Vec<u8>, step: impl FnOnce(&mut Coder, &mut Vec<u8>) -> T) -> T {
        let before = out.len();
        let mut coder = locked(&self.coder);
        out.append(&mut std::mem::take(&mut coder.left));
        let outcome = step(&mut coder, out);
        self.output += (out.len() - before) as u64;
        outcome
    }
}

/// Another thread may take its encoder between two steps.
struct Coder {
    effort: Effort,
    account: &'static EncoderAccount,
    /// Set as long as there may be an encoder, or output is left.
    memory: Option<EncoderMemory>,
    /// `None` before the first piece, between two parts of the stream, and in stored blocks.
    encoder: Option<Encoder>,
    left: Vec<u8>,
    has_begun: bool,
    has_failed: bool,
    holds: bool,
    used: Instant,
    /// gzip's checksum.
    content: Crc,
}

impl Coder {
    fn compress(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.used = clock::now();
        self.begin(out);
        if self.effort.coding() == Coding::Gzip {
            self.content.update(piece);
        }
        match &mut self.encoder {
            Some(encoder) => {
                self.holds = true;
                let written = encoder.writer().write_all(piece);
                self.drain(written, out);
            }
            None if self.has_failed => {}
            None => stored_blocks::write(self.effort.coding(), piece, out),
        }
    }

    /// Starts the stream or a part of it, with an encoder if there is memory.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.encoder.is_some() || self.has_failed {
            return;
        }
        let needed = self.effort.memory(self.has_begun);
        self.memory = self.memory.take().filter(|memory| memory.bytes >= needed);
        if self.memory.is_none() {
            self.memory = self.account.take(needed, self.used);
        }
        let room = self.memory.as_ref();
        self.encoder = room.and_then(|_| Encoder::new(self.effort, self.has_begun, Vec::new()).ok());
        if self.encoder.is_none() {
            self.memory = None;
        }
        match self.effort.coding() {
            _ if self.has_begun => {}
            Coding::Gzip => stored_blocks::begin_gzip(out),
            Coding::Br if self.encoder.is_none() => {
                stored_blocks::begin_brotli(self.effort.brotli_window(), out);
            }
            Coding::Br | Coding::Zstd => {}
        }
        self.has_begun = true;
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(encoder) = self.encoder.as_mut().filter(|_| std::mem::take(&mut self.holds)) {
            let flushed = encoder.flush();
            self.drain(flushed, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        if !self.has_begun {
            self.begin(out);
        }
        match self.encoder.take().map(Encoder::finish) {
            Some(Ok(mut rest)) => out.append(&mut rest),
            Some(Err(_)) => self.has_failed = true,
            None => stored_blocks::end(self.effort.coding(), out),
        }
        if self.effort.coding() == Coding::Gzip {
            stored_blocks::end_gzip(&self.content, out);
        }
        self.memory = None;
        !self.has_failed
    }

    /// Its last output comes with the next step, and counts until then.
    fn release(&mut self) {
        let holds = std::mem::take(&mut self.holds);
        match self.encoder.take().map(|encoder| encoder.leave(holds)) {
            None => {}
            Some(Ok(rest)) => self.left = rest,
            Some(Err(_)) => self.has_failed = true,
        }
        self.left.shrink_to_fit();
        match &mut self.memory {
            Some(memory) if !self.left.is_empty() => memory.shrink(self.left.capacity()),
            memory => *memory = None,
        }
    }

    /// Writing into memory fails only if the library does: then the stream has no end.
    fn drain(&mut self, outcome: io::Result<()>, out: &mut Vec<u8>) {
        let Some(encoder) = &mut self.encoder else { return };
        match outcome {
            Ok(()) => out.append(encoder.ready()),
            Err(_) => (self.encoder, self.has_failed) = (None, true),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
