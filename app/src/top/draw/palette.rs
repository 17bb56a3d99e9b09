//! How things are shown: in sixteen colors, or without any, where weight and letters show the same.

use super::super::grid::{Color, Style};
use super::super::tables::Mark;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// The terminal's sixteen colors.
    Sixteen,
    /// None: `NO_COLOR`.
    Plain,
}

impl Palette {
    pub fn of_environment() -> Palette {
        let refuses = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if refuses { Palette::Plain } else { Palette::Sixteen }
    }

    fn style(self, color: Color, otherwise: Style) -> Style {
        match self {
            Palette::Sixteen => Style { foreground: Some(color), ..Style::PLAIN },
            Palette::Plain => otherwise,
        }
    }

    /// For what may be overlooked.
    pub fn faint(self) -> Style {
        self.style(Color::DarkGray, Style::PLAIN)
    }

    pub fn marked(self, mark: Mark) -> Style {
        match mark {
            Mark::None => Style::PLAIN,
            Mark::Good => self.style(Color::Green, Style::PLAIN),
            Mark::Odd => self.style(Color::Yellow, Style::UNDERLINED),
            Mark::Bad => self.style(Color::Red, Style::BOLD),
        }
    }

    /// The colors of the bars in front of a chart and of those behind.
    pub fn bars(self, is_failure: bool) -> (Option<Color>, Option<Color>) {
        match self {
            // A chart with failures in front has what is usual behind.
            Palette::Sixteen if is_failure => (Some(Color::Red), Some(Color::Cyan)),
            Palette::Sixteen => (Some(Color::Cyan), Some(Color::Yellow)),
            Palette::Plain => (None, None),
        }
    }
}
