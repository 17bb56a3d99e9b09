//! Where the threads of a run meet ten times a second: the live view and the slices are made here.
//!
//! It is bounded whatever the run: a dozen ticks for the view, at most [`SLICES`] slices that grow longer as the run does.

use super::{Tick, add_errors};
use crate::outcome::{Errors, Slice};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most parts that a run is told in.
const SLICES: usize = 100;
/// Ticks that the live view looks back.
const VIEW: i64 = 10;
/// Ticks kept for it: a thread may be late by a few.
const KEPT: usize = 16;

/// How a run stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Since the start of measuring, or of warming up while that lasts.
    pub elapsed: Duration,
    /// How long that is to take, where it is known.
    pub of: Option<Duration>,
    /// Whether it is warming up.
    pub warming: bool,
    /// Answers as expected so far.
    pub answers: u64,
    /// Everything else so far.
    pub errors: Errors,
    /// Answers as expected per second, in the last second.
    pub rate: f64,
    /// The median latency of the last second, microseconds.
    pub p50: u64,
    /// Its 99th percentile.
    pub p99: u64,
}

/// What all threads write to.
#[derive(Debug)]
pub struct Board {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    recent: VecDeque<(i64, Tick)>,
    slices: Vec<Tick>,
    /// Ticks in a slice.
    fold: usize,
    answers: u64,
    errors: Errors,
}

impl Board {
    /// For a run of a known or unknown length.
    pub fn new(duration: Option<Duration>) -> Board {
        let ticks = duration.map_or(1, |duration| duration.as_millis().div_ceil(super::TICK.as_millis()));
        let fold = usize::try_from(ticks).unwrap_or(usize::MAX).div_ceil(SLICES).max(1);
        let state = State {
            recent: VecDeque::with_capacity(KEPT),
            slices: Vec::new(),
            fold,
            answers: 0,
            errors: Errors::default(),
        };
        Board { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What a thread that panicked left is still the best there is.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread's tick; a negative number is one of the warm-up.
    pub(crate) fn take(&self, tick: &Tick, number: i64) {
        let state = &mut *self.state();
        match state.recent.iter_mut().find(|(kept, _)| *kept == number) {
            Some((_, kept)) => kept.add(tick),
            None => {
                let mut fresh = if state.recent.len() >= KEPT {
                    state.recent.pop_front().map(|(_, old)| old)
                } else {
                    None
                }
                .unwrap_or_else(Tick::new);
                fresh.clear();
                fresh.add(tick);
                state.recent.push_back((number, fresh));
            }
        }
        let Ok(number) = usize::try_from(number) else { return };
        state.answers += tick.answers;
        add_errors(&mut state.errors, &tick.errors);
        while number / state.fold >= SLICES {
            state.fold_slices();
        }
        let place = number / state.fold;
        while state.slices.len() <= place {
            state.slices.push(Tick::new());
        }
        state.slices[place].add(tick);
    }

    /// How the run stands; the caller knows the time.
    pub(crate) fn progress(&self, elapsed: Duration, of: Option<Duration>, warming: bool) -> Progress {
        let state = self.state();
        // The newest tick is still being written by other threads.
        let newest = state.recent.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let mut view = Tick::new();
        let mut ticks = 0;
        for (_, tick) in state.recent.iter().filter(|(n, _)| (newest - VIEW..newest).contains(n)) {
            view.add(tick);
            ticks += 1;
        }
        let seconds = f64::from(ticks) * super::TICK.as_secs_f64();
        let at =
            |quantile| if view.latency.is_empty() { 0 } else { view.latency.value_at_quantile(quantile) };
        Progress {
            elapsed,
            of,
            warming,
            answers: state.answers,
            errors: state.errors,
            rate: if ticks > 0 { view.answers as f64 / seconds } else { 0.0 },
            p50: at(0.5),
            p99: at(0.99),
        }
    }

    /// The run in slices; the last one ends when the run did.
    pub(crate) fn slices(&self, seconds: f64) -> Vec<Slice> {
        let state = self.state();
        let length = state.fold as f64 * super::TICK.as_secs_f64();
        let mut slices = Vec::with_capacity(state.slices.len());
        for (place, tick) in state.slices.iter().enumerate() {
            let at = place as f64 * length;
            if at >= seconds {
                break;
            }
            let is_empty = tick.latency.is_empty();
            let value = |value: u64| if is_empty { 0 } else { value };
            slices.push(Slice {
                at,
                seconds: length.min(seconds - at),
                answers: tick.answers,
                errors: tick.errors.total(),
                p50: value(tick.latency.value_at_quantile(0.5)),
                p99: value(tick.latency.value_at_quantile(0.99)),
                max: value(tick.latency.max()),
            });
        }
        slices
    }
}

impl State {
    /// Makes one slice of two.
    fn fold_slices(&mut self) {
        self.fold *= 2;
        let slices = std::mem::take(&mut self.slices);
        let mut slices = slices.into_iter();
        while let Some(mut first) = slices.next() {
            if let Some(second) = slices.next() {
                first.add(&second);
            }
            self.slices.push(first);
        }
    }
}
