//! Facts as they come from real systems, each with the party that must be named: and the one fact that takes the name away.

use super::*;
use crate::party::{API, GENERATOR, PROXY, Spent};
use Limit::{Api, Generator, Network, Proxy, Unknown};

/// A party of so many threads over ten seconds: each ran for this share and stood ready for that.
fn threads(number: f64, ran: f64, stood_ready: f64) -> Option<Spent> {
    Some(Spent {
        seconds: 10.0,
        cpu_seconds: 10.0 * number * ran,
        busiest: ran,
        wanted: (ran + stood_ready).min(1.0),
        waited: stood_ready,
        wanted_cores: number * (ran + stood_ready).min(1.0),
        ..Spent::default()
    })
}

/// A run in a closed loop: latency follows from rate and connections, and the first byte comes at its end.
fn run(connections: u32, rate: f64) -> Run {
    let latency = f64::from(connections) / rate;
    Run {
        connections,
        rate,
        latency,
        first_byte: latency,
        bytes_per_second: rate * 1_100.0,
        error_share: 0.0,
    }
}

fn once(milliseconds: f64) -> Option<Once> {
    let total = milliseconds / 1e3;
    let alike = Once { first_byte: total, total, mean: total, least: total, ..Once::default() };
    Some(Once { connect: 0.000_05, body_bytes: 900.0, ..alike })
}

/// The same over a way that is so long.
fn far(milliseconds: f64, way: f64) -> Option<Once> {
    once(milliseconds).map(|once| Once { connect: way / 1e3, ..once })
}

/// What was found of proxy, API and generator, on a machine that was busy for this share.
fn found(parties: [Option<Spent>; 3], machine_busy: f64) -> Metered {
    let named = [PROXY, API, GENERATOR].into_iter().zip(parties);
    let parties = named.filter_map(|(name, spent)| Some((name, spent?))).collect();
    Metered { parties, machine_busy, ..Metered::default() }
}

/// The same facts with another party in the place of the one of that name.
fn see(facts: &mut Evidence, name: &'static str, spent: Option<Spent>) {
    facts.found.parties.retain(|(other, _)| *other != name);
    facts.found.parties.extend(spent.map(|spent| (name, spent)));
}

/// Two cores, everything on them, nothing cached, everybody idle, an API that takes eight requests at once for 20 ms each.
fn idle() -> Evidence {
    Evidence {
        top: run(32, 400.0),
        origin_share: 1.0,
        direct: once(20.0),
        through: once(20.2),
        found: found([threads(2.0, 0.05, 0.01), threads(4.0, 0.02, 0.0), threads(2.0, 0.03, 0.0)], 0.12),
        cores: 2,
        is_here: true,
        ..Evidence::default()
    }
}

/// A full machine of two cores: a proxy of one thread that runs all the time, and the others on the other core.
fn one_thread() -> Evidence {
    Evidence {
        top: run(64, 40_000.0),
        direct: once(0.05),
        through: once(0.1),
        found: found([threads(1.0, 0.97, 0.02), threads(1.0, 0.4, 0.1), threads(1.0, 0.45, 0.05)], 0.93),
        ..idle()
    }
}

/// A generator that has half a core, and a proxy that answers by itself.
fn starved_generator() -> Evidence {
    Evidence {
        origin_share: 0.0,
        direct: None,
        found: found([threads(2.0, 0.15, 0.05), None, threads(1.0, 0.49, 0.5)], 0.7),
        floor: Some("the generator's busiest thread ran 49 % of the time".to_owned()),
        ..one_thread()
    }
}

/// A full machine on which strangers have most.
fn crowd() -> Evidence {
    Evidence {
        found: found([threads(1.0, 0.3, 0.65), threads(1.0, 0.1, 0.3), threads(1.0, 0.15, 0.5)], 1.0),
        ..one_thread()
    }
}

/// An API on another machine.
fn remote() -> Evidence {
    let mut remote = Evidence { is_here: false, ..idle() };
    see(&mut remote, API, None);
    remote
}

/// An API that hashes on all cores, so that the others wait for one each time they wake.
fn computing() -> Evidence {
    Evidence {
        top: run(64, 185.0),
        found: found([threads(2.0, 0.02, 0.9), threads(5.0, 0.37, 0.6), threads(1.0, 0.01, 0.8)], 1.0),
        direct: once(10.0),
        ..idle()
    }
}

type Change = fn(&mut Evidence);
/// What it is, the facts, what is changed of them, who is named, and what is said.
type Case = (&'static str, fn() -> Evidence, Change, Limit, &'static str);

#[test]
fn each_rule_names_who_the_facts_show_and_another_fact_takes_the_name_away() {
    let same: Change = |_| ();
    #[rustfmt::skip]
    let cases: &[Case] = &[
        // 1. Saturated.
        ("one thread that runs all the time", one_thread, same, Proxy, "It was busy 99 % of the time: it used 0.97 cores of 2, which is 24.2us per response."),
        ("it rests", one_thread, |facts| { see(facts, PROXY, threads(1.0, 0.8, 0.02)); facts.found.machine_busy = 0.83; }, Unknown, "no CPU was saturated"),
        ("beside others that wait for a core", one_thread, |facts| see(facts, API, threads(1.0, 0.4, 0.55)), Proxy, "It was busy"),
        ("beside another that runs all the time", one_thread, |facts| see(facts, API, threads(1.0, 0.95, 0.0)), Unknown, "the proxy and the API were each busy most of the time. Give each of them its own cores"),
        ("an API that is busy with something else", one_thread, |facts| { see(facts, API, threads(1.0, 0.95, 0.0)); facts.origin_share = 0.01; }, Proxy, "It was busy"),
        ("held back by a host", one_thread, |facts| facts.found.stolen = 0.3, Unknown, "the host of this virtual machine gave 30 % of its CPU to other machines (steal). Run this again"),
        ("held back by a host a little", one_thread, |facts| { see(facts, PROXY, threads(1.0, 0.86, 0.0)); facts.found.stolen = 0.08; }, Proxy, "It was busy 94.1 % of the time"),
        ("threads that want all cores and have most", computing, same, Api, "often waiting for a core: it used 1.85 cores of 2, which is 10ms per response. The machine was 100 % busy (API 92.5 %, proxy 2 %, load generator 0.5 %)."),
        ("many threads that want all cores together", computing, |facts| see(facts, API, threads(32.0, 0.058, 0.6)), Api, "It was busy 100 % of the time"),
        ("many threads that wake together where cores idle", idle, |facts| see(facts, API, threads(32.0, 0.016, 0.05)), Api, "No CPU was saturated"),
        ("that may use more", computing, |facts| { *facts = Evidence { cores: 32, top: run(64, 185.0), ..idle() }; see(facts, API, threads(32.0, 0.058, 0.6)); }, Api, "No CPU was saturated"),
        ("that have no more than the proxy", computing, |facts| { see(facts, API, threads(5.0, 0.19, 0.8)); see(facts, PROXY, threads(2.0, 0.48, 0.5)); }, Unknown, "the proxy and the API were each busy most of the time"),
        ("a CPU limit of its own", idle, |facts| see(facts, API, threads(8.0, 0.025, 0.0).map(|spent| Spent { held_back: Some(0.98), ..spent })), Api, "Its CPU limit (of a container, for example) throttled it in 98 % of its periods: it used 0.20 cores of 2"),
        ("that holds back now and then", idle, |facts| see(facts, PROXY, threads(8.0, 0.025, 0.0).map(|spent| Spent { held_back: Some(0.2), ..spent })), Api, "No CPU was saturated"),
        ("a generator without a core of its own", starved_generator, same, Generator, "It was saturated: the generator's busiest thread ran 49 % of the time. The machine was 70 % busy (proxy 15 %, load generator 25 %)."),
        ("that had time left", starved_generator, |facts| facts.floor = None, Unknown, "no bottleneck was reached. Hardly any request reached the API, and no CPU was saturated. More connections (-c)"),
        ("beside a proxy without time", starved_generator, |facts| see(facts, PROXY, threads(2.0, 0.5, 0.49)), Unknown, "the proxy and the load generator were each busy most of the time. Put the generator on another machine"),
        ("beside a proxy that costs as much", starved_generator, |facts| { see(facts, PROXY, threads(2.0, 0.52, 0.46)); see(facts, GENERATOR, threads(2.0, 0.47, 0.41)); facts.floor = None; facts.found.machine_busy = 1.0; }, Unknown, "the proxy and the load generator were each busy most of the time"),
        ("no ports left", idle, |facts| facts.floor = Some("the generator ran out of local ports".to_owned()), Generator, "It was saturated: the generator ran out of local ports."),
        ("strangers have the cores", crowd, same, Unknown, "other processes used 72 % of this machine, and the proxy waited for a core 65 % of the time. Run this again when the machine is quiet."),
        ("the parties have them", crowd, |facts| { see(facts, PROXY, threads(1.0, 0.8, 0.19)); see(facts, API, threads(1.0, 0.63, 0.1)); see(facts, GENERATOR, threads(1.0, 0.33, 0.1)); }, Proxy, "often waiting for a core"),
        ("an API that costs as much", crowd, |facts| { see(facts, PROXY, threads(1.0, 0.8, 0.19)); see(facts, API, threads(1.0, 0.78, 0.1)); see(facts, GENERATOR, threads(1.0, 0.33, 0.1)); }, Unknown, "the proxy and the API were each busy most"),
        ("a full link", remote, |facts| { facts.link = Some(125e6); facts.top.bytes_per_second = 118e6; }, Network, "118MB per second of the 125MB"),
        ("half of it", remote, |facts| { facts.link = Some(125e6); facts.top.bytes_per_second = 60e6; }, Unknown, "the API's CPU cannot be seen"),
        ("a full link and a full proxy", one_thread, |facts| { facts.is_here = false; facts.link = Some(48e6); }, Unknown, "the proxy had no idle time, and the network was saturated. The network path to the API carried 44MB per second of the 48MB"),
        // 2. The way.
        ("another continent", remote, |facts| { facts.direct = far(85.0, 80.0); facts.top = run(8, 8.0 / 0.086); }, Network, "The round trip to the API takes 80ms, which is 93 % of a response's time."),
        ("that is slow under load", remote, |facts| { facts.direct = far(85.0, 80.0); facts.top = run(64, 32.0); }, Unknown, "the API's CPU cannot be seen, because it is on another machine. Run `millstream bench` on"),
        ("on this machine a connection only waited for a core", idle, |facts| { facts.direct = far(85.0, 80.0); facts.top = run(8, 8.0 / 0.086); }, Unknown, "no bottleneck was reached"),
        // 3. The place.
        ("workers that wait", idle, same, Api, "400 per second at 20ms each is 8 requests at once (Little's law): the API works on that many, and the other 24 of 32 wait."),
        ("in a process that cannot be seen", idle, |facts| see(facts, API, None), Unknown, "the API's CPU cannot be seen, because its process cannot be seen."),
        ("elsewhere", remote, same, Unknown, "because it is on another machine. Run `millstream bench` on the API's machine, or watch it there with top, under this load."),
        ("elsewhere, and most is the body", remote, |facts| facts.top.first_byte = 0.01, Unknown, "the network may be slow, or the API writes slowly"),
        ("that take all comers", idle, |facts| facts.direct = once(78.0), Unknown, "no bottleneck was reached. A response takes 80ms under load and 78ms alone. More connections (-c) would bring more responses."),
        ("that begin all at once and end late", idle, |facts| facts.top.first_byte = 0.021, Unknown, "no bottleneck was reached. A response takes 80ms under load and 20ms alone. More connections (-c) would bring more responses."),
        ("that are as quick as ever when they are loaded straight", idle, |facts| facts.alone = Some(Run { first_byte: 0.021, ..run(32, 780.0) }), Unknown, "no bottleneck was reached"),
        ("that let wait when they are loaded straight", idle, |facts| facts.alone = Some(run(32, 410.0)), Api, "the other 24 of 32 wait"),
        ("that have nothing to do for a part of the time", idle, |facts| facts.direct = once(1.0), Unknown, "no bottleneck was reached"),
        ("one connection, behind which nobody waits", idle, |facts| facts.top = run(1, 12.5), Unknown, "no bottleneck was reached"),
        ("without anything to compare with", idle, |facts| { facts.direct = None; facts.through = None; }, Unknown, "nothing shows whether more of them bring more responses. Measure again with half as many connections (-c)."),
        ("behind a proxy that is often at work", idle, |facts| see(facts, PROXY, threads(2.0, 0.4, 0.2)), Unknown, "no single place has most of a request's time"),
        ("behind a proxy that cannot be seen", idle, |facts| see(facts, PROXY, None), Unknown, "no single place"),
        ("where strangers have the cores that it waits for", idle, |facts| { see(facts, API, threads(1.0, 0.2, 0.6)); facts.found.machine_busy = 1.0; }, Unknown, "the API waited for a core 60 % of the time"),
        ("where strangers have the cores that the others wait for", idle, |facts| { see(facts, GENERATOR, threads(1.0, 0.3, 0.4)); facts.found.machine_busy = 1.0; }, Unknown, "other processes used"),
        ("asked straight", idle, |facts| { see(facts, PROXY, None); facts.through = None; }, Api, "the other 24 of 32 wait"),
        ("a proxy that dawdles", idle, |facts| { facts.through = once(60.0); facts.top = run(8, 8.0 / 0.061); }, Proxy, "20ms when it is sent directly to the API and 60ms through the proxy, which is 65 % of a response's time"),
        ("a little", idle, |facts| { facts.through = once(30.0); facts.top = run(8, 8.0 / 0.061); }, Api, "No CPU was saturated"),
    ];
    for (what, evidence, change, limit, says) in cases {
        let mut evidence = evidence();
        change(&mut evidence);
        let verdict = judge(&evidence);
        let text = verdict.text();
        assert_eq!(verdict.limit, *limit, "{what}: {text}");
        assert!(text.contains(says), "{what}: no \"{says}\" in: {text}");
        assert!(text.starts_with(limit.words().1), "{what}: the first sentence is the answer: {text}");
    }
}

#[test]
fn every_fact_that_is_missing_leaves_no_name_that_the_others_do_not_show() {
    let with = |change: Change| {
        let mut evidence = idle();
        evidence.found.machine_busy = 0.4;
        change(&mut evidence);
        judge(&evidence).limit
    };
    assert_eq!(with(|_| ()), Api);
    let missing: [Change; 4] = [
        |facts| see(facts, API, None),
        |facts| see(facts, GENERATOR, None),
        |facts| see(facts, PROXY, None),
        |facts| {
            facts.is_here = false;
            facts.direct = None;
        },
    ];
    for (number, change) in missing.into_iter().enumerate() {
        assert_eq!(with(change), Unknown, "fact {number}");
    }
}

#[test]
fn what_makes_the_figures_less_than_they_seem_is_said() {
    let doubts = |evidence: Evidence| judge(&evidence).doubts;
    assert_eq!(doubts(idle()), [""; 0]);
    let failing = doubts(Evidence { top: Run { error_share: 0.2, ..run(32, 400.0) }, ..idle() });
    assert!(failing[0].contains("20 % of the requests failed"), "{failing:?}");
    let crowded = Metered { machine_busy: 0.9, ..idle().found };
    let strangers = doubts(Evidence { found: crowded, ..idle() });
    assert!(strangers[0].contains("78 % of this machine went to other processes"), "{strangers:?}");
    let shared = doubts(one_thread());
    assert!(shared[0].contains("22 % of the full machine went to the generator"), "{shared:?}");
}

#[test]
fn what_the_api_gives_alone_is_compared_where_it_tells() {
    let said = |evidence: Evidence| judge(&evidence).text();
    let passes = said(Evidence { alone: Some(run(32, 410.0)), ..idle() });
    assert!(passes.contains("The proxy passes on 97.6 % of the 410 responses per second"), "{passes}");
    let less = said(Evidence { alone: Some(run(64, 90_000.0)), ..one_thread() });
    assert!(less.contains("90,000 responses per second without the proxy and 40,000 through it"), "{less}");
}

#[test]
fn no_figures_at_all_are_no_panic_and_no_name() {
    let nothing = Evidence::default();
    let zeros =
        Evidence { origin_share: 1.0, alone: Some(Run::default()), direct: Some(Once::default()), ..idle() };
    for evidence in [nothing, Evidence { top: Run::default(), ..zeros }] {
        let verdict = judge(&evidence);
        let text = verdict.text();
        assert_eq!(verdict.limit, Unknown, "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

#[test]
fn a_rest_that_waits_for_an_acknowledgement_is_named_and_other_late_ends_are_not() {
    let ends = |latency: f64, first_byte: f64| Run { latency, first_byte, ..Run::default() };
    let once = once(51.0).expect("a single request");
    let late = delayed_ack(&ends(0.092, 0.051), &once).expect("late");
    assert!(late.starts_with("The rest of the API's responses arrives 41ms after"), "{late}");
    assert!(late.contains("Nagle"), "{late}");
    for (what, run) in [
        ("as alone", ends(0.052, 0.051)),
        ("a queue", ends(0.092, 0.091)),
        ("a long body, as alone", ends(0.053, 0.010)),
        ("a slow body", ends(0.300, 0.051)),
    ] {
        assert_eq!(delayed_ack(&run, &once), None, "{what}");
    }
}
