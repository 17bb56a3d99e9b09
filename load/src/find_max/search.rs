//! Which rate is tried next: pure, neither clock nor server.
//!
//! ```text
//!  search: higher where it held, lower where it failed twice ──▶ confirm the highest that held
//!                                                                  │ too few of the further trials hold: a little lower
//!                                                                  ▼ and confirm again
//!                                                               confirmed
//! ```
//! The rate that a search ends with was chosen because a trial of it held, and some of those that hold once hold by luck.
//! So what is reported is judged by further trials alone: `NEEDED` of `FURTHER` must hold. These numbers come from
//! simulations (`a_reported_rate_holds_again…` in the tests): with a server whose p99 grows with the cube of the rate and
//! differs by 5 % between trials, one trial finds a rate that holds in 8 of 10 further ones in half of the searches, 14 of 15
//! in more than 9 of 10; asking for more costs trials and goes too low.

use crate::outcome::Confirmed;

/// The search ends when the lowest rate that failed is so little above the highest that held.
const CLOSE: f64 = 1.02;
/// Trials of the search at the most.
const SEARCHING: u32 = 30;
/// Further trials of the rate that is reported.
pub(super) const FURTHER: u32 = 15;
/// So many of them must hold. One may fail: a stutter of the machine is no ceiling.
const NEEDED: u32 = 14;
/// Further trials at the most, of all rates together.
const CONFIRMING: u32 = 60;
/// The part of a rate that is tried when the rate itself is not confirmed.
const LOWER: f64 = 0.985;
/// Below so much of the first guess nothing is looked for.
const LEAST: f64 = 0.001;

/// A search; see the module.
#[derive(Debug, Clone)]
pub struct Search {
    /// The highest that held; 0: none yet.
    held: f64,
    /// Those that failed, the lowest last; all are above `held`.
    failed: Vec<f64>,
    next: f64,
    least: f64,
    trials: u32,
    stage: SearchStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchStage {
    /// The rate is tried for the first time.
    First,
    /// It failed once. A stutter of the machine is no ceiling, so it is tried again.
    Second,
    /// The rate that held is tried further.
    Confirming(Confirmed),
    /// It was confirmed, or there is none.
    Over(Option<Confirmed>),
}

impl Search {
    /// Begins a little below a guess, requests per second, above 0.
    pub fn new(guess: f64) -> Search {
        Search {
            held: 0.0,
            failed: Vec::new(),
            next: round(guess * 0.8),
            least: guess * LEAST,
            trials: 0,
            stage: SearchStage::First,
        }
    }

    /// The rate to try; none: the search is over.
    pub fn next(&self) -> Option<f64> {
        (!matches!(self.stage, SearchStage::Over(_))).then_some(self.next)
    }

    /// Whether the rate is tried further, to confirm it.
    pub fn is_confirming(&self) -> bool {
        matches!(self.stage, SearchStage::Confirming(_))
    }

    /// The rate that was found and how often it held of its further trials; none: not even the lowest held, or the trials
    /// were used up.
    pub fn found(&self) -> Option<(f64, Confirmed)> {
        match self.stage {
            SearchStage::Over(Some(confirmed)) => Some((self.next, confirmed)),
            _ => None,
        }
    }

    /// Whether that rate held.
    pub fn tell(&mut self, holds: bool) {
        self.trials += 1;
        match self.stage {
            SearchStage::First if !holds => self.stage = SearchStage::Second,
            SearchStage::First | SearchStage::Second => self.searched(holds),
            SearchStage::Confirming(so_far) => self.confirmed(so_far, holds),
            SearchStage::Over(_) => {}
        }
        if self.next < self.least {
            self.stage = SearchStage::Over(None);
        }
    }

    fn searched(&mut self, holds: bool) {
        self.stage = SearchStage::First;
        // The one that ends the search is tried anew when the search has come close to it: it may have been bad luck that
        // everything since lies below.
        let is_last = !holds && self.failed.last() == Some(&self.next);
        if holds {
            self.held = self.next;
            self.failed.retain(|failed| *failed > self.held);
        } else if !is_last {
            self.failed.push(self.next);
        }
        if is_last || self.trials >= SEARCHING {
            (self.next, self.trials) = (self.held, 0);
            self.stage = if self.held > 0.0 {
                SearchStage::Confirming(Confirmed::default())
            } else {
                SearchStage::Over(None)
            };
            return;
        }
        self.next = match self.failed.last() {
            None => round(self.held * 1.25),
            Some(failed) if self.held == 0.0 => round(failed * 0.6),
            Some(failed) if failed / self.held <= CLOSE => *failed,
            Some(failed) => round((self.held * failed).sqrt()),
        };
    }

    fn confirmed(&mut self, so_far: Confirmed, holds: bool) {
        let now = Confirmed { held: so_far.held + u32::from(holds), of: so_far.of + 1 };
        self.stage = if now.of - now.held > FURTHER - NEEDED {
            self.next = round(self.next * LOWER);
            SearchStage::Confirming(Confirmed::default())
        } else if now.of == FURTHER {
            return self.stage = SearchStage::Over(Some(now));
        } else {
            SearchStage::Confirming(now)
        };
        if self.trials >= CONFIRMING {
            self.stage = SearchStage::Over(None);
        }
    }
}

/// Four digits: nobody asks for 8123.4567 requests a second.
pub(super) fn round(rate: f64) -> f64 {
    let digits = 3 - rate.max(f64::MIN_POSITIVE).log10().floor() as i32;
    // Multiplied or divided by a whole number, so that what is printed is as short as it looks.
    let unit = 10f64.powi(digits.abs());
    if digits > 0 { (rate * unit).round() / unit } else { (rate / unit).round() * unit }
}
