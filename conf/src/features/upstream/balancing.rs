//! How a server of an upstream is chosen: `least_conn`, `least_time`, `ip_hash`, `hash`, `random`.
//!
//! The last method written holds, as in nginx. Before: `server`; next: `millstream-upstream`'s `balance`, the methods at work.

use crate::declared::upstream::{Balance, BalanceMethod, TimeTo, Upstream};
use crate::reading::Reading;
use crate::template::{Part, Template, Variable};
use crate::tree::Directive;
use crate::variables::Builtin;
use std::time::Duration;

/// The last method written holds, as in nginx.
pub(super) fn choose(
    upstream: &mut Upstream,
    directive: &Directive,
    method: BalanceMethod,
    key: Option<Template>,
    reading: &mut Reading<'_>,
) {
    if upstream.balance.method != BalanceMethod::RoundRobin {
        reading.diagnostics.warning(directive.span, "load balancing method redefined");
    }
    if upstream.queue.is_some() {
        reading
            .error(directive.span, format!("\"{}\" comes after \"queue\"", directive.name.text))
            .help("write queue after it");
    }
    upstream.balance = Balance { method, key };
}

pub(super) fn hash(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let key = reading.template(&directive.args[0]);
    let method = match directive.args.get(1) {
        None => BalanceMethod::Hash,
        Some(word) => match reading.one_of(word, &["consistent"]) {
            Some(_) => BalanceMethod::ConsistentHash,
            None => return,
        },
    };
    choose(upstream, directive, method, Some(key), reading);
}

pub(super) fn ip_hash(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let address = Variable::Builtin(Builtin::BinaryRemoteAddr);
    let key = Template { parts: [Part::Variable(address)].into(), source: "$binary_remote_addr".into() };
    choose(upstream, directive, BalanceMethod::IpHash, Some(key), reading);
}

const TIMES: [(&str, TimeTo); 2] = [("header", TimeTo::Header), ("last_byte", TimeTo::LastByte)];

pub(super) fn least_time(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let Some(to) = reading.choice(&directive.args[0], &TIMES) else { return };
    let inflight = directive.args.get(1);
    if inflight.is_some_and(|word| reading.one_of(word, &["inflight"]).is_none()) {
        return;
    }
    let method = BalanceMethod::LeastTime { to, inflight: inflight.is_some() };
    choose(upstream, directive, method, None, reading);
}

pub(super) fn random(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    const LEAST: [(&str, BalanceMethod); 3] = [
        ("least_conn", BalanceMethod::RandomTwo),
        ("least_time=header", BalanceMethod::RandomTwoLeastTime(TimeTo::Header)),
        ("least_time=last_byte", BalanceMethod::RandomTwoLeastTime(TimeTo::LastByte)),
    ];
    let mut method = BalanceMethod::Random;
    if let Some(two) = directive.args.first() {
        let (Some(_), Some(least)) = (
            reading.one_of(two, &["two"]),
            directive.args.get(1).map_or(Some(BalanceMethod::RandomTwo), |word| reading.choice(word, &LEAST)),
        ) else {
            return;
        };
        method = least;
    }
    choose(upstream, directive, method, None, reading);
}

/// Largest sum of weights of `hash … consistent`: 16 million points.
const MOST_CONSISTENT_WEIGHT: u64 = 100_000;

pub(super) fn check(upstream: &Upstream, reading: &mut Reading<'_>) {
    if !upstream.balance.method.is_adaptable()
        && let Some(server) = upstream.servers.iter().find(|server| server.slow_start > Duration::ZERO)
    {
        reading
            .error(server.span, "balancing method does not support parameter \"slow_start\"")
            .help(BalanceMethod::ADAPTABLE);
    }
    let weight: u64 = upstream.servers.iter().map(|server| u64::from(server.weight)).sum();
    if upstream.balance.method == BalanceMethod::ConsistentHash && weight > MOST_CONSISTENT_WEIGHT {
        reading
            .error(
                upstream.span,
                format!("the weights of upstream \"{}\" are too large for a consistent hash", upstream.name),
            )
            .help(format!("each unit has 160 points; keep the sum within {MOST_CONSISTENT_WEIGHT}"));
    }
}
