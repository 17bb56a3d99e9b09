//! The report as a whole, for each kind of run; what it looks like is what the snapshots say.

use super::*;
use crate::report::samples;
use std::time::Duration;

#[test]
fn a_closed_loop_reads_like_wrk() {
    insta::assert_snapshot!(report(&samples::closed()));
}

#[test]
fn an_open_loop_says_what_latency_means_there() {
    insta::assert_snapshot!(report(&samples::open()));
}

#[test]
fn what_a_server_did_not_do_is_said() {
    insta::assert_snapshot!(report(&samples::killed()));
}

#[test]
fn what_a_late_generator_means_depends_on_the_loop() {
    let mut outcome = samples::open();
    outcome.generator.limits = Some("it sent late.".to_owned());
    let text = report(&outcome);
    assert!(
        text.contains("CEILING: it sent late. The latencies include the generator's own delay")
            && !text.contains("floor"),
        "{text}"
    );
}

#[test]
fn every_kind_of_error_is_named() {
    insta::assert_snapshot!(report(&samples::failing()));
}

#[test]
fn a_run_without_one_answer_has_no_latency() {
    insta::assert_snapshot!(report(&samples::nothing()));
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
fn a_url_cannot_command_the_terminal() {
    let mut outcome = samples::closed();
    outcome.urls = vec!["http://a/\x1b]0;x\x07\x1b[2J".to_owned()];
    outcome.generator.limits = Some("\x1b[2J".to_owned());
    assert!(report(&outcome).chars().all(|letter| letter == '\n' || !letter.is_control()));
}
