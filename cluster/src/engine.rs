//! Connections to the engine: a Redis or Valkey primary, named directly or by Sentinel.
//!
//! Every call has a deadline of its own, because a lost connection may never answer. A connection is to a primary, and knows the id of
//! its replication history: another id means that orders may have been lost. Next: `script`, what is called.

use crate::metered::{Allowance, Metered};
use crate::settings::{EngineSettings, Sentinel};
use millstream_conf::model::{HostPort, PeerAddress};
use millstream_net::address::Address;
use millstream_net::connect::connect;
use millstream_net::resolve::resolve;
use millstream_net::stream::Stream;
use millstream_net::timer::within;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisConnectionInfo, RedisError, Value};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Longest wait for a connection, and for the answer to a call that no request waits for.
pub(crate) const CALL: Duration = Duration::from_secs(1);

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    Connect(io::Error),
    Elapsed,
    /// The engine answers with an error.
    Refused(RedisError),
    Broken(RedisError),
    /// What the engine answers is not what its scripts return.
    Strange(&'static str),
    NoPrimary,
    OtherSecret,
    /// Another process beats as this node.
    Twin,
    /// The system gives no random bytes.
    NoRandom,
    /// The task that waits for entries of the log is gone.
    BellEnded,
    Journal(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect(error) => write!(f, "cannot connect: {error}"),
            Failure::Elapsed => f.write_str("the engine timed out"),
            Failure::Refused(error) => write!(f, "the engine returned an error: {error}"),
            Failure::Broken(error) => write!(f, "connection lost: {error}"),
            Failure::Strange(what) => write!(f, "unexpected reply from the engine: {what}"),
            Failure::NoPrimary => f.write_str("none of the servers is a primary"),
            Failure::OtherSecret => f.write_str(
                "the other nodes have a different secret; use the same \"secret\" file on every node",
            ),
            Failure::Twin => f.write_str(
                "another node uses a copy of this node's cache directory; this node takes a new identity, and the zone is purged on all nodes. \
                Do not copy cache directories between nodes",
            ),
            Failure::NoRandom => f.write_str("the system has no random bytes"),
            Failure::BellEnded => f.write_str("internal error: the notification task ended"),
            Failure::Journal(error) => write!(f, "the journal cannot be written: {error}"),
        }
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::AuthenticationFailed => {
                Failure::Refused(error)
            }
            _ => Failure::Broken(error),
        }
    }
}

impl Failure {
    /// The code of the engine's error, such as `NOAUTH`.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Failure::Refused(error) => error.code(),
            _ => None,
        }
    }
}

/// Calls over a connection that someone else holds, many at a time.
#[derive(Clone)]
pub(crate) struct Caller(MultiplexedConnection, Allowance);

impl Caller {
    pub(crate) async fn call(&mut self, command: &Cmd, within: Duration) -> Result<Value, Failure> {
        self.1.renew();
        let value = bounded(within, self.0.send_packed_command(command)).await??;
        match value {
            Value::ServerError(error) => Err(RedisError::from(error).into()),
            value => Ok(value),
        }
    }
}

/// One connection; dropped, it is closed.
pub(crate) struct Line {
    caller: Caller,
    driver: JoinHandle<()>,
    /// Of the primary.
    pub(crate) replication: String,
    /// What it does when its memory is full.
    pub(crate) policy: String,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({})", self.replication)
    }
}

impl Line {
    pub(crate) async fn call(&mut self, command: &Cmd, within: Duration) -> Result<Value, Failure> {
        self.caller.call(command, within).await
    }

    /// Whether a reply was too long.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.caller.1.is_exhausted()
    }

    pub(crate) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    async fn open(stream: Stream, settings: &EngineSettings) -> Result<Line, Failure> {
        let mut info = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(user) = &settings.user {
            info = info.set_username(user);
        }
        if let Some(password) = &settings.password {
            info = info.set_password(password);
        }
        // The deadline is ours.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let (stream, allowance) = Metered::new(stream);
        let (connection, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
        let driver = tokio::spawn(driver);
        Ok(Line {
            caller: Caller(connection, allowance),
            driver,
            replication: String::new(),
            policy: String::new(),
        })
    }

    /// Whether it leads to a primary; notes the id of its history and its policy.
    async fn meet(&mut self) -> Result<bool, Failure> {
        let info = text(self.call(redis::cmd("INFO").arg("replication").arg("memory"), CALL).await?)?;
        let field = |name: &str| {
            let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.map(str::trim)
        };
        field("master_replid").unwrap_or_default().clone_into(&mut self.replication);
        field("maxmemory_policy").unwrap_or_default().clone_into(&mut self.policy);
        Ok(field("role") == Some("master"))
    }
}

/// A new connection to the primary.
pub(crate) async fn open(settings: &EngineSettings) -> Result<Line, Failure> {
    let asked;
    let servers = match &settings.sentinel {
        Some(sentinel) => {
            asked = ask(sentinel, settings).await?;
            &asked
        }
        None => &settings.servers,
    };
    let mut failed = None;
    for server in servers {
        match to(server, settings).await {
            Ok(mut line) => match line.meet().await {
                Ok(true) => return Ok(line),
                Ok(false) => failed = failed.or(Some(Failure::NoPrimary)),
                Err(failure) => failed = Some(failure),
            },
            Err(failure) => failed = Some(failure),
        }
    }
    Err(failed.unwrap_or(Failure::NoPrimary))
}

async fn to(server: &PeerAddress, settings: &EngineSettings) -> Result<Line, Failure> {
    bounded(CALL, async {
        let addresses = match Address::of_peer(server) {
            Some(address) => vec![address],
            None => addresses(server).await.map_err(Failure::Connect)?,
        };
        let mut failed = Failure::NoPrimary;
        for address in addresses {
            match reach(&address, server, settings).await {
                Ok(stream) => return Line::open(stream, settings).await,
                Err(error) => {
                    failed = Failure::Connect(io::Error::new(error.kind(), format!("{address}: {error}")));
                }
            }
        }
        Err(failed)
    })
    .await?
}

async fn addresses(server: &PeerAddress) -> io::Result<Vec<Address>> {
    match server {
        PeerAddress::Name(name) => Ok(resolve(name).await?.into_iter().map(Address::Tcp).collect()),
        _ => Ok(Vec::new()),
    }
}

async fn reach(address: &Address, server: &PeerAddress, settings: &EngineSettings) -> io::Result<Stream> {
    let stream = connect(address, None).await?;
    let Some(tls) = &settings.tls else { return Ok(stream) };
    let name = match server {
        PeerAddress::Name(name) => name.host.clone(),
        _ => address.host_text().into(),
    };
    tls.connect(stream, &name).await
}

/// Which server the sentinels take for the primary.
async fn ask(sentinel: &Sentinel, settings: &EngineSettings) -> Result<Vec<PeerAddress>, Failure> {
    let plain = EngineSettings { user: None, password: None, ..settings.clone() };
    let mut failed = Failure::NoPrimary;
    for server in &sentinel.servers {
        let mut line = match to(server, &plain).await {
            Ok(line) => line,
            Err(failure) => {
                failed = failure;
                continue;
            }
        };
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(&sentinel.name);
        match line.call(&command, CALL).await {
            Ok(Value::Array(parts)) if parts.len() == 2 => {
                let mut parts = parts.into_iter().map(text);
                if let (Some(Ok(host)), Some(Ok(port))) = (parts.next(), parts.next())
                    && let Ok(port) = port.parse()
                {
                    let address =
                        host.parse::<IpAddr>().map(|ip| PeerAddress::Tcp(SocketAddr::new(ip, port)));
                    return Ok(vec![address.unwrap_or(PeerAddress::Name(HostPort { host, port }))]);
                }
            }
            Ok(_) => failed = Failure::NoPrimary,
            Err(failure) => failed = failure,
        }
    }
    Err(failed)
}

async fn bounded<F: Future>(wait: Duration, future: F) -> Result<F::Output, Failure> {
    within(wait, future).await.map_err(|_| Failure::Elapsed)
}

pub(crate) fn text(value: Value) -> Result<String, Failure> {
    let bytes = bytes(value)?;
    String::from_utf8(bytes).map_err(|_| Failure::Strange("not a text"))
}

pub(crate) fn bytes(value: Value) -> Result<Vec<u8>, Failure> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text.into_bytes()),
        Value::Int(number) => Ok(number.to_string().into_bytes()),
        _ => Err(Failure::Strange("not a text")),
    }
}

pub(crate) fn array(value: Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::Array(values) => Ok(values),
        Value::Map(pairs) => Ok(pairs.into_iter().flat_map(|(name, value)| [name, value]).collect()),
        Value::Nil => Ok(Vec::new()),
        _ => Err(Failure::Strange("not a list")),
    }
}
