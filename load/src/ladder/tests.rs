//! Figures out of rounds, the order of a climb, and what is said of it.

use super::course::{self, Around, Pair, Windows, Wish, breadth, connections, is_brief, lay_out, pairs};
use super::result::{Climbed, Figures, JSON, Measure, Round, compare, figures, wrong};
use super::{gain, page::page};
use crate::correctness::{Caching, How, Keeps};
use crate::outcome::{Counts, Errors, Generator, Latency, Outcome};
use crate::party::{Metered, Spent};
use crate::peer::Party;
use crate::plan::Mode;
use crate::rank::{Spread, median};
use crate::report::json;
use crate::step::Step;
use crate::step::running::Running;
use crate::stop::CutShort;
use std::time::Duration;

fn latency(p50: u64) -> Latency {
    let mut histogram = crate::histogram::empty();
    histogram.record(p50).expect("in range");
    Latency::of(&histogram)
}

fn round(answers: u64, errors: Errors) -> Round {
    let counts =
        Counts { requests: answers, answers, bytes_body: answers * 900, errors, ..Counts::default() };
    let outcome = Outcome {
        search: None,
        by_url: Vec::new(),
        limit: None,
        urls: vec!["http://127.0.0.1:1/".into()],
        mode: Mode::Closed,
        connections: 10,
        threads: 1,
        pipeline: 1,
        http2: None,
        keep_alive: true,
        tls: false,
        began_unix_milliseconds: 0,
        warm_up: 0.0,
        schedule: None,
        thresholds: Vec::new(),
        seconds: 2.0,
        interrupted: false,
        counts,
        latency: latency(1000),
        service: latency(1000),
        first_byte: latency(900),
        slices: Vec::new(),
        generator: Generator { cpu_seconds: 0.01, ..Generator::default() },
    };
    let proxy = Spent { seconds: 1.0, cpu_seconds: 0.01, ..Spent::default() };
    let found = Metered { parties: vec![("proxy", proxy)], ..Metered::default() };
    Round { outcome, reached: Some(3), time_wait: 7, found, through: Vec::new() }
}

fn measure(step: Step, party: Option<Party>, rates: &[u64]) -> Measure {
    let rounds: Vec<Round> = rates.iter().map(|rate| round(rate * 2, Errors::default())).collect();
    Measure {
        step,
        party,
        cannot: None,
        wrong: None,
        note: None,
        figures: figures(&rounds),
        rounds: Vec::new(),
    }
}

fn climbed(measures: Vec<Measure>) -> Climbed {
    let mut measures = measures;
    compare(&mut measures);
    Climbed {
        url: "http://127.0.0.1:8000/".into(),
        is_simulated: false,
        began_unix_milliseconds: 0,
        rounds: 6,
        seed: 0,
        cut_short: None,
        connections: 50,
        threads: 1,
        cores: 2,
        is_local: true,
        alone_milliseconds: 10.0,
        body_bytes: 900,
        compared: How::Body,
        compared_words: "compared".into(),
        caching: Caching { keeps: Keeps::Seconds(10), why: None, advice: None, words: "keeps".into() },
        fallback: None,
        running: None,
        personal: Vec::new(),
        measures,
        verdict: Vec::new(),
        notes: Vec::new(),
    }
}

fn own(step: Step, rates: &[u64]) -> Measure {
    measure(step, Some(Party::Millstream), rates)
}

#[test]
fn a_rate_is_the_median_of_the_rounds_and_tells_its_spread() {
    let figures = own(Step::Lock, &[100, 90, 300]).figures.expect("three rounds");
    assert_eq!(figures.rate, Spread { median: 100.0, least: 90.0, most: 300.0 });
    assert_eq!(
        (figures.p50, figures.answers, figures.reached, figures.time_wait),
        (1000, 980, Some(9), Some(7))
    );
    assert!((figures.mean_body - 900.0).abs() < 1e-9);
    assert!((figures.cpu.proxy.expect("known") - 0.02e6 / 200.0).abs() < 1e-9);
    assert_eq!(figures.cpu.origin, None);
    assert_eq!(median(vec![4.0, 1.0]), 2.5);
    assert_eq!(median(Vec::new()), 0.0);
}

#[test]
fn a_99th_percentile_is_told_where_a_round_has_a_hundred_answers() {
    // A round is two seconds long.
    let text =
        page(&climbed(vec![measure(Step::Alone, None, &[49; 4]), own(Step::Lock, &[50; 4])])).text(100);
    let p99 = |title: &str| {
        let row = text.lines().find(|line| line.starts_with(title)).unwrap_or_default().to_owned();
        let place = text.lines().find_map(|line| line.starts_with("step").then(|| line.find("p99"))?)?;
        Some(row.chars().skip(place).take(3).collect::<String>().trim().to_owned())
    };
    let titles = [Step::Alone, Step::Lock].map(|step| step.entry().title);
    assert_eq!(titles.map(p99), [Some(String::new()), Some("1ms".to_owned())], "{text}");
}

#[test]
fn what_one_round_does_not_know_no_sum_pretends_to() {
    let mut rounds = vec![round(10, Errors::default()), round(10, Errors::default())];
    rounds[1].reached = None;
    let figures: Figures = figures(&rounds).expect("two rounds");
    assert_eq!(figures.reached, None);
}

#[test]
fn factors_are_times_the_api_alone() {
    let climbed = climbed(vec![
        measure(Step::Alone, None, &[100]),
        own(Step::Proxied, &[90]),
        own(Step::Lock, &[2300]),
    ]);
    let times: Vec<f64> = climbed.measures.iter().filter_map(|m| m.figures.as_ref()?.times).collect();
    assert_eq!(times, [1.0, 0.9, 23.0]);
}

#[test]
fn without_the_api_alone_each_party_is_compared_with_its_own_first_step() {
    let nginx = |step: Step, rate: u64| measure(step, Some(Party::Nginx), &[rate]);
    let climbed = climbed(vec![
        own(Step::Proxied, &[100]),
        nginx(Step::Proxied, 50),
        own(Step::Lock, &[300]),
        nginx(Step::Lock, 200),
    ]);
    let times: Vec<f64> = climbed.measures.iter().filter_map(|m| m.figures.as_ref()?.times).collect();
    assert_eq!(times, [1.0, 1.0, 3.0, 4.0]);
}

#[test]
fn a_step_with_a_wrong_answer_has_no_factor_and_the_reason_is_told() {
    let mut lock = own(Step::Lock, &[100_000]);
    lock.wrong = wrong(&Errors { body: 2, ..Errors::default() });
    let mut climbed = climbed(vec![measure(Step::Alone, None, &[100]), own(Step::Quiet, &[100]), lock]);
    assert_eq!(climbed.measures[2].figures.as_ref().and_then(|figures| figures.times), None);
    let words = gain::sentences(&climbed).join("\n");
    assert!(
        words.contains("is not counted: ") && words.contains("2 responses with a different body"),
        "{words}"
    );
    assert!(!words.contains("1,000"), "its rate wins nothing: {words}");
    climbed.verdict = gain::sentences(&climbed);
    let text = page(&climbed).text(100);
    assert!(text.lines().any(|line| line.starts_with("lock") && line.contains("wrong")), "{text}");
}

/// The API alone with so many right answers and errors a round.
fn failing(answers: u64, errors: Errors) -> Measure {
    let mut alone = measure(Step::Alone, None, &[]);
    alone.figures = figures(&[round(answers, errors), round(answers, errors)]);
    alone.wrong = alone.figures.as_ref().and_then(|figures| wrong(&figures.errors));
    alone
}

#[test]
fn an_api_that_breaks_under_load_is_the_first_thing_said() {
    let errors = Errors { status: 19_000, timeout: 7, ..Errors::default() };
    let mut passed_on = own(Step::KeepAlive, &[500]);
    passed_on.wrong = Some("it responds with 503 and the API with 200".into());
    let climbed = climbed(vec![failing(1_000, errors), passed_on, own(Step::Lock, &[85_000; 3])]);
    let words = gain::sentences(&climbed);
    let first = "The API breaks under this load, with nothing in front of it: on 50 connections 95 % of the requests got no correct response (38,000 responses with a different status than the API's own, 14 without a response in time), and it gives 500 correct responses per second. Its responses to the few single requests before the load were correct.";
    assert!(words[0].starts_with(first), "{}", words[0]);
    let words = words.join("\n");
    assert!(words.contains("they pass on the API's responses, including errors: \"keep-alive\""), "{words}");
    assert_eq!(climbed.measures[2].figures.as_ref().and_then(|figures| figures.times), Some(170.0));
    assert_eq!(climbed.measures[0].figures.as_ref().and_then(|figures| figures.times), None);

    let bodies = Errors { body: 5, ..Errors::default() };
    let climbed = super::tests::climbed(vec![failing(1_000, bodies), own(Step::Lock, &[2_000])]);
    let words = gain::sentences(&climbed).join("\n");
    assert!(words.contains("before the load and after it were correct"), "{words}");
}

#[test]
fn fewer_rounds_than_four_show_figures_and_claim_nothing() {
    for rounds in 1..4 {
        let mut climbed = climbed(vec![
            measure(Step::Alone, None, &vec![100; rounds]),
            own(Step::Microcache, &vec![4_000; rounds]),
            own(Step::Lock, &vec![130; rounds]),
        ]);
        climbed.rounds = rounds as u32;
        climbed.verdict = gain::sentences(&climbed);
        let text = page(&climbed).text(100);
        let says = format!("Inconclusive: {rounds} of 4 necessary rounds measured");
        assert!(text.starts_with(&says), "{text}");
        assert!(text.contains("4,000") && text.contains("×40"), "{text}");
        assert!(!text.contains("Use ") && !text.contains("Steps that"), "{text}");
        assert_eq!(gain::recommended(&climbed), None);
        if rounds == 1 {
            assert!(!text.contains('±'), "{text}");
            assert!(!page(&climbed).html().contains('±'));
        }
    }
}

#[test]
fn a_row_without_any_answer_says_so() {
    let climbed = climbed(vec![measure(Step::Alone, None, &[100; 3]), own(Step::KeepAlive, &[0; 3])]);
    assert_eq!(climbed.measures[1].figures.as_ref().and_then(|figures| figures.times), None);
    let words = gain::sentences(&climbed).join("\n");
    assert!(words.contains("\"keep-alive\" with millstream gave no response: all requests were"), "{words}");
}

/// The API alone with answers of so many milliseconds, the first byte after that many.
fn alone_with(latencies: (u64, u64), rate: u64) -> Measure {
    let mut round = round(rate * 2, Errors::default());
    (round.outcome.latency, round.outcome.first_byte) =
        (latency(latencies.0 * 1000), latency(latencies.1 * 1000));
    let rounds = vec![round.clone(), round.clone(), round];
    let mut alone = Measure { figures: figures(&rounds), rounds, ..measure(Step::Alone, None, &[rate; 3]) };
    alone.figures.as_mut().expect("three rounds").cpu.origin = Some(300.0);
    alone
}

#[test]
fn an_api_that_waits_for_an_acknowledgement_is_told_so() {
    let said = |alone_milliseconds: f64, alone: Measure| {
        let all = climbed(vec![alone, own(Step::Lock, &[60_000; 3])]);
        gain::sentences(&Climbed { alone_milliseconds, ..all }).join("\n")
    };
    for (once, latencies) in [(0.384, (44, 1)), (51.0, (92, 51))] {
        let words = said(once, alone_with(latencies, 1_136));
        assert!(
            words.contains("Nagle") && words.contains("The factors below measure this wait too."),
            "{words}"
        );
    }
    let words = said(51.0, alone_with((92, 91), 1_136));
    assert!(!words.contains("Nagle"), "a queue: {words}");
}

#[test]
fn an_api_that_waits_for_something_else_under_load_is_told_so() {
    let said = |alone_milliseconds: f64, origin: f64| {
        let mut alone = alone_with((44, 44), 1_136);
        alone.figures.as_mut().expect("figures").cpu.origin = Some(origin);
        let all = climbed(vec![alone, own(Step::Lock, &[60_000; 3])]);
        gain::sentences(&Climbed { alone_milliseconds, ..all }).join("\n")
    };
    let words = said(0.384, 300.0);
    let says = "One request takes 384us, but on 50 connections half of the API's own responses take 44ms or more, although it works on 0.44 requests at once (Little's law) and no CPU is saturated. It waits for something that appears only under load";
    assert!(words.contains(says) && !words.contains("Nagle"), "{words}");
    // A worker that has work all the time lets the others wait; so does one without CPU.
    for words in [said(0.88, 300.0), said(0.384, 900.0)] {
        assert!(!words.contains("It waits for something"), "{words}");
    }
}

#[test]
fn a_restless_machine_is_named_before_its_figures() {
    let climbed =
        climbed(vec![measure(Step::Alone, None, &[50, 100, 250]), own(Step::KeepAlive, &[80, 100, 190])]);
    let words = gain::sentences(&climbed);
    assert!(words[0].contains("No step gives clearly more"), "{words:?}");
    assert!(words[1].contains("differ by ±") && words[1].contains("--rounds"), "{words:?}");
}

#[test]
fn timeouts_are_errors_and_no_wrong_answers() {
    assert_eq!(wrong(&Errors { timeout: 9, connect: 1, closed: 1, ..Errors::default() }), None);
    assert!(
        wrong(&Errors { status: 1, short_body: 1, ..Errors::default() })
            .is_some_and(|why| why.contains("cut short"))
    );
}

/// Six rounds about a rate, a fiftieth to each side at the most, in an order that `turn` changes.
fn six(rate: u64, turn: usize) -> Vec<u64> {
    let mut rates: Vec<u64> =
        [98, 99, 100, 100, 101, 102].iter().map(|percent| rate * percent / 100).collect();
    rates.rotate_left(turn);
    rates
}

#[test]
fn the_first_sentence_is_the_answer_and_the_others_say_what_each_step_brings() {
    // The article's figures.
    let mut wrong = own(Step::Headers, &six(90_000, 0));
    wrong.wrong = Some("its answers were not the API's".into());
    let climbed = climbed(vec![
        measure(Step::Alone, None, &six(1_664, 1)),
        own(Step::Quiet, &six(2_141, 2)),
        own(Step::Lock, &six(31_625, 3)),
        wrong,
        own(Step::Memory, &six(33_000, 4)),
        own(Step::Log, &six(28_000, 5)),
    ]);
    let words = gain::sentences(&climbed);
    assert_eq!(
        words[0],
        "Use \"in memory\": 33,000 requests/s, 20 times the 1,664 requests/s of \"the API alone\"."
    );
    let text = words.join("\n");
    for says in [
        "Steps that give more: \"compression, log off\" (1.3 times the step before), \"lock, stale while updating\" (15 times the step",
        "Steps that are not worth it here, with a gain of less than a tenth: \"in memory\" (1.04 times the step before).",
        "Steps that have a price: \"buffered access log\" (0.85 times the step before).",
        "\"as the API's headers allow\" with millstream is not counted",
    ] {
        assert!(text.contains(says), "no \"{says}\" in:\n{text}");
    }
    assert_eq!(gain::recommended(&climbed), Some(Step::Memory));
}

#[test]
fn steps_that_the_rounds_do_not_tell_apart_share_the_first_place() {
    let noisy = |rate: u64, turn: usize| {
        let mut rates: Vec<u64> =
            [70, 90, 100, 105, 120, 130].iter().map(|percent| rate * percent / 100).collect();
        rates.rotate_left(turn);
        rates
    };
    let mut all = climbed(vec![
        measure(Step::Alone, None, &six(100, 1)),
        own(Step::Lock, &noisy(2_000, 0)),
        own(Step::Memory, &noisy(2_100, 3)),
    ]);
    let first = gain::sentences(&all).remove(0);
    assert!(
        first.starts_with("Use \"in memory\" or \"lock, stale while updating\" (alike by these rounds): "),
        "{first}"
    );
    // Four rounds never leave one of five steps of a kind out of the best, whatever they are.
    all = climbed(vec![
        own(Step::Microcache, &[90, 91, 93, 94]),
        own(Step::Lock, &[92, 95, 96, 97]),
        own(Step::Headers, &[2_000, 2_010, 2_020, 2_030]),
        own(Step::Memory, &[2_005, 2_015, 2_018, 2_033]),
        own(Step::Memory, &[100, 101, 102, 103]),
    ]);
    all.rounds = 4;
    let first = gain::sentences(&all).remove(0);
    assert!(
        first.starts_with("Inconclusive: 4 rounds of 5 steps do not show which is best; 5 do (--rounds 5)."),
        "{first}"
    );
    // Where none is more, nobody wins by chance.
    let none = climbed(vec![measure(Step::Alone, None, &noisy(100, 0)), own(Step::Lock, &noisy(109, 2))]);
    let first = gain::sentences(&none).remove(0);
    assert!(first.starts_with("No step gives clearly more than \"the API alone\": 10"), "{first}");
}

#[test]
fn what_the_configuration_has_is_marked_and_the_answer_is_the_best_beyond_it() {
    let mut climbed = climbed(vec![
        measure(Step::Alone, None, &six(100, 0)),
        own(Step::KeepAlive, &six(120, 1)),
        own(Step::Microcache, &six(5_000, 2)),
        own(Step::Lock, &six(6_000, 3)),
        own(Step::Memory, &six(9_000, 4)),
    ]);
    let has = vec![Step::Proxied, Step::KeepAlive, Step::Microcache];
    climbed.running = Some(Running { file: "nginx.conf".into(), has, at: Step::Microcache });
    climbed.verdict = gain::sentences(&climbed);
    let text = page(&climbed).text(100);
    let first = "Use \"in memory\": 9,000 requests/s, 1.8 times the 5,000 requests/s of \"microcache 1 s\". You are here: \"microcache 1 s\", without \"compression, log off\".";
    assert_eq!(climbed.verdict[0], first);
    assert!(
        text.contains("microcache 1 s (you are here)") && text.contains("keep-alive (you have it)"),
        "{text}"
    );
    assert!(
        !text.contains("in memory (") && page(&climbed).rows[2].name.ends_with("(you are here)"),
        "{text}"
    );
    // At the top nothing is recommended.
    climbed.running =
        Some(Running { file: "nginx.conf".into(), has: Step::ALL[1..8].to_vec(), at: Step::Memory });
    let first = gain::sentences(&climbed).remove(0);
    assert_eq!(
        first,
        "No step beyond \"in memory\" was measured: it gives 9,000 requests/s. You are here: \"in memory\"."
    );
    // What lies below it and is lacking is named: the figures are those of the whole.
    let has = vec![Step::Proxied, Step::KeepAlive, Step::Microcache, Step::Headers, Step::Memory];
    climbed.running = Some(Running { file: "nginx.conf".into(), has, at: Step::Memory });
    let first = gain::sentences(&climbed).remove(0);
    let says =
        " You are here: \"in memory\", without \"compression, log off\" and \"lock, stale while updating\".";
    assert!(first.ends_with(says), "{first}");
    // What was not measured has no figures to stand at.
    climbed.running =
        Some(Running { file: "nginx.conf".into(), has: vec![Step::Headers], at: Step::Headers });
    let sentences = gain::sentences(&climbed);
    assert!(sentences.iter().all(|words| !words.contains("You are here")), "{sentences:?}");
}

#[test]
fn a_step_that_protects_the_api_is_not_called_worthless() {
    let reached = |mut measure: Measure, requests: u64| {
        measure.figures.as_mut().expect("six rounds").reached = Some(requests);
        measure
    };
    let mut keep_alive = own(Step::KeepAlive, &six(102, 1));
    let figures = keep_alive.figures.as_mut().expect("six rounds");
    (figures.time_wait, figures.cpu.proxy) = (Some(43), Some(100.0));
    let mut proxied = own(Step::Proxied, &six(100, 2));
    let figures = proxied.figures.as_mut().expect("six rounds");
    (figures.time_wait, figures.cpu.proxy) = (Some(1_970), Some(205.0));
    let climbed = climbed(vec![
        measure(Step::Alone, None, &six(300, 3)),
        proxied,
        keep_alive,
        reached(own(Step::Microcache, &six(149_302, 4)), 38),
        reached(own(Step::Lock, &six(131_407, 5)), 2),
        reached(own(Step::Headers, &six(131_000, 0)), 0),
    ]);
    let text = gain::sentences(&climbed).join("\n");
    let says = "Steps that save something: \"keep-alive\" (1.02 times the step before; 43 sockets in TIME_WAIT instead of 1,970; 100 µs of the proxy's CPU per response instead of 205), \"lock, stale while updating\" (0.88 times the step before; 19 times fewer requests reached the API).";
    assert!(text.contains(says), "{text}");
    assert!(
        text.contains("Steps that cost more than they give: \"proxied, no keep-alive\" (0.33 times"),
        "{text}"
    );
}

#[test]
fn an_api_that_cannot_be_cached_is_told_so_first_and_unknown_is_not_the_same_as_none() {
    let mut cached = own(Step::Microcache, &six(450, 0));
    let asked = |measure: &mut Measure, reached: Option<u64>| {
        measure.figures.as_mut().expect("figures").reached = reached
    };
    asked(&mut cached, Some(5_400));
    let mut all =
        climbed(vec![measure(Step::Alone, None, &six(500, 1)), own(Step::KeepAlive, &six(505, 2)), cached]);
    all.caching = Caching {
        keeps: Keeps::No,
        why: Some("it sends Cache-Control: no-store".into()),
        advice: Some("A max-age would help.".into()),
        words: "It cannot be cached.".into(),
    };
    let words = gain::sentences(&all);
    assert_eq!(
        words[0],
        "No proxy can make this faster: the API's responses cannot be cached as they are (it sends Cache-Control: no-store), and every request reached the API, even with a cache. A max-age would help."
    );
    assert!(words[1].starts_with("No step gives clearly more than \"the API alone\""), "{words:?}");
    all.caching.why = None;
    assert!(gain::sentences(&all)[0].contains("the API's header fields allow it"));
    asked(&mut all.measures[2], None);
    assert!(!gain::sentences(&all)[0].contains("reached the API"));
}

#[test]
fn a_cache_that_would_mix_clients_up_is_the_first_thing_said_and_was_no_cache_that_stored_nothing() {
    let personal = "The API's responses are personal and must not be cached as they are: …";
    let reached = |step: Step, reached: u64| {
        let mut measure = own(step, &six(450, 0));
        measure.figures.as_mut().expect("figures").reached = Some(reached);
        measure
    };
    let all = |keeps: Keeps, is_wrong: bool| {
        let mut headers = reached(Step::Headers, 0);
        headers.wrong = is_wrong.then(|| "who asks with another Cookie gets what somebody else got".into());
        let measures =
            vec![measure(Step::Alone, None, &six(500, 1)), reached(Step::Microcache, 5_400), headers];
        let mut all = climbed(measures);
        (all.caching.keeps, all.personal) = (keeps, vec![personal.into()]);
        gain::sentences(&all)
    };
    for (keeps, is_wrong) in [
        (Keeps::Seconds(60), true),
        (Keeps::Seconds(60), false),
        (Keeps::Silent, true),
        (Keeps::Silent, false),
    ] {
        let words = all(keeps, is_wrong);
        assert_eq!(words[0], personal, "{keeps:?} {is_wrong}: {words:?}");
        assert!(!words.iter().any(|words| words.starts_with("Use ")), "{words:?}");
        assert_eq!(words.iter().filter(|words| *words == personal).count(), 1, "{words:?}");
        assert!(!words.iter().any(|words| words.contains("Nothing was stored")), "{words:?}");
    }
}

#[test]
fn an_api_that_forbids_caching_is_told_so_first() {
    let mut climbed = climbed(vec![measure(Step::Alone, None, &[100]), own(Step::Lock, &[101])]);
    climbed.caching = Caching {
        keeps: Keeps::No,
        why: Some("no-store".into()),
        advice: None,
        words: "It cannot be cached: about 1x.".into(),
    };
    let words = gain::sentences(&climbed).join("\n");
    assert!(words.contains("about 1x") || words.contains("no-store"), "{words}");
}

#[test]
fn what_a_party_cannot_do_is_a_line_of_the_table() {
    let mut nobody = measure(Step::Tls, Some(Party::Varnish), &[]);
    nobody.cannot = Some("does not support TLS itself".into());
    let text = page(&climbed(vec![measure(Step::Alone, None, &[100]), nobody])).text(100);
    assert!(text.contains("cannot: varnish does not support TLS itself"), "{text}");
}

fn laid_out(pairs: &[Pair], rounds: u32, seed: u64) -> Vec<Pair> {
    let wish = Wish { rounds: Some(rounds), each: None, limit: Duration::from_secs(60), seed };
    lay_out(pairs, wish, Around::default(), None).stops
}

#[test]
fn every_round_has_all_steps_in_an_order_by_chance_that_its_seed_repeats() {
    let all = pairs(&[Step::Alone, Step::Quiet, Step::Lock], &[Party::Millstream, Party::Nginx]);
    assert_eq!(all.len(), 5);
    let stops = laid_out(&all, 200, 7);
    assert_eq!(stops, laid_out(&all, 200, 7));
    assert_ne!(stops, laid_out(&all, 200, 8));
    let mut places = [0; 5];
    for round in stops.chunks(5) {
        let mut steps = round.to_vec();
        places[steps.iter().position(|pair| pair.0 == Step::Alone).expect("in each round")] += 1;
        steps.sort();
        assert_eq!(steps, all);
    }
    // Never the first, and at each other place about as often as at any.
    assert!(places[0] == 0 && places[1..].iter().all(|count| (25..=90).contains(count)), "{places:?}");
}

#[test]
fn the_default_ladder_stays_within_two_minutes_and_others_are_given_four_rounds() {
    let wish = Wish { rounds: None, each: None, limit: Duration::from_secs(105), seed: 1 };
    let is_able = |(step, party): &Pair| party.is_none_or(|party| party.can(*step, false).is_ok());
    for (parties, queue, rounds, most) in [(1, 0, 6, 105), (1, 1, 5, 105), (2, 0, 4, 120), (4, 0, 4, 215)] {
        for fallback in [None, Some("1s"), Some("1d")] {
            let around = Around { before: Duration::from_millis(120), queue: Duration::from_secs(queue) };
            let mut pairs = pairs(&Step::ALL, &Party::ALL[..parties]);
            pairs.retain(is_able);
            let course = lay_out(&pairs, wish, around, fallback);
            assert!(course.windows.usual >= Duration::from_millis(250), "{course:?}");
            assert!(course.windows.brief >= Duration::from_millis(1_200), "{course:?}");
            assert!(
                course.whole <= Duration::from_secs(most),
                "{parties} {queue} {fallback:?} {:?}",
                course.whole
            );
            assert!(course.rounds >= rounds, "{parties} {queue} {fallback:?}: {}", course.rounds);
        }
    }
}

#[test]
fn what_the_user_asks_for_is_what_is_measured() {
    let each = Duration::from_millis(300);
    let wish = Wish { rounds: Some(7), each: Some(each), limit: Duration::from_secs(1), seed: 0 };
    let pairs = pairs(&[Step::Microcache, Step::Tls], &[Party::Millstream]);
    let course = lay_out(&pairs, wish, Around::default(), None);
    assert_eq!(
        (course.rounds, course.stops.len(), course.windows),
        (7, 14, Windows { usual: each, brief: each })
    );
}

#[test]
fn answers_are_kept_briefly_by_the_microcache_and_where_nothing_else_is_said() {
    assert!(is_brief(Step::Microcache, None) && is_brief(Step::Lock, Some("1d")));
    assert!(
        is_brief(Step::Tls, Some("1s")) && !is_brief(Step::Tls, Some("1m")) && !is_brief(Step::Tls, None)
    );
    assert!(!is_brief(Step::Alone, Some("1s")) && !is_brief(Step::KeepAlive, Some("1s")));
}

#[test]
fn a_slow_api_gets_fewer_connections_and_a_fast_one_the_usual_number() {
    assert_eq!(connections(Duration::from_micros(300)), 50);
    assert_eq!(connections(Duration::from_millis(180)), 11);
    assert_eq!(connections(Duration::from_secs(3)), 8);
}

#[test]
fn http_2_has_as_many_requests_at_once_on_a_few_connections_and_never_more() {
    let words = |connections: u32| course::told(connections, connections.min(2), [Step::Http2]);
    for (connections, expected) in [
        (1, "1 connection with 1 stream"),
        (2, "1 connection with 2 streams"),
        (3, "1 connection with 3 streams"),
        (4, "2 connections with 2 streams each"),
        (8, "2 connections with 4 streams each"),
        (13, "2 connections with 6 streams each"),
        (50, "5 connections with 10 streams each"),
        (10_000, "1,000 connections with 10 streams each"),
    ] {
        assert!(
            words(connections).ends_with(&format!(" (over HTTP/2: {expected})")),
            "{}",
            words(connections)
        );
    }
    for connections in 1..300 {
        let shared = breadth(Step::Http2, connections, 2);
        let at_once = shared.connections * shared.streams;
        assert!(at_once <= connections && at_once * 10 >= connections * 9 || connections < 20, "{shared:?}");
        assert_eq!(breadth(Step::Tls, connections, 2).connections, connections);
    }
}

/// Over HTTP/2, with so much CPU per response for proxy and load.
fn over_http2(rates: &[u64], proxy: f64, load: f64) -> Measure {
    let mut measure = own(Step::Http2, rates);
    let figures = measure.figures.as_mut().expect("three rounds");
    (figures.connections, figures.streams) = (5, 10);
    (figures.cpu.proxy, figures.cpu.generator) = (Some(proxy), load);
    measure
}

#[test]
fn http_2_is_compared_with_tls_alone_and_its_breadth_is_told() {
    let words = |rates: &[u64], rounds: u32| {
        let mut climbed = climbed(vec![
            measure(Step::Alone, None, &[100; 6]),
            own(Step::Tls, &six(1000, 0)),
            over_http2(rates, 4.0, 2.0),
        ]);
        climbed.rounds = rounds;
        climbed.verdict = gain::sentences(&climbed);
        (climbed.verdict.join("\n"), page(&climbed).text(100), page(&climbed).subtitle)
    };
    let (said, text, subtitle) = words(&six(2000, 1), 6);
    let sentence = "HTTP/2 with Millstream gives 2 times as many requests/s as \"over TLS\", for 4.0 µs of the proxy's CPU per request instead of 10.0. The load generator itself used 2.0 µs instead of 5.0";
    assert!(said.contains(sentence), "{said}");
    assert!(said.contains("Steps that give more: ") && said.contains("\"over HTTP/2\" (2 times"), "{said}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for place in [&flat, &subtitle] {
        assert!(
            place.contains("50 connections (over HTTP/2: 5 connections with 10 streams each)"),
            "{place}"
        );
    }
    assert!(words(&six(500, 2), 6).0.contains("Steps that have a price: \"over HTTP/2\" (0.5 times"));
    let said = words(&[900, 1015, 1300, 980, 1100, 950], 6).0;
    assert!(
        said.contains("neither clearly more nor clearly fewer requests/s than \"over TLS\", for 4.0 µs"),
        "{said}"
    );
    assert!(!words(&[2000; 3], 3).0.contains("HTTP/2 with"), "of three rounds nothing is claimed");
}

#[test]
fn the_json_has_each_measure_by_the_names_of_step_and_party_and_no_rounds_twice() {
    let climbed = climbed(vec![measure(Step::Alone, None, &[100]), own(Step::Lock, &[200])]);
    let text = json::write_versioned(JSON, &climbed);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let lock = &value["measures"][1];
    assert_eq!(
        (&value["schema"], &lock["step"], &lock["party"]),
        (&JSON.into(), &"lock".into(), &"millstream".into())
    );
    assert_eq!((&lock["figures"]["times"], &lock["rounds"]), (&2.0.into(), &serde_json::Value::Null));
    // As `bench` names it.
    assert!(lock["figures"]["cpu_per_answer_us"]["generator"].is_number(), "{}", lock["figures"]);
}

#[test]
fn haproxys_table_is_read_by_its_heading() {
    let text = "# \
     pxname,svname,qcur,scur,stot,bin\nclients,FRONTEND,,1,900,7\napi,one,0,1,42,7\napi,BACKEND,0,1,43,7\n";
    assert_eq!(super::stand::of_statistics(text), Some(42));
    assert_eq!(super::stand::of_statistics(""), None);
    assert_eq!(super::stand::of_statistics("# pxname,svname\napi,one\n"), None);
}

#[test]
fn the_page_has_a_row_for_each_step_and_no_length_for_a_wrong_one() {
    let mut lock = own(Step::Lock, &[100_000]);
    lock.wrong = Some("somebody else's".into());
    let mut climbed = climbed(vec![
        measure(Step::Alone, None, &[100]),
        lock,
        measure(Step::Lock, Some(Party::Nginx), &[90_000]),
    ]);
    climbed.verdict = gain::sentences(&climbed);
    let page = page(&climbed);
    let names: Vec<(&str, usize)> = page.rows.iter().map(|row| (row.name.as_str(), row.bars.len())).collect();
    assert_eq!(names, [("the API alone", 1), ("lock, stale while updating", 2)]);
    assert_eq!((page.rows[1].bars[0].rates, page.rows[1].bars[0].told.as_str()), (None, "wrong responses"));
    assert_eq!(page.rows[1].bars[1].told, "90,000/s · ×900");
    assert!(page.html().contains("somebody else"));
}

#[test]
fn a_ladder_that_was_cut_short_says_so_and_compares_nothing_with_nothing() {
    let mut climbed =
        climbed(vec![measure(Step::Alone, None, &[100]), Measure { figures: None, ..own(Step::Quiet, &[]) }]);
    climbed.cut_short = Some(CutShort { measured: 1, of: 6 });
    climbed.verdict = gain::sentences(&climbed);
    let text = page(&climbed).text(100);
    for says in ["Stopped after 1 of 6 measurements", "not measured millstream", "Only \"the API alone\""] {
        assert!(text.contains(says), "no \"{says}\" in:\n{text}");
    }
    assert_eq!(page(&climbed).warnings, [CutShort { measured: 1, of: 6 }.words()]);
}
