//! The stream of figures of a running Millstream: found, opened, and opened again when it ends.
//!
//! It ends with every reload and upgrade, so that an end alone is no news: the next look says whether anybody is there. A thread of its
//! own reads, and tells in a channel that is bounded. Before: `control`, which speaks HTTP; next: `events`.

use super::events::{Event, Events};
use crate::cli::Top;
use crate::control::{self, Api};
use millstream_conf::load::Options;
use millstream_net::clock;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// The path of the stream.
const LIVE: &str = "/live";
/// Where the dashboard is where nobody says.
const DASHBOARD: &str = "http://127.0.0.1:8081";
/// How long connecting may take, and how long nothing may come: a frame comes every second.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks whether somebody is there again.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes that are read at a time.
const BUFFER: usize = 64 * 1024;

/// What the stream tells.
#[derive(Debug)]
pub enum Told {
    /// What came.
    Event(Event),
    /// Why nothing comes; it is tried again.
    Away(String),
}

/// Whom to follow.
#[derive(Debug)]
pub struct Source {
    api: Api,
    token: Option<String>,
}

impl Source {
    /// Finds a running Millstream and opens its stream: what the command line names; else that of the default configuration, or the
    /// only `serve`; else the dashboard where it is by default.
    ///
    /// # Errors
    /// One line that says what to do.
    pub fn find(options: &Options, top: &Top) -> Result<(Source, Stream), String> {
        let token = top.token.clone();
        let source = |api| Source { api, token: token.clone() };
        if let Some(url) = &top.url {
            return source(dashboard(url)?).begin();
        }
        if let Some(socket) = &top.control {
            // As other commands name it, too.
            let path = socket.to_str().and_then(|text| text.strip_prefix("unix:")).map(PathBuf::from);
            return source(Api::Socket(path.unwrap_or_else(|| socket.clone()))).begin();
        }
        let found = control::find(options, &top.reach(), None).and_then(|api| source(api).begin());
        if top.names_configuration() {
            return found;
        }
        // What is wrong with the dashboard nobody named says less than what is wrong with the process that was meant.
        found.or_else(|why| {
            let default = dashboard(DASHBOARD).and_then(|api| source(api).begin());
            default.map_err(|_| {
                format!("{why}; nor is there a dashboard at {DASHBOARD}: name its URL, or --control SOCKET")
            })
        })
    }

    fn begin(self) -> Result<(Source, Stream), String> {
        let stream = self.open()?;
        Ok((self, stream))
    }

    fn open(&self) -> Result<Stream, String> {
        let body = control::follow(&self.api, self.token.as_deref(), LIVE, PATIENCE)?;
        Ok(Stream { body: Box::new(body), events: Events::default(), buffer: vec![0; BUFFER] })
    }

    /// Who it is, as it is shown.
    pub fn place(&self) -> String {
        match &self.api {
            Api::Socket(path) => path.display().to_string(),
            Api::Remote(host, path) => format!("http://{host}{path}"),
        }
    }

    /// Tells all that comes for as long as anybody listens (`tell` gives true).
    pub fn follow(&self, first: Stream, mut tell: impl FnMut(Told) -> bool) {
        let mut stream = Ok(first);
        loop {
            let ended = match stream {
                Ok(stream) => drain(stream, &mut tell),
                Err(why) => StreamEnd::Wrong(why),
            };
            match ended {
                StreamEnd::Unheard => return,
                // After a reload it is there again at once.
                StreamEnd::Over { had_frames: true } => {}
                StreamEnd::Over { had_frames: false } => pause(),
                StreamEnd::Wrong(why) => {
                    if !tell(Told::Away(format!("away, trying again: {why}"))) {
                        return;
                    }
                    pause();
                }
            }
            stream = self.open();
        }
    }
}

/// How a stream ended.
enum StreamEnd {
    /// Nobody listens any more.
    Unheard,
    /// The server ended it; one that is about to stop does so without a single frame.
    Over { had_frames: bool },
    /// For this reason.
    Wrong(String),
}

fn drain(mut stream: Stream, tell: &mut impl FnMut(Told) -> bool) -> StreamEnd {
    let mut had_frames = false;
    loop {
        let event = match stream.next() {
            Ok(Some(event)) => event,
            Ok(None) => return StreamEnd::Over { had_frames },
            Err(why) => return StreamEnd::Wrong(why),
        };
        had_frames |= matches!(event, Event::Second(_));
        if !tell(Told::Event(event)) {
            return StreamEnd::Unheard;
        }
    }
}

fn pause() {
    let until = clock::now() + PAUSE;
    while let Some(left) = until.checked_duration_since(clock::now()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}

/// What a URL names; a port alone is one of this machine, as `dashboard` has it.
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

impl Stream {
    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// It broke off, nothing came for too long, or it is no stream of figures.
    pub fn next(&mut self) -> Result<Option<Event>, String> {
        loop {
            if let Some(event) = self.events.next()? {
                return Ok(Some(event));
            }
            match self.body.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(length) => self.events.push(&self.buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return broken(&error),
            }
        }
    }
}

fn broken(error: &io::Error) -> Result<Option<Event>, String> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Err(format!("nothing came for {} seconds", PATIENCE.as_secs()))
        }
        // A process that ends at once leaves it so.
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(None),
        _ => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_end_is_no_error_and_silence_is() {
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
