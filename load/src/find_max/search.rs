//! Which rate is tried next: pure, neither clock nor server.
//!
//! ```text
//!  search: higher where it held, lower where it failed twice ──▶ confirm the highest that held
//!                                                                  │ too few of the further trials hold: a little lower
//!                                                                  ▼ and confirm again
//!                                                               confirmed
//! ```
//! A trial in which the generator was late says nothing (`None`) and is done again. Where a rate has had too many of them, it
//! cannot be tried from here, and lower ones are.
//!
//! The rate that a search ends with was chosen because a trial of it held, and some of those that hold once hold by luck.
//! So what is reported is judged by further trials alone: all of `FURTHER` but `MAY_FAIL` must hold. These numbers come from
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
/// One of them may fail: a stutter of the machine is no ceiling.
pub(super) const MAY_FAIL: u32 = 1;
/// Further trials at the most, of all rates together.
const CONFIRMING: u32 = 60;
/// Trials of a rate that did not hold, or in which the generator was late, after which the search goes lower.
const TRIES: u32 = 2;
/// The generator may be late in so many of the further trials of a rate.
const LATE: u32 = 5;
/// The part of a rate that is tried when the rate itself is not confirmed.
const LOWER: f64 = 0.985;
/// Below so much of the first guess nothing is looked for.
const LEAST: f64 = 0.001;

/// The highest rate that `holds`, and how often it did of its further trials; none: not even the lowest held, or the trials
/// were used up. Begins a little below a guess, requests per second, above 0. Errors: what ended a trial, which is told the
/// rate and whether it is one of the further ones, and says nothing (`None`) where the generator was late.
pub(super) fn search<E>(
    guess: f64,
    mut holds: impl FnMut(f64, bool) -> Result<Option<bool>, E>,
) -> Result<Option<(f64, Confirmed)>, E> {
    let Some(mut rate) = highest(guess, |rate| holds(rate, false))? else { return Ok(None) };
    let (mut trials, mut late, mut so_far) = (0, 0, Confirmed::default());
    while trials < CONFIRMING && rate >= guess * LEAST {
        trials += 1;
        match holds(rate, true)? {
            Some(held) => so_far = Confirmed { held: so_far.held + u32::from(held), of: so_far.of + 1 },
            None => late += 1,
        }
        if so_far.of - so_far.held > MAY_FAIL || late > LATE {
            (rate, late, so_far) = (round(rate * LOWER), 0, Confirmed::default());
        } else if so_far.of == FURTHER {
            return Ok(Some((rate, so_far)));
        }
    }
    Ok(None)
}

/// The highest rate that held once; none: not even the lowest did.
fn highest<E>(guess: f64, mut holds: impl FnMut(f64) -> Result<Option<bool>, E>) -> Result<Option<f64>, E> {
    // Those that failed, the lowest last, are above the highest that held; 0: none has yet.
    let (mut held, mut failed) = (0.0, Vec::<f64>::new());
    let (mut rate, mut trials) = (round(guess * 0.8), 0);
    while rate >= guess * LEAST {
        // A stutter of the machine is no ceiling, so what failed once is tried again.
        let (mut is_held, mut missed, mut late) = (false, 0, 0);
        while !is_held && missed < TRIES && late < TRIES {
            trials += 1;
            match holds(rate)? {
                Some(held) => (is_held, missed) = (held, missed + 1),
                None => late += 1,
            }
        }
        // The one that ends the search is tried anew when the search has come close to it: it may have been bad luck that
        // everything since lies below.
        let is_last = !is_held && failed.last() == Some(&rate);
        if is_held {
            held = rate;
            failed.retain(|failed| *failed > held);
        } else if !is_last {
            failed.push(rate);
        }
        if is_last || trials >= SEARCHING {
            return Ok(Some(held).filter(|held| *held > 0.0));
        }
        rate = match failed.last() {
            None => round(held * 1.25),
            Some(failed) if held == 0.0 => round(failed * 0.6),
            Some(failed) if failed / held <= CLOSE => *failed,
            Some(failed) => round((held * failed).sqrt()),
        };
    }
    Ok(None)
}

/// Four digits: nobody asks for 8123.4567 requests a second.
pub(super) fn round(rate: f64) -> f64 {
    let digits = 3 - rate.max(f64::MIN_POSITIVE).log10().floor() as i32;
    // Multiplied or divided by a whole number, so that what is printed is as short as it looks.
    let unit = 10f64.powi(digits.abs());
    if digits > 0 { (rate * unit).round() / unit } else { (rate / unit).round() * unit }
}
