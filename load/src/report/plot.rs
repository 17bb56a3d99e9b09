//! Curves over two axes, as a figure of a page.
//!
//! The curves are one SVG that is stretched to the room there is, the labels beside it are text of the page: so one picture
//! is readable in a window of any width, and the page's style alone says what its colours are. Next: `html`.

use super::axis::{AxisTick, fitting};
use super::page::{escape, figure};

/// Pixels of the axis in a window where all labels are shown, and in a telephone's.
const WIDE: f64 = 560.0;
const NARROW: f64 = 270.0;

pub(super) struct Curve {
    /// For the legend.
    pub(super) name: &'static str,
    /// Its colour and dashes: `first`, `second` or `error`.
    pub(super) class: &'static str,
    /// From 0 to 1 both, the second upwards.
    pub(super) points: Vec<(f64, f64)>,
}

pub(super) struct Plot<'a> {
    /// The only one of its page.
    pub(super) id: &'a str,
    /// Above the picture.
    pub(super) caption: &'a str,
    pub(super) description: &'a str,
    /// Below, those that matter most first.
    pub(super) across: Vec<AxisTick>,
    pub(super) upwards: Vec<AxisTick>,
    pub(super) curves: Vec<Curve>,
}

impl Plot<'_> {
    /// The figure, with `below` (a table, a sentence) as its end.
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
