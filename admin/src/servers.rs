//! The servers of a group, changed while it works, as NGINX Plus's API has it: POST adds one, PATCH changes it, DELETE takes it away.
//!
//! Only a group with a `zone` is changed, as in NGINX Plus. All of a body is checked before anything happens, a name is looked up
//! once, and the disk is waited for off the loop. Who may is decided before. Next: `millstream-upstream`'s `group/editing`.

use crate::refusal::{ApiRefusal, refuse};
use crate::status::upstreams::{configured, configured_one, no_server};
use millstream_conf::address::PeerAddress;
use millstream_conf::model::Level;
use millstream_conf::value;
use millstream_net::address::Address;
use millstream_net::{blocking, clock, resolve};
use millstream_server::client::Client;
use millstream_server::content::fixed;
use millstream_server::content::purge::json;
use millstream_server::generation::Shared;
use millstream_server::outcome::Outcome;
use millstream_server::request::Request;
use millstream_upstream::standing::Parameters;
use millstream_upstream::{Edit, Group, MOST_SERVERS, NotEdited, PeerAccount, Server, ServerChange};
use millstream_wire::{Headers, Method};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A DNS name has up to 253 bytes, the path of a Unix socket 107.
const LONGEST_ADDRESS: usize = 300;
/// nginx's bound.
const LONGEST_ROUTE: usize = 32;
const MOST_WEIGHT: i64 = 1_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerFields {
    server: Option<String>,
    weight: Option<i64>,
    max_conns: Option<u32>,
    max_fails: Option<u32>,
    fail_timeout: Option<String>,
    slow_start: Option<String>,
    route: Option<String>,
    backup: Option<bool>,
    down: Option<bool>,
    drain: Option<bool>,
}

enum Edited {
    Added(u64, Value),
    Changed(Value),
    Removed(Value),
}

pub(crate) async fn answer(
    request: &mut Request,
    client: &mut Client,
    (method, path, body): (Method, &[String], &[u8]),
) -> Outcome {
    match change(&request.generation.shared.clone(), method, path, body).await {
        Ok(Edited::Added(id, told)) => {
            let sent = request.request_uri().split(|&byte| byte == b'?').next().unwrap_or_default();
            let sent = sent.strip_suffix(b"/").unwrap_or(sent);
            let place = [sent, b"/", id.to_string().as_bytes(), b"/"].concat();
            let mut headers = Headers::default();
            headers.push(b"Content-Type", b"application/json");
            headers.push(b"Cache-Control", b"no-store");
            headers.push(b"Location", &place);
            fixed::whole(request, client, 201, &headers, format!("{told}\n").as_bytes()).await
        }
        Ok(Edited::Changed(told) | Edited::Removed(told)) => json(request, client, 200, &told).await,
        Err(refusal) => refuse(request, client, refusal).await,
    }
}

async fn change(shared: &Shared, method: Method, path: &[String], body: &[u8]) -> Result<Edited, ApiRefusal> {
    let [upstream, _, which @ ..] = path else { return Err(malformed("path not found")) };
    let group = &group(shared, upstream)?;
    let said = |server: fmt::Arguments<'_>, what: &str| {
        shared
            .logs
            .main
            .write(Level::Notice, format_args!("API: {server} of upstream \"{upstream}\" was {what}"));
    };
    match (method, which) {
        (Method::Post, []) => {
            let server = ServerFields::read(body)?.server().await?;
            let name = server.name.clone();
            let ids = edit(group, Edit::Add(server), "").await?;
            let id = ids.first().copied().unwrap_or_default();
            said(format_args!("server \"{name}\""), "added");
            Ok(Edited::Added(id, configured_one(group.latest(), id).unwrap_or_default()))
        }
        (Method::Patch, [id]) => {
            let fields = ServerFields::read(body)?;
            let number = number(upstream, id)?;
            let known = group.in_force().accounts(clock::now()).find(|account| account.id == number);
            let change = fields.change(&known.ok_or_else(|| no_server(upstream, id))?)?;
            let ids = edit(group, Edit::Change(number, change), id).await?;
            said(format_args!("server {id}"), "changed");
            // It has another number where a reload came in between.
            let now = ids.iter().find(|id| **id == number).or(ids.first()).copied().unwrap_or(number);
            let told = configured_one(group.latest(), now);
            Ok(Edited::Changed(told.ok_or_else(|| no_server(upstream, id))?))
        }
        (Method::Delete, [id]) => {
            edit(group, Edit::Remove(number(upstream, id)?), id).await?;
            said(format_args!("server {id}"), "removed");
            Ok(Edited::Removed(configured(group.latest())))
        }
        _ => Err(ApiRefusal::new(405, "MethodNotSupported", "this path does not support the method")),
    }
}

/// Fails if it may not be changed, or a reload this worker has not seen yet replaced it.
fn group(shared: &Shared, name: &str) -> Result<Arc<Group>, ApiRefusal> {
    let found = shared.groups.iter().zip(&shared.configuration.http.upstreams);
    match found.into_iter().find(|(group, _)| group.name() == name) {
        None => Err(ApiRefusal::new(404, "UpstreamNotFound", format!("upstream \"{name}\" not found"))),
        Some((_, conf)) if conf.zone.is_none() => {
            let text = format!("upstream \"{name}\" has no zone: add \"zone {name} 64k;\" to it");
            Err(ApiRefusal::new(400, "UpstreamStatic", text))
        }
        Some((group, _)) => Ok(group.latest().clone()),
    }
}

fn number(upstream: &str, id: &str) -> Result<u64, ApiRefusal> {
    id.parse().map_err(|_| no_server(upstream, id))
}

/// Off the loop, as it may wait for the disk.
async fn edit(group: &Arc<Group>, edit: Edit, id: &str) -> Result<Vec<u64>, ApiRefusal> {
    let editing = group.clone();
    let done = blocking::run(move || editing.edit(&edit)).await;
    done.map_err(|error| match error {
        NotEdited::NoServer => no_server(group.name(), id),
        NotEdited::TooMany => {
            let text =
                format!("upstream \"{}\" already has {MOST_SERVERS} servers, the most allowed", group.name());
            ApiRefusal::new(400, "UpstreamTooManyServers", text)
        }
        NotEdited::Unwritten(error) => {
            let text = format!("nothing was changed: the state file could not be written: {error}");
            ApiRefusal::new(500, "StateUnwritten", text)
        }
    })
}

fn malformed(text: impl fmt::Display) -> ApiRefusal {
    ApiRefusal::new(400, "UpstreamConfFormatError", text.to_string())
}

impl ServerFields {
    fn read(body: &[u8]) -> Result<ServerFields, ApiRefusal> {
        serde_json::from_slice(body).map_err(malformed)
    }

    async fn server(self) -> Result<Server, ApiRefusal> {
        let bad = |text: String| ApiRefusal::new(400, "UpstreamBadAddress", text);
        let name = self
            .server
            .clone()
            .ok_or_else(|| malformed("missing \"server\": write \"server\": \"host:port\""))?;
        // What is written to a state file has to be one word there.
        let is_word =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b";{}\"'\\$#".contains(&byte));
        let address = Some(&name).filter(|name| name.len() <= LONGEST_ADDRESS && is_word(name));
        let address = address.and_then(|name| PeerAddress::parse(name, 80));
        let address = address.ok_or_else(|| {
            bad(format!("invalid server \"{name}\": write host:port, an address or unix:/path"))
        })?;
        let change = self.change_of()?;
        let addresses = match &address {
            PeerAddress::Name(host) => {
                let found = resolve::resolve(host).await;
                let found =
                    found.map_err(|error| bad(format!("host \"{}\" not found: {error}", host.host)))?;
                found.into_iter().map(Address::Tcp).collect()
            }
            known => Address::of_peer(known).into_iter().collect(),
        };
        let parameters = Parameters {
            weight: change.weight.unwrap_or(1),
            max_fails: change.max_fails.unwrap_or(1),
            fail_timeout: change.fail_timeout.unwrap_or(Duration::from_secs(10)),
            down: change.down.unwrap_or_default(),
            drain: change.drain.unwrap_or_default() && !change.down.unwrap_or_default(),
            slow_start: change.slow_start.unwrap_or_default(),
            max_conns: change.max_conns.unwrap_or_default(),
        };
        let route = self.route.filter(|route| !route.is_empty()).map(Arc::from);
        let backup = self.backup.unwrap_or_default();
        Ok(Server { name: name.into(), parameters, route, backup, addresses, service: None, kept: true })
    }

    /// Clients send back what they read, so unchanged fields are allowed.
    fn change(self, known: &PeerAccount) -> Result<ServerChange, ApiRefusal> {
        let stays = self.server.as_ref().is_none_or(|name| **name == *known.server || **name == *known.name)
            && self.backup.is_none_or(|backup| backup == known.backup);
        match stays {
            true => self.change_of(),
            false => Err(malformed(
                "\"server\" and \"backup\" cannot be changed: add another server and remove this one",
            )),
        }
    }

    fn change_of(&self) -> Result<ServerChange, ApiRefusal> {
        let time = |text: &Option<String>, name: &str| match text {
            None => Ok(None),
            Some(text) => value::duration(text).map(Some).map_err(|_| {
                malformed(format_args!("invalid time in \"{name}\": write a time such as \"10s\""))
            }),
        };
        if self.weight.is_some_and(|weight| !(1..=MOST_WEIGHT).contains(&weight)) {
            return Err(malformed(format_args!("\"weight\" must be between 1 and {MOST_WEIGHT}")));
        }
        if self.down == Some(true) && self.drain == Some(true) {
            return Err(malformed("a server cannot have both \"down\" and \"drain\""));
        }
        let is_route = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if self
            .route
            .as_ref()
            .is_some_and(|route| route.len() > LONGEST_ROUTE || !route.bytes().all(is_route))
        {
            return Err(malformed("\"route\" must be at most 32 letters, digits, and - . _ ~"));
        }
        Ok(ServerChange {
            weight: self.weight,
            max_fails: self.max_fails,
            fail_timeout: time(&self.fail_timeout, "fail_timeout")?,
            max_conns: self.max_conns,
            slow_start: time(&self.slow_start, "slow_start")?,
            route: self.route.clone(),
            down: self.down,
            drain: self.drain,
        })
    }
}
