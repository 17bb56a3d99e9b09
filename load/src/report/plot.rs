//! Curves over two axes, as a figure of a page: caption, legend, and the same picture for three widths of window.
//!
//! A picture that is merely scaled has unreadable ticks on a telephone; so each width is drawn for itself and the page's
//! style shows the fitting one. Next: `html`.

use super::axis::{AxisTick, fitting};
use super::drawing::{Anchor, Drawing, escape, width_of};
use std::fmt::Write as _;

/// Class, width and height of each picture; `page` decides which is shown.
pub(super) const SIZES: [(&str, f64, f64); 3] =
    [("narrow", 350.0, 240.0), ("middling", 660.0, 270.0), ("wide", 960.0, 300.0)];

/// The baseline of a label below its tick.
const UNDER_TICK: f64 = 18.0;

/// A curve.
pub(super) struct Curve {
    /// For the legend.
    pub(super) name: &'static str,
    /// Its colour and dashes: `first`, `second`, `third` or `error`.
    pub(super) class: &'static str,
    /// From 0 to 1 both, the second upwards; a gap begins a new list.
    pub(super) points: Vec<(f64, f64)>,
}

/// Curves over two axes.
pub(super) struct Plot<'a> {
    /// The only one of its page.
    pub(super) id: &'a str,
    /// Above the picture.
    pub(super) caption: &'a str,
    /// In words, what the picture shows.
    pub(super) description: &'a str,
    /// Below.
    pub(super) across: Vec<AxisTick>,
    /// On the left.
    pub(super) upwards: Vec<AxisTick>,
    pub(super) curves: Vec<Curve>,
}

impl Plot<'_> {
    /// The figure, with `below` (a table, a sentence) as its end.
    pub(super) fn figure(&self, below: &str) -> String {
        let mut html =
            format!("<figure id=\"{}\"><figcaption>{}</figcaption>", self.id, escape(self.caption));
        html.push_str("<ul class=\"legend\" aria-hidden=\"true\">");
        for Curve { name, class, .. } in &self.curves {
            let _ = write!(
                html,
                "<li><svg class=\"swatch\" viewBox=\"0 0 28 8\"><path class=\"{class}\" d=\"M0 4L28 4\"/></svg>{}</li>",
                escape(name)
            );
        }
        html.push_str("</ul>");
        for (class, width, height) in SIZES {
            html.push_str(&self.picture(class, width, height));
        }
        let _ = write!(html, "<p class=\"soft\">{}</p>{below}</figure>", escape(self.description));
        html
    }

    fn picture(&self, class: &str, width: f64, height: f64) -> String {
        let labels = self.upwards.iter().map(|tick| width_of(&tick.label)).fold(0.0, f64::max);
        let last = self.across.iter().map(|tick| width_of(&tick.label)).fold(0.0, f64::max);
        let (left, right, top, bottom) = (labels + 10.0, last / 2.0 + 2.0, 10.0, 28.0);
        let (inside, tall) = (width - left - right, height - top - bottom);
        let x = |place: f64| left + place * inside;
        let y = |place: f64| top + (1.0 - place) * tall;
        let mut drawing = Drawing::new(width, height);
        for tick in &self.upwards {
            drawing.line((left, y(tick.place)), (left + inside, y(tick.place)), "grid");
            drawing.text((left - 8.0, y(tick.place) + 4.0), "tick", Anchor::End, &tick.label);
        }
        for tick in fitting(self.across.clone(), inside, width_of) {
            drawing.line((x(tick.place), top), (x(tick.place), top + tall), "grid");
            drawing.text((x(tick.place), top + tall + UNDER_TICK), "tick", Anchor::Middle, &tick.label);
        }
        drawing.line((left, top + tall), (left + inside, top + tall), "axis");
        for curve in &self.curves {
            let points: Vec<(f64, f64)> = curve.points.iter().map(|point| (x(point.0), y(point.1))).collect();
            drawing.curve(&points, curve.class);
        }
        drawing.finish(&format!("{}-{class}", self.id), class, self.caption, self.description)
    }
}
