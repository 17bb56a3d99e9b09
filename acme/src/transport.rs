//! One request to a server and its answer, over HTTP/1.1 with TLS or without, each over a connection of its own.
//!
//! A dozen requests every few weeks are worth no kept connection. Names are asked of the `resolver`, or else of the system. Everything is bounded: how
//! long it takes, and what an answer may hold. Before: `failure`; next: `session`, which says what is asked.

use crate::failure::{AcmeFailure, Problem};
use millstream_conf::model::{AcmeIssuer, PeerAddress, WebUrl};
use millstream_net::address::Address;
use millstream_net::clock;
use millstream_net::connect::connect;
use millstream_net::resolve::resolve;
use millstream_net::resolver::Resolver;
use millstream_net::stream::Stream;
use millstream_net::timer::within;
use millstream_net::tls::{TlsConnector, TlsError};
use millstream_wire::Method;
use millstream_wire::h1::chunked::{Decoder, Event};
use millstream_wire::h1::framing::{self, Framing};
use millstream_wire::h1::head::{HeadLimits, Progress, ResponseHead};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Longest time for one request, connecting included.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a response, head and body.
const MOST_ANSWER: usize = 256 * 1024;
const MOST_TRAILERS: usize = 4096;

/// Reads files: only at start and reload.
pub(crate) fn connector(issuer: &AcmeIssuer) -> Result<Arc<TlsConnector>, TlsError> {
    let connector = TlsConnector::own(issuer.trusted.as_deref(), issuer.verifies)?;
    Ok(Arc::new(connector.offering(&[b"http/1.1"])))
}

pub(crate) struct Transport {
    pub(crate) tls: Arc<TlsConnector>,
    pub(crate) resolver: Option<Arc<Resolver>>,
    pub(crate) resolver_timeout: Duration,
}

pub(crate) struct Question<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a str,
    pub(crate) body: Option<&'a str>,
    pub(crate) accept: &'static str,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    head: ResponseHead,
    bytes: Vec<u8>,
}

impl Reply {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.head.view(&self.bytes).named(name.as_bytes())?).ok()
    }

    /// Targets of links with this relation (RFC 8288).
    pub(crate) fn links(&self, relation: &str) -> Vec<String> {
        let fields = self.head.view(&self.bytes);
        let values = fields.all_named(b"link").filter_map(|value| std::str::from_utf8(value).ok());
        let target = |link: &str| {
            let (url, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
            let is_it = |parameter: &str| {
                let (name, value) = parameter.trim().split_once('=').unwrap_or_default();
                name.eq_ignore_ascii_case("rel")
                    && value.trim_matches('"').split(' ').any(|one| one == relation)
            };
            parameters.split(';').any(is_it).then(|| url.to_owned())
        };
        // A comma may stand in a URL, and no `<` can.
        values
            .flat_map(|value| value.split(", <").enumerate())
            .filter_map(|(at, link)| if at == 0 { target(link) } else { target(&format!("<{link}")) })
            .collect()
    }

    /// RFC 9110 §10.2.3.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let value = self.field("retry-after")?.trim();
        if let Ok(seconds) = value.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let then = millstream_wire::date::parse_http(value.as_bytes())?;
        Some(Duration::from_secs(u64::try_from(then - clock::wall().seconds).unwrap_or(0)))
    }

    /// Turns every status but 2xx into a failure.
    pub(crate) fn accepted(self) -> Result<Reply, AcmeFailure> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) if !problem.kind.is_empty() || !problem.detail.is_empty() => {
                Err(AcmeFailure::Refused(Box::new(problem), self.retry_after()))
            }
            _ => Err(AcmeFailure::Status(self.status)),
        }
    }
}

impl Transport {
    pub(crate) async fn ask(&self, question: &Question<'_>) -> Result<Reply, AcmeFailure> {
        let url = WebUrl::parse(question.url)
            .ok_or(AcmeFailure::Answer("contains an invalid URL: https is required"))?;
        let exchange = Box::pin(async {
            let stream = connect_to(&url, self.resolver.as_ref(), self.resolver_timeout).await?;
            let stream = self.tls.connect(stream, &url.authority).await?;
            exchange(stream, &url, question).await
        });
        within(PATIENCE, exchange).await.unwrap_or(Err(AcmeFailure::TimedOut("answer")))
    }
}

/// Without TLS, for responses that carry their own signature.
pub(crate) async fn ask_plainly(
    url: &WebUrl,
    question: &Question<'_>,
    resolver: Option<&Arc<Resolver>>,
    resolver_timeout: Duration,
) -> Result<Reply, AcmeFailure> {
    let exchange = Box::pin(async {
        let stream = connect_to(url, resolver, resolver_timeout).await?;
        exchange(stream, url, question).await
    });
    within(PATIENCE, exchange).await.unwrap_or(Err(AcmeFailure::TimedOut("answer")))
}

async fn connect_to(
    url: &WebUrl,
    resolver: Option<&Arc<Resolver>>,
    resolver_timeout: Duration,
) -> io::Result<Stream> {
    let addresses: Vec<Address> = match (&url.address, resolver) {
        (PeerAddress::Tcp(address), _) => vec![Address::Tcp(*address)],
        (PeerAddress::Unix(path), _) => vec![Address::Unix(Some(path.clone()))],
        (PeerAddress::Name(name), None) => resolve(name).await?.into_iter().map(Address::Tcp).collect(),
        (PeerAddress::Name(name), Some(resolver)) => {
            let found = resolver.resolve_in_turn(&name.host, resolver_timeout).await;
            let found = found.map_err(|error| io::Error::other(format!("{}: {error}", name.host)))?;
            found.into_iter().map(|ip| Address::Tcp((ip, name.port).into())).collect()
        }
    };
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for address in &addresses {
        match connect(address, None).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

async fn exchange(mut stream: Stream, url: &WebUrl, question: &Question<'_>) -> Result<Reply, AcmeFailure> {
    let method = match question.method {
        Method::Head => "HEAD",
        Method::Post => "POST",
        _ => "GET",
    };
    let mut head = format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: millstream/{}\r\nAccept: {}\r\nAccept-Language: en\r\nConnection: close\r\n",
        url.target,
        url.authority,
        env!("CARGO_PKG_VERSION"),
        question.accept,
    );
    if let Some(body) = question.body {
        head.push_str(&format!("Content-Type: application/jose+json\r\nContent-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    head.push_str(question.body.unwrap_or_default());
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    let (head, bytes) = read_head(&mut stream).await?;
    let framing = framing::response(question.method, head.version, head.status, head.view(&bytes))
        .map_err(|_| AcmeFailure::Answer("has an invalid Content-Length or Transfer-Encoding"))?;
    let body = read_body(&mut stream, framing, bytes[head.length..].to_vec()).await?;
    Ok(Reply { status: head.status, body, head, bytes })
}

async fn read_head(stream: &mut Stream) -> Result<(ResponseHead, Vec<u8>), AcmeFailure> {
    let mut bytes = Vec::with_capacity(4096);
    loop {
        let mut head = ResponseHead::default();
        match head.parse(&bytes, &HeadLimits::default()) {
            Err(_) => return Err(AcmeFailure::Answer("is not valid HTTP")),
            Ok(Progress::Complete) if head.is_interim() => {
                bytes.drain(..head.length);
                continue;
            }
            Ok(Progress::Complete) => return Ok((head, bytes)),
            Ok(Progress::Partial) => {}
        }
        read_more(stream, &mut bytes).await?;
    }
}

/// `bytes`: the part of the body read with the head.
async fn read_body(
    stream: &mut Stream,
    framing: Framing,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>, AcmeFailure> {
    match framing {
        Framing::None => Ok(Vec::new()),
        Framing::Length(length) => {
            let length = usize::try_from(length).ok().filter(|length| *length <= MOST_ANSWER);
            let length = length.ok_or(AcmeFailure::Answer("is too long"))?;
            while bytes.len() < length {
                read_more(stream, &mut bytes).await?;
            }
            bytes.truncate(length);
            Ok(bytes)
        }
        Framing::Close => loop {
            if bytes.len() > MOST_ANSWER {
                return Err(AcmeFailure::Answer("is too long"));
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(bytes);
            }
        },
        Framing::Chunked => {
            let (mut decoder, mut body, mut at) = (Decoder::new(MOST_TRAILERS), Vec::new(), 0);
            loop {
                let (used, event) = decoder
                    .decode(&bytes[at..])
                    .map_err(|_| AcmeFailure::Answer("has an invalid chunked body"))?;
                at += used;
                match event {
                    Event::Data(data) => body.extend_from_slice(data),
                    Event::End => return Ok(body),
                    Event::More => read_more(stream, &mut bytes).await?,
                }
            }
        }
    }
}

async fn read_more(stream: &mut Stream, bytes: &mut Vec<u8>) -> Result<(), AcmeFailure> {
    if bytes.len() > MOST_ANSWER {
        return Err(AcmeFailure::Answer("is too long"));
    }
    match stream.read_buf(bytes).await? {
        0 => Err(AcmeFailure::Answer("ended prematurely")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpStream};

    fn answered(answer: &'static [u8]) -> Result<Reply, AcmeFailure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("bound");
            let server = async {
                let (mut stream, _) = listener.accept().await.expect("it comes");
                let mut asked = vec![0; 4096];
                _ = stream.read(&mut asked).await;
                _ = stream.write_all(answer).await;
            };
            let client = async {
                let stream = TcpStream::connect(address).await.expect("it listens");
                let url = WebUrl::parse("https://ca.example/new").expect("a URL");
                let question =
                    Question { method: Method::Post, url: &url.text, body: Some("{}"), accept: "text/plain" };
                exchange(Stream::Tcp(stream, address), &url, &question).await
            };
            tokio::join!(server, client).1
        })
    }

    #[test]
    fn an_answer_is_read_however_its_end_is_told() {
        for answer in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more"[..],
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\nhello",
        ] {
            let reply = answered(answer).expect("it is whole");
            assert_eq!((reply.status, reply.body.as_slice()), (200, &b"hello"[..]));
        }
    }

    #[test]
    fn an_answer_that_is_broken_or_too_long_is_a_failure_and_no_panic() {
        for answer in [
            &b""[..],
            b"hello",
            b"HTTP/1.1 200 OK\r\nContent-Le",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
        ] {
            assert!(answered(answer).is_err(), "{}", String::from_utf8_lossy(answer));
        }
        static LONG: [u8; MOST_ANSWER + 100_000] = [b'a'; MOST_ANSWER + 100_000];
        assert!(answered(&LONG).is_err());
    }

    #[test]
    fn a_refusal_tells_its_reason_and_other_chains_are_found_by_their_links() {
        let refused = answered(
            b"HTTP/1.1 429 Too Many\r\nRetry-After: 120\r\nContent-Length: 66\r\n\r\n\
              {\"type\":\"urn:ietf:params:acme:error:rateLimited\",\"detail\":\"often\"}",
        );
        let failure = refused.expect("it is HTTP").accepted().map(|_| ()).expect_err("it is refused");
        assert_eq!(failure.to_string(), "the server rejected the request: often (rateLimited)");
        assert_eq!(failure.retry(), crate::failure::Retry::After(Duration::from_secs(120)));
        let plain = answered(b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\noops").expect("it is HTTP");
        assert!(matches!(plain.accepted(), Err(AcmeFailure::Status(503))));
        let linked = answered(
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\
              Link: <https://ca/1>;rel=\"alternate\", <https://ca/dir>; rel=index\r\nLink: <https://ca/2,3>; rel=alternate\r\n\
              Link: broken\r\n\r\n",
        );
        assert_eq!(linked.expect("it is whole").links("alternate"), ["https://ca/1", "https://ca/2,3"]);
    }
}
