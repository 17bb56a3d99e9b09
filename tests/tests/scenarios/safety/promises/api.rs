//! The random API: it answers as each URL's `Resource` says, and writes down for whom and when it made every answer.
//!
//! It runs on the thread of the clients, so that all moments are of one clock and nothing needs a lock. URLs are
//! `/HISTORY/RESOURCE`. An exchange is over when its answer has been written or its connection has gone, whichever is first.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use millstream_tests::ports;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::resource::{By, Caching, Delivery, Resource, Trouble, content, event};

const PAUSE: Duration = Duration::from_millis(5);
const SLOWNESS: Duration = Duration::from_millis(200);
const PIECES: usize = 6;

#[derive(Debug, Clone)]
pub struct Made {
    pub history: usize,
    pub resource: usize,
    pub method: String,
    /// The request's value of the field that the response is personal by.
    pub taker: Option<String>,
    pub length: usize,
    pub began: Instant,
    pub ended: Option<Instant>,
    pub confirmed: Option<Instant>,
}

#[derive(Default)]
struct State {
    resources: HashMap<(usize, usize), (Resource, bool)>,
    made: Vec<Made>,
    last: HashMap<(usize, usize, Option<String>), usize>,
}

#[derive(Clone)]
pub struct Api {
    port: u16,
    state: Rc<RefCell<State>>,
}

/// Records the end of an exchange when dropped.
struct Exchange {
    state: Rc<RefCell<State>>,
    id: usize,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.state.borrow_mut().made[self.id].ended = Some(Instant::now());
    }
}

struct Request {
    head: String,
}

impl Request {
    fn field(&self, name: &str) -> Option<&str> {
        self.head.split("\r\n").skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// An address may stand in either of two fields.
    fn taker(&self, by: By) -> Option<&str> {
        let usual = (by == By::Address).then(|| self.field("x-forwarded-for")).flatten();
        self.field(by.field()).or(usual)
    }

    fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    fn place(&self) -> Option<(usize, usize)> {
        let mut parts = self.head.split(' ').nth(1)?.split('/').skip(1);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

impl Api {
    /// Connections are tasks of the current `LocalSet`.
    pub fn start() -> io::Result<Api> {
        let (listener, port) = ports::listener();
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let api = Api { port, state: Rc::default() };
        let state = api.state.clone();
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = state.clone();
                tokio::task::spawn_local(async move {
                    // A connection that breaks off is what histories are about.
                    let _ = converse(stream, &state).await;
                });
            }
        });
        Ok(api)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn put(&self, history: usize, resources: &[Resource]) {
        let mut state = self.state.borrow_mut();
        for (number, resource) in resources.iter().enumerate() {
            state.resources.insert((history, number), (*resource, false));
        }
    }

    pub fn set_broken(&self, history: usize, resource: usize, broken: bool) {
        if let Some((_, is_broken)) = self.state.borrow_mut().resources.get_mut(&(history, resource)) {
            *is_broken = broken;
        }
    }

    pub fn made(&self, id: usize) -> Option<Made> {
        self.state.borrow().made.get(id).cloned()
    }

    pub fn open(&self, history: usize) -> Vec<usize> {
        let state = self.state.borrow();
        let open = |(_, made): &(usize, &Made)| made.history == history && made.ended.is_none();
        state.made.iter().enumerate().filter(open).map(|(id, _)| id).collect()
    }
}

async fn converse(mut stream: TcpStream, state: &Rc<RefCell<State>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    while let Some(request) = read(&mut stream, &mut bytes).await? {
        let Some(place) = request.place() else { return Ok(()) };
        let known = state.borrow().resources.get(&place).copied();
        let Some((resource, is_broken)) = known else { return Ok(()) };
        let closes = request.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let goes_on = answer(&mut stream, state, &request, place, &resource, is_broken).await?;
        if closes || !goes_on {
            break;
        }
    }
    // Dropped and not shut down: what was cut ends with a reset.
    Ok(())
}

async fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let mut chunk = [0; 8 * 1024];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let request = Request { head: String::from_utf8_lossy(&bytes[..end]).into_owned() };
            let length = request.field("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                bytes.drain(..end + 4 + length);
                return Ok(Some(request));
            }
        }
        match stream.read(&mut chunk).await? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Returns whether the connection can be reused.
async fn answer(
    stream: &mut TcpStream,
    state: &Rc<RefCell<State>>,
    request: &Request,
    place: (usize, usize),
    resource: &Resource,
    is_broken: bool,
) -> io::Result<bool> {
    let taker = resource.by.and_then(|by| request.taker(by)).map(str::to_owned);
    let fresh_head = fields(resource, taker.as_deref());
    if let Some(id) = confirmed(state, request, place, resource, &taker).filter(|_| !is_broken) {
        let head = format!("HTTP/1.1 304 Not Modified\r\nETag: \"{id}\"\r\n{fresh_head}\r\n");
        stream.write_all(head.as_bytes()).await?;
        return Ok(true);
    }
    let length = resource.delivery.length();
    let range = range(request, resource).filter(|_| !is_broken);
    let exchange = begin(state, request, place, taker, length);
    let id = exchange.id;
    match (is_broken, resource.trouble) {
        (true, Trouble::Refuses) => return Ok(false),
        (true, Trouble::Fails) => {
            let text = "HTTP/1.1 500 Broken\r\nContent-Length: 7\r\n\r\nbroken\n";
            stream.write_all(text.as_bytes()).await?;
            return Ok(true);
        }
        (true, Trouble::Slow) => tokio::time::sleep(SLOWNESS).await,
        _ => {}
    }
    let mut head = format!("X-Made: {id}\r\nContent-Type: {}\r\n{fresh_head}", kind(resource.delivery));
    if resource.tagged {
        head.push_str(&format!("ETag: \"{id}\"\r\n"));
    }
    if resource.caching == Caching::SetsCookie {
        head.push_str(&format!("Set-Cookie: made={id}\r\n"));
    }
    if let Some((first, last)) = range {
        head.push_str(&format!(
            "Content-Range: bytes {first}-{last}/{length}\r\nContent-Length: {}\r\n",
            last + 1 - first
        ));
        let head = format!("HTTP/1.1 206 Part\r\n{head}\r\n");
        stream.write_all(&[head.as_bytes(), &content(id, length)[first..=last]].concat()).await?;
        return Ok(true);
    }
    let cuts = is_broken && resource.trouble == Trouble::Cuts;
    let goes_on = body(stream, request, resource.delivery, id, head, cuts).await;
    drop(exchange);
    goes_on
}

async fn body(
    stream: &mut TcpStream,
    request: &Request,
    delivery: Delivery,
    id: usize,
    head: String,
    cuts: bool,
) -> io::Result<bool> {
    let framing = match delivery {
        Delivery::Whole(length) | Delivery::Stalls(length) => format!("Content-Length: {length}\r\n"),
        Delivery::Chunked(_) | Delivery::Events => "Transfer-Encoding: chunked\r\n".to_owned(),
        Delivery::Closing(_) => "Connection: close\r\n".to_owned(),
        Delivery::Mute => return gone(stream).await,
    };
    stream.write_all(format!("HTTP/1.1 200 Made\r\n{head}{framing}\r\n").as_bytes()).await?;
    if request.method() == "HEAD" {
        return Ok(!matches!(delivery, Delivery::Closing(_)));
    }
    let body = content(id, delivery.length());
    let half = &body[..body.len() / 2];
    match delivery {
        Delivery::Events => {
            for number in 0.. {
                stream.write_all(&chunk(&event(id, number))).await?;
                tokio::select! {
                    gone = gone(stream) => return gone,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
        }
        Delivery::Stalls(_) => {
            stream.write_all(half).await?;
            return gone(stream).await;
        }
        Delivery::Chunked(length) => {
            for (at, piece) in body.chunks(length.div_ceil(PIECES)).enumerate() {
                if cuts && at >= PIECES / 2 {
                    return Ok(false);
                }
                stream.write_all(&chunk(piece)).await?;
                tokio::time::sleep(PAUSE).await;
            }
            stream.write_all(b"0\r\n\r\n").await?;
        }
        _ if cuts => {
            stream.write_all(half).await?;
            // A body that ends with its connection looks whole unless the end is a reset.
            stream.set_zero_linger()?;
            return Ok(false);
        }
        _ => stream.write_all(&body).await?,
    }
    Ok(!cuts && !matches!(delivery, Delivery::Closing(_)))
}

async fn gone(stream: &TcpStream) -> io::Result<bool> {
    let mut byte = [0];
    match stream.peek(&mut byte).await {
        Ok(0) | Err(_) => Ok(false),
        // A request behind the one that is being answered: nothing is known of the connection's end.
        Ok(_) => std::future::pending().await,
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn kind(delivery: Delivery) -> &'static str {
    if delivery == Delivery::Events { "text/event-stream" } else { "application/json" }
}

fn fields(resource: &Resource, taker: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(control) = resource.caching.cache_control() {
        text.push_str(&format!("Cache-Control: {control}\r\n"));
    }
    if let Some(by) = resource.by {
        if resource.varies && by != By::Host {
            text.push_str(&format!("Vary: {}\r\n", by.field()));
        }
        if let Some(origin) = taker.filter(|_| by == By::Origin) {
            text.push_str(&format!("Access-Control-Allow-Origin: {origin}\r\n"));
        }
    }
    text
}

/// The response named by the request's condition, if it is the latest for this taker.
fn confirmed(
    state: &Rc<RefCell<State>>,
    request: &Request,
    (history, number): (usize, usize),
    resource: &Resource,
    taker: &Option<String>,
) -> Option<usize> {
    let named = request.field("if-none-match").filter(|_| resource.tagged && request.method() != "POST")?;
    let mut state = state.borrow_mut();
    let id = *state.last.get(&(history, number, taker.clone()))?;
    let now = Instant::now();
    named.split(',').any(|tag| tag.trim() == format!("\"{id}\"")).then(|| {
        state.made[id].confirmed = Some(now);
        id
    })
}

fn begin(
    state: &Rc<RefCell<State>>,
    request: &Request,
    (history, resource): (usize, usize),
    taker: Option<String>,
    length: usize,
) -> Exchange {
    let mut all = state.borrow_mut();
    let id = all.made.len();
    all.last.insert((history, resource, taker.clone()), id);
    all.made.push(Made {
        history,
        resource,
        method: request.method().to_owned(),
        taker,
        length,
        began: Instant::now(),
        ended: None,
        confirmed: None,
    });
    drop(all);
    Exchange { state: state.clone(), id }
}

/// One range of a body with a length; otherwise the whole, as HTTP allows.
fn range(request: &Request, resource: &Resource) -> Option<(usize, usize)> {
    let Delivery::Whole(length) = resource.delivery else { return None };
    let asked = request
        .field("range")
        .filter(|_| request.method() == "GET" && request.field("if-range").is_none())?;
    let (first, last) = asked.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && first < length).then(|| (first, last.min(length - 1)))
}
