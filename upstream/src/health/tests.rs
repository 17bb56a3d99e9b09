//! Verdicts: what takes a peer out, what brings it back, and what a reload keeps.

use super::{Change, Diagnosis, Health};
use millstream_conf::model::{BeforeFirst, HealthTerms};

fn terms(fails: u32, passes: u32, before: BeforeFirst) -> HealthTerms {
    HealthTerms { fails, passes, before }
}

/// Plays checks (`+` passes, `-` fails) and shows after each whether the peer is used (`u`) or not (`.`), a
/// change in upper case (`U` healthy, `X` unhealthy).
fn play(terms: HealthTerms, checks: &str) -> String {
    let health = Health::new(&[terms], None);
    let begin = if health.is_well() { 'u' } else { '.' };
    let told = checks.chars().map(|check| match health.checked(0, &terms, check == '+') {
        Some(Change::Healthy) => 'U',
        Some(Change::Unhealthy) => 'X',
        None if health.is_well() => 'u',
        None => '.',
    });
    std::iter::once(begin).chain(told).collect()
}

#[test]
fn a_peer_is_out_after_fails_in_a_row_and_back_after_passes_in_a_row() {
    use BeforeFirst::{Used, Waits};
    for (terms, checks, told) in [
        (terms(1, 1, Used), "+-+-", "uuXUX"),
        (terms(3, 1, Used), "--+---", "uuuuuuX"),
        (terms(1, 3, Used), "-++-+++", "uX.....U"),
        (terms(2, 2, Used), "--++", "uuX.U"),
        // The first check decides alone about a peer that waits for it.
        (terms(3, 3, Waits), "+--", ".Uuu"),
        (terms(3, 2, Waits), "-++", ".X.U"),
    ] {
        assert_eq!(play(terms, checks), told, "{terms:?} {checks}");
    }
}

#[test]
fn a_peer_is_used_while_every_check_finds_it_well() {
    let terms = [terms(1, 1, BeforeFirst::Used), terms(1, 1, BeforeFirst::Waits)];
    let health = Health::new(&terms, None);
    assert!(!health.is_well());
    assert_eq!(health.checked(1, &terms[1], true), Some(Change::Healthy));
    assert!(health.is_well());
    assert_eq!(health.checked(0, &terms[0], false), Some(Change::Unhealthy));
    assert_eq!(health.checked(1, &terms[1], false), Some(Change::Unhealthy));
    assert_eq!(health.checked(0, &terms[0], true), Some(Change::Healthy));
    assert!(!health.is_well());
    assert_eq!(health.checked(1, &terms[1], true), Some(Change::Healthy));
    assert!(health.is_well());
    let account = health.account();
    assert_eq!(
        (account.checks, account.fails, account.unhealthy, account.last_passed),
        (5, 2, 1, Some(true))
    );
}

#[test]
fn a_reload_keeps_who_is_unhealthy_and_who_need_not_be_asked_again() {
    use BeforeFirst::{Used, Waits, WaitsOnce};
    let before = |found: Option<Diagnosis>| {
        let waits = [terms(1, 1, Waits)];
        let health = Health::new(if found.is_none() { &[] } else { &waits }, None);
        match found {
            Some(Diagnosis::Well) => _ = health.checked(0, &waits[0], true),
            Some(Diagnosis::Ill) => _ = health.checked(0, &waits[0], false),
            Some(Diagnosis::Waiting) | None => {}
        }
        assert_eq!(health.diagnosis(), found);
        health
    };
    for (written, was, is) in [
        (Used, None, Diagnosis::Well),
        (Used, Some(Diagnosis::Waiting), Diagnosis::Well),
        (Used, Some(Diagnosis::Ill), Diagnosis::Ill),
        (Waits, None, Diagnosis::Waiting),
        (Waits, Some(Diagnosis::Well), Diagnosis::Waiting),
        (Waits, Some(Diagnosis::Ill), Diagnosis::Ill),
        (WaitsOnce, None, Diagnosis::Waiting),
        (WaitsOnce, Some(Diagnosis::Waiting), Diagnosis::Waiting),
        (WaitsOnce, Some(Diagnosis::Well), Diagnosis::Well),
        (WaitsOnce, Some(Diagnosis::Ill), Diagnosis::Ill),
    ] {
        let before = before(was);
        let after = Health::new(&[terms(1, 1, written)], Some(&before));
        assert_eq!(after.diagnosis(), Some(is), "{written:?} after {was:?}");
        assert_eq!(after.is_well(), is == Diagnosis::Well);
        assert_eq!(after.account(), before.account());
    }
}
