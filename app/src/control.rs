//! Talking to a running process: its control socket, or an API elsewhere.
//!
//! One request, one answer, bounded in time and size; or one that goes on, of which each read is. Where nobody listens the message says
//! what to do. Next: `purge`, `explain`, `top`.

use crate::check;
use crate::cli::Reach;
use crate::serve_url::sockets;
use millstream_admin::refusal::ApiError;
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::{Options, load};
use millstream_net::terminal;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[cfg(test)]
mod tests;

const PATIENCE: Duration = Duration::from_secs(30);
const MOST_NAMED: usize = 3;
const LONGEST_ANSWER: u64 = 16 * 1024 * 1024;
const LONGEST_HEAD: u64 = 64 * 1024;
const BUFFER: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub enum Api {
    Socket(PathBuf),
    /// Over TCP: host and port, and the path prefix without a final slash.
    Remote(String, String),
}

pub fn print(told: Result<String, String>) -> ExitCode {
    match told {
        Ok(told) => {
            // A closed pipe on standard output is the reader's wish.
            _ = io::stdout().write_all(told.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("millstream: [error] {}", terminal::visible(&message));
            ExitCode::FAILURE
        }
    }
}

/// Selects the API: that of `--api`, else the control socket of the configuration, else that of a `millstream
/// serve` on the port of `url`. The error says what to do.
pub fn find(options: &Options, reach: &Reach, url: Option<&str>) -> Result<Api, String> {
    if let Some(api) = &reach.api {
        return remote(api).map(|api| match api {
            // Of a dashboard, whose API is below this path.
            Api::Remote(host, path) if path.is_empty() => Api::Remote(host, "/api".to_owned()),
            api => api,
        });
    }
    let main_file = options.prefix.join(&options.main_file);
    if !main_file.exists() {
        let running = sockets::running();
        // Of one process, a proxy in front may have another port.
        let default = url.filter(|_| running.len() > 1).map(default_port);
        return choose(&running, url.and_then(port_of).or(default)).map_err(|why| {
            format!(
                "{} does not exist, and {why}; specify another configuration with -c and -p",
                main_file.display()
            )
        });
    }
    let loaded = load(options);
    let Some(configuration) = &loaded.configuration else {
        // The process runs on with what it read before.
        if let Some(socket) = loaded.control_socket.as_ref().filter(|socket| socket.exists()) {
            eprintln!(
                "millstream: [warn] {} now has an error (see -t); using the running process at {}",
                main_file.display(),
                socket.display()
            );
            return Ok(Api::Socket(socket.clone()));
        }
        check::report(&loaded, Severity::Error);
        return Err(format!(
            "{} has an error, and no control_socket that exists: correct the error, or specify the running process \
             with --api unix:/path.sock",
            main_file.display()
        ));
    };
    match &configuration.main.control_socket {
        Some(socket) => Ok(Api::Socket(socket.clone())),
        None => Err(format!(
            "{} has control_socket off: set a path there, or specify an API with --api",
            main_file.display()
        )),
    }
}

fn choose(running: &[PathBuf], port: Option<u16>) -> Result<Api, String> {
    let of_port = |path: &&PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        port.is_some_and(|port| sockets::is_of(&name, port))
    };
    let on_port: Vec<&PathBuf> = running.iter().filter(of_port).collect();
    match (&on_port[..], running) {
        ([socket], _) => return Ok(Api::Socket(PathBuf::clone(socket))),
        ([], [only]) if port.is_none() => return Ok(Api::Socket(only.clone())),
        ([], []) => {
            // One that runs without a control socket is not seen from here.
            let hidden = sockets::why_none();
            let why = hidden.map(|why| format!(" ({why})")).unwrap_or_default();
            return Err(format!(
                "no control socket of millstream serve was found in {}{why}: if millstream serve is running, for \
                 example with another TMPDIR or XDG_RUNTIME_DIR, specify its dashboard with --api; specify a \
                 configuration file with -c",
                sockets::directory_path().display()
            ));
        }
        _ => {}
    }
    let which = match port {
        Some(port) if !on_port.is_empty() => {
            format!("{} millstream serve processes use port {port}", on_port.len())
        }
        Some(port) => format!("no millstream serve process uses port {port}"),
        None => format!("{} millstream serve processes are running", running.len()),
    };
    let meant = if on_port.is_empty() { running.iter().collect() } else { on_port };
    let each: Vec<String> =
        meant.iter().take(MOST_NAMED).map(|path| format!("unix:{}", path.display())).collect();
    let more = match meant.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(format!(
        "{which}: specify a URL with the port of one, or --api (for top, --control) with one of {}{more}",
        each.join(", ")
    ))
}

pub fn remote(text: &str) -> Result<Api, String> {
    let wrong = || format!("invalid API \"{text}\": write http://host:port or unix:/path.sock");
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.starts_with('/') { Ok(Api::Socket(path.into())) } else { Err(wrong()) };
    }
    if text.starts_with("https://") {
        return Err(
            "an API over https is not supported: use a tunnel, or run this command on the same machine"
                .to_owned(),
        );
    }
    let rest = text.strip_prefix("http://").unwrap_or(text);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if host.is_empty() || text.contains("://") && !text.starts_with("http://") || !is_plain(text) {
        return Err(wrong());
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if has_port { host.to_owned() } else { format!("{host}:80") };
    Ok(Api::Remote(host, path.trim_end_matches('/').to_owned()))
}

fn port_of(url: &str) -> Option<u16> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or(url);
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once(':')?.1.parse().ok()
}

fn default_port(url: &str) -> u16 {
    if url.starts_with("https://") { 443 } else { 80 }
}

/// Requests a path, with a body as a POST of JSON; returns the response's body. The error is one line.
pub fn ask(api: &Api, token: Option<&str>, path: &str, body: Option<&str>) -> Result<Vec<u8>, String> {
    let request = request(api, token, path, body)?;
    let mut answer = Vec::new();
    let exchanged = connect(api, PATIENCE).and_then(|mut stream| {
        stream.write_all(request.as_bytes())?;
        stream.take(LONGEST_ANSWER).read_to_end(&mut answer)
    });
    exchanged.map_err(|error| unreachable(api, &error))?;
    understood(api, &answer)
}

/// Requests an endless response; returns a reader of its body, whose reads fail after `patience` without
/// data.
pub fn follow(
    api: &Api,
    token: Option<&str>,
    path: &str,
    patience: Duration,
) -> Result<impl Read + use<>, String> {
    let request = request(api, token, path, None)?;
    let failed = |error: io::Error| unreachable(api, &error);
    let mut stream = connect(api, patience).map_err(failed)?;
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = BufReader::with_capacity(BUFFER, stream);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut lines = (&mut answer).take(LONGEST_HEAD.saturating_sub(head.len() as u64));
        if lines.read_until(b'\n', &mut head).map_err(failed)? == 0 {
            break;
        }
    }
    if !head.get(9..).is_some_and(|status| status.starts_with(b"200")) {
        // Why it was refused stands in the body.
        answer.take(LONGEST_HEAD).read_to_end(&mut head).map_err(failed)?;
        return match understood(api, &head) {
            Ok(_) => Err("the response is not an event stream".to_owned()),
            Err(why) => Err(why),
        };
    }
    Ok(answer)
}

/// HTTP/1.0, so that the response ends with the connection.
fn request(api: &Api, token: Option<&str>, path: &str, body: Option<&str>) -> Result<String, String> {
    let (host, prefix) = match api {
        Api::Socket(_) => ("localhost", ""),
        Api::Remote(host, prefix) => (host.as_str(), prefix.as_str()),
    };
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut request =
        format!("{method} {prefix}{path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n");
    if let Some(token) = token {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the token contains invalid characters".to_owned());
        }
        request += &format!("Authorization: Bearer {token}\r\n");
    }
    if let Some(body) = body {
        request += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    request += "\r\n";
    request += body.unwrap_or_default();
    Ok(request)
}

trait Channel: Read + Write + Send {}

impl Channel for TcpStream {}
impl Channel for UnixStream {}

fn connect(api: &Api, patience: Duration) -> io::Result<Box<dyn Channel>> {
    match api {
        Api::Socket(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            Ok(Box::new(stream))
        }
        Api::Remote(host, _) => {
            let mut failed = io::Error::from(io::ErrorKind::NotFound);
            for address in host.to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, patience) {
                    Ok(stream) => {
                        stream.set_read_timeout(Some(patience))?;
                        stream.set_write_timeout(Some(patience))?;
                        return Ok(Box::new(stream));
                    }
                    Err(error) => failed = error,
                }
            }
            Err(failed)
        }
    }
}

fn unreachable(api: &Api, error: &io::Error) -> String {
    use io::ErrorKind::{ConnectionRefused, NotFound, PermissionDenied};
    match (api, error.kind()) {
        (Api::Socket(path), NotFound | ConnectionRefused) => {
            format!(
                "no process is listening on {}: start millstream with this configuration first",
                path.display()
            )
        }
        (Api::Socket(path), PermissionDenied) => {
            format!(
                "{} belongs to another user: run this command as the user who started millstream",
                path.display()
            )
        }
        (Api::Socket(path), _) => format!("{}: {error}", path.display()),
        (Api::Remote(host, _), ConnectionRefused) => format!("no process is listening on {host}"),
        (Api::Remote(host, _), _) => format!("{host}: {error}"),
    }
}

fn understood(api: &Api, answer: &[u8]) -> Result<Vec<u8>, String> {
    let no_http = || "the response is not HTTP".to_owned();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(no_http)?;
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
    let status: u16 = status.and_then(|digits| digits.parse().ok()).ok_or_else(no_http)?;
    let body = &answer[end + 4..];
    if (200..300).contains(&status) {
        return Ok(body.to_vec());
    }
    match (serde_json::from_slice::<ApiError>(body), api) {
        (Ok(told), _) => Err(told.error.text),
        (Err(_), Api::Remote(host, path)) => Err(format!(
            "http://{host}{path} responded with {status}: check that this is a location with \"api write=on\""
        )),
        (Err(_), Api::Socket(_)) => Err(format!("the process responded with {status}")),
    }
}
