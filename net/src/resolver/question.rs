//! What name servers answer about a name: its addresses of all kinds that are wanted, or the other name that it has.
//!
//! All kinds are asked for at once. Before: `resolver`, which follows other names and keeps what was answered.

use super::exchange::exchange;
use super::{ATTEMPTS, Found, NOTHING, RESEND, ResolveError, Resolver, Told, refusal};
use crate::clock;
use crate::timer::{Deadline, with_deadline};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::{Name, RData, RecordType};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct Heard {
    addresses: Vec<IpAddr>,
    alias: Option<Arc<str>>,
    /// The shortest lifetime of a record.
    least: Option<Duration>,
}

impl Resolver {
    pub(super) async fn ask(&self, host: &str) -> Result<Told, ResolveError> {
        let name = Name::from_ascii(format!("{host}.")).map_err(|_| ResolveError::NoName)?;
        let ask = |kind: RecordType| {
            let asked = self.ask_for(name.clone(), kind);
            async move { (kind, asked.await) }
        };
        let mut asked: FuturesUnordered<_> = self.types.iter().copied().map(ask).collect();
        let (mut heard, mut failure) = (Heard::default(), None);
        while let Some((kind, answer)) = asked.next().await {
            heard.alias = None;
            match answer {
                Ok(answer) => heard.take(kind, &answer),
                Err(error) => failure = Some(error),
            }
        }
        // As in nginx, half an answer is none: it would take away addresses that are still good.
        failure.map_or_else(|| Ok(heard.told(self.valid)), Err)
    }

    /// Asks for records of one kind until there is a response, each time of the next server; aliases are not
    /// followed. A name that does not exist has none.
    pub(super) async fn ask_for(&self, name: Name, kind: RecordType) -> Result<Message, ResolveError> {
        let question = Query::query(name, kind);
        let (mut failure, mut deadline) = (ResolveError::TimedOut, Deadline::new());
        for _ in 0..ATTEMPTS {
            let turn = self.server_turn.fetch_add(1, Ordering::Relaxed);
            let Some(server) = self.servers.get(turn % self.servers.len().max(1)) else { break };
            deadline.set(clock::now() + RESEND);
            failure = match with_deadline(&mut deadline, exchange(*server, &question)).await {
                Ok(Ok(mut answer)) => match answer.metadata.response_code {
                    ResponseCode::NoError => return Ok(answer),
                    ResponseCode::NXDomain => {
                        answer.answers.clear();
                        return Ok(answer);
                    }
                    // A server that takes the question for none may stand beside one that knows the answer.
                    code @ ResponseCode::FormErr => refusal(code),
                    code => return Err(refusal(code)),
                },
                Ok(Err(error)) => ResolveError::Refused(error.to_string()),
                Err(_) => ResolveError::TimedOut,
            };
        }
        Err(failure)
    }

    /// The addresses of `localhost` and of all names below it (RFC 6761 §6.3).
    pub(super) fn this_machine(&self) -> Found {
        let address = |kind: &RecordType| match kind {
            RecordType::A => IpAddr::V4(Ipv4Addr::LOCALHOST),
            _ => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        Found { addresses: self.types.iter().map(address).collect(), until: clock::now() + NOTHING }
    }
}

impl Heard {
    fn take(&mut self, kind: RecordType, answer: &Message) {
        for record in &answer.answers {
            let ttl = Duration::from_secs(u64::from(record.ttl));
            self.least = Some(self.least.map_or(ttl, |least| least.min(ttl)));
            let address = match (&record.data, kind) {
                (RData::A(address), RecordType::A) => IpAddr::V4(address.0),
                (RData::AAAA(address), RecordType::AAAA) => IpAddr::V6(address.0),
                (RData::CNAME(CNAME(name)), _) => {
                    self.alias = Some(name.to_ascii().trim_end_matches('.').to_ascii_lowercase().into());
                    continue;
                }
                _ => continue,
            };
            if !self.addresses.contains(&address) {
                self.addresses.push(address);
            }
        }
    }

    /// As in nginx, a name whose last response names no other has none.
    fn told(mut self, valid: Option<Duration>) -> Told {
        let until: Instant = clock::now() + valid.or(self.least).unwrap_or(NOTHING);
        match self.alias {
            Some(alias) if self.addresses.is_empty() && !alias.is_empty() => Told::Alias(alias, until),
            _ => {
                // IPv4 first, in whichever order the answers came.
                self.addresses.sort_by_key(IpAddr::is_ipv6);
                Told::Addresses(Arc::new(Found { addresses: self.addresses, until }))
            }
        }
    }
}
