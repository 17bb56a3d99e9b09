//! How things are shown: sixteen colours, or none, where the same is said by weight and by letters.

use super::super::boards::Mark;
use ratatui_core::style::{Color, Modifier, Style};

/// Whether there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// The terminal's sixteen.
    Sixteen,
    /// None: `NO_COLOR`.
    Plain,
}

impl Palette {
    /// What the environment asks for.
    pub fn of_environment() -> Palette {
        let refuses = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if refuses { Palette::Plain } else { Palette::Sixteen }
    }

    fn style(self, color: Color, modifier: Modifier) -> Style {
        match self {
            Palette::Sixteen => Style::new().fg(color),
            Palette::Plain => Style::new().add_modifier(modifier),
        }
    }

    /// Like most.
    pub fn plain(self) -> Style {
        Style::new()
    }

    /// What stands out.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What may be overlooked.
    pub fn faint(self) -> Style {
        self.style(Color::DarkGray, Modifier::empty())
    }

    /// What is well.
    pub fn good(self) -> Style {
        self.style(Color::Green, Modifier::empty())
    }

    /// What is not as usual.
    pub fn odd(self) -> Style {
        self.style(Color::Yellow, Modifier::UNDERLINED)
    }

    /// What fails.
    pub fn bad(self) -> Style {
        self.style(Color::Red, Modifier::BOLD)
    }

    /// What is chosen.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What a cell is to be shown like.
    pub fn marked(self, mark: Mark) -> Style {
        match mark {
            Mark::None => self.plain(),
            Mark::Good => self.good(),
            Mark::Odd => self.odd(),
            Mark::Bad => self.bad(),
        }
    }

    /// The bars in front.
    pub fn front(self, is_failure: bool) -> Color {
        match self {
            Palette::Sixteen if is_failure => Color::Red,
            Palette::Sixteen => Color::Cyan,
            Palette::Plain => Color::Reset,
        }
    }

    /// The bars behind.
    pub fn back(self, is_failure: bool) -> Color {
        match self {
            // A chart with failures in front has what is usual behind.
            Palette::Sixteen if is_failure => Color::Cyan,
            Palette::Sixteen => Color::Yellow,
            Palette::Plain => Color::Reset,
        }
    }
}
