//! The table and its sentences from given figures; nothing is run here (the scenarios of `tests` do that).

use super::*;
use crate::report::samples::Noise;
use crate::verdict::Limit;
use millstream_net::terminal;

fn run(connections: u32, rate: f64) -> Run {
    let latency = f64::from(connections) / rate;
    Run { connections, rate, latency, first_byte: latency, ..Run::default() }
}

/// Five rounds about a rate, a fiftieth to each side at the most.
fn five(rate: f64) -> Rounds {
    of_rates(&[0.98, 0.99, 1.0, 1.01, 1.02].map(|part| rate * part))
}

fn of_rates(rates: &[f64]) -> Rounds {
    let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
    Rounds {
        rates: rates.to_vec(),
        low,
        high: rates.iter().copied().fold(0.0, f64::max),
        p50: 1_000,
        p99: 9_000,
    }
}

/// A row from rates: each alone, what the proxy passes on, and together.
fn row(alone: &[f64], passing: f64, together: f64, limit: Limit) -> CapacityRow {
    let connections = 32;
    let all = connections * alone.len() as u32;
    let mut row = CapacityRow {
        name: "a row".into(),
        connections,
        service_seconds: None,
        alone: alone
            .iter()
            .map(|&rate| Alone {
                url: "http://127.0.0.1:8000/".into(),
                run: run(connections, rate),
                rounds: five(rate),
                once: Once::default(),
                is_floor: false,
            })
            .collect(),
        ceiling: passing * 2.0,
        passing,
        together: Together {
            run: run(all, together),
            rounds: five(together),
            once: Once::default(),
            machine_busy: 0.3,
            opened_per_second: 0.0,
            time_wait: 0,
        },
        pool: Pool::needed(together, 0.1, all),
        below: None,
        verdict: Verdict { limit, why: vec!["So it is.".into()], doubts: Vec::new() },
        sentence: String::new(),
    };
    row.sentence = sentence(&row);
    row
}

/// A table of that row alone, about servers of the user's.
fn of_own_servers(row: CapacityRow) -> Capacity {
    Capacity {
        is_simulated: false,
        urls: vec![String::new()],
        cores: 2,
        workers: "auto".into(),
        cut_short: None,
        seed: 0,
        rows: vec![row],
    }
}

#[track_caller]
fn check(row: &CapacityRow, expected: Gain, says: &[&str]) {
    assert_eq!(gain(row), expected, "{}", row.sentence);
    for part in says {
        assert!(row.sentence.contains(part), "no \"{part}\" in: {}", row.sentence);
    }
}

#[test]
fn the_articles_four_rows_get_the_articles_sentences() {
    // Its proxy did some 12,400 per second at the most.
    let of = |row: &Published, limit| self::row(&row.alone, 12_400.0, row.together, limit);
    check(
        &of(&ARTICLE[0], Limit::Api),
        Gain::Whole,
        &[
            "A second server doubles the throughput: together they serve 317 per second; one by one, they add up to 316",
            "one more would give the same gain again",
        ],
    );
    check(&of(&ARTICLE[1], Limit::Api), Gain::Whole, &["doubles", "905"]);
    let third = of(&ARTICLE[2], Limit::Proxy);
    check(
        &third,
        Gain::Some,
        &["A second server gains 31 % instead of 99.7 %, because the proxy is the limit", "12,400"],
    );
    assert_eq!(third.expected(), 12_400.0);
    check(
        &of(&ARTICLE[3], Limit::Proxy),
        Gain::Some,
        &["gains 32 % instead of 100 %", "the proxy is the limit"],
    );
}

#[test]
fn a_loss_is_called_one_and_has_its_reason() {
    let loses = "A second server loses 35 % against one alone, because the proxy is the limit";
    check(&row(&[60_000.0, 59_000.0], 41_000.0, 39_000.0, Limit::Proxy), Gain::Loss, &[loses]);
    // Cheap servers cannot help it either, whoever the CPU went to.
    check(
        &row(&[60_000.0, 59_000.0], 41_000.0, 39_000.0, Limit::Api),
        Gain::Loss,
        &["the proxy is at its ceiling"],
    );
    check(
        &row(&[500.0, 500.0], 41_000.0, 510.0, Limit::Api),
        Gain::Nothing,
        &[
            "A second server gains nothing, because the servers slow each other down",
            "125ms under load on all and 64ms on one alone",
        ],
    );
    check(
        &row(&[5_000.0, 5_000.0], 41_000.0, 5_600.0, Limit::Network),
        Gain::Some,
        &["12 % instead of 100 %", "network"],
    );
    check(&row(&[5e4, 5e4], 9e4, 6e4, Limit::Generator), Gain::Some, &["20 %", "floors"]);
}

#[test]
fn whatever_limits_what_is_said_of_one_more_server_agrees_with_it() {
    let still = "still the limit";
    for (limit, says) in [
        (Limit::Api, "The servers are still the limit, and the proxy could pass on 9,000"),
        (Limit::Proxy, "The proxy is the limit now"),
        (Limit::Network, "The network to the servers is the limit now"),
        (Limit::Generator, "The load generator is the limit"),
        (Limit::Unknown, "Whether one more would help is unknown: So it is."),
    ] {
        let row = row(&[1_000.0, 1_000.0], 9_000.0, 1_950.0, limit);
        check(&row, Gain::Whole, &[says]);
        assert_eq!(row.sentence.contains(still), limit == Limit::Api, "{}", row.sentence);
    }
}

#[test]
fn servers_that_give_far_more_together_than_one_by_one_promise_nothing_of_a_third() {
    let row = row(&[44.0, 45.0], 20_000.0, 7_464.0, Limit::Api);
    assert!(row.sentence.contains("Whether one more would help is unknown"), "{}", row.sentence);
    assert!(!row.sentence.contains("the same gain again"), "{}", row.sentence);
}

#[test]
fn servers_are_compared_by_the_rank_test_over_rounds() {
    let of = |alone: &[f64], together: &[f64]| {
        let (best, all) = (crate::rank::median(alone.to_vec()), crate::rank::median(together.to_vec()));
        let mut row = row(&[best, 0.9 * best], 9_000.0, all, Limit::Api);
        (row.alone[0].rounds, row.together.rounds) = (of_rates(alone), of_rates(together));
        row.sentence = sentence(&row);
        row
    };
    let noisy = [800.0, 900.0, 1_000.0, 1_150.0, 1_300.0];
    check(
        &of(&noisy, &[900.0, 1_180.0, 1_200.0, 1_220.0, 1_250.0]),
        Gain::Unclear,
        &["A second server: inconclusive:", "800 to 1,300 per second", "all together 900 to 1,250"],
    );
    check(&of(&noisy, &[700.0, 820.0, 850.0, 880.0, 905.0]), Gain::Unclear, &["inconclusive:"]);
    let quiet = [970.0, 990.0, 1_000.0, 1_010.0, 1_030.0];
    check(&of(&quiet, &[980.0, 1_000.0, 1_020.0, 1_025.0, 1_040.0]), Gain::Nothing, &["gains nothing"]);
    check(&of(&quiet, &[1_250.0, 1_280.0, 1_300.0, 1_320.0, 1_350.0]), Gain::Some, &["gains 30 %"]);
    check(&of(&quiet, &[650.0, 680.0, 700.0, 720.0, 750.0]), Gain::Loss, &["loses 30 %"]);
    // Three rounds a side have an overlap by chance too often, whatever they say.
    let few = of(&quiet[..3], &[1_950.0, 1_960.0, 1_970.0]);
    check(&few, Gain::TooFew, &["inconclusive: 3 of 4 necessary rounds measured"]);
    let mut uneven = row(&[130.0, 2_600.0], 40_000.0, 250.0, Limit::Api);
    assert!(uneven.is_uneven());
    uneven.alone[0].rounds = of_rates(&[20.0, 130.0, 4_000.0]);
    assert!(!uneven.is_uneven());
}

#[test]
fn servers_that_are_alike_gain_or_lose_in_one_of_twenty_measurements_at_the_most() {
    for (servers, rounds) in [(1, 4), (2, 4), (2, 5), (4, 5)] {
        for between in [0.05, 0.10, 0.25] {
            let (mut noise, mut falsely) = (Noise(servers as u64 + rounds as u64), 0);
            for _ in 0..10_000 {
                let mut rates = || {
                    of_rates(&(0..rounds).map(|_| 1e3 * (between * noise.normal()).exp()).collect::<Vec<_>>())
                };
                let alone: Vec<Rounds> = (0..servers).map(|_| rates()).collect();
                let of = |rounds: &Rounds| crate::rank::median(rounds.rates.clone());
                let best = alone.iter().max_by(|one, other| of(one).total_cmp(&of(other))).expect("one");
                falsely += usize::from(super::sentence::differ(best, &rates(), servers));
            }
            // Three deviations above one in twenty.
            assert!(falsely <= 566, "{servers} servers, {rounds} rounds, ±{between}: {falsely}");
        }
    }
}

#[test]
fn one_server_and_many_are_told_too() {
    check(
        &row(&[900.0], 40_000.0, 905.0, Limit::Api),
        Gain::Nothing,
        &["costs nothing: 905 of 900 per second"],
    );
    check(
        &row(&[60_000.0], 40_000.0, 39_000.0, Limit::Proxy),
        Gain::Loss,
        &["loses 35 % against the server without it"],
    );
    check(
        &row(&[100.0; 4], 40_000.0, 398.0, Limit::Api),
        Gain::Whole,
        &["4 servers instead of one serve together as much as one by one"],
    );
    check(
        &row(&[100.0; 3], 40_000.0, 150.0, Limit::Api),
        Gain::Some,
        &["3 servers instead of one gain 50 % instead of 200 %"],
    );
    check(
        &row(&[2_000.0; 2], 4_100.0, 3_950.0, Limit::Api),
        Gain::Whole,
        &["Further servers will not help: the proxy passes on at most 4,100"],
    );
    assert!(row(&[0.0, 0.0], 40_000.0, 0.0, Limit::Api).sentence.contains("no result, because"));
}

#[test]
fn the_table_has_the_articles_column_where_its_rows_are_and_says_that_it_is_simulated() {
    let mut first = row(&[160.0, 159.0], 41_000.0, 318.0, Limit::Api);
    first.service_seconds = Some(0.2);
    first.name = "200 ms".into();
    first.below = Some(Below { keepalive: 1, rate: 300.0, opened_per_second: 1_000.0, time_wait: 2_000 });
    let capacity = Capacity {
        is_simulated: true,
        urls: vec!["http://127.0.0.1:1/".into(), "http://127.0.0.1:2/".into()],
        cores: 2,
        workers: "auto".into(),
        cut_short: None,
        seed: 0,
        rows: vec![first],
    };
    let text = page(&capacity).text(100);
    for says in [
        "Simulated: the servers are embedded and only sleep",
        "160 159",
        "317 of 316",
        "99.7 %",
        "doubles the throughput",
        "318 requests per second that take 100ms each keep 31.8 connections to the servers in use at once",
        "Set keepalive to at least 42, so that all of them stay open when they are briefly idle.",
        "In this measurement, keepalive was 64, and the proxy opened no connections to the servers during the measurement.",
        "With keepalive 1, the proxy opened 1,000 connections per second to the servers and passed on 300 responses per second instead of 318. \
         Each connection costs a handshake",
        "a port for a minute (TIME_WAIT): the 28,232 ports to one address are exhausted after 56.5s.",
    ] {
        // Where a line breaks does not matter.
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(says), "no \"{says}\" in:\n{text}");
    }
    let folded = terminal::folded(&text, 100);
    assert!(folded.lines().all(|line| line.chars().count() <= 100), "{folded}");
    let page = page(&capacity);
    assert_eq!((page.rows.len(), page.rows[0].bars.len(), page.warnings.len()), (1, 3, 1));
    assert_eq!(page.rows[0].expected, Some(319.0));
}

#[test]
fn the_proxys_configuration_names_every_server_and_both_ceilings() {
    let servers = ["127.0.0.1:8001", "[::1]:8002"].map(|address| address.parse().unwrap());
    let listen = "127.0.0.1:9000".parse().unwrap();
    let nothing = "127.0.0.1:9001".parse().unwrap();
    let text = configuration(&servers, nothing, 64, listen, "2", 100_000);
    for line in [
        "worker_processes 2;",
        "server 127.0.0.1:8001;",
        "server [::1]:8002;",
        "keepalive 64;",
        "listen 127.0.0.1:9000;",
        "location = /.millstream-capacity/returned {",
        "proxy_pass http://nothing/.millstream-capacity/returned;",
        "proxy_pass http://apis;",
    ] {
        assert!(text.contains(line), "no \"{line}\" in:\n{text}");
    }
    assert!(text.len() < 6_000, "an answer that is made up has a bound");
}

#[test]
fn servers_that_are_not_equal_go_at_the_slowests_pace() {
    let row = row(&[130.0, 2_600.0], 40_000.0, 250.0, Limit::Api);
    assert_eq!(row.expected(), 260.0);
    check(
        &row,
        Gain::Loss,
        &["the slowest serves 130 per second while another serves 2,600", "a weight of 20"],
    );
}

#[test]
fn the_weight_that_is_advised_never_gives_less_than_equal_turns() {
    for times in 151..20_000 {
        let times = f64::from(times) / 100.0;
        let row = row(&[100.0, 100.0 * times], 4e6, 200.0, Limit::Api);
        let said = sentence(&row);
        let weight =
            said.split_once("a weight of ").and_then(|(_, rest)| rest.split(',').next()?.parse::<f64>().ok());
        let weight = weight.unwrap_or_else(|| panic!("no weight in: {said}"));
        // Each gets its share of the turns, and the one that is first at its own rate bounds them all.
        let together = (100.0 * (weight + 1.0)).min(100.0 * times * (weight + 1.0) / weight);
        assert!(together >= row.in_turns(), "{times} times: {together} with weight {weight}");
    }
}

#[test]
fn one_server_hinders_nobody_and_a_proxy_makes_none_faster() {
    check(&row(&[300.0], 40_000.0, 180.0, Limit::Api), Gain::Loss, &["107ms without it", "178ms through"]);
    check(
        &row(&[300.0], 40_000.0, 400.0, Limit::Api),
        Gain::Some,
        &["33 % more", "sends its requests differently"],
    );
    let says = [
        "2 servers behind the proxy serve more than one by one: 1,200 per second, compared with a sum of 600.",
        "sends its requests differently",
    ];
    check(&row(&[300.0, 300.0], 40_000.0, 1_200.0, Limit::Api), Gain::Whole, &says);
    let mut noisy = row(&[300.0], 40_000.0, 180.0, Limit::Api);
    noisy.alone[0].rounds = of_rates(&[150.0, 170.0, 180.0, 290.0, 320.0]);
    assert_eq!(gain(&noisy), Gain::Nothing, "that may be chance");
}

#[test]
fn servers_that_share_a_full_machine_with_proxy_and_load_are_told_so() {
    let mut row = row(&[11_500.0, 12_600.0], 54_000.0, 21_000.0, Limit::Api);
    assert!(sentence(&row).contains("serve less together than alone"), "{}", sentence(&row));
    row.together.machine_busy = 0.99;
    assert!(sentence(&row).contains("share this machine with the proxy and the load"), "{}", sentence(&row));
}

#[test]
fn nothing_is_advised_where_the_limit_is_not_known() {
    for (limit, is_advised) in [(Limit::Api, true), (Limit::Proxy, true), (Limit::Unknown, false)] {
        for together in [1_000.0, 1_950.0, 600.0] {
            let text = page(&of_own_servers(row(&[1_000.0, 1_000.0], 9_000.0, together, limit))).text(100);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("connections to the servers in use at once."), "{text}");
            assert_eq!(text.contains("Set keepalive"), is_advised, "{limit:?}: {text}");
        }
    }
}

#[test]
fn servers_that_close_each_connection_are_told_so_instead_of_a_pool() {
    let mut row = row(&[300.0, 300.0], 40_000.0, 590.0, Limit::Api);
    row.together.opened_per_second = 588.0;
    let capacity = of_own_servers(row);
    let text = page(&capacity).text(100);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let closes = "The servers close their connections: the proxy opened 588 connections per second to the servers for 590 responses.";
    assert!(text.contains(closes), "{text}");
    assert!(!text.contains("Set keepalive"), "{text}");
}

#[test]
fn servers_that_answer_something_else_each_are_told() {
    let mut row = row(&[300.0, 300.0], 40_000.0, 590.0, Limit::Api);
    row.alone[0].once.body_bytes = 768.0;
    row.alone[1].once.body_bytes = 2_944.0;
    let capacity = of_own_servers(row);
    assert!(page(&capacity).text(100).contains("The servers send different responses"));
}

#[test]
fn the_rule_is_rate_times_time_and_room_for_peaks() {
    // Requests per second, seconds, in use, keepalive.
    for (rate, seconds, in_use, keepalive) in [
        (10_000.0, 0.1, 1_000.0, 1_300),
        // Answers that came at once, of requests before: no load has more on its way than it has connections.
        (850_000.0, 0.1, 2_000.0, 2_600),
        (316.0, 0.2, 63.2, 83),
        (530.0, 0.1, 53.0, 69),
        (100.0, 0.001, 0.1, 1),
        (0.0, 1.0, 0.0, 1),
        (f64::NAN, 1.0, 0.0, 1),
    ] {
        let pool = Pool::needed(rate, seconds, 2_000);
        assert!((pool.in_use - in_use).abs() < 1e-9, "{rate} x {seconds}: {pool:?}");
        assert_eq!(pool.keepalive, keepalive, "{rate} x {seconds}");
        assert!(pool.keepalive as f64 >= pool.in_use, "{pool:?}: fewer than are in use");
    }
}
