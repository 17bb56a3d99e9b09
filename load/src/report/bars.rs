//! Requests per second as horizontal bars: a group for each step, a bar for each party, drawn for three widths of window.
//!
//! Bars begin at 0 and are as long as their figures: a step that gains nothing must look like it. Next: `steps`.

use super::axis::{Scale, fitting, rate_ticks};
use super::drawing::{Anchor, Drawing, escape, shortened, width_of};
use super::measures::{MeasuredParty, Page, Row};
use super::plot::SIZES;
use std::fmt::Write as _;

/// Height of a bar and of the room that it has.
const BAR: f64 = 14.0;
const LINE: f64 = 20.0;
/// Height of a step's name where it stands above its bars, and between two steps.
const NAME: f64 = 20.0;
const BETWEEN: f64 = 12.0;
/// Below the bars: the axis with its labels.
const AXIS: f64 = 26.0;
/// From this width on the names stand beside the bars.
const BESIDE: f64 = 600.0;
/// The most of the picture that names may take beside the bars.
const NAMES_SHARE: f64 = 0.3;
/// Ticks of the axis, about; those without room are left out.
const TICKS: usize = 5;
/// Between a bar, its label and what comes next.
const GAP: f64 = 8.0;

/// Colours of the parties in order of their first appearance; whoever comes later has the last one.
const CLASSES: [&str; 5] = ["first", "second", "third", "fourth", "other"];

/// The figure of all steps.
pub(super) fn bars(page: &Page) -> String {
    let parties = parties(page);
    let mut html = String::from("<figure id=\"steps\"><figcaption>Requests per second</figcaption>");
    html.push_str("<ul class=\"legend\" aria-hidden=\"true\">");
    for (place, party) in parties.iter().enumerate() {
        let _ = write!(
            html,
            "<li><svg class=\"swatch\" viewBox=\"0 0 28 8\"><rect class=\"{}\" width=\"28\" height=\"8\"/></svg>{}</li>",
            CLASSES[place.min(CLASSES.len() - 1)],
            escape(party)
        );
    }
    if page.rows.iter().any(|row| row.expected.is_some()) {
        html.push_str("<li><svg class=\"swatch\" viewBox=\"0 0 28 8\"><line class=\"expected\" x1=\"14\" y1=\"0\" x2=\"14\" y2=\"8\"/></svg>expected</li>");
    }
    html.push_str("</ul>");
    let description = description(page);
    for (class, width, _) in SIZES {
        html.push_str(&picture(page, &parties, class, width, &description));
    }
    html.push_str("</figure>");
    html
}

fn parties(page: &Page) -> Vec<&str> {
    let mut parties: Vec<&str> = Vec::new();
    for measure in page.rows.iter().flat_map(|row| &row.measures) {
        if !parties.contains(&measure.party.as_str()) {
            parties.push(&measure.party);
        }
    }
    parties
}

fn description(page: &Page) -> String {
    let step = |row: &Row| {
        let told: Vec<String> =
            row.measures.iter().map(|measure| format!("{} {}", measure.party, measure.told())).collect();
        format!("{}: {}", row.name, told.join(", "))
    };
    page.rows.iter().map(step).collect::<Vec<_>>().join("; ")
}

/// Where things stand in a picture.
struct Layout {
    /// Where party names begin, and where bars do.
    names: f64,
    bars: f64,
    /// How long the longest bar may be.
    longest: f64,
    is_beside: bool,
    scale: Scale,
}

impl Layout {
    fn of(page: &Page, parties: &[&str], width: f64) -> Layout {
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
        let is_beside = width >= BESIDE;
        let names = if is_beside {
            widest(&mut page.rows.iter().map(|row| width_of(&row.name) + 2.0 * GAP)).min(width * NAMES_SHARE)
        } else {
            0.0
        };
        // A single party needs no name at each bar.
        let party = if parties.len() > 1 {
            widest(&mut parties.iter().map(|party| width_of(party) + GAP)).min(width * 0.25)
        } else {
            0.0
        };
        let measures = || page.rows.iter().flat_map(|row| &row.measures);
        let label = widest(&mut measures().map(|measure| width_of(&measure.told()) + GAP));
        let most = widest(
            &mut measures().filter(|measure| measure.counts()).map(|measure| measure.rate.max(measure.high)),
        );
        let most = page.rows.iter().filter_map(|row| row.expected).fold(most, f64::max);
        let longest = (width - names - party - label - 4.0).max(40.0);
        // The bars end where the largest does: there is a figure at each, so the axis need not end at a round number.
        let scale = Scale::Linear { most: if most > 0.0 { most } else { 1.0 } };
        Layout { names, bars: names + party, longest, is_beside, scale }
    }

    fn height(&self, row: &Row) -> f64 {
        let name = if self.is_beside { 0.0 } else { NAME };
        name + row.measures.len().max(1) as f64 * LINE + BETWEEN
    }

    fn x(&self, value: f64) -> f64 {
        self.bars + self.scale.place(value) * self.longest
    }
}

fn picture(page: &Page, parties: &[&str], class: &str, width: f64, description: &str) -> String {
    let layout = Layout::of(page, parties, width);
    let height = page.rows.iter().map(|row| layout.height(row)).sum::<f64>() + AXIS;
    let mut drawing = Drawing::new(width, height);
    let bottom = height - AXIS;
    let ticks: Vec<(f64, String)> = fitting(rate_ticks(layout.scale, TICKS), layout.longest, width_of)
        .into_iter()
        .map(|tick| (layout.bars + tick.place * layout.longest, tick.label))
        .collect();
    for (x, label) in &ticks {
        drawing.text((x.max(width_of(label) / 2.0), bottom + 17.0), "tick", Anchor::Middle, label);
    }
    let mut y = BETWEEN / 2.0;
    for row in &page.rows {
        let name = if layout.is_beside { 0.0 } else { NAME };
        // Behind the bars alone, so that no line runs through a name above them.
        let (top, end) = (y + name - 3.0, y + layout.height(row) - BETWEEN + 3.0);
        for (x, _) in &ticks {
            drawing.line((*x, top), (*x, end), "grid");
        }
        drawing.line((layout.bars, top), (layout.bars, end), "axis");
        step(&mut drawing, &layout, parties, row, y, width);
        y += layout.height(row);
    }
    drawing.finish(&format!("steps-{class}"), class, "Requests per second", description)
}

fn step(drawing: &mut Drawing, layout: &Layout, parties: &[&str], row: &Row, y: f64, width: f64) {
    let mut y = y;
    if layout.is_beside {
        let name = shortened(&row.name, layout.names - 2.0 * GAP);
        let middle = y + row.measures.len().max(1) as f64 * LINE / 2.0 + 4.0;
        drawing.text((0.0, middle), "name", Anchor::Start, &name);
    } else {
        drawing.text((0.0, y + 13.0), "name", Anchor::Start, &shortened(&row.name, width));
        y += NAME;
    }
    let top = y;
    for measure in &row.measures {
        let place = parties.iter().position(|party| *party == measure.party).unwrap_or(0);
        if layout.bars > layout.names {
            let party = shortened(&measure.party, layout.bars - layout.names - GAP);
            drawing.text((layout.bars - GAP, y + 12.0), "tick", Anchor::End, &party);
        }
        one(drawing, layout, measure, CLASSES[place.min(CLASSES.len() - 1)], y, row);
        y += LINE;
    }
    if let Some(expected) = row.expected {
        let x = layout.x(expected);
        drawing.line((x, top - 2.0), (x, y), "expected");
    }
}

fn one(drawing: &mut Drawing, layout: &Layout, measure: &MeasuredParty, class: &str, y: f64, row: &Row) {
    let step = &row.name;
    let told = measure.told();
    let label = (y + 12.0, Anchor::Start);
    if !measure.counts() {
        // A frame without a length of its own: wrong answers are no figure.
        drawing.bar(
            (layout.bars, y + 1.0),
            (24.0, BAR),
            "void",
            &format!("{step}, {}: {told}", measure.party),
        );
        drawing.text((layout.bars + 24.0 + GAP, label.0), "bad", label.1, &told);
        return;
    }
    let end = layout.x(measure.rate);
    let pointed = format!("{step}, {}: {told}", measure.party);
    drawing.bar((layout.bars, y + 1.0), ((end - layout.bars).max(1.5), BAR), class, &pointed);
    let mut reach = end;
    let (low, high) = (layout.x(measure.low), layout.x(measure.high));
    // A spread of a pixel or two would only look like a fault of the bar.
    if measure.high > measure.low && high - low >= 3.0 {
        let middle = y + 1.0 + BAR / 2.0;
        drawing.line((low, middle), (high, middle), "spread");
        for x in [low, high] {
            drawing.line((x, middle - 3.5), (x, middle + 3.5), "spread");
        }
        reach = reach.max(high);
    }
    // The mark of what was expected must not stand in the label.
    if let Some(expected) = row.expected.map(|rate| layout.x(rate))
        && (reach..reach + GAP + width_of(&told)).contains(&expected)
    {
        reach = expected;
    }
    drawing.text((reach + GAP, label.0), "figure", label.1, &told);
}
