//! Figures as they come from real systems, each with the party that must be named.

use super::*;

/// A party of so many threads over ten seconds: each ran for this share and stood ready for that.
fn threads(number: f64, ran: f64, stood_ready: f64) -> Option<Spent> {
    Some(Spent {
        seconds: 10.0,
        cpu_seconds: 10.0 * number * ran,
        busiest: ran,
        wanted: (ran + stood_ready).min(1.0),
        wanted_cores: number * (ran + stood_ready).min(1.0),
        held_back: 0.0,
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
    Some(Once { connect: 0.000_05, body_bytes: 900.0, ..alike(total, total) })
}

/// Single requests that all took as long.
fn alike(first_byte: f64, total: f64) -> Once {
    Once { first_byte, total, mean: total, least: total, least_first_byte: first_byte, ..Once::default() }
}

/// Two cores, everything on them, nothing cached, everybody idle.
fn idle(top: Run) -> Evidence {
    Evidence {
        top,
        origin_share: 1.0,
        proxy: threads(2.0, 0.05, 0.01),
        api: threads(4.0, 0.02, 0.0),
        generator: threads(2.0, 0.03, 0.0),
        machine_busy: 0.12,
        cores: 2,
        ..Evidence::default()
    }
}

#[track_caller]
fn check(what: &str, evidence: &Evidence, limit: Limit, says: &[&str]) -> Verdict {
    let verdict = judge(evidence);
    let text = verdict.text();
    assert_eq!(verdict.limit, limit, "{what}: {text}");
    for part in says {
        assert!(text.contains(part), "{what}: no \"{part}\" in: {text}");
    }
    assert!(!verdict.why.is_empty(), "{what}: a verdict without a reason");
    verdict
}

#[test]
fn an_api_that_waits_is_the_limit_and_littles_law_says_how_many_it_works_on() {
    let evidence = Evidence { direct: once(200.0), api_rate: Some(158.0), ..idle(run(64, 158.0)) };
    let says = ["The API is the limit.", "32 requests at once (Little's law)", "other 32 of 64 wait"];
    let verdict = check("32 workers that sleep", &evidence, Limit::Api, &says);
    assert_eq!(verdict.doubts, [""; 0]);

    let evidence = Evidence { fewer: Some(run(32, 158.0)), ..evidence };
    check(
        "twice the connections",
        &evidence,
        Limit::Api,
        &["64 connections instead of 32 brought no more answers"],
    );
}

#[test]
fn an_api_that_takes_all_comers_is_the_limit_by_its_own_time() {
    let fewer = Some(run(16, 16.0 / 0.2));
    let evidence = Evidence { direct: once(199.0), fewer, ..idle(run(64, 64.0 / 0.2)) };
    let says = [
        "the API needs nearly all of that itself",
        "64 connections at 200 ms each give 320",
        "more connections would bring more",
    ];
    check("event loop that sleeps", &evidence, Limit::Api, &says);
}

#[test]
fn an_api_out_of_cpu_is_the_limit() {
    // Five processes that hash on two cores; the others wait for a core each time they wake.
    let evidence = Evidence {
        api: threads(5.0, 0.37, 0.6),
        proxy: threads(2.0, 0.02, 0.9),
        generator: threads(1.0, 0.01, 0.9),
        machine_busy: 1.0,
        direct: once(10.0),
        ..idle(run(64, 185.0))
    };
    check("a page that is rendered", &evidence, Limit::Api, &["wanted the CPU", "often waiting for a core"]);
    // One thread in one core's worth of work, the other core idle.
    let evidence = Evidence { api: threads(1.0, 0.98, 0.01), machine_busy: 0.7, ..evidence };
    check("one thread", &evidence, Limit::Api, &["wanted the CPU 99 % of the time", "0.98 of 2 cores"]);
    // Elsewhere its CPU cannot be seen, but the time is still its own.
    let evidence = Evidence {
        api: None,
        proxy: threads(2.0, 0.05, 0.0),
        generator: threads(1.0, 0.02, 0.0),
        ..evidence
    };
    check("on another machine", &evidence, Limit::Api, &["The API's CPU use cannot be seen"]);
}

#[test]
fn an_api_that_its_container_holds_back_is_out_of_cpu_though_it_rests() {
    let held = threads(8.0, 0.025, 0.0).map(|spent| Spent { held_back: 0.98, ..spent });
    let evidence = Evidence { api: held, direct: once(0.3), ..idle(run(8, 600.0)) };
    let says = ["Its CPU limit (a container's, say) held it back in 98 % of its periods", "0.20 of 2 cores"];
    let verdict = check("docker --cpus 0.2", &evidence, Limit::Api, &says);
    assert!(!verdict.text().contains("Nobody"), "{}", verdict.text());
    // Of two the one that is held back, however much the other does.
    let busy = Evidence { proxy: threads(2.0, 0.97, 0.0), ..evidence };
    check("beside a busy proxy", &busy, Limit::Api, &["held it back"]);
    let seldom = threads(8.0, 0.025, 0.0).map(|spent| Spent { held_back: 0.2, ..spent });
    let evidence = Evidence { api: seldom, direct: once(40.0), ..idle(run(32, 300.0)) };
    check("now and then", &evidence, Limit::Api, &["waits its turn"]);
}

#[test]
fn a_proxy_out_of_cpu_is_the_limit() {
    let evidence = Evidence {
        proxy: threads(1.0, 0.97, 0.02),
        api: threads(2.0, 0.2, 0.1),
        generator: threads(1.0, 0.35, 0.05),
        machine_busy: 0.9,
        api_rate: Some(90_000.0),
        direct: once(0.05),
        ..idle(run(64, 40_000.0))
    };
    let says = [
        "The proxy is the limit.",
        "which is 24 µs per answer",
        "The API gives 90,000 answers per second without the proxy",
    ];
    check("one worker", &evidence, Limit::Proxy, &says);
    // All on two full cores: everybody always has work, and the proxy has most.
    let evidence = Evidence {
        proxy: threads(2.0, 0.5, 0.49),
        generator: threads(2.0, 0.35, 0.6),
        api: threads(2.0, 0.15, 0.3),
        machine_busy: 1.0,
        ..evidence
    };
    check("a full machine", &evidence, Limit::Proxy, &["generator used 35 % of it"]);
    // From a cache the API has no part in it, however busy it is with other things.
    let evidence = Evidence { origin_share: 0.001, api: threads(2.0, 0.6, 0.4), ..evidence };
    check("hits", &evidence, Limit::Proxy, &["Its threads wanted the CPU"]);
}

#[test]
fn a_proxy_that_dawdles_is_the_limit_without_any_cpu() {
    let evidence = Evidence { direct: once(1.0), through: once(41.0), ..idle(run(8, 8.0 / 0.041)) };
    check(
        "40 ms of a delayed acknowledgement",
        &evidence,
        Limit::Proxy,
        &["1 ms when it is sent directly to the API and 41 ms through the proxy"],
    );
}

#[test]
fn a_generator_limited_to_one_slow_thread_is_named() {
    let evidence = Evidence {
        generator: threads(1.0, 0.97, 0.03),
        proxy: threads(2.0, 0.35, 0.05),
        api: threads(2.0, 0.2, 0.05),
        machine_busy: 0.98,
        ..idle(run(64, 60_000.0))
    };
    check("-t 1", &evidence, Limit::Generator, &["the figure is a floor"]);
    // Niced: it wants a core all the time and gets half of one.
    let evidence =
        Evidence { generator: threads(1.0, 0.45, 0.54), proxy: threads(2.0, 0.4, 0.2), ..evidence };
    check("niced", &evidence, Limit::Generator, &["often waiting for a core"]);
    // A generator that asks too little: nothing is busy, nothing reaches the API.
    let evidence = Evidence { origin_share: 0.0, ..idle(run(1, 900.0)) };
    check("one connection to a cache", &evidence, Limit::Generator, &["it would have answered more load"]);
}

#[test]
fn on_a_machine_full_of_strangers_the_hungriest_is_the_limit_unless_the_api_has_the_requests() {
    let evidence = Evidence {
        proxy: threads(1.0, 0.5, 0.15),
        api: threads(1.0, 0.1, 0.07),
        generator: threads(1.0, 0.11, 0.6),
        machine_busy: 0.99,
        direct: once(0.018),
        ..idle(run(64, 9_000.0))
    };
    check("a fast API", &evidence, Limit::Proxy, &["Of 64 requests under way the API worked on only 0.2"]);
    check("a slow one", &Evidence { direct: once(4.0), ..evidence.clone() }, Limit::Api, &["waits its turn"]);
    // Nobody clearly more than the others: then it is not known, and that is said.
    let even = Evidence { proxy: threads(1.0, 0.17, 0.1), ..evidence };
    check(
        "all alike",
        &even,
        Limit::Others,
        &["processes other than API, proxy and generator used 80 % of it"],
    );
    let stolen = Evidence { stolen: 0.4, machine_busy: 0.8, ..even.clone() };
    check("a host that is full", &stolen, Limit::Others, &["gave 40 % of its CPU to other machines"]);
    let unseen = Evidence { api: None, ..even };
    assert_ne!(judge(&unseen).limit, Limit::Others, "they may be the API");
}

#[test]
fn what_a_hypervisor_took_was_wanted_too_unless_it_took_much() {
    // As measured in front of a fast API: with nothing stolen the proxy's one thread wants a core for 0.97 of the time.
    let evidence = Evidence {
        proxy: threads(1.0, 0.75, 0.09),
        api: threads(1.0, 0.31, 0.12),
        generator: threads(1.0, 0.34, 0.12),
        machine_busy: 0.79,
        stolen: 0.1,
        direct: once(0.03),
        ..idle(run(64, 45_000.0))
    };
    check("a little", &evidence, Limit::Proxy, &["wanted the CPU 95 % of the time"]);
    // Who waits for a core with a stranger is not to be told from who runs any more.
    let evidence = Evidence { stolen: 0.4, machine_busy: 0.86, ..evidence };
    check("much", &evidence, Limit::Others, &["gave 40 % of its CPU"]);
    let hits = Evidence { origin_share: 0.0, direct: None, api: None, ..evidence };
    check("of what the API has no part in", &hits, Limit::Others, &["gave 40 % of its CPU"]);
    // As measured: each single request waits for a core too, so a fast API looks like a slow one.
    let late =
        Evidence { direct: once(1.1), through: once(2.0), origin_share: 1.0, top: run(64, 19_802.0), ..hits };
    check("of one that wakes late", &late, Limit::Others, &["gave 40 % of its CPU"]);
    // The API has the requests, whatever the machine does.
    let slow = Evidence { direct: once(40.0), through: once(41.0), stolen: 0.4, ..idle(run(32, 300.0)) };
    check("a slow API", &slow, Limit::Api, &["waits its turn"]);
}

#[test]
fn who_is_nearly_out_of_cpu_is_waited_for_where_the_requests_are_not_in_the_api() {
    let evidence = Evidence {
        proxy: threads(1.0, 0.78, 0.02),
        api: threads(1.0, 0.4, 0.02),
        generator: threads(1.0, 0.38, 0.02),
        machine_busy: 0.8,
        direct: once(0.02),
        ..idle(run(64, 50_000.0))
    };
    check("a busy proxy", &evidence, Limit::Proxy, &["80 % of the time"]);
    let waited = Once { total: 0.001_5, first_byte: 0.001_5, ..once(0.02).unwrap() };
    let evidence = Evidence { direct: Some(waited), ..evidence };
    check("single requests that waited for a core", &evidence, Limit::Proxy, &["80 % of the time"]);
    check(
        "an API that has them",
        &Evidence { direct: once(1.2), ..evidence },
        Limit::Api,
        &["the API needs nearly all of that itself"],
    );
}

#[test]
fn a_narrow_way_to_the_api_is_the_network() {
    // 300 kB at 1 MB per second: the proxy reads ahead, so the client's first byte is early or late.
    let narrow = Once { connect: 0.000_1, body_bytes: 300_000.0, ..alike(0.002, 0.302) };
    let through = Once { body_bytes: 300_000.0, ..alike(0.004, 0.304) };
    let top = Run { first_byte: 0.01, ..run(16, 16.0 / 0.31) };
    let evidence = Evidence { direct: Some(narrow), through: Some(through), ..idle(top) };
    check(
        "passed on as it comes",
        &evidence,
        Limit::Network,
        &["first byte after 2 ms and its last after 302 ms", "1 MB per second"],
    );

    let top = Run { first_byte: 0.309, ..run(16, 16.0 / 0.31) };
    let through = Once { body_bytes: 300_000.0, ..alike(0.3035, 0.304) };
    let evidence = Evidence { through: Some(through), ..idle(top) };
    let evidence = Evidence { direct: Some(narrow), ..evidence };
    check("read whole first", &evidence, Limit::Network, &["an answer takes 310 ms under load"]);

    // A machine at work delays most single requests, and their bodies come at once then.
    let delayed = Once { first_byte: 0.25, total: 0.31, ..narrow };
    let at_work = Evidence { direct: Some(delayed), ..evidence.clone() };
    check("delayed", &at_work, Limit::Network, &["first byte after 2 ms"]);

    // A shared line: sixteen times the connections, and each body takes sixteen times as long.
    let top = Run { first_byte: 0.5, ..run(16, 3.3) };
    check("shared", &Evidence { top, ..evidence.clone() }, Limit::Network, &["network"]);
    // The API's own time before the first byte is none of the network's.
    let slow = Once { body_bytes: 300_000.0, ..alike(0.5, 0.51) };
    let evidence =
        Evidence { direct: Some(slow), through: None, ..idle(Run { first_byte: 0.5, ..run(16, 31.0) }) };
    check("a large body after a long wait", &evidence, Limit::Api, &["500 ms", "API"].map(|_| "The API"));
}

#[test]
fn a_full_link_and_a_long_way_are_the_network() {
    let top = Run { bytes_per_second: 118e6, ..run(64, 800.0) };
    let evidence = Evidence { link: Some(125e6), api: None, direct: once(5.0), ..idle(top) };
    check("a gigabit", &evidence, Limit::Network, &["118 MB per second of the 125 MB"]);
    let far = Once { connect: 0.08, ..once(85.0).unwrap() };
    let evidence = Evidence { direct: Some(far), api: None, ..idle(run(8, 8.0 / 0.086)) };
    check("another continent", &evidence, Limit::Network, &["round trip to the API takes 80 ms", "94 %"]);
    // The same distance does not excuse an API that is slow under load.
    check(
        "slow under load",
        &Evidence { top: run(64, 64.0 / 2.0), ..evidence },
        Limit::Api,
        &["waits its turn"],
    );
}

#[test]
fn a_connection_that_waited_for_a_core_is_no_long_way() {
    let waited = Once { connect: 0.006, ..once(8.0).unwrap() };
    let evidence = Evidence { direct: Some(waited), is_here: true, ..idle(run(8, 8.0 / 0.008)) };
    check("on this machine", &evidence, Limit::Api, &["the API needs nearly all of that itself"]);
    check("elsewhere", &Evidence { is_here: false, ..evidence }, Limit::Network, &["to the API takes 6 ms"]);
}

#[test]
fn a_first_request_that_was_dear_is_no_measure_of_the_others() {
    let evidence = Evidence { direct: once(208.0), ..idle(run(20, 2_700.0)) };
    let says = [
        "a single request before the load took 208 ms, as first requests may",
        "20 connections at 7.4 ms each",
    ];
    let verdict = check("a cold API", &evidence, Limit::Api, &says);
    assert!(!verdict.text().contains("the API needs nearly all"), "{}", verdict.text());
    // Whether the API works on them all is not known then, so a proxy that is merely busy is not blamed.
    let busy = Evidence { proxy: threads(1.0, 0.8, 0.0), machine_busy: 0.8, ..evidence };
    assert_eq!(judge(&busy).limit, Limit::Api, "the requests are in the API as far as is known");
}

#[test]
fn a_machine_at_rest_is_not_taken_by_others_and_a_full_one_is_said_to_be_full() {
    let resting = Evidence { stolen: 0.2, machine_busy: 0.3, direct: once(1.0), ..idle(run(20, 500.0)) };
    check("a limiter on a host that takes a little", &resting, Limit::Api, &["Nobody ran out of CPU"]);
    // Asked straight, what stands behind the server is a stranger like any other.
    let behind = Evidence {
        proxy: None,
        machine_busy: 1.0,
        direct: once(53.0),
        api: threads(1.0, 0.02, 0.0),
        generator: threads(1.0, 0.01, 0.0),
        ..idle(run(8, 37.0))
    };
    let says =
        ["The machine was full", "Other processes used 98 % of this machine meanwhile, for this server"];
    let verdict = check("a proxy in front of it", &behind, Limit::Api, &says);
    assert!(!verdict.text().contains("the API works on that many"), "{}", verdict.text());
}

#[test]
fn what_weakens_a_verdict_is_said() {
    let top = Run { error_share: 0.2, ..run(64, 158.0) };
    let errors = judge(&Evidence { direct: once(200.0), ..idle(top) });
    assert!(errors.doubts[0].contains("20 % of the requests failed"), "{errors:?}");
    let top = Run { latency: 0.1, ..run(64, 158.0) };
    let little = judge(&Evidence { direct: once(100.0), ..idle(top) });
    assert!(
        little.doubts[0].contains("is 16 requests at once (Little's law), but there was room for 64"),
        "{little:?}"
    );
    let strangers = judge(&Evidence { machine_busy: 0.9, direct: once(200.0), ..idle(run(64, 158.0)) });
    assert!(strangers.doubts[0].contains("Other processes used"), "{strangers:?}");
}

#[test]
fn no_figures_at_all_are_no_panic() {
    let verdict = judge(&Evidence::default());
    assert!(!verdict.text().contains("NaN") && !verdict.text().contains("inf"), "{}", verdict.text());
    let verdict = judge(&Evidence {
        origin_share: 1.0,
        fewer: Some(Run::default()),
        direct: Some(Once::default()),
        ..Evidence::default()
    });
    assert!(!verdict.text().contains("NaN") && !verdict.text().contains("inf"), "{}", verdict.text());
}

fn step(name: &str, rate: f64) -> ClimbedStep {
    ClimbedStep { name: name.into(), rate, low: rate * 0.98, high: rate * 1.02, ..ClimbedStep::default() }
}

#[test]
fn the_ladder_says_which_step_brings_what_and_which_is_not_worth_it() {
    // The article's figures.
    let steps = [
        step("the API alone", 1_664.0),
        step("tuned", 2_141.0),
        ClimbedStep { is_cached: true, origin_share: Some(0.0001), ..step("cache on disk", 31_625.0) },
        ClimbedStep { is_cached: true, origin_share: Some(0.0001), ..step("cache in memory", 33_000.0) },
        ClimbedStep { is_service: true, ..step("buffered log", 28_000.0) },
        ClimbedStep { wrong: true, ..step("cached errors", 90_000.0) },
    ];
    let text = climb(&steps, About::default()).join("\n");
    for says in [
        "Most answers per second come with \"cache in memory\": 33,000, 20 times the 1,664 of \"the API alone\".",
        "Steps that give more: \"cache on disk\" (15 times the step before), \"tuned\" (1.3 times the step before).",
        "Steps that are not worth it here: \"cache in memory\" (1.04 times the step before).",
        "Steps that have a price: \"buffered log\" (0.85 times the step before).",
        "These steps are not counted, because their answers were not the API's: \"cached errors\".",
    ] {
        assert!(text.contains(says), "no \"{says}\" in:\n{text}");
    }
}

#[test]
fn an_api_that_cannot_be_cached_is_told_so_plainly() {
    let steps = [
        step("the API alone", 500.0),
        step("keep-alive", 505.0),
        ClimbedStep { is_cached: true, origin_share: Some(1.0), ..step("microcache", 450.0) },
    ];
    let forbidden = About {
        uncacheable: Some("Cache-Control: no-store"),
        advice: Some("A max-age would help."),
        ..About::default()
    };
    let text = climb(&steps, forbidden).join("\n");
    assert!(text.contains("No step gives more than \"the API alone\" does"), "{text}");
    assert!(text.contains("cannot be cached as they are (Cache-Control: no-store)"), "{text}");
    assert!(text.contains("No proxy can make this faster"), "{text}");
    assert!(text.ends_with("here the factor was 0.9. A max-age would help."), "{text}");
    let allowed = climb(&steps, About::default()).join("\n");
    assert!(
        allowed.contains("the API's header fields allow it") && !allowed.contains("max-age"),
        "{allowed}"
    );
    // Unknown is not the same as none.
    let unknown = [steps[0].clone(), ClimbedStep { origin_share: None, ..steps[2].clone() }];
    assert!(!climb(&unknown, About::default()).join("\n").contains("cannot be cached"));
}

#[test]
fn rounds_that_overlap_are_no_gain_and_nothing_to_compare_with_is_said() {
    let wide = ClimbedStep { low: 80.0, high: 190.0, ..step("noisy", 130.0) };
    let text = climb(&[step("the API alone", 100.0), wide], About::default()).join("\n");
    assert!(
        text.contains("because the rounds overlap (--rounds and --duration make it clearer): \"noisy\""),
        "{text}"
    );
    assert!(climb(&[step("the API alone", 0.0)], About::default())[0].contains("nothing to compare with"));
    assert!(climb(&[], About::default()).is_empty());
}

#[test]
fn one_round_tells_only_what_no_chance_brings_about() {
    let one = |name: &str, rate: f64| ClimbedStep { low: rate, high: rate, ..step(name, rate) };
    let steps =
        [one("the API alone", 100.0), one("cache", 4_000.0), one("lock", 3_000.0), one("log", 5_400.0)];
    let text = climb(&steps, About { rounds: 1, ..About::default() }).join("\n");
    assert!(text.contains("Steps that give more: \"cache\" (40 times the step before)."), "{text}");
    let unclear = "Inconclusive after one round (--rounds 3 shows what is chance): \"lock\" (0.75 times the step \
                   before), \"log\" (1.8 times the step before).";
    assert!(text.contains(unclear), "{text}");
    assert!(!text.contains("not worth it") && !text.contains("cost more"), "{text}");
}

#[test]
fn where_the_first_step_has_wrong_answers_its_right_ones_are_what_counts() {
    let steps = [ClimbedStep { wrong: true, ..step("the API alone", 578.0) }, step("microcache", 85_095.0)];
    let text = climb(&steps, About::default()).join("\n");
    let most = "Most right answers per second come with \"microcache\": 85,095, 147 times the 578 right ones of \
     \"the API \
                alone\".";
    assert!(text.starts_with(most), "{text}");
    assert!(!text.contains("not counted"), "{text}");
}

#[test]
fn a_step_that_protects_the_api_is_not_called_worthless() {
    let reached = |step: ClimbedStep, requests| ClimbedStep { reached: Some((requests, 2.0)), ..step };
    let steps = [
        reached(step("the API alone", 300.0), 600),
        reached(step("slow", 100.0), 200),
        ClimbedStep { time_wait: Some(1_970), proxy_cpu: Some(205.0), ..step("proxied", 100.0) },
        ClimbedStep { time_wait: Some(43), proxy_cpu: Some(100.0), ..step("keep-alive", 102.0) },
        reached(step("microcache", 149_302.0), 38),
        reached(step("lock", 131_407.0), 2),
        reached(step("headers", 131_000.0), 0),
    ];
    let text = climb(&steps, About::default()).join("\n");
    let says = "Steps that save something: \"keep-alive\" (1.02 times the step before; 43 sockets in TIME_WAIT \
     instead of 1,970; \
                100 µs of the proxy's CPU per answer instead of 205), \"lock\" (0.88 times the step before; 19 times \
                fewer \
                requests reached the API).";
    assert!(text.contains(says), "{text}");
    assert!(
        text.contains("Steps that cost more than they give: \"slow\" (0.33 times the step before)."),
        "{text}"
    );
}

#[test]
fn nobody_wins_by_chance() {
    let wide = |name: &str, rate: f64| ClimbedStep { low: rate * 0.6, high: rate * 1.5, ..step(name, rate) };
    let steps = [
        wide("the API alone", 159.0),
        ClimbedStep { is_cached: true, origin_share: Some(1.0), ..wide("cached", 224.0) },
    ];
    let about = About { rounds: 3, uncacheable: Some("private"), ..About::default() };
    let text = climb(&steps, about).join("\n");
    assert!(text.contains("by more than chance: 159 per second, and 224 at best"), "{text}");
    assert!(!text.contains("1.4 times the 159") && !text.contains("here it was"), "{text}");
}

#[test]
fn figures_in_sentences_are_short() {
    assert_eq!([count(317.4), count(12_408.0), count(1.26), count(0.0)], ["317", "12,408", "1.3", "0"]);
    assert_eq!(
        [85e-6, 0.001_23, 0.2, 0.999_6, 3.42, 0.009_97].map(duration),
        ["85 µs", "1.2 ms", "200 ms", "1 s", "3.4 s", "10 ms"]
    );
    assert_eq!(
        [volume(900.0), volume(64_000.0), volume(1_200_000.0), volume(3e9)],
        ["900 bytes", "64 kB", "1.2 MB", "3 GB"]
    );
    assert_eq!([factor(0.94), factor(1.31), factor(19.2), factor(1_200.0)], ["0.94", "1.3", "19", "1,200"]);
    assert_eq!(percent(0.074), "7 %");
}
