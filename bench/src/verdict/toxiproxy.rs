//! A network with a narrow place or a long way: Shopify's toxiproxy, a TCP relay that lets so many bytes per second through, or
//! lets answers wait.
//!
//! Built once by `go install` from the Go module proxy, into the target folder; where there is no Go, its case cannot run
//! and says so.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_load::party::{Place, Process, free_address};
use millstream_tests::client::Client;

use crate::product::find;

const MODULE: &str = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0";

pub(super) struct Relay {
    _relay: Process,
    pub(super) address: SocketAddr,
}

pub(super) fn program() -> Result<PathBuf, String> {
    let folder = millstream_tests::target_directory().join("toxiproxy");
    let program = folder.join("server");
    if program.is_file() {
        return Ok(program);
    }
    let go = find("go")
        .or_else(|| Some(PathBuf::from("/usr/local/go/bin/go")).filter(|path| path.is_file()))
        .ok_or("toxiproxy is built with Go, which is not installed: apt-get install golang")?;
    eprintln!("building toxiproxy (once)");
    let status = Command::new(go)
        .args(["install", MODULE])
        .env("GOBIN", &folder)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("go: {error}"))?;
    if status.success() { Ok(program) } else { Err(format!("go install {MODULE} failed")) }
}

/// Limits each connection to so many kilobytes per second towards the client.
pub(super) fn narrow(server: SocketAddr, kilobytes_per_second: u32) -> Result<Relay, String> {
    relay(server, "bandwidth", &format!("\"rate\":{kilobytes_per_second}"))
}

/// Delays every response by so many milliseconds.
pub(super) fn delayed(server: SocketAddr, milliseconds: u32) -> Result<Relay, String> {
    relay(server, "latency", &format!("\"latency\":{milliseconds}"))
}

fn relay(server: SocketAddr, kind: &str, attributes: &str) -> Result<Relay, String> {
    let (control, address) = (free_address(), free_address());
    let (control, address) = (control.map_err(text)?, address.map_err(text)?);
    let mut command = Command::new(program()?);
    command.args(["-host", "127.0.0.1", "-port", &control.port().to_string()]);
    let mut relay = Process::start("toxiproxy", command, Place::new().map_err(text)?).map_err(text)?;
    relay.wait_for(control, Duration::from_secs(10)).map_err(text)?;
    order(
        control,
        "/proxies",
        &format!("{{\"name\":\"api\",\"listen\":\"{address}\",\"upstream\":\"{server}\",\"enabled\":true}}"),
    )?;
    order(
        control,
        "/proxies/api/toxics",
        &format!(
            "{{\"name\":\"way\",\"type\":\"{kind}\",\"stream\":\"downstream\",\"attributes\":{{{attributes}}}}}"
        ),
    )?;
    Ok(Relay { _relay: relay, address })
}

fn order(control: SocketAddr, path: &str, body: &str) -> Result<(), String> {
    let mut client = Client::connect_to(control).map_err(text)?;
    // It refuses what comes from a browser, which it knows by this field.
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {control}\r\nUser-Agent: millstream-bench\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    client.send(request).map_err(text)?;
    let answer = client.answer().map_err(text)?;
    if answer.status < 300 { Ok(()) } else { Err(format!("toxiproxy: {} {}", answer.status, answer.text())) }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
