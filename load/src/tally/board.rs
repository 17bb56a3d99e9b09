//! Where the threads of a run meet ten times a second: the live view and the slices are made here.
//!
//! It is bounded whatever the run: a dozen ticks for the view, at most [`SLICES`] slices that grow longer as the run does.

use super::{Counted, TICK};
use crate::histogram;
use crate::outcome::{Errors, Slice, percentile};
use crate::progress::Progress;
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most parts that a run is told in: a minute of ticks.
const SLICES: usize = 600;
/// Significant digits of a latency in a slice: they are many, and drawn.
const SLICE_DIGITS: u8 = 2;
/// Ticks that the live view looks back.
const VIEW: i64 = 10;
/// Ticks kept for it: a thread may be late by a few.
const KEPT: usize = 16;

#[derive(Debug)]
pub struct Board(Mutex<BoardState>);

#[derive(Debug, Default)]
struct BoardState {
    recent: VecDeque<(i64, Counted)>,
    /// Slices in the making.
    parts: Vec<Counted>,
    fold: usize,
    /// Of the stretch that lasts: warming up, then measuring.
    answers: u64,
    errors: Errors,
    is_measuring: bool,
}

impl Board {
    pub fn new(duration: Option<Duration>) -> Board {
        let ticks = duration.map_or(1, |duration| duration.as_millis().div_ceil(TICK.as_millis()));
        let fold = usize::try_from(ticks).unwrap_or(usize::MAX).div_ceil(SLICES).max(1);
        Board(Mutex::new(BoardState { fold, ..BoardState::default() }))
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        // What a thread that panicked left is still the best there is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread's tick; a negative number is one of the warm-up.
    pub(crate) fn take(&self, tick: &Counted, number: i64) {
        let state = &mut *self.state();
        state.show(tick, number);
        if number >= 0 && !state.is_measuring {
            (state.is_measuring, state.answers, state.errors) = (true, 0, Errors::default());
        }
        // A thread that is late with its last tick of the warm-up is too late for it.
        if (number >= 0) == state.is_measuring {
            state.answers += tick.answers;
            state.errors.add(&tick.errors);
        }
        let Ok(number) = usize::try_from(number) else { return };
        while number / state.fold >= SLICES {
            state.fold_parts();
        }
        let place = number / state.fold;
        while state.parts.len() <= place {
            let latency = Histogram::new(SLICE_DIGITS).expect("0 to 5 digits are possible");
            state.parts.push(Counted::of(latency));
        }
        state.parts[place].add(tick);
    }

    /// What was done and how fast; the time and the plan are the caller's to fill in.
    pub(crate) fn progress(&self) -> Progress {
        let state = self.state();
        // The newest tick is still being written by other threads.
        let newest = state.recent.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let mut view = Counted::of(histogram::empty());
        let mut ticks = 0;
        for (_, tick) in state.recent.iter().filter(|(number, _)| (newest - VIEW..newest).contains(number)) {
            view.add(tick);
            ticks += 1;
        }
        let seconds = f64::from(ticks) * TICK.as_secs_f64();
        Progress {
            answers: state.answers,
            errors: state.errors,
            rate: if ticks > 0 { view.answers as f64 / seconds } else { 0.0 },
            p50: Duration::from_micros(percentile(&view.latency, 50.0)),
            p99: Duration::from_micros(percentile(&view.latency, 99.0)),
            ..Progress::default()
        }
    }

    pub(crate) fn slices(&self, seconds: f64) -> Vec<Slice> {
        let state = self.state();
        let length = state.fold as f64 * TICK.as_secs_f64();
        let parts = state.parts.iter().enumerate().map(|(place, part)| (place as f64 * length, part));
        let slice = |(at, part): (f64, &Counted)| Slice {
            at,
            seconds: length.min(seconds - at),
            answers: part.answers,
            errors: part.errors.total(),
            mean: part.latency.mean().round(),
            p50: percentile(&part.latency, 50.0),
            p99: percentile(&part.latency, 99.0),
            max: part.latency.max(),
        };
        parts.take_while(|(at, _)| *at < seconds).map(slice).collect()
    }
}

impl BoardState {
    fn show(&mut self, tick: &Counted, number: i64) {
        if let Some((_, kept)) = self.recent.iter_mut().find(|(kept, _)| *kept == number) {
            return kept.add(tick);
        }
        self.recent.push_back((number, tick.clone()));
        if self.recent.len() > KEPT {
            self.recent.pop_front();
        }
    }

    fn fold_parts(&mut self) {
        self.fold *= 2;
        let mut parts = std::mem::take(&mut self.parts).into_iter();
        while let Some(mut first) = parts.next() {
            parts.next().iter().for_each(|second| first.add(second));
            self.parts.push(first);
        }
    }
}
