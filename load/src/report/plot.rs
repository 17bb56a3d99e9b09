//! Curves over two axes as a figure of a page, and the axes: where a value stands between their ends, and which values are
//! written beside them.
//!
//! The curves are one SVG that is stretched to the room there is, the labels beside it are text of the page: so one picture
//! is readable in a window of any width, and the page's style alone says what its colours are. Next: `html`.

use super::page::{escape, figure};
use super::quantity::seconds;
use std::iter::successors;

/// From here on the largest of an axis is so many times its smallest that equal distances would hide the small ones.
const FAR_APART: f64 = 20.0;
/// Ticks of a vertical axis, about, and of a horizontal one at the most.
const UPWARDS: f64 = 5.0;
const ACROSS: f64 = 10.0;

/// How values are spread along an axis: evenly from 0, or by ratio from `least`, where that is over 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    /// A linear scale from 0 whose end is a tick.
    pub(super) fn linear(most: f64) -> Scale {
        let step = rounded(most / UPWARDS, true);
        Scale { least: 0.0, most: (most / step).ceil().max(1.0) * step }
    }

    /// Linear, or by ratio where the values are far apart; values of 0 are left out of that question.
    pub(super) fn fitting(values: impl Iterator<Item = f64>) -> Scale {
        let (least, most) = ends(values.filter(|value| *value > 0.0));
        if most > 0.0 && most / least > FAR_APART {
            Scale { least: rounded(least, false), most: rounded(most, true) }
        } else {
            Scale::linear(most)
        }
    }

    /// Where `value` stands, from 0 to 1; what lies outside stands at the end.
    pub(super) fn place(self, value: f64) -> f64 {
        let Scale { least, most } = self;
        let place =
            if least == 0.0 { value / most } else { (value.max(least) / least).ln() / (most / least).ln() };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// What is to be said where distances are ratios.
    pub(super) fn remark(self) -> &'static str {
        if self.least > 0.0 { "; upwards, equal distances are equal ratios" } else { "" }
    }

    fn values(self) -> Vec<f64> {
        let Scale { least, most } = self;
        if least == 0.0 {
            let step = rounded(most / UPWARDS, true);
            return (0..=(most / step + 1e-6) as u32).map(|number| f64::from(number) * step).collect();
        }
        // From 1 to 2, from 2 to 5, from 5 to 10.
        let steps = successors(Some(least), |value| Some(rounded(value * 1.5, true)));
        let all: Vec<f64> = steps.take_while(|value| *value <= most * 1.001).collect();
        let is_power = |value: &f64| (value.log10() - value.log10().round()).abs() < 1e-6;
        let are_few = all.len() as f64 <= 2.0 * UPWARDS;
        all.into_iter().filter(|value| are_few || is_power(value)).collect()
    }

    pub(super) fn ticks(self, label: impl Fn(f64) -> String) -> Vec<AxisTick> {
        let tick = |value| AxisTick { place: self.place(value), label: label(value) };
        self.values().into_iter().map(tick).collect()
    }
}

/// The least and the most of values that are not below 0; of none the least is infinite.
pub(super) fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

/// The next of 1, 2, 5 times a power of ten, up or down; of nothing 1.
fn rounded(value: f64, up: bool) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let mut steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter();
    let found = if up {
        steps.find(|step| *step >= value * 0.999_999)
    } else {
        steps.rfind(|step| *step <= value * 1.000_001)
    };
    found.unwrap_or(power)
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisTick {
    /// Where it stands, from 0 to 1.
    pub(super) place: f64,
    pub(super) label: String,
}

pub(super) fn time_ticks(seconds: f64) -> Vec<AxisTick> {
    const STEPS: [f64; 17] = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0,
        21_600.0,
    ];
    let step = STEPS.into_iter().find(|step| seconds / step <= ACROSS).unwrap_or(86_400.0);
    let number = (seconds / step + 1e-6).min(ACROSS) as u32;
    // Every second one first: what is left where there is no room for all is even.
    let numbers = (0..=number).step_by(2).chain((1..=number).step_by(2));
    let tick = |number| {
        let at = f64::from(number) * step;
        let place = if seconds > 0.0 { at / seconds } else { 0.0 };
        AxisTick { place, label: self::seconds(at).to_string() }
    };
    numbers.map(tick).collect()
}

/// HdrHistogram's axis of percentiles: each nine as wide as the one before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PercentileAxis {
    nines: f64,
}

impl PercentileAxis {
    /// For so many values: the last one stands at the end.
    pub(super) fn of(values: u64) -> PercentileAxis {
        PercentileAxis { nines: (values.max(10) as f64).log10() }
    }

    /// Where the share `below` (0 to 1) stands; all of them at the end.
    pub(super) fn place(self, below: f64) -> f64 {
        if below >= 1.0 { 1.0 } else { (-(1.0 - below).log10() / self.nines).clamp(0.0, 1.0) }
    }

    /// The percentiles that people name, as far as there are values beyond them; those that matter most first.
    pub(super) fn ticks(self) -> Vec<AxisTick> {
        const NAMED: [f64; 9] = [99.0, 99.9, 50.0, 90.0, 99.99, 0.0, 99.999, 99.9999, 75.0];
        let there = NAMED.into_iter().filter(|percent| -(1.0 - percent / 100.0).log10() <= self.nines + 1e-9);
        let tick = |percent| AxisTick { place: self.place(percent / 100.0), label: format!("{percent}%") };
        there.map(tick).collect()
    }
}

/// Those ticks of a horizontal axis of `length` pixels whose labels do not run into each other; the first ones stay.
pub(super) fn fitting(ticks: &[AxisTick], length: f64) -> Vec<&AxisTick> {
    /// Pixels of a letter, rather too many, and between two labels.
    const LETTER: f64 = 7.2;
    const GAP: f64 = 8.0;
    let half = |tick: &AxisTick| tick.label.len() as f64 * LETTER / 2.0;
    let mut kept: Vec<&AxisTick> = Vec::new();
    for tick in ticks {
        let is_free =
            |other: &&AxisTick| ((tick.place - other.place) * length).abs() >= half(tick) + half(other) + GAP;
        if kept.iter().all(is_free) {
            kept.push(tick);
        }
    }
    kept
}

/// Pixels of the axis in a window where all labels are shown, and in a telephone's.
const WIDE: f64 = 560.0;
const NARROW: f64 = 270.0;

pub(super) struct Curve {
    pub(super) name: &'static str,
    /// Its colour and dashes: `first`, `second` or `error`.
    pub(super) class: &'static str,
    /// From 0 to 1 both, the second upwards.
    pub(super) points: Vec<(f64, f64)>,
}

pub(super) struct Plot<'a> {
    /// The only one of its page.
    pub(super) id: &'a str,
    pub(super) caption: &'a str,
    pub(super) description: &'a str,
    /// Below, those that matter most first.
    pub(super) across: Vec<AxisTick>,
    pub(super) upwards: Vec<AxisTick>,
    pub(super) curves: Vec<Curve>,
}

impl Plot<'_> {
    pub(super) fn figure(&self, below: &str) -> String {
        let (wide, narrow) = (fitting(&self.across, WIDE), fitting(&self.across, NARROW));
        let class = |tick: &AxisTick| if narrow.contains(&tick) { "label" } else { "label wide" };
        let up = |tick: &AxisTick| label("label", "bottom", tick);
        let (up, across): (String, String) = (
            self.upwards.iter().map(up).collect(),
            wide.iter().map(|tick| label(class(tick), "left", tick)).collect(),
        );
        let lines = self.upwards.iter().map(|tick| format!("M0 {}H1000", 1000.0 - per_mille(tick.place)));
        let columns = wide.iter().map(|tick| format!("M{} 0V1000", per_mille(tick.place)));
        let grid: String = lines.chain(columns).collect();
        let curves: String = self.curves.iter().map(Curve::path).collect();
        let picture = format!(
            "<div class=\"up\">{up}</div><svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\"><path class=\"grid\" \
             d=\"{grid}\"/>{curves}</svg><div class=\"across\">{across}</div>"
        );
        let legend: Vec<(&str, &str)> = self.curves.iter().map(|curve| (curve.class, curve.name)).collect();
        let below = format!("<p class=\"soft\">{}</p>{below}", escape(self.description));
        figure((self.id, self.caption), &legend, ("plot", &picture), self.description, &below)
    }
}

impl Curve {
    /// A line through the points; of a single one a dot, which is a line without a length.
    fn path(&self) -> String {
        let points = self.points.iter().map(|(x, y)| format!("{} {}", per_mille(*x), 1000.0 - per_mille(*y)));
        let path = points.collect::<Vec<_>>().join("L");
        let dot = if self.points.len() == 1 { " dot" } else { "" };
        let end = if dot.is_empty() { "" } else { "h0" };
        format!("<path class=\"{}{dot}\" d=\"M{path}{end}\"/>", self.class)
    }
}

fn label(class: &str, side: &str, tick: &AxisTick) -> String {
    let (place, text) = (tick.place * 100.0, escape(&tick.label));
    format!("<span class=\"{class}\" style=\"{side}:{place:.1}%\">{text}</span>")
}

/// To a tenth of a thousandth, which is less than a pixel.
fn per_mille(place: f64) -> f64 {
    (place * 10_000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_end_where_a_linear_scale_does() {
        let scale = Scale::linear(91_234.0);
        assert_eq!(scale, Scale { least: 0.0, most: 100_000.0 });
        assert_eq!(scale.values(), [0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 100_000.0]);
        assert_eq!(Scale::linear(0.0), Scale { least: 0.0, most: 1.0 });
        assert_eq!(Scale::linear(0.0).place(f64::NAN), 0.0);
    }

    #[test]
    fn values_that_are_far_apart_are_spread_by_ratio() {
        let scale = Scale::fitting([0.0, 700.0, 33_000.0].into_iter());
        assert_eq!(scale, Scale { least: 500.0, most: 50_000.0 });
        assert_eq!(scale.values(), [500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4]);
        assert!((scale.place(5_000.0) - 0.5).abs() < 1e-9);
        assert_eq!(Scale { least: 1.0, most: 1e9 }.values().len(), 10);
        assert_eq!(Scale::fitting([700.0, 3_000.0].into_iter()).remark(), "");
        assert_eq!(Scale::fitting(std::iter::empty()).remark(), "");
    }

    fn labels(ticks: &[AxisTick], length: f64) -> String {
        let mut kept = fitting(ticks, length);
        kept.sort_by(|one, other| one.place.total_cmp(&other.place));
        kept.into_iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_nine_is_as_wide_as_the_one_before_and_labels_without_room_are_left_out() {
        let axis = PercentileAxis::of(100_000);
        assert!((axis.place(0.9) - 0.2).abs() < 1e-9 && (axis.place(0.999) - 0.6).abs() < 1e-9);
        assert_eq!((axis.place(0.0), axis.place(1.0)), (0.0, 1.0));
        assert!(PercentileAxis::of(1_000).ticks().iter().all(|tick| tick.label != "99.99%"));
        let ticks = PercentileAxis::of(1_000_000).ticks();
        assert_eq!(labels(&ticks, 900.0), "0% 50% 75% 90% 99% 99.9% 99.99% 99.999% 99.9999%");
        assert_eq!(labels(&ticks, 240.0), "50% 99% 99.9% 99.999%");
    }

    #[test]
    fn time_has_the_steps_of_a_clock() {
        let labels = |seconds| labels(&time_ticks(seconds), 1000.0);
        assert_eq!(labels(10.0), "0s 1s 2s 3s 4s 5s 6s 7s 8s 9s 10s");
        assert_eq!(labels(95.0), "0s 10s 20s 30s 40s 50s 1m 1.17m 1.33m 1.5m");
        assert_eq!(labels(600.0), "0s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m");
        assert_eq!(labels(0.0), "0s");
    }
}
