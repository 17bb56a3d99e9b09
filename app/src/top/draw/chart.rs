//! A chart as bars: a line of words, and below it a column for each step.
//!
//! What is behind is drawn in shades, what is in front in full, so that they differ without colors too.

use super::super::charts::{Chart, Steps};
use super::super::grid::{Area, Grid, Style, columns};
use super::super::state::State;
use super::Palette;

/// Eighths of a place that a bar fills, from one on.
const EIGHTHS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const SHADE: &str = "░";

/// Draws a chart of the last seconds.
pub fn draw(
    grid: &mut Grid,
    mut area: Area,
    chart: &Chart,
    (state, seconds): (&State, u64),
    palette: Palette,
) {
    let (own, other) = chart.latest(state);
    let line = area.take_top(1);
    let rest = grid.text(line, chart.name, Style::PLAIN);
    let rest = grid.text(rest, &format!(" {own}"), Style::BOLD);
    if let Some((name, value)) = other {
        // A figure that is cut would be another one.
        let texts = [format!("  {name} {value}"), format!(" / {value}")];
        if let Some(fitting) = texts.iter().find(|text| columns(text) <= usize::from(rest.width)) {
            grid.text(rest, fitting, palette.faint());
        }
    }
    if area.height > 0 && area.width > 0 {
        let steps = chart.steps(state, seconds, usize::from(area.width));
        bars(grid, area, &steps, chart.is_failure, palette);
    }
}

fn bars(grid: &mut Grid, area: Area, steps: &Steps, is_failure: bool, palette: Palette) {
    let height = |value: Option<f64>| eighths(value, steps.top, area.height);
    let (full, pale) = palette.bars(is_failure);
    let shown = steps.front.len().min(usize::from(area.width));
    // The present is at the right edge.
    let (first, left) = (steps.front.len() - shown, area.x + area.width - shown as u16);
    for x in 0..shown {
        let front = height(steps.front[first + x]);
        let back = height(steps.back.get(first + x).copied().flatten());
        // On a single line, the pale bar would never be seen behind the other.
        let front = if area.height == 1 && palette == Palette::Plain && back > front { 0 } else { front };
        for y in 0..area.height {
            let below = u32::from(area.height - 1 - y) * 8;
            let (front, back) = (front.saturating_sub(below).min(8), back.saturating_sub(below).min(8));
            let (symbol, foreground, background) = match (front, back) {
                (0, 0) => continue,
                (0, 8) => (SHADE, pale, None),
                (0, part) => (EIGHTHS[part as usize - 1], pale, None),
                // Where the pale bar goes on above the full one, both are in one place.
                (part @ ..8, 8) => (EIGHTHS[part as usize - 1], full, pale),
                (part, _) => (EIGHTHS[part as usize - 1], full, None),
            };
            grid.set(left + x as u16, area.y + y, symbol, Style { foreground, background, ..Style::PLAIN });
        }
    }
}

/// The height of a bar in eighths of a line; any value above 0 is visible.
fn eighths(value: Option<f64>, top: f64, lines: u16) -> u32 {
    let Some(value) = value.filter(|&value| value > 0.0) else { return 0 };
    let most = u32::from(lines) * 8;
    // A cast of what is out of bounds gives the bound.
    ((value / top * f64::from(most)).round() as u32).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_high_as_its_value_and_never_higher_than_its_place() {
        let checks = [
            (None, 0),
            (Some(0.0), 0),
            (Some(0.001), 1),
            (Some(50.0), 8),
            (Some(100.0), 16),
            (Some(1e300), 16),
            (Some(f64::NAN), 0),
            (Some(f64::INFINITY), 16),
        ];
        for (value, expected) in checks {
            assert_eq!(eighths(value, 100.0, 2), expected, "{value:?}");
        }
    }
}
