//! The report as a whole, for each kind of run; what it looks like is what the snapshots say.

use super::*;
use crate::metric::Metric;
use crate::outcome::{Counts, Errors, Latency};
use crate::plan::{OPEN_CONNECTIONS, RateStage, Schedule};
use crate::report::samples;
use crate::threshold::Threshold;
use std::time::Duration;

#[test]
fn a_closed_loop_reads_like_wrk() {
    insta::assert_snapshot!(report(&samples::closed(), 100));
}

#[test]
fn an_open_loop_says_what_latency_means_there() {
    insta::assert_snapshot!(report(&samples::open(), 100));
}

#[test]
fn what_a_server_did_not_do_is_said() {
    insta::assert_snapshot!(report(&samples::killed(), 100));
}

#[test]
fn what_a_late_generator_means_depends_on_the_loop() {
    let mut outcome = samples::open();
    outcome.generator.limits = Some("it sent late.".to_owned());
    let text = report(&outcome, 100);
    assert!(
        text.contains("CEILING: it sent late. The latencies include the generator's own delay")
            && !text.contains("floor"),
        "{text}"
    );
    outcome.interrupted = true;
    let text = report(&outcome, 100);
    assert!(text.contains("may be shorter. INTERRUPTED: "), "{text}");
}

#[test]
fn a_rate_that_was_not_reached_has_its_cause_in_the_first_line() {
    let failed = Errors { connect: 9_001, ..Errors::default() };
    for (limits, errors, ran_out, connections, each, why) in [
        (None, Errors::default(), false, 10, 1e3, "the server does not keep up"),
        (None, Errors::default(), true, OPEN_CONNECTIONS, 1e3, "the server does not keep up"),
        (
            Some("it sent late"),
            failed,
            true,
            10,
            1e3,
            "the generator is at its limit. CEILING: it sent late.",
        ),
        (None, failed, true, 10, 1e3, "connections failed, see below"),
        (
            None,
            Errors::default(),
            true,
            10,
            1e4,
            "all 10 connections were busy, and they carry 1,000/s at 10ms per response; more connections (-c) show whether \
             the server can do more",
        ),
        (
            None,
            Errors::default(),
            true,
            10,
            1e3,
            "all 10 connections were busy for a time; -c sets their number",
        ),
    ] {
        let mut outcome = samples::open();
        outcome.counts = Counts { answers: 9_000, unfinished: 9_000, ran_out, errors, ..Counts::default() };
        outcome.generator.limits = limits.map(str::to_owned);
        outcome.connections = connections;
        outcome.service.mean = each;
        let text = results(&outcome, 100);
        let first = text.lines().next().unwrap_or_default();
        let says = format!(". NOT REACHED: 2,000 requests/s were requested: {why}");
        assert!(first.contains(&says), "{why}: {first}");
    }
    assert!(!results(&samples::open(), 100).contains("NOT REACHED"));
}

#[test]
fn every_kind_of_error_is_named() {
    insta::assert_snapshot!(report(&samples::failing(), 100));
}

#[test]
fn a_run_without_one_answer_has_no_latency() {
    insta::assert_snapshot!(report(&samples::nothing(), 100));
}

#[test]
fn what_is_said_first_names_the_plan() {
    let plan = samples::plan();
    insta::assert_snapshot!(running(&plan));
    let many = Plan {
        targets: std::iter::repeat_n(plan.targets[0].clone(), 5).collect(),
        duration: None,
        requests: Some(100_000),
        warm_up: Duration::from_secs(3),
        ..plan
    };
    insta::assert_snapshot!(running(&many));
}

#[test]
fn percentiles_that_no_answer_lies_beyond_are_left_out_and_the_longest_is_told() {
    for (count, line, rows) in [
        (1, "91,387 requests/s, max 1ms", ""),
        (20, "91,387 requests/s, p50 10ms, max 20ms", "50% 75% 90% "),
        (100, "91,387 requests/s, p50 50ms, p99 99ms", "50% 75% 90% 99% "),
    ] {
        let mut histogram = crate::histogram::empty();
        (1..=count).for_each(|number| histogram.saturating_record(number * 1_000));
        let few = Latency::of(&histogram);
        let text = report(&Outcome { latency: few.clone(), first_byte: few, ..samples::closed() }, 100);
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
        let named = text.lines().skip_while(|line| !line.contains("Latency Distribution")).skip(1);
        let named = named.take_while(|line| !line.contains("Requests:"));
        let names: String =
            named.map(|line| line.split_whitespace().next().unwrap_or("").to_owned() + " ").collect();
        assert_eq!(names, format!("{rows}max "), "{text}");
    }
}

#[test]
fn a_bound_that_is_not_kept_stands_in_the_first_line() {
    let p99 = |expression: &str, is_above, limit| Threshold {
        expression: expression.to_owned(),
        metric: Metric::Latency(99.0),
        is_above,
        or_equal: false,
        limit,
    };
    let run = samples::closed();
    let bounds = [p99("p99>1ms", true, 1e3), p99("p99<1ms", false, 1e3), p99("p99>1s", true, 1e6)];
    let run = Outcome { thresholds: bounds.iter().map(|bound| bound.judge(&run)).collect(), ..run };
    let text = results(&run, 100);
    let failed = "FAILED: p99 was 2.05ms (--fail 'p99>1ms')";
    assert_eq!(
        text.lines().next(),
        Some(format!("91,387 requests/s, p50 1.1ms, p99 2.05ms. {failed}").as_str())
    );
    for line in [
        failed,
        "did not fail: p99 was 2.05ms (--fail 'p99<1ms')",
        "did not fail: p99 was 2.05ms (--fail 'p99>1s')",
    ] {
        assert!(text.contains(&format!("\n  {line}\n")), "{line}: {text}");
    }
}

#[test]
fn an_open_loop_without_one_rate_is_told_in_words() {
    let stage = |seconds, rate| RateStage { duration: Duration::from_secs(seconds), rate };
    let stages = Schedule::Stages(vec![stage(10, 200.0), stage(0, 20.0), stage(5, 20.0)]);
    let log = Schedule::Log { moments: [0, 1_000].into(), speed: 4.0 };
    for (schedule, words) in [
        (
            stages,
            "open loop in stages: 10s from 0 to 200/s, then a jump to 20/s, then 5s at 20/s (2,000 requests/s on average, Poisson \
             arrivals); latency counts",
        ),
        (log, "open loop at 4 times the log's own pace (2,000 requests/s on average); latency counts"),
    ] {
        let mode = samples::open().mode;
        let text = running(&Plan { mode, schedule: Some(schedule.clone()), ..samples::plan() });
        assert!(text.contains(words), "{text}");
        let schedule = Some(ScheduleOutcome::of(&schedule, &[]));
        let text = report(&Outcome { schedule, ..samples::open() }, 100);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_url_cannot_command_the_terminal() {
    let mut outcome = samples::closed();
    outcome.urls = vec!["http://a/\x1b]0;x\x07\x1b[2J".to_owned()];
    outcome.generator.limits = Some("\x1b[2J".to_owned());
    assert!(report(&outcome, 100).chars().all(|letter| letter == '\n' || !letter.is_control()));
}

#[test]
fn a_status_that_was_not_expected_is_named_where_it_is_known() {
    let line = |statuses: &[(u16, u64)], status| {
        let mut outcome = samples::closed();
        outcome.counts.statuses = statuses.iter().copied().collect();
        outcome.counts.errors.status = status;
        let text = report(&outcome, 100);
        let line = text.lines().find(|line| line.ends_with("the response has an unexpected status"));
        line.unwrap_or(&text)
            .split_whitespace()
            .take_while(|word| *word != "the")
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line(&[(404, 30)], 30), "status 404 30");
    assert_eq!(line(&[(200, 9), (404, 30), (503, 2)], 32), "status 404, 503 32");
    // 404 was asked for (`--status 404`), and what came is 200.
    assert_eq!(line(&[(200, 9), (404, 30)], 9), "status 9");
}

#[test]
fn what_had_no_answer_is_the_least_of_a_stage_and_never_the_least_latency() {
    let stage = |rate| RateStage { duration: Duration::from_secs(5), rate };
    let mut outcome = samples::open();
    outcome.schedule = Some(ScheduleOutcome::of(
        &Schedule::Stages(vec![stage(10.0), stage(20.0), RateStage { duration: Duration::ZERO, rate: 0.0 }]),
        &outcome.slices,
    ));
    let stages = |outcome: &Outcome| {
        let text = report(outcome, 100);
        let rows = text.lines().skip_while(|line| !line.contains("Longest 99%")).skip(1).take(3);
        rows.map(|row| row.contains("≥ ")).collect::<Vec<_>>()
    };
    outcome.counts.unfinished = 0;
    assert_eq!(stages(&outcome), [false, false, false]);
    outcome.counts.unfinished = 1;
    assert_eq!(stages(&outcome), [false, true, false], "it has waited in the last stage that has any time");
    let mut waiting = crate::histogram::empty();
    waiting.saturating_record(7);
    outcome.latency = Latency::with_unfinished(&waiting, &waiting);
    let text = report(&outcome, 100);
    let latency = text.lines().find(|line| line.trim_start().starts_with("Latency  ")).unwrap_or(&text);
    assert!(latency.ends_with(" -"), "no answer, no least: {latency}");
}
