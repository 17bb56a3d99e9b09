//! The stream of figures of a running Millstream: found, opened, and opened again when it ends.
//!
//! It ends with every reload and upgrade, so that an end alone is no news: the next attempt tells whether the server is there. A
//! thread of its own reads it. Before: `control`, which speaks HTTP; next: `events`.

use super::events::{Event, Events};
use crate::cli::Top;
use crate::control::{self, Api};
use millstream_conf::load::Options;
use millstream_net::clock;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// The path of the stream.
const LIVE: &str = "/live";
/// The default address of the dashboard.
const DASHBOARD: &str = "http://127.0.0.1:8081";
/// The timeout for connecting and for each read: a frame comes every second.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two attempts to open the stream again.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes that are read at a time.
const BUFFER: usize = 64 * 1024;

#[derive(Debug)]
pub enum Update {
    Event(Event),
    /// The server is not there, for this reason; it is tried again.
    Away(String),
}

#[derive(Debug)]
pub struct Source {
    api: Api,
    token: Option<String>,
}

impl Source {
    /// Finds a running Millstream and opens its stream: the one that the command line names; else that of the default configuration,
    /// or the only `serve`; else the dashboard at its default address.
    ///
    /// # Errors
    /// One line that says what to do.
    pub fn find(options: &Options, top: &Top) -> Result<(Source, Stream), String> {
        let open = |api| {
            let source = Source { api, token: top.token.clone() };
            source.open().map(|stream| (source, stream))
        };
        if let Some(url) = &top.url {
            return open(dashboard(url)?);
        }
        if let Some(socket) = &top.control {
            // `unix:` as other commands have it is allowed.
            let path = socket.to_str().and_then(|text| text.strip_prefix("unix:")).map(PathBuf::from);
            return open(Api::Socket(path.unwrap_or_else(|| socket.clone())));
        }
        let found = control::find(options, &top.reach(), None).and_then(open);
        if top.names_configuration() {
            return found;
        }
        // The error of the process that was meant says more than that of a dashboard that nobody named.
        found.or_else(|why| {
            dashboard(DASHBOARD).and_then(open).map_err(|_| {
                format!(
                    "{why}; no dashboard was found at {DASHBOARD} either: specify its URL or --control SOCKET"
                )
            })
        })
    }

    fn open(&self) -> Result<Stream, String> {
        let body = control::follow(&self.api, self.token.as_deref(), LIVE, TIMEOUT)?;
        Ok(Stream { body: Box::new(body), events: Events::default(), buffer: vec![0; BUFFER] })
    }

    /// Its address, as it is shown.
    pub fn place(&self) -> String {
        match &self.api {
            Api::Socket(path) => path.display().to_string(),
            Api::Remote(host, path) => format!("http://{host}{path}"),
        }
    }

    /// Passes on all that comes for as long as `take` returns true.
    pub fn follow(&self, first: Stream, mut take: impl FnMut(Update) -> bool) {
        let mut stream = Ok(first);
        loop {
            let mut had_frames = false;
            let ended = stream.and_then(|stream: Stream| {
                stream.drain(|event| {
                    had_frames |= matches!(event, Event::Second(_));
                    take(Update::Event(event))
                })
            });
            match ended {
                Ok(StreamEnd::Refused) => return,
                // After a reload it is there again at once; a server that is about to stop ends it without a frame.
                Ok(StreamEnd::Over) if had_frames => {}
                Ok(StreamEnd::Over) => pause(),
                Err(why) if take(Update::Away(format!("disconnected, reconnecting: {why}"))) => pause(),
                Err(_) => return,
            }
            stream = self.open();
        }
    }
}

fn pause() {
    let until = clock::now() + PAUSE;
    while let Some(left) = until.checked_duration_since(clock::now()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}

/// A dashboard by its URL; a port alone is one of this machine, as in the directive `dashboard`.
fn dashboard(url: &str) -> Result<Api, String> {
    match url.parse::<u16>() {
        Ok(port) => Ok(Api::Remote(format!("127.0.0.1:{port}"), String::new())),
        Err(_) => control::remote(url),
    }
}

/// An open stream.
pub struct Stream {
    body: Box<dyn Read + Send>,
    events: Events,
    buffer: Vec<u8>,
}

enum StreamEnd {
    /// The server ended it.
    Over,
    /// An event was not taken.
    Refused,
}

impl Stream {
    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// It broke off, nothing came in time, or it is no stream of figures.
    pub fn next(&mut self) -> Result<Option<Event>, String> {
        loop {
            if let Some(event) = self.events.next()? {
                return Ok(Some(event));
            }
            match self.body.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => self.events.push(&self.buffer[..length]),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    // A process that ends at once leaves it so.
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => return Ok(None),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        return Err(format!("no data for {} seconds", TIMEOUT.as_secs()));
                    }
                    _ => return Err(error.to_string()),
                },
            }
        }
    }

    /// Passes on events until it ends or `take` returns false.
    fn drain(mut self, mut take: impl FnMut(Event) -> bool) -> Result<StreamEnd, String> {
        while let Some(event) = self.next()? {
            if !take(event) {
                return Ok(StreamEnd::Refused);
            }
        }
        Ok(StreamEnd::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_dashboard_is_named_by_url_or_port() {
        let at = |host: &str| Ok(Api::Remote(host.to_owned(), String::new()));
        assert_eq!(dashboard("8081"), at("127.0.0.1:8081"));
        assert_eq!(dashboard("http://10.0.0.7:8081/"), at("10.0.0.7:8081"));
        assert_eq!(dashboard("localhost:9000"), at("localhost:9000"));
        assert!(dashboard("https://a/").is_err_and(|why| why.contains("https")));
        assert!(dashboard("\u{1b}[2J").is_err());
    }

    #[test]
    fn an_end_is_no_error_and_silence_is_one() {
        struct Ends(ErrorKind);
        impl Read for Ends {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
        }
        let next = |kind| {
            let mut stream =
                Stream { body: Box::new(Ends(kind)), events: Events::default(), buffer: vec![0; 8] };
            stream.next()
        };
        assert_eq!(next(ErrorKind::ConnectionReset), Ok(None));
        assert!(next(ErrorKind::WouldBlock).is_err_and(|why| why.contains("10 seconds")));
    }
}
