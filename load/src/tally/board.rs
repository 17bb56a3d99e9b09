//! Where the threads of a run meet ten times a second: the live view and the slices are made here.
//!
//! It is bounded whatever the run: a dozen ticks for the view, at most [`SLICES`] slices that grow longer as the run does.

use super::{Tick, add_errors};
use crate::outcome::{Errors, Slice};
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

/// What all threads write to.
#[derive(Debug)]
pub struct Board {
    state: Mutex<BoardState>,
}

#[derive(Debug)]
struct BoardState {
    recent: VecDeque<(i64, Tick)>,
    parts: Vec<Part>,
    /// Ticks in a part.
    fold: usize,
    /// Of the stretch that lasts: warming up, then measuring.
    answers: u64,
    errors: Errors,
    is_measuring: bool,
}

/// A slice in the making.
#[derive(Debug)]
struct Part {
    answers: u64,
    errors: u64,
    latency: Histogram<u64>,
}

impl Part {
    fn new() -> Part {
        let latency = Histogram::new(SLICE_DIGITS).expect("0 to 5 digits are possible");
        Part { answers: 0, errors: 0, latency }
    }

    fn add(&mut self, answers: u64, errors: u64, latency: &Histogram<u64>) {
        self.answers += answers;
        self.errors += errors;
        _ = self.latency.add(latency);
    }
}

impl Board {
    /// For a run of a known or unknown length.
    pub fn new(duration: Option<Duration>) -> Board {
        let ticks = duration.map_or(1, |duration| duration.as_millis().div_ceil(super::TICK.as_millis()));
        let fold = usize::try_from(ticks).unwrap_or(usize::MAX).div_ceil(SLICES).max(1);
        let state = BoardState {
            recent: VecDeque::with_capacity(KEPT),
            parts: Vec::new(),
            fold,
            answers: 0,
            errors: Errors::default(),
            is_measuring: false,
        };
        Board { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        // What a thread that panicked left is still the best there is.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread's tick; a negative number is one of the warm-up.
    pub(crate) fn take(&self, tick: &Tick, number: i64) {
        let state = &mut *self.state();
        state.show(tick, number);
        if number >= 0 && !state.is_measuring {
            (state.is_measuring, state.answers, state.errors) = (true, 0, Errors::default());
        }
        // A thread that is late with its last tick of the warm-up is too late for it.
        if (number >= 0) == state.is_measuring {
            state.answers += tick.answers;
            add_errors(&mut state.errors, &tick.errors);
        }
        let Ok(number) = usize::try_from(number) else { return };
        while number / state.fold >= SLICES {
            state.fold_parts();
        }
        let place = number / state.fold;
        while state.parts.len() <= place {
            state.parts.push(Part::new());
        }
        state.parts[place].add(tick.answers, tick.errors.total(), &tick.latency);
    }

    /// What was done and how fast; the time and the plan are the caller's to fill in.
    pub(crate) fn progress(&self) -> Progress {
        let state = self.state();
        // The newest tick is still being written by other threads.
        let newest = state.recent.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let mut view = Tick::new();
        let mut ticks = 0;
        for (_, tick) in state.recent.iter().filter(|(number, _)| (newest - VIEW..newest).contains(number)) {
            view.add(tick);
            ticks += 1;
        }
        let seconds = f64::from(ticks) * super::TICK.as_secs_f64();
        let value = |quantile| {
            if view.latency.is_empty() { 0 } else { view.latency.value_at_quantile(quantile) }
        };
        let at = |quantile| Duration::from_micros(value(quantile));
        Progress {
            answers: state.answers,
            errors: state.errors,
            rate: if ticks > 0 { view.answers as f64 / seconds } else { 0.0 },
            p50: at(0.5),
            p99: at(0.99),
            ..Progress::default()
        }
    }

    /// The run in slices; the last one ends when the run did.
    pub(crate) fn slices(&self, seconds: f64) -> Vec<Slice> {
        let state = self.state();
        let length = state.fold as f64 * super::TICK.as_secs_f64();
        let mut slices = Vec::with_capacity(state.parts.len());
        for (place, part) in state.parts.iter().enumerate() {
            let at = place as f64 * length;
            if at >= seconds {
                break;
            }
            let is_empty = part.latency.is_empty();
            let value = |value: u64| if is_empty { 0 } else { value.min(part.latency.max()) };
            slices.push(Slice {
                at,
                seconds: length.min(seconds - at),
                answers: part.answers,
                errors: part.errors,
                mean: if is_empty { 0.0 } else { part.latency.mean().round() },
                p50: value(part.latency.value_at_quantile(0.5)),
                p99: value(part.latency.value_at_quantile(0.99)),
                max: value(part.latency.max()),
            });
        }
        slices
    }
}

impl BoardState {
    /// Keeps the tick for the live view.
    fn show(&mut self, tick: &Tick, number: i64) {
        if let Some((_, kept)) = self.recent.iter_mut().find(|(kept, _)| *kept == number) {
            return kept.add(tick);
        }
        let oldest = if self.recent.len() >= KEPT { self.recent.pop_front() } else { None };
        let mut fresh = oldest.map_or_else(Tick::new, |(_, tick)| tick);
        fresh.clear();
        fresh.add(tick);
        self.recent.push_back((number, fresh));
    }

    /// Makes one part of two.
    fn fold_parts(&mut self) {
        self.fold *= 2;
        let mut parts = std::mem::take(&mut self.parts).into_iter();
        while let Some(mut first) = parts.next() {
            if let Some(second) = parts.next() {
                first.add(second.answers, second.errors, &second.latency);
            }
            self.parts.push(first);
        }
    }
}
