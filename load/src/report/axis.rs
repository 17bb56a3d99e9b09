//! Scales and their ticks: where a value stands between the ends of an axis, and which values are written beside it.
//!
//! Pure numbers and short labels; knows no pixels but for [`fitting`]. Next: `plot`, `bars`.

use super::quantity;

/// From here on the largest of an axis is so many times its smallest that equal distances would hide the small ones.
const WIDE: f64 = 20.0;

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// From 0 to so much.
    Linear { most: f64 },
    /// By ratio, from `least` (over 0) to `most`.
    Logarithmic { least: f64, most: f64 },
}

impl Scale {
    /// A linear scale from 0 whose end is a tick.
    pub(super) fn linear(most: f64, about: usize) -> Scale {
        let step = nice(most / about as f64);
        Scale::Linear { most: (most / step).ceil().max(1.0) * step }
    }

    /// Linear, or by ratio where the values are far apart; values of 0 are left out of that question.
    pub(super) fn fitting(values: impl Iterator<Item = f64> + Clone, about: usize) -> Scale {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let least = positive.clone().fold(f64::INFINITY, f64::min);
        let most = positive.fold(0.0, f64::max);
        if most > 0.0 && most / least > WIDE {
            Scale::Logarithmic { least: step_below(least), most: step_above(most) }
        } else {
            Scale::linear(most, about)
        }
    }

    /// Where `value` stands, from 0 to 1; what lies outside stands at the end.
    pub(super) fn place(self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear { most } => value / most,
            Scale::Logarithmic { least, most } => (value.max(least) / least).ln() / (most / least).ln(),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Round values along the axis, about so many and never more than twice as many.
    pub(super) fn ticks(self, about: usize) -> Vec<f64> {
        match self {
            Scale::Linear { most } => {
                let step = nice(most / about as f64);
                (0..=(most / step + 1e-6) as usize).map(|number| number as f64 * step).collect()
            }
            Scale::Logarithmic { least, most } => {
                let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
                let inside = |value: &f64| (least * 0.999..=most * 1.001).contains(value);
                let steps =
                    (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
                let all: Vec<f64> = steps.filter(inside).collect();
                if all.len() <= about * 2 {
                    return all;
                }
                let every = ((last - first) as usize).div_ceil(about * 2).max(1);
                (first..=last).step_by(every).map(|power| 10f64.powi(power)).filter(inside).collect()
            }
        }
    }

    /// Whether distances are ratios.
    pub(super) fn is_logarithmic(self) -> bool {
        matches!(self, Scale::Logarithmic { .. })
    }
}

/// The next of 1, 2, 5 times a power of ten that is not below `value`.
fn nice(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    step_above(value)
}

fn step_above(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= value * 0.999_999).unwrap_or(10.0);
    digit * power
}

fn step_below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let digit = [5.0, 2.0].into_iter().find(|digit| digit * power <= value * 1.000_001).unwrap_or(1.0);
    digit * power
}

/// A tick with its label; where there is no room for all, the lower rank stays.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisTick {
    /// Where it stands, from 0 to 1.
    pub(super) place: f64,
    pub(super) label: String,
    pub(super) rank: u32,
}

/// Ticks of durations in microseconds.
pub(super) fn duration_ticks(scale: Scale, about: usize) -> Vec<AxisTick> {
    let label = |value: f64| match value {
        _ if value == 0.0 => "0".to_owned(),
        _ if value < 1e3 => trimmed(value, "us"),
        _ if value < 1e6 => trimmed(value / 1e3, "ms"),
        _ => quantity::span(value / 1e6),
    };
    plain(scale, about, label)
}

/// Ticks of rates.
pub(super) fn rate_ticks(scale: Scale, about: usize) -> Vec<AxisTick> {
    let label = |value: f64| match value {
        _ if value < 1e3 => trimmed(value, ""),
        _ if value < 1e6 => trimmed(value / 1e3, "k"),
        _ => trimmed(value / 1e6, "M"),
    };
    plain(scale, about, label)
}

fn plain(scale: Scale, about: usize, label: impl Fn(f64) -> String) -> Vec<AxisTick> {
    let ticks = scale.ticks(about).into_iter().enumerate();
    // Every second one first: what is left where there is no room for all is even.
    let ticks = ticks.map(|(number, value)| (number % 2 * 100 + number, value));
    ticks
        .map(|(rank, value)| AxisTick { place: scale.place(value), label: label(value), rank: rank as u32 })
        .collect()
}

fn trimmed(value: f64, unit: &str) -> String {
    let text = format!("{value:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Ticks of the time that passed, in seconds, at steps that clocks have.
pub(super) fn time_ticks(seconds: f64, about: usize) -> Vec<AxisTick> {
    const STEPS: [f64; 20] = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0,
        7200.0, 14_400.0, 21_600.0, 43_200.0,
    ];
    let step = STEPS.into_iter().find(|step| seconds / step <= about as f64).unwrap_or(86_400.0);
    let number = (seconds / step + 1e-6).min(about as f64) as u32;
    (0..=number)
        .map(|number| {
            let at = f64::from(number) * step;
            let label = if number == 0 { "0s".to_owned() } else { quantity::span(at) };
            AxisTick { place: if seconds > 0.0 { at / seconds } else { 0.0 }, label, rank: number }
        })
        .collect()
}

/// HdrHistogram's axis of percentiles: each nine as wide as the one before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Percentiles {
    /// How many nines the axis has.
    nines: f64,
}

impl Percentiles {
    /// For so many values: the last one stands at the end.
    pub(super) fn of(values: u64) -> Percentiles {
        Percentiles { nines: (values.max(10) as f64).log10() }
    }

    /// Where the share `below` (0 to 1) stands; all of them at the end.
    pub(super) fn place(self, below: f64) -> f64 {
        if below >= 1.0 { 1.0 } else { (-(1.0 - below).log10() / self.nines).clamp(0.0, 1.0) }
    }

    /// The percentiles that people name, as far as there are values beyond them.
    pub(super) fn ticks(self) -> Vec<AxisTick> {
        const NAMED: [(f64, &str); 9] = [
            (99.0, "99%"),
            (99.9, "99.9%"),
            (50.0, "50%"),
            (90.0, "90%"),
            (99.99, "99.99%"),
            (0.0, "0%"),
            (99.999, "99.999%"),
            (99.9999, "99.9999%"),
            (75.0, "75%"),
        ];
        let there = NAMED
            .into_iter()
            .zip(0..)
            .filter(|((percent, _), _)| -(1.0 - percent / 100.0).log10() <= self.nines + 1e-9);
        there
            .map(|((percent, label), rank)| AxisTick {
                place: self.place(percent / 100.0),
                label: label.to_owned(),
                rank,
            })
            .collect()
    }
}

/// Those ticks of a horizontal axis of `length` pixels whose labels do not run into each other, in order.
pub(super) fn fitting(
    mut ticks: Vec<AxisTick>,
    length: f64,
    width_of: impl Fn(&str) -> f64,
) -> Vec<AxisTick> {
    /// Between two labels.
    const GAP: f64 = 8.0;
    ticks.sort_by_key(|tick| tick.rank);
    let mut kept: Vec<AxisTick> = Vec::new();
    for tick in ticks {
        let half = |tick: &AxisTick| width_of(&tick.label) / 2.0;
        let is_free =
            |other: &AxisTick| ((tick.place - other.place) * length).abs() >= half(&tick) + half(other) + GAP;
        if kept.iter().all(is_free) {
            kept.push(tick);
        }
    }
    kept.sort_by(|one, other| one.place.total_cmp(&other.place));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_end_where_a_linear_scale_does() {
        let scale = Scale::linear(91_234.0, 5);
        assert_eq!(scale, Scale::Linear { most: 100_000.0 });
        assert_eq!(scale.ticks(5), [0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 100_000.0]);
        assert_eq!(Scale::linear(0.0, 5), Scale::Linear { most: 1.0 });
        assert_eq!(Scale::linear(0.0, 5).place(f64::NAN), 0.0);
    }

    #[test]
    fn values_that_are_far_apart_are_spread_by_ratio() {
        let scale = Scale::fitting([0.0, 700.0, 33_000.0].into_iter(), 5);
        assert_eq!(scale, Scale::Logarithmic { least: 500.0, most: 50_000.0 });
        assert_eq!(scale.ticks(5), [500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4]);
        assert!((scale.place(5_000.0) - 0.5).abs() < 1e-9);
        assert!(Scale::Logarithmic { least: 1.0, most: 1e9 }.ticks(5).len() <= 10);
        assert!(!Scale::fitting([700.0, 3_000.0].into_iter(), 5).is_logarithmic());
        assert!(!Scale::fitting(std::iter::empty(), 5).is_logarithmic());
    }

    #[test]
    fn each_nine_is_as_wide_as_the_one_before() {
        let axis = Percentiles::of(100_000);
        assert!((axis.place(0.9) - 0.2).abs() < 1e-9 && (axis.place(0.999) - 0.6).abs() < 1e-9);
        assert_eq!((axis.place(0.0), axis.place(1.0)), (0.0, 1.0));
        let mut labels = fitting(axis.ticks(), 1000.0, |_| 10.0).into_iter().map(|tick| tick.label);
        assert!(labels.any(|label| label == "99.999%"));
        assert!(Percentiles::of(1_000).ticks().iter().all(|tick| tick.label != "99.99%"));
    }

    #[test]
    fn labels_without_room_are_left_out_by_rank() {
        let labels = |length| {
            let kept = fitting(Percentiles::of(1_000_000).ticks(), length, |label| label.len() as f64 * 8.0);
            kept.into_iter().map(|tick| tick.label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(900.0), "0% 50% 75% 90% 99% 99.9% 99.99% 99.999% 99.9999%");
        assert_eq!(labels(260.0), "50% 99% 99.9% 99.999%");
    }

    #[test]
    fn time_has_the_steps_of_a_clock() {
        let labels = |seconds| {
            time_ticks(seconds, 10).into_iter().map(|tick| tick.label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(10.0), "0s 1s 2s 3s 4s 5s 6s 7s 8s 9s 10s");
        assert_eq!(labels(95.0), "0s 10s 20s 30s 40s 50s 1m 1.17m 1.33m 1.5m");
        assert_eq!(labels(600.0), "0s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m");
        assert_eq!(labels(0.0), "0s");
    }
}
