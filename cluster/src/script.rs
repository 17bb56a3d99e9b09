//! What the engine is asked to do: three scripts, and reading the log.
//!
//! | key of a zone | holds |
//! | --- | --- |
//! | `log` | a stream: entries `<epoch>-<sequence>`, each with one sealed order and the bytes of the log up to it |
//! | `sequence` | the number of the last entry |
//! | `epoch` | see `epoch` |
//! | `nodes` | a hash: issuer → its sealed beat |
//!
//! One more key of the cluster, `proof`, has something sealed, which shows whether the secret is the same.
//!
//! Each script is atomic, so sequence numbers have no gaps: a reader who finds one knows that something was lost. Nothing here decides
//! anything. Next: `member`.

use crate::engine::{CALL, Failure, Line, array, bytes, text};
use crate::epoch::Epoch;
use crate::held::Cursor;
use crate::order::Issuer;
use crate::secret::{Kind, Secret, hexadecimal};
use crate::settings::{LogBounds, Settings};
use redis::{Cmd, Value};
use std::time::Duration;

/// What exceeds the bound of bytes goes, the oldest first. All goes if someone else has written the latest entry or a later id: whoever
/// has not read it knows by the numbers.
const PUBLISH: &str = "\
local epoch, entries, most = redis.call('GET', KEYS[1]), ARGV[2], tonumber(ARGV[3])
if epoch ~= ARGV[1] then return redis.error_reply('STALEEPOCH another epoch has started') end
local function upto(entry) return tonumber(entry[2][4]) or -1 end
local number, last, total = string.match(epoch, '^%d+'), 0, 0
local latest = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
if latest then total = upto(latest) end
if not (total >= 0 and total < 2 ^ 52) then
  redis.call('XTRIM', KEYS[3], 'MAXLEN', 0)
  total = 0
end
for at = 4, #ARGV do
  last = redis.call('INCR', KEYS[2])
  total = total + #ARGV[at] + 64
  local id, size = number .. '-' .. string.format('%.0f', last), string.format('%.0f', total)
  local added = redis.pcall('XADD', KEYS[3], 'MAXLEN', '~', entries, id, 'o', ARGV[at], 'b', size)
  if type(added) == 'table' then
    redis.call('DEL', KEYS[3])
    redis.call('XADD', KEYS[3], id, 'o', ARGV[at], 'b', size)
  end
end
local function is_kept(entry) local size = upto(entry) return size <= total and size + most >= total end
local oldest = redis.call('XRANGE', KEYS[3], '-', '+', 'COUNT', 1)
while oldest[1] and not is_kept(oldest[1]) do
  oldest = redis.call('XRANGE', KEYS[3], '-', '+', 'COUNT', 32)
  local kept = 1
  while kept < #oldest and not is_kept(oldest[kept]) do kept = kept + 1 end
  if kept == 1 then break end
  redis.call('XTRIM', KEYS[3], 'MINID', oldest[kept][1])
end
return last";

const BEAT: &str = "\
if redis.call('HLEN', KEYS[3]) > 1024 then redis.call('DEL', KEYS[3]) end
local before = redis.call('HGET', KEYS[3], ARGV[1]) or ''
redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
return {redis.call('GET', KEYS[1]) or '', redis.call('GET', KEYS[2]) or '0', redis.call('HGETALL', KEYS[3]), before}";

const RAISE: &str = "\
local epoch = redis.call('GET', KEYS[1]) or ''
if epoch ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ':' .. (redis.call('GET', KEYS[2]) or '0'))
return 1";

const FORGET: &str = "\
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0";

/// Entries that are read, and carried out together, at a time: less than a reply may have of the longest.
pub(crate) const PORTION: usize = 256;

/// The code of the error when the epoch is another one.
const STALE: &str = "STALEEPOCH";

/// Fields of the hash of nodes that are looked at; it is not ours alone to write. The script removes more than so many.
const MOST_NODES: usize = 1_025;

/// The keys of one zone.
#[derive(Debug)]
pub(crate) struct Place {
    epoch: String,
    sequence: String,
    log: String,
    nodes: String,
}

/// The engine at one moment.
#[derive(Debug)]
pub(crate) struct Seen {
    /// As it is stored; empty if there is none.
    pub(crate) epoch: String,
    /// Of the last entry of the log.
    pub(crate) head: u64,
    pub(crate) beats: Vec<(Issuer, Vec<u8>)>,
    /// What stood in place of this node's beat; empty if nothing did.
    pub(crate) before: Vec<u8>,
}

impl Seen {
    /// `None` also if a node that followed `known` cannot follow it.
    pub(crate) fn epoch(&self, known: Option<&Epoch>) -> Option<Epoch> {
        Epoch::parse(&self.epoch).filter(|epoch| epoch.is_plausible(known))
    }
}

/// One entry of the log.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) at: Cursor,
    pub(crate) sealed: Vec<u8>,
}

/// How a publication ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// With the number of the last entry; the others have those before it.
    Upto(u64),
    Stale,
}

impl Place {
    pub(crate) fn new(beginning: &str) -> Place {
        let key = |name: &str| format!("{beginning}{name}");
        let [epoch, sequence, log, nodes] = ["epoch", "sequence", "log", "nodes"].map(key);
        Place { epoch, sequence, log, nodes }
    }

    /// Adds sealed orders to the log of an epoch, which is kept within its bounds.
    pub(crate) async fn publish(
        &self,
        line: &mut Line,
        epoch: &Epoch,
        most: LogBounds,
        sealed: &[Vec<u8>],
    ) -> Result<Published, Failure> {
        let mut command = eval(PUBLISH, &[&self.epoch, &self.sequence, &self.log]);
        command.arg(epoch.to_string()).arg(most.entries).arg(most.bytes).arg(sealed);
        match line.call(&command, CALL).await {
            Ok(value) => match u64::try_from(number(value)?) {
                Ok(last) => Ok(Published::Upto(last)),
                Err(_) => Err(Failure::Strange("a negative number")),
            },
            Err(failure) if failure.code() == Some(STALE) => Ok(Published::Stale),
            Err(failure) => Err(failure),
        }
    }

    /// Writes a node's beat and reads where all are.
    pub(crate) async fn beat(&self, line: &mut Line, issuer: Issuer, sealed: &[u8]) -> Result<Seen, Failure> {
        let mut command = eval(BEAT, &[&self.epoch, &self.sequence, &self.nodes]);
        command.arg(issuer.to_string()).arg(sealed);
        let mut parts = array(line.call(&command, CALL).await?)?.into_iter();
        let (Some(epoch), Some(head), Some(nodes), Some(before)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Failure::Strange("malformed heartbeat"));
        };
        let mut fields = array(nodes)?.into_iter();
        let mut beats = Vec::new();
        while let (Some(issuer), Some(sealed)) = (fields.next(), fields.next()) {
            if let Some(issuer) = self::issuer(&bytes(issuer)?)
                && beats.len() < MOST_NODES
            {
                beats.push((issuer, bytes(sealed)?));
            }
        }
        // What is no number is no head that was reached: the epoch is raised.
        let before = bytes(before)?;
        Ok(Seen { epoch: text(epoch)?, head: text(head)?.parse().unwrap_or(0), beats, before })
    }

    /// Begins the next epoch unless another node did; `stored` is the text of the one that it ends.
    pub(crate) async fn raise(&self, line: &mut Line, stored: &str, next: &str) -> Result<(), Failure> {
        let mut command = eval(RAISE, &[&self.epoch, &self.sequence]);
        command.arg(stored).arg(next);
        line.call(&command, CALL).await.map(|_| ())
    }

    /// Entries after the cursor, the oldest first.
    pub(crate) async fn entries(
        &self,
        line: &mut Line,
        after: Cursor,
        most: usize,
    ) -> Result<Vec<Entry>, Failure> {
        let mut command = redis::cmd("XRANGE");
        command.arg(&self.log).arg(format!("({}-{}", after.epoch, after.sequence)).arg("+");
        command.arg("COUNT").arg(most);
        array(line.call(&command, CALL).await?)?.into_iter().map(entry).collect()
    }

    /// Waits at most `within` for an entry after the cursor. Returns whether there is one.
    pub(crate) async fn wait(
        &self,
        line: &mut Line,
        after: Cursor,
        within: Duration,
    ) -> Result<bool, Failure> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(1).arg("BLOCK").arg(within.as_millis() as u64);
        command.arg("STREAMS").arg(&self.log).arg(format!("{}-{}", after.epoch, after.sequence));
        Ok(line.call(&command, within + CALL).await? != Value::Nil)
    }

    /// Removes a node unless it has beaten again.
    pub(crate) async fn forget(&self, line: &mut Line, issuer: Issuer, sealed: &[u8]) -> Result<(), Failure> {
        let mut command = eval(FORGET, &[&self.nodes]);
        command.arg(issuer.to_string()).arg(sealed);
        line.call(&command, CALL).await.map(|_| ())
    }
}

/// Whether the nodes of this cluster have the same secret: what the first one sealed can be opened.
pub(crate) async fn prove(line: &mut Line, settings: &Settings) -> Result<(), Failure> {
    let seal = settings.secret.proof(&settings.cluster).ok_or(Failure::NoRandom)?;
    let sealed = seal.close(Kind::Proof, b"").ok_or(Failure::NoRandom)?;
    let place = Secret::proof_place(&settings.cluster);
    line.call(redis::cmd("SETNX").arg(&place).arg(&sealed), CALL).await?;
    let proof = bytes(line.call(redis::cmd("GET").arg(&place), CALL).await?)?;
    seal.open(Kind::Proof, &proof).map(|_| ()).ok_or(Failure::OtherSecret)
}

pub(crate) fn eval(script: &str, keys: &[&str]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(keys.len()).arg(keys);
    command
}

pub(crate) fn number(value: Value) -> Result<i64, Failure> {
    match value {
        Value::Int(number) => Ok(number),
        _ => Err(Failure::Strange("not a number")),
    }
}

/// One that is written otherwise than ours has nothing sealed in it.
fn entry(value: Value) -> Result<Entry, Failure> {
    let mut parts = array(value)?.into_iter();
    let (Some(id), Some(fields)) = (parts.next(), parts.next()) else {
        return Err(Failure::Strange("malformed log entry"));
    };
    let id = text(id)?;
    let parsed =
        id.split_once('-').and_then(|(epoch, sequence)| Some((epoch.parse().ok()?, sequence.parse().ok()?)));
    let (epoch, sequence) = parsed.ok_or(Failure::Strange("malformed ID of a log entry"))?;
    let sealed = array(fields)?.into_iter().nth(1).map(bytes).transpose()?.unwrap_or_default();
    Ok(Entry { at: Cursor { epoch, sequence }, sealed })
}

fn issuer(text: &[u8]) -> Option<Issuer> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.len() == 32 && text.is_ascii())?;
    let mut issuer = [0; 16];
    for (at, byte) in issuer.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    (hexadecimal(&issuer).as_bytes() == text).then_some(Issuer(issuer))
}
