//! Where a service is offered, as name servers report it (SRV, RFC 2782), with the addresses of each target.
//!
//! Records are asked for each time; their targets are names like any other, and aliases are followed. Before: `resolver`.

use super::{NOTHING, ResolveError, Resolver};
use crate::clock;
use crate::timer::within;
use hickory_proto::rr::rdata::{CNAME, SRV};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Records that are used: a response over TCP can contain thousands.
const MOST_RECORDS: usize = 256;
/// CNAMEs followed from the name of a service to its records.
const MOST_ALIASES: usize = 8;

#[derive(Debug)]
pub struct FoundService {
    /// By priority, and always in the same order; empty if the service does not exist.
    pub records: Vec<SrvRecord>,
    pub until: Instant,
}

#[derive(Debug)]
pub struct SrvRecord {
    /// Those of the lowest priority are used first.
    pub priority: u16,
    /// Its share among those of its priority; at least 1.
    pub weight: u16,
    pub port: u16,
    /// Without a final dot.
    pub target: String,
    /// In order; empty if it has none.
    pub addresses: Result<Vec<IpAddr>, ResolveError>,
}

/// The records, and how long the first of them to expire is valid.
type Answered = (Vec<SRV>, Option<Duration>);

impl Resolver {
    /// The service's records, and then all targets at once, may each take as long as `timeout`. Fails if the
    /// first does, or if no target has an address and a look-up failed.
    pub async fn resolve_service(
        self: &Arc<Self>,
        service: &str,
        host: &str,
        timeout: Duration,
    ) -> Result<FoundService, ResolveError> {
        self.look_ups.ask_service();
        let answered = within(timeout, self.ask_service(service, host)).await;
        let answered = answered.unwrap_or(Err(ResolveError::TimedOut));
        self.look_ups.settle(answered.as_ref().map(|(records, _)| !records.is_empty()));
        let (records, least) = answered?;
        let mut until = clock::now() + self.valid.or(least).unwrap_or(NOTHING);
        let asked: Vec<_> = records
            .into_iter()
            .map(|record| {
                let (resolver, target) = (self.clone(), record.target.to_ascii());
                (record, tokio::spawn(async move { resolver.resolve(&target, timeout).await }))
            })
            .collect();
        let mut records = Vec::with_capacity(asked.len());
        for (SRV { priority, weight, port, target, .. }, asked) in asked {
            let found = asked.await.unwrap_or_else(|error| Err(ResolveError::Refused(error.to_string())));
            let addresses = found.map(|found| {
                until = until.min(found.until);
                let mut addresses = found.addresses.clone();
                addresses.sort_unstable();
                addresses
            });
            let target = target.to_ascii().trim_end_matches('.').to_owned();
            records.push(SrvRecord { priority, weight: weight.max(1), port, target, addresses });
        }
        let has_any =
            records.iter().any(|record| matches!(&record.addresses, Ok(found) if !found.is_empty()));
        match records.iter().find_map(|record| record.addresses.as_ref().err()) {
            Some(failure) if !has_any => Err(failure.clone()),
            _ => Ok(FoundService { records, until }),
        }
    }

    async fn ask_service(&self, service: &str, host: &str) -> Result<Answered, ResolveError> {
        let mut name = Name::from_ascii(full_name(service, host)).map_err(|_| ResolveError::NoName)?;
        let mut least = None;
        for _ in 0..=MOST_ALIASES {
            let answer = self.ask_for(name, RecordType::SRV).await?;
            let ttl = answer.answers.iter().map(|record| Duration::from_secs(record.ttl.into())).min();
            least = least.into_iter().chain(ttl).min();
            match records_or_alias(&answer.answers) {
                Ok(records) => return Ok((records, least)),
                Err(alias) => name = alias,
            }
        }
        Ok((Vec::new(), None))
    }
}

/// A service without a dot is one over TCP.
fn full_name(service: &str, host: &str) -> String {
    let host = host.trim_end_matches('.');
    if service.contains('.') { format!("{service}.{host}.") } else { format!("_{service}._tcp.{host}.") }
}

/// In an order that name servers do not change; the error is the alias.
fn records_or_alias(answers: &[Record]) -> Result<Vec<SRV>, Name> {
    let (mut records, mut alias) = (Vec::new(), None);
    for answer in answers {
        match &answer.data {
            // The root as the target: the service is not offered (RFC 2782).
            RData::SRV(record) if !record.target.is_root() && records.len() < MOST_RECORDS => {
                records.push(record.clone());
            }
            RData::CNAME(CNAME(name)) => alias = Some(name.clone()),
            _ => {}
        }
    }
    fn key(record: &SRV) -> (u16, &Name, u16, u16) {
        (record.priority, &record.target, record.port, record.weight)
    }
    records.sort_by(|one, other| key(one).cmp(&key(other)));
    alias.filter(|_| records.is_empty()).map_or(Ok(records), Err)
}

#[cfg(test)]
mod tests {
    use super::{MOST_RECORDS, full_name, records_or_alias};
    use hickory_proto::rr::rdata::{CNAME, SRV};
    use hickory_proto::rr::{Name, RData, Record};

    fn answer(data: RData) -> Record {
        Record::from_rdata(name("_http._tcp.example.net."), 60, data)
    }

    fn name(text: &str) -> Name {
        Name::from_ascii(text).expect("a name")
    }

    fn record(priority: u16, weight: u16, target: &str) -> Record {
        answer(RData::SRV(SRV::new(priority, weight, 80, name(target))))
    }

    #[test]
    fn a_service_without_a_dot_is_one_over_tcp() {
        for (service, name) in [
            ("http", "_http._tcp.example.net."),
            ("_http", "__http._tcp.example.net."),
            ("_http._tcp", "_http._tcp.example.net."),
            ("server1.backend", "server1.backend.example.net."),
        ] {
            assert_eq!(full_name(service, "example.net"), name);
            assert_eq!(full_name(service, "example.net."), name);
        }
    }

    #[test]
    fn records_come_in_one_order_and_an_alias_counts_if_there_are_none() {
        let alias = answer(RData::CNAME(CNAME(name("other.example.net."))));
        let (a, b) = (record(1, 5, "a.example.net."), record(1, 5, "b.example.net."));
        let (late, none) = (record(2, 1, "a.example.net."), record(0, 0, "."));
        let targets = |answers: &[Record]| {
            let records = records_or_alias(answers).map_err(|alias| alias.to_ascii());
            records
                .map(|records| records.iter().map(|r| (r.priority, r.target.to_ascii())).collect::<Vec<_>>())
        };
        let both = vec![(1, "a.example.net.".to_owned()), (1, "b.example.net.".to_owned())];
        assert_eq!(targets(&[b.clone(), a.clone()]), Ok(both.clone()));
        assert_eq!(targets(&[alias.clone(), a.clone(), b.clone()]), Ok(both.clone()));
        assert_eq!(targets(&[late, b, a]).map(|all| all[..2] == both), Ok(true));
        assert_eq!(targets(&[alias]), Err("other.example.net.".to_owned()));
        assert_eq!(targets(&[none]), Ok(Vec::new()), "not offered (RFC 2782)");
        let many: Vec<Record> = (0..1000).map(|weight| record(1, weight, "a.example.net.")).collect();
        assert_eq!(targets(&many).map(|all| all.len()), Ok(MOST_RECORDS));
    }
}
