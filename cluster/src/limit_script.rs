//! What the engine is asked to do for limits: to pass on what nodes have counted, and to decide about requests by its own clock.
//!
//! | key of a zone | holds |
//! | --- | --- |
//! | `usage` | a stream: what each node has counted, sealed, of the last seconds |
//! | a hash of a key of `limit_req` | its excess, and when it was counted |
//! | a hash of a key of `limit_conn` | a hash: node → requests under way, and until when that counts |
//!
//! Each expires by itself. Nothing here decides anything. Next: `ledger` and `limiter`.

use crate::engine::{CALL, Caller, Failure, array, bytes, text};
use crate::limit_door::RequestVerdict;
use crate::script::{eval, number};
use crate::secret::KeyHash;
use redis::Value;

/// Entries of a stream read at a time.
pub(crate) const MOST_ENTRIES: usize = 64;

/// A script that knows the engine's time, in milliseconds since 1970.
macro_rules! timed {
    ($script:literal) => {
        concat!(
            "local time = redis.call('TIME')\n",
            "local now = time[1] * 1000 + math.floor(time[2] / 1000)\n",
            $script
        )
    };
}

/// Where the stream has an id of the future, from another clock or from someone else, it begins anew.
const EXCHANGE: &str = timed!(
    "\
if ARGV[2] ~= '' then
  local id, oldest = string.format('%.0f-*', now), string.format('%.0f', now - 5000)
  local added = redis.pcall('XADD', KEYS[1], 'MINID', oldest, id, 'u', ARGV[2])
  if type(added) == 'table' then
    redis.call('DEL', KEYS[1])
    redis.call('XADD', KEYS[1], id, 'u', ARGV[2])
  end
  redis.call('PEXPIRE', KEYS[1], 15000)
end
return {string.format('%.0f', now), redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[3])}"
);

/// The arithmetic of `limit_req`, for all zones of a request: it is counted in all or in none. A key is forgotten when it has no
/// excess left, or after a day.
const ASK: &str = timed!(
    "\
local counted, excesses = {}, {1}
for at = 1, #KEYS do
  local rate, burst = tonumber(ARGV[2 * at - 1]), tonumber(ARGV[2 * at])
  local excess, last = string.match(redis.call('GET', KEYS[at]) or '', '^(%d+) (%d+)$')
  if excess then
    local passed = now - last
    if passed > 0 then last = now elseif passed < 0 then passed, last = 0, now end
    excess = math.max(0, excess - math.floor(rate * passed / 1000) + 1000)
    if excess > burst then return {0, at, excess} end
  else
    excess, last = 0, now
  end
  counted[at], excesses[at + 1] = string.format('%.0f %.0f', excess, last), excess
end
for at = 1, #KEYS do
  local left = math.ceil((excesses[at + 1] + 1000) * 1000 / ARGV[2 * at - 1]) + 1000
  redis.call('SET', KEYS[at], counted[at], 'PX', string.format('%.0f', math.min(left, 86400000)))
end
return excesses"
);

/// A count that its node has not renewed in time, or that the clock of another engine has dated, does not count.
const BEGIN: &str = timed!(
    "\
local all, sum, own = redis.call('HGETALL', KEYS[1]), 0, 0
for at = 1, #all, 2 do
  local count, till = string.match(all[at + 1], '^(%d+) (%d+)$')
  if not count or tonumber(till) < now or tonumber(till) > now + ARGV[3] then
    redis.call('HDEL', KEYS[1], all[at])
  else
    sum = sum + count
    if all[at] == ARGV[1] then own = tonumber(count) end
  end
end
if sum >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %.0f', own + 1, now + ARGV[3]))
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[3])
return 1"
);

const END: &str = timed!(
    "\
local count, till = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+) (%d+)$')
if not count then return 0 end
if tonumber(count) > 1 then
  return redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', count - 1) .. till)
end
return redis.call('HDEL', KEYS[1], ARGV[1])"
);

const RENEW: &str = timed!(
    "\
for at = 1, #KEYS do
  redis.call('HSET', KEYS[at], ARGV[1], ARGV[at + 2] .. string.format(' %.0f', now + ARGV[2]))
  redis.call('PEXPIRE', KEYS[at], 2 * ARGV[2])
end
return 1"
);

/// Milliseconds for which the count of a node lasts without being renewed.
pub(crate) const LEASE: u64 = 6000;

/// What came back from an exchange.
#[derive(Debug)]
pub(crate) struct Exchanged {
    /// Milliseconds since 1970 by the engine's clock.
    pub(crate) now: u64,
    pub(crate) entries: Vec<UsageEntry>,
}

#[derive(Debug)]
pub(crate) struct UsageEntry {
    pub(crate) id: String,
    pub(crate) sealed: Vec<u8>,
}

impl UsageEntry {
    /// Milliseconds since 1970 by the engine's clock.
    pub(crate) fn at(&self) -> u64 {
        self.id.split('-').next().and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// Adds what a node has counted, if anything, and reads the entries after one.
pub(crate) async fn exchange(
    caller: &mut Caller,
    stream: &str,
    after: &str,
    sealed: Option<&[u8]>,
) -> Result<Exchanged, Failure> {
    let mut command = eval(EXCHANGE, &[stream]);
    command.arg(after).arg(sealed.unwrap_or_default()).arg(MOST_ENTRIES);
    let mut parts = array(caller.call(&command, CALL).await?)?.into_iter();
    let (Some(now), Some(entries)) = (parts.next(), parts.next()) else {
        return Err(Failure::Strange("malformed exchange of counts"));
    };
    let now = text(now)?.parse().map_err(|_| Failure::Strange("not a number"))?;
    Ok(Exchanged { now, entries: array(entries)?.into_iter().map(entry).collect::<Result<_, _>>()? })
}

fn entry(value: Value) -> Result<UsageEntry, Failure> {
    let mut parts = array(value)?.into_iter();
    let (Some(id), Some(fields)) = (parts.next(), parts.next()) else {
        return Err(Failure::Strange("malformed counts"));
    };
    let sealed = array(fields)?.into_iter().nth(1).map(bytes).transpose()?.unwrap_or_default();
    Ok(UsageEntry { id: text(id)?, sealed })
}

/// For each zone its key, rate and burst.
pub(crate) async fn ask(
    caller: &mut Caller,
    asked: &[(String, u64, u64)],
) -> Result<RequestVerdict, Failure> {
    let keys: Vec<&str> = asked.iter().map(|(key, ..)| key.as_str()).collect();
    let mut command = eval(ASK, &keys);
    for (_, rate, burst) in asked {
        command.arg(rate).arg(burst);
    }
    let numbers: Vec<i64> =
        array(caller.call(&command, CALL).await?)?.into_iter().map(number).collect::<Result<_, _>>()?;
    match numbers.as_slice() {
        [1, excesses @ ..] if excesses.len() == asked.len() => Ok(RequestVerdict::Counted(excesses.to_vec())),
        [0, at, excess] if (1..=asked.len() as i64).contains(at) => {
            Ok(RequestVerdict::TooMuch { at: *at as usize - 1, excess: *excess })
        }
        _ => Err(Failure::Strange("malformed decision")),
    }
}

pub(crate) async fn begin(caller: &mut Caller, key: &str, node: &str, most: u32) -> Result<bool, Failure> {
    let mut command = eval(BEGIN, &[key]);
    command.arg(node).arg(most).arg(LEASE);
    Ok(number(caller.call(&command, CALL).await?)? == 1)
}

pub(crate) async fn end(caller: &mut Caller, key: &str, node: &str) -> Result<(), Failure> {
    let mut command = eval(END, &[key]);
    command.arg(node);
    caller.call(&command, CALL).await.map(|_| ())
}

/// Writes how many are under way on a node.
pub(crate) async fn renew(
    caller: &mut Caller,
    node: &str,
    counts: &[(KeyHash, u32)],
    key: impl Fn(&KeyHash) -> String,
) -> Result<(), Failure> {
    let keys: Vec<String> = counts.iter().map(|(hash, _)| key(hash)).collect();
    let mut command = eval(RENEW, &keys.iter().map(String::as_str).collect::<Vec<_>>());
    command.arg(node).arg(LEASE);
    for (_, count) in counts {
        command.arg(count);
    }
    caller.call(&command, CALL).await.map(|_| ())
}
