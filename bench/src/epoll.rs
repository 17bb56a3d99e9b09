//! A bare HTTP/1 server on epoll: the floor that every proxy's cost is measured against, and the fast origin behind them.
//!
//! It reads a head, looks its target up, and writes what it is told to: no routing, no logging, no limits beyond a
//! bound on the head, bodies of requests not read. A thread per core, each with its own listening socket and epoll.
//! It must stay this bare; whatever is added here makes every comparison with it a lie.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

/// Bytes of a request head; a connection that sends more is closed.
const HEAD_BOUND: usize = 64 * 1024;
const EVENTS: usize = 512;
/// Marks the listening socket among the numbers of connections.
const LISTENER: u64 = u64::MAX;

pub trait Respond {
    /// Appends the whole response to a request for `target`; it is delayed by the returned duration.
    fn respond(&mut self, target: &[u8], out: &mut Vec<u8>) -> Duration;
}

/// Listens on a loopback port in `threads` threads; returns only with an error.
pub fn serve<R: Respond>(port: u16, threads: usize, respond: impl Fn() -> R + Sync) -> Result<(), Errno> {
    std::thread::scope(|scope| {
        let others: Vec<_> =
            (1..threads).map(|_| scope.spawn(|| Loop::new(port, respond())?.run())).collect();
        let result = Loop::new(port, respond()).and_then(Loop::run);
        others.into_iter().fold(result, |result, thread| result.and(thread.join().unwrap_or(Err(Errno::IO))))
    })
}

struct Connection {
    socket: OwnedFd,
    /// Bytes of an unfinished head, or requests that arrived during a response.
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    state: State,
    close: bool,
    /// Whether epoll waits for room to write instead of bytes to read.
    watches_room: bool,
    /// Tells a timer's connection from a later one with the same number.
    generation: u32,
}

#[derive(PartialEq, Clone, Copy)]
enum State {
    Reading,
    Waiting,
    Writing,
}

struct Loop<R> {
    epoll: OwnedFd,
    listener: OwnedFd,
    respond: R,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    timers: BinaryHeap<Reverse<(Instant, usize, u32)>>,
    generation: u32,
    buffer: Vec<u8>,
}

impl<R: Respond> Loop<R> {
    fn new(port: u16, respond: R) -> Result<Self, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let listener = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        sockopt::set_socket_reuseport(&listener, true)?;
        net::bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        net::listen(&listener, 4096)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        Ok(Loop {
            epoll,
            listener,
            respond,
            connections: Vec::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            generation: 0,
            buffer: Vec::with_capacity(16 * 1024),
        })
    }

    fn run(mut self) -> Result<(), Errno> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let timeout = self.until_timer();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    number => self.ready(number as usize),
                }
            }
            self.fire_timers();
        }
    }

    fn until_timer(&self) -> Option<Timespec> {
        let Reverse((at, ..)) = self.timers.peek()?;
        // Rounded up by the timer's own next look; a millisecond early would spin.
        let left = at.saturating_duration_since(Instant::now()) + Duration::from_micros(100);
        Some(Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) })
    }

    fn fire_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(&Reverse((at, number, generation))) = self.timers.peek() {
            if at > now {
                return;
            }
            self.timers.pop();
            if let Some(Some(connection)) = self.connections.get_mut(number)
                && connection.generation == generation
            {
                connection.state = State::Writing;
                self.advance(number);
            }
        }
    }

    fn accept(&mut self) -> Result<(), Errno> {
        loop {
            let socket = match net::accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
            {
                Ok(socket) => socket,
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(()),
                Err(error) => return Err(error),
            };
            let _ = sockopt::set_tcp_nodelay(&socket, true);
            let number = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            epoll::add(
                &self.epoll,
                &socket,
                epoll::EventData::new_u64(number as u64),
                epoll::EventFlags::IN,
            )?;
            self.generation = self.generation.wrapping_add(1);
            self.connections[number] = Some(Connection {
                socket,
                input: Vec::new(),
                output: Vec::new(),
                sent: 0,
                state: State::Reading,
                close: false,
                watches_room: false,
                generation: self.generation,
            });
        }
    }

    fn ready(&mut self, number: usize) {
        let Some(Some(connection)) = self.connections.get_mut(number) else { return };
        if connection.state == State::Writing {
            return self.advance(number);
        }
        self.buffer.clear();
        match net::recv(&connection.socket, spare_capacity(&mut self.buffer), RecvFlags::empty()) {
            Ok((_, 0)) => return self.drop_connection(number),
            Ok(_) => connection.input.extend_from_slice(&self.buffer),
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => return self.drop_connection(number),
        }
        if connection.input.len() > HEAD_BOUND {
            return self.drop_connection(number);
        }
        self.advance(number);
    }

    /// Responds to whole requests and writes until the connection has to wait.
    fn advance(&mut self, number: usize) {
        loop {
            let Some(Some(connection)) = self.connections.get_mut(number) else { return };
            match connection.state {
                State::Waiting => return,
                State::Reading => {
                    let Some(end) = head_end(&connection.input) else { return };
                    let head = &connection.input[..end];
                    connection.close = wants_close(head);
                    let delay = self.respond.respond(target(head), &mut connection.output);
                    connection.input.drain(..end);
                    connection.state = if delay.is_zero() { State::Writing } else { State::Waiting };
                    if !delay.is_zero() {
                        self.timers.push(Reverse((Instant::now() + delay, number, connection.generation)));
                    }
                }
                State::Writing => match write(connection) {
                    Ok(true) if connection.close => return self.drop_connection(number),
                    Ok(true) => {
                        connection.state = State::Reading;
                        if connection.watches_room {
                            self.watch(number, false);
                        }
                    }
                    Ok(false) => return self.watch(number, true),
                    Err(_) => return self.drop_connection(number),
                },
            }
        }
    }

    fn watch(&mut self, number: usize, room: bool) {
        let Some(Some(connection)) = self.connections.get_mut(number) else { return };
        connection.watches_room = room;
        let flags = if room { epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        let data = epoll::EventData::new_u64(number as u64);
        if epoll::modify(&self.epoll, &connection.socket, data, flags).is_err() {
            self.drop_connection(number);
        }
    }

    /// Closing the socket takes it out of the epoll set too.
    fn drop_connection(&mut self, number: usize) {
        self.connections[number] = None;
        self.free.push(number);
    }
}

/// `true` once all is written.
fn write(connection: &mut Connection) -> Result<bool, Errno> {
    while connection.sent < connection.output.len() {
        match net::send(&connection.socket, &connection.output[connection.sent..], SendFlags::NOSIGNAL) {
            Ok(count) => connection.sent += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    connection.output.clear();
    connection.sent = 0;
    Ok(true)
}

/// Past the blank line.
fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|start| start + 4)
}

fn target(head: &[u8]) -> &[u8] {
    head.split(|&byte| byte == b' ').nth(1).unwrap_or_default()
}

/// HTTP/1.0, or `Connection: close`.
fn wants_close(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    let old = lines.next().is_some_and(|line| line.ends_with(b"HTTP/1.0\r"));
    let mut close = old;
    for line in lines {
        let Some(value) = line.get(11..).filter(|_| line[..11].eq_ignore_ascii_case(b"connection:")) else {
            continue;
        };
        let value = value.trim_ascii();
        close = value.eq_ignore_ascii_case(b"close") || old && !value.eq_ignore_ascii_case(b"keep-alive");
    }
    close
}
