//! What is counted where, and that nothing is lost on the way.

use super::*;

const MILLISECOND: u64 = 1_000_000;

fn answered(tally: &mut Tally, due: u64, sent: u64, end: u64) {
    let request = Sent { target: 0, due: due * MILLISECOND, sent: sent * MILLISECOND };
    tally.answered(request, end * MILLISECOND, end * MILLISECOND);
}

#[test]
fn latency_counts_from_when_a_request_should_have_started_and_service_from_when_it_was_sent() {
    let board = Board::new(None);
    let mut tally = Tally::new(true);
    answered(&mut tally, 0, 70, 100);
    tally.flush(&board, 0);
    assert_eq!(tally.total.latency.max() / 1000, 100);
    assert_eq!(tally.service().max() / 1000, 30);
    assert_eq!(tally.first_byte.max() / 1000, 30);
}

#[test]
fn what_was_counted_while_warming_up_is_shown_and_not_kept() {
    let board = Board::new(None);
    let mut tally = Tally::new(false);
    answered(&mut tally, 0, 0, 5);
    tally.arrived(200, 10);
    tally.flush(&board, -1);
    tally.begin();
    answered(&mut tally, 0, 0, 7);
    tally.arrived(204, 0);
    tally.failed(Failure::Timeout, None);
    tally.flush(&board, 0);
    let counts = tally.counts();
    assert_eq!((counts.answers, counts.bytes_body, counts.errors.timeout), (1, 0, 1));
    assert_eq!(counts.statuses.into_iter().collect::<Vec<_>>(), [(204, 1)]);
    let progress = board.progress();
    assert_eq!(
        (progress.answers, progress.errors.total(), progress.rate),
        (1, 1, 10.0),
        "tick -1 is the view"
    );
    assert_eq!(progress.p50.as_millis(), 5);
}

#[test]
fn threads_add_up() {
    let board = Board::new(Some(Duration::from_secs(1)));
    let mut all = Tally::new(false);
    for thread in 1..=3u64 {
        let mut tally = Tally::new(false);
        for n in 0..thread * 10 {
            answered(&mut tally, 0, 0, 1 + n);
            tally.arrived(200, 100);
        }
        tally.flush(&board, 3);
        all.add(&tally);
    }
    assert_eq!(all.counts().answers, 60);
    assert_eq!(all.counts().statuses[&200], 60);
    assert_eq!(all.total.latency.len(), 60);
    let slices = board.slices(1.0);
    assert_eq!(slices.len(), 4, "empty ones before it are there");
    assert_eq!((slices[3].answers, slices[0].answers), (60, 0));
}

#[test]
fn a_run_of_any_length_has_at_most_a_minute_of_slices_that_lose_nothing() {
    let board = Board::new(None);
    let mut tally = Tally::new(false);
    for number in 0..1234 {
        answered(&mut tally, 0, 0, 3);
        tally.flush(&board, number);
    }
    let slices = board.slices(123.35);
    assert!((301..=600).contains(&slices.len()), "{}", slices.len());
    assert_eq!(slices.iter().map(|slice| slice.answers).sum::<u64>(), 1234);
    assert!((slices.iter().map(|slice| slice.seconds).sum::<f64>() - 123.35).abs() < 1e-6);
    assert!(slices.windows(2).all(|pair| (pair[0].at + pair[0].seconds - pair[1].at).abs() < 1e-9));
    let known = Board::new(Some(Duration::from_secs(120)));
    tally.flush(&known, 1199);
    assert_eq!(known.slices(120.0).len(), 600);
}
