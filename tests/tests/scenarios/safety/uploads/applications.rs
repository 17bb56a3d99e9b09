//! What stands behind a site: for each protocol a server of every kind, and what they were given.

use std::collections::HashMap;
use std::fmt;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use millstream_tests::application::{Application, Asked, Speaks, answer as answer_of_cgi};
use millstream_tests::origin::{Origin, Request, answer};
use millstream_tests::ports;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Does {
    Answers,
    Fails,
    Moves,
    /// Redirects to where the request says (`X-Accel-Redirect`).
    Accelerates,
    Closes,
    /// Responds with 503 before reading all, and closes.
    FailsEarly,
    /// Closes before reading all.
    ClosesEarly,
    Refuses,
}

/// `None` is HTTP.
pub type Protocol = Option<Speaks>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(usize, u64);

impl Digest {
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:x}", self.0, self.1)
    }
}

pub fn digest(body: &[u8]) -> Digest {
    let sum = body.iter().fold(7, |sum: u64, &octet| sum.wrapping_mul(31).wrapping_add(u64::from(octet)));
    Digest(body.len(), sum)
}

/// A request that a server read whole and responded to with 2xx.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub digest: Digest,
    /// Whether the response went to the client instead of leading on.
    pub is_answer: bool,
}

type AllSeen = Arc<Mutex<HashMap<u64, Vec<Seen>>>>;

pub struct Applications {
    ports: HashMap<(u8, Does), u16>,
    /// Of relays that speak HTTP/2 in front of those of HTTP.
    relays: HashMap<Does, u16>,
    seen: AllSeen,
    _origins: Vec<Origin>,
    _applications: Vec<Application>,
    _refusing: OwnedFd,
}

const ALL: [Does; 8] = [
    Does::Answers,
    Does::Fails,
    Does::Moves,
    Does::Accelerates,
    Does::Closes,
    Does::FailsEarly,
    Does::ClosesEarly,
    Does::Refuses,
];
const READING: [Does; 5] = [Does::Answers, Does::Fails, Does::Moves, Does::Accelerates, Does::Closes];

impl Applications {
    pub fn start() -> Applications {
        let (mut ports_of, seen) = (HashMap::new(), AllSeen::default());
        let (mut origins, mut applications) = (Vec::new(), Vec::new());
        for does in READING {
            let all = seen.clone();
            let origin = Origin::start(move |request| of_http(does, request, &all));
            ports_of.insert((number(None), does), origin.port());
            origins.push(origin);
            for speaks in [Speaks::FastCgi, Speaks::Uwsgi, Speaks::Scgi] {
                let all = seen.clone();
                let application =
                    Application::speaking(speaks, move |asked| of_cgi(does, speaks, asked, &all));
                ports_of.insert((number(Some(speaks)), does), application.port());
                applications.push(application);
            }
        }
        let refusing = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&refusing, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let name = SocketAddrV4::try_from(getsockname(&refusing).expect("it has a name")).expect("of IPv4");
        for does in [Does::FailsEarly, Does::ClosesEarly] {
            ports_of.insert((number(None), does), early(does));
        }
        for protocol in [None, Some(Speaks::FastCgi), Some(Speaks::Uwsgi), Some(Speaks::Scgi)] {
            ports_of.insert((number(protocol), Does::Refuses), name.port());
        }
        let relays = ALL.map(|does| (does, ports::free())).into();
        Applications {
            ports: ports_of,
            relays,
            seen,
            _origins: origins,
            _applications: applications,
            _refusing: refusing,
        }
    }

    /// For protocols without an early response, the one that closes.
    pub fn port(&self, protocol: Protocol, does: Does) -> u16 {
        let port = |does| self.ports.get(&(number(protocol), does)).copied();
        port(does).or_else(|| port(Does::Closes)).expect("every protocol has one that closes")
    }

    pub fn relay(&self, does: Does) -> u16 {
        self.relays[&does]
    }

    /// The relays as servers of the site: what an application says goes on unchanged.
    pub fn relays(&self) -> String {
        let relay = |does| {
            let (port, application) = (self.relay(does), self.port(None, does));
            format!(
                "    server {{ listen 127.0.0.1:{port}; http2 on; client_max_body_size 0; location / {{ proxy_request_buffering off;
            proxy_ignore_headers X-Accel-Redirect; proxy_pass_header X-Accel-Redirect; proxy_pass http://127.0.0.1:{application}; }} }}\n"
            )
        };
        ALL.map(relay).concat()
    }

    pub fn seen(&self, upload: u64) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&upload).cloned().unwrap_or_default()
    }
}

fn number(protocol: Protocol) -> u8 {
    match protocol {
        None => 0,
        Some(Speaks::FastCgi) => 1,
        Some(Speaks::Uwsgi) => 2,
        Some(Speaks::Scgi) => 3,
    }
}

/// Status, a field, a text. `None`: it closes.
fn reply(
    does: Does,
    (upload, next): (Option<&str>, Option<&str>),
    method: &str,
    body: &[u8],
    all: &AllSeen,
) -> Option<(u16, (&'static str, String), String)> {
    let digest = digest(body);
    let is_answer = does == Does::Answers;
    if (is_answer || does == Does::Accelerates)
        && let Some(upload) = upload.and_then(|text| text.parse().ok())
    {
        let seen = Seen { method: method.to_owned(), digest, is_answer };
        all.lock().unwrap_or_else(PoisonError::into_inner).entry(upload).or_default().push(seen);
    }
    match does {
        Does::Answers => Some((200, ("X-Kind", "answer".to_owned()), format!("{method} {digest}"))),
        Does::Accelerates => {
            Some((200, ("X-Accel-Redirect", next?.to_owned()), "not for the client".to_owned()))
        }
        Does::Moves => Some((307, ("Location", "/elsewhere".to_owned()), String::new())),
        Does::Fails => Some((503, ("X-Kind", "failure".to_owned()), "failed".to_owned())),
        Does::Closes | Does::FailsEarly | Does::ClosesEarly | Does::Refuses => None,
    }
}

fn of_http(does: Does, request: &Request, all: &AllSeen) -> Vec<millstream_tests::origin::Step> {
    let is_chunked = request.field("transfer-encoding").is_some();
    let body = if is_chunked { unchunked(&request.body) } else { request.body.clone() };
    let method = request.head.split(' ').next().unwrap_or_default();
    let fields = (request.field("x-upload"), request.field("x-next"));
    match reply(does, fields, method, &body, all) {
        Some((status, (name, value), text)) => answer(status, &[(name, &value)], text.as_bytes()),
        None => vec![millstream_tests::origin::Step::Close],
    }
}

fn of_cgi(does: Does, speaks: Speaks, asked: &Asked, all: &AllSeen) -> Vec<u8> {
    let field = |name| Some(asked.param(name)).filter(|value| !value.is_empty());
    let fields = (field("HTTP_X_UPLOAD"), field("X_NEXT"));
    let Some((status, (name, value), text)) =
        reply(does, fields, asked.param("REQUEST_METHOD"), &asked.body, all)
    else {
        return Vec::new();
    };
    let line = if speaks == Speaks::Uwsgi {
        format!("HTTP/1.1 {status} It\r\n")
    } else {
        format!("Status: {status}\r\n")
    };
    let text = format!("{line}{name}: {value}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    if speaks == Speaks::FastCgi { answer_of_cgi(&text) } else { text.into_bytes() }
}

/// Reads no more of a body than came with the head.
fn early(does: Does) -> u16 {
    let (listener, port) = ports::listener();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // It is about connections that end badly.
                let _ = answer_early(stream, does);
            });
        }
    });
    port
}

fn answer_early(mut stream: TcpStream, does: Does) -> std::io::Result<()> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 2048]);
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
    if does == Does::FailsEarly {
        stream.write_all(b"HTTP/1.1 503 Early\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly")?;
    }
    Ok(())
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size =
            std::str::from_utf8(&bytes[..end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let size = size.expect("the size of a chunk");
        if size == 0 {
            break;
        }
        data.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 4 + size..];
    }
    data
}
