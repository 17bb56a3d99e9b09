//! The task of a link: reads what comes, writes what all calls have framed, and closes it when nobody wants it any more.
//!
//! While nothing is under way it holds no buffer. Before: `frames`; next: `links`, which starts it.

use super::frames::{Broken, Reader};
use super::link::Link;
use super::lost::Lost;
use millstream_net::buffers;
use millstream_net::outlet::Outlet;
use millstream_net::stream::Stream;
use millstream_net::streams::ROOM;
use millstream_net::timer::{Deadline, within};
use millstream_wire::h2::PREFACE;
use millstream_wire::h2::error_code::ErrorCode;
use millstream_wire::h2::frame::HEAD_LENGTH;
use millstream_wire::h2::settings::{self, DEFAULT_MAX_FRAME_SIZE, DEFAULT_WINDOW};
use millstream_wire::h2::window::LARGEST;
use millstream_wire::h2::write;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a server may accept no output; its calls have their own timeouts.
const MOST_STALLED: Duration = Duration::from_secs(60);
/// How long the final frames may take.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Rounds before the task yields.
const ROUNDS: usize = 8;

pub(super) struct Driver {
    socket: Stream,
    link: Rc<Link>,
    reader: Reader,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    writing: Deadline,
    waiting: Deadline,
}

enum Outcome {
    Over,
    Lost(Lost),
    Broken(Broken),
}

impl Driver {
    pub(super) fn new(socket: Stream, link: Rc<Link>) -> Driver {
        Driver {
            socket,
            link,
            reader: Reader::default(),
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            writing: Deadline::new(),
            waiting: Deadline::new(),
        }
    }

    /// RFC 9113 §3.4: pushes are disabled, and only the windows of the streams are narrow.
    pub(super) fn greet(&self) {
        self.link.carrier.frame(|out| {
            out.extend_from_slice(PREFACE);
            write::settings(out, &[(settings::ENABLE_PUSH, 0)]);
            write::window_update(out, 0, LARGEST - DEFAULT_WINDOW);
        });
    }

    pub(super) async fn run(mut self) {
        let outcome = poll_fn(|context| self.poll(context)).await;
        let (lost, code) = match outcome {
            Outcome::Over => (Lost::Closed, ErrorCode::NoError),
            Outcome::Lost(lost) => return self.link.close(lost),
            Outcome::Broken(Broken(code @ ErrorCode::InadequateSecurity, what)) => (Lost::Tls(what), code),
            Outcome::Broken(Broken(code, what)) => (Lost::Broken(what), code),
        };
        self.link.close(lost);
        self.link.carrier.frame(|out| write::goaway(out, 0, code, b""));
        // Who does not take it goes without.
        _ = within(LAST_WORDS, poll_fn(|context| self.poll_write(context))).await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        self.link.watch(context);
        for _ in 0..ROUNDS {
            match self.poll_write(context) {
                Poll::Ready(Ok(())) => while self.link.carrier.grant() {},
                Poll::Ready(Err(error)) => return Poll::Ready(Outcome::Lost(Lost::Failed(error.kind()))),
                Poll::Pending => {}
            }
            if let Poll::Ready(count) = self.poll_read(context) {
                match count {
                    Ok(0) => return Poll::Ready(Outcome::Lost(Lost::Closed)),
                    Err(error) => return Poll::Ready(Outcome::Lost(Lost::Failed(error.kind()))),
                    Ok(_) => {
                        if let Err(broken) = self.take_frames() {
                            return Poll::Ready(Outcome::Broken(broken));
                        }
                        continue;
                    }
                }
            }
            return self.poll_waiting(context);
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let carrier = &self.link.carrier;
        let mut outlet = Outlet::new(&mut self.socket, &mut self.writing, MOST_STALLED);
        loop {
            if self.written == self.output.len() {
                self.output.clear();
                self.written = 0;
                carrier.take(&mut self.output);
                if self.output.is_empty() {
                    break;
                }
            }
            match outlet.poll_write(context, &self.output[self.written..]) {
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    carrier.wrote(count);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        outlet.poll_flush(context)
    }

    /// Reads once, unless so much output waits that input could only add to it.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.link.carrier.queued() + self.output.len() - self.written >= 2 * ROOM {
            return Poll::Pending;
        }
        if self.input.capacity() == 0 {
            self.input = buffers::take();
        } else if self.input.len() == self.input.capacity() {
            self.input.reserve(DEFAULT_MAX_FRAME_SIZE as usize + HEAD_LENGTH);
        }
        self.socket.poll_read_into(context, &mut self.input, usize::MAX)
    }

    fn take_frames(&mut self) -> Result<(), Broken> {
        let taken = self.reader.take(&self.input, &self.link)?;
        if taken == self.input.len() {
            self.input.clear();
        } else {
            self.input.drain(..taken);
        }
        Ok(())
    }

    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.is_empty() && buffer.capacity() > 0 {
                buffers::give(std::mem::take(buffer));
            }
        }
        self.link.carrier.rest();
        if self.output.is_empty() && self.link.carrier.poll_framed(context).is_ready() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.link.idle_until() {
            None => self.waiting.clear(),
            Some(until) => {
                self.waiting.set(until);
                if self.waiting.poll(context).is_ready() {
                    self.link.leave();
                    return Poll::Ready(Outcome::Over);
                }
            }
        }
        Poll::Pending
    }
}
