//! The watch under a clock that only the tests move: who goes out when, who comes back, and what a reload keeps.

use super::*;
use crate::balance::Ask;
use crate::group::Group;
use crate::group::fixture::{now, server, upstream};
use crate::peers::Version;
use crate::tried::Tried;
use millstream_conf::model::{BalanceMethod, OutlierEjection, Upstream, UpstreamServer};
use millstream_net::address::Address;

const SECOND: Duration = Duration::from_secs(1);

fn open(terms: Option<OutlierEjection>, servers: u16, before: Option<&Group>) -> Arc<Group> {
    let servers = (1..=servers).map(|port| UpstreamServer { max_fails: 0, ..server(port) }).collect();
    open_with(terms, servers, before)
}

fn open_with(
    terms: Option<OutlierEjection>,
    servers: Vec<UpstreamServer>,
    before: Option<&Group>,
) -> Arc<Group> {
    let conf = Upstream { outlier_ejection: terms, ..upstream(BalanceMethod::RoundRobin, servers) };
    let of_server = |server: &UpstreamServer| Address::of_peer(&server.address).into_iter().collect();
    let addresses: Vec<Vec<Address>> = conf.servers.iter().map(of_server).collect();
    Group::open(&conf, &addresses, before)
}

fn asking(tried: &mut Tried, now: Instant) -> Ask<'_> {
    Ask { key: b"", session: None, tried, now }
}

struct Watched {
    group: Arc<Group>,
    version: Version,
    watch: OutlierWatch,
}

impl Watched {
    fn over(group: Arc<Group>, now: Instant) -> Watched {
        let watch =
            OutlierWatch::new(group.outliers().expect("it looks for outliers"), &group.in_force(), now);
        Watched { version: Version::of(group.in_force()), group, watch }
    }

    fn new(terms: OutlierEjection, servers: u16) -> Watched {
        Watched::over(open(Some(terms), servers, None), now())
    }

    /// Requests in turn; servers of these ports respond with this status, the others with 200. Returns how
    /// many those got.
    fn ask(&self, count: usize, ports: &[u16], status: Option<u16>, now: Instant) -> usize {
        let mut got = 0;
        for _ in 0..count {
            let mut tried: Tried = self.version.tried(0);
            let turn = self.version.choose(asking(&mut tried, now)).expect("somebody is there");
            let is_one = ports.iter().any(|port| turn.peer().name.ends_with(&format!(":{port}")));
            got += usize::from(is_one);
            turn.judged(if is_one { status } else { Some(200) });
        }
        got
    }

    fn look(&mut self, now: Instant) -> Vec<String> {
        let short = |news: OutlierNews| match news {
            OutlierNews::Ejected { peer, why: Conviction::InARow(_), time } => {
                format!("{peer} row {}", time.as_secs())
            }
            OutlierNews::Ejected { peer, why: Conviction::Rate(..), time } => {
                format!("{peer} rate {}", time.as_secs())
            }
            OutlierNews::Returned { peer } => format!("{peer} back"),
        };
        self.watch.look(&self.group.in_force(), now).into_iter().map(short).collect()
    }
}

#[test]
fn errors_in_a_row_take_a_server_out_for_longer_each_time() {
    let mut watched = Watched::new(OutlierEjection::default(), 2);
    watched.ask(8, &[2], Some(500), now());
    assert_eq!(watched.look(now()), [""; 0], "four are not enough");
    watched.ask(2, &[2], Some(500), now());
    assert_eq!(watched.look(now()), ["127.0.0.1:2 row 30"]);
    assert_eq!(watched.ask(10, &[2], Some(500), now()), 0, "it is not asked");
    assert_eq!(watched.watch.next(&watched.group.in_force()), now() + 10 * SECOND);
    assert_eq!(watched.look(now() + 29 * SECOND), [""; 0]);
    assert_eq!(watched.watch.next(&watched.group.in_force()), now() + 30 * SECOND);
    let back = now() + 30 * SECOND;
    assert_eq!(watched.look(back), ["127.0.0.1:2 back"]);
    assert_eq!(watched.ask(10, &[2], None, back), 5, "an exchange that fails is an error");
    assert_eq!(watched.look(back), ["127.0.0.1:2 row 60"]);
    // Intervals that it is in bring the time down again.
    let back = back + 60 * SECOND;
    assert_eq!(watched.look(back), ["127.0.0.1:2 back"]);
    for interval in 1..=3 {
        assert_eq!(watched.look(back + interval * 10 * SECOND), [""; 0]);
    }
    watched.ask(10, &[2], None, back + 31 * SECOND);
    assert_eq!(watched.look(back + 31 * SECOND), ["127.0.0.1:2 row 30"]);
}

#[test]
fn a_good_answer_ends_a_row_and_only_what_is_listed_is_an_error() {
    let terms = OutlierEjection { statuses: vec![(429, 429), (503, 504)], ..OutlierEjection::default() };
    let mut watched = Watched::new(terms, 2);
    for status in [Some(503), Some(200), Some(503), Some(500), Some(429), Some(404)] {
        watched.ask(8, &[2], status, now());
    }
    assert_eq!(watched.look(now()), [""; 0]);
    watched.ask(8, &[2], Some(503), now());
    watched.ask(2, &[2], Some(429), now());
    assert_eq!(watched.look(now()), ["127.0.0.1:2 row 30"]);
}

#[test]
fn never_more_than_max_are_out_nor_the_last_one_that_can_be_asked() {
    let mut watched = Watched::new(OutlierEjection::default(), 3);
    watched.ask(30, &[1, 2, 3], Some(500), now());
    assert_eq!(watched.look(now()).len(), 1, "half of three");
    let all = OutlierEjection { max: 100, ..OutlierEjection::default() };
    let mut watched = Watched::new(all.clone(), 3);
    watched.ask(30, &[1, 2, 3], Some(500), now());
    assert_eq!(watched.look(now()).len(), 2, "the last one stays");
    let mut watched = Watched::new(all, 1);
    watched.ask(30, &[1], Some(500), now());
    assert_eq!(watched.look(now()), [""; 0]);
}

#[test]
fn a_server_whose_answers_are_worse_than_the_others_is_out_after_an_interval() {
    let terms = OutlierEjection { consecutive_errors: 0, ..OutlierEjection::default() };
    let mut watched = Watched::new(terms, 5);
    for _ in 0..50 {
        watched.ask(5, &[3], Some(502), now());
        watched.ask(5, &[3], Some(200), now());
    }
    assert_eq!(watched.look(now() + 9 * SECOND), [""; 0]);
    assert_eq!(watched.look(now() + 10 * SECOND), ["127.0.0.1:3 rate 30"]);
    // What was judged before the interval is over.
    watched.ask(5, &[3], Some(502), now() + 11 * SECOND);
    assert_eq!(watched.look(now() + 20 * SECOND), [""; 0]);
}

#[test]
fn a_reload_keeps_who_is_out_and_one_without_the_directive_brings_it_back() {
    let mut watched = Watched::new(OutlierEjection::default(), 2);
    watched.ask(10, &[2], Some(500), now());
    assert_eq!(watched.look(now()).len(), 1);
    let next = open(Some(OutlierEjection::default()), 2, Some(&watched.group));
    let mut after = Watched::over(next, now() + 20 * SECOND);
    assert_eq!(after.ask(10, &[2], None, now() + 20 * SECOND), 0);
    let told: Vec<u64> = after.version.accounts(now()).map(|account| account.ejections).collect();
    assert_eq!(told, [0, 1]);
    assert_eq!(after.look(now() + 30 * SECOND), ["127.0.0.1:2 back"]);
    let without = open(None, 2, Some(&watched.group));
    let version = Version::of(without.in_force());
    let asked = (0..4).filter(|_| {
        let mut tried = version.tried(0);
        version.choose(asking(&mut tried, now())).expect("a server").peer().name.ends_with(":2")
    });
    assert_eq!(asked.count(), 2);
}

#[test]
fn where_the_others_have_gone_those_who_are_out_come_back_and_the_bound_holds_for_what_is_left() {
    let mut watched = Watched::new(OutlierEjection::default(), 4);
    watched.ask(40, &[1, 2], Some(500), now());
    assert_eq!(watched.look(now()), ["127.0.0.1:1 row 30", "127.0.0.1:2 row 30"]);
    // The API takes one of the others away: of three servers one may be out.
    watched.group.publish(|servers| servers.retain(|server| !server.name.ends_with(":4")));
    watched.version = Version::of(watched.group.in_force());
    assert_eq!(watched.look(now() + SECOND), ["127.0.0.1:1 back"]);
    watched.ask(20, &[1], Some(500), now());
    watched.group.publish(|servers| servers.retain(|server| server.name.ends_with(":2")));
    // Before the watch looks, a request asks who is left.
    let version = Version::of(watched.group.in_force());
    let mut tried = version.tried(0);
    assert_eq!(
        &*version.choose(asking(&mut tried, now())).expect("it is recalled").peer().name,
        "127.0.0.1:2"
    );
    assert_eq!(watched.look(now() + SECOND), ["127.0.0.1:2 back"]);
}

#[test]
fn where_the_last_good_one_fails_one_that_is_out_is_asked() {
    let mut watched =
        Watched::over(open_with(Some(OutlierEjection::default()), vec![server(1), server(2)], None), now());
    watched.ask(12, &[1], Some(500), now());
    assert_eq!(watched.look(now()), ["127.0.0.1:1 row 30"]);
    let mut tried = watched.version.tried(0);
    let turn = watched.version.choose(asking(&mut tried, now())).expect("the good one");
    assert!(turn.peer().name.ends_with(":2") && turn.failed(now()));
    let mut tried = watched.version.tried(0);
    let turn = watched.version.choose(asking(&mut tried, now())).expect("the other is recalled");
    assert!(turn.peer().name.ends_with(":1"));
    assert_eq!(watched.look(now()), ["127.0.0.1:1 back"]);
}
