//! The keys: one table, which the line at the bottom of the screen is made of too.

use super::boards::BOARDS;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To end.
    Quit,
    /// To leave the terminal to the shell for a while.
    Suspend,
    /// The board with this number, from 0.
    Board(usize),
    /// The board to the right.
    NextBoard,
    /// The board to the left.
    PreviousBoard,
    /// A row up.
    Up,
    /// A row down.
    Down,
    /// Many rows up.
    PageUp,
    /// Many rows down.
    PageDown,
    /// The first row.
    First,
    /// The last row.
    Last,
    /// To sort by the column to the right.
    NextColumn,
    /// To sort by the column to the left.
    PreviousColumn,
    /// To sort the other way.
    Reverse,
    /// Another time for the charts.
    Span,
    /// To type a filter.
    Filter,
    /// A letter of it.
    Type(char),
    /// The last letter of it away.
    Erase,
    /// The filter is as it is wanted.
    Done,
    /// The filter away.
    Clear,
}

/// A key, or several that go together.
struct Key {
    /// As it is shown at the bottom; empty where it goes without saying.
    shown: &'static str,
    what: &'static str,
    codes: &'static [(KeyCode, Action)],
}

/// Stands for the time that charts go back.
const SPAN: &str = "time";

/// All but the digits, in the order of their use.
const KEYS: &[Key] = &[
    Key { shown: "q", what: "quit", codes: &[(KeyCode::Char('q'), Action::Quit)] },
    Key {
        shown: "Tab 1-7",
        what: "table",
        codes: &[(KeyCode::Tab, Action::NextBoard), (KeyCode::BackTab, Action::PreviousBoard)],
    },
    Key {
        shown: "↑↓",
        what: "row",
        codes: &[
            (KeyCode::Up, Action::Up),
            (KeyCode::Down, Action::Down),
            (KeyCode::Char('k'), Action::Up),
            (KeyCode::Char('j'), Action::Down),
        ],
    },
    Key {
        shown: "←→",
        what: "sort",
        codes: &[
            (KeyCode::Left, Action::PreviousColumn),
            (KeyCode::Right, Action::NextColumn),
            (KeyCode::Char('s'), Action::NextColumn),
            (KeyCode::Char('S'), Action::PreviousColumn),
        ],
    },
    Key { shown: "r", what: "reverse", codes: &[(KeyCode::Char('r'), Action::Reverse)] },
    Key { shown: "/", what: "filter", codes: &[(KeyCode::Char('/'), Action::Filter)] },
    Key { shown: "t", what: SPAN, codes: &[(KeyCode::Char('t'), Action::Span)] },
    Key {
        shown: "",
        what: "",
        codes: &[
            (KeyCode::PageUp, Action::PageUp),
            (KeyCode::PageDown, Action::PageDown),
            (KeyCode::Home, Action::First),
            (KeyCode::End, Action::Last),
            (KeyCode::Esc, Action::Clear),
        ],
    },
];

/// The keys while a filter is typed, where letters are letters.
const TYPING: &[Key] = &[
    Key { shown: "Enter", what: "keep", codes: &[(KeyCode::Enter, Action::Done)] },
    Key { shown: "Esc", what: "clear", codes: &[(KeyCode::Esc, Action::Clear)] },
    Key {
        shown: "",
        what: "",
        codes: &[
            (KeyCode::Backspace, Action::Erase),
            (KeyCode::Up, Action::Up),
            (KeyCode::Down, Action::Down),
            (KeyCode::Tab, Action::NextBoard),
        ],
    },
];

/// What a key that was pressed asks for, if anything; `is_typing` says whether a filter is typed.
pub fn action(key: &KeyEvent, is_typing: bool) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_letter = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    let table = if is_typing { TYPING } else { KEYS };
    match key.code {
        KeyCode::Char(letter) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            // What the terminal would do by itself, if it did anything.
            return match letter {
                'c' => Some(Action::Quit),
                'z' => Some(Action::Suspend),
                _ => None,
            };
        }
        KeyCode::Char(_) if !is_letter => return None,
        KeyCode::Char(letter) if is_typing => {
            return (!letter.is_control()).then_some(Action::Type(letter));
        }
        KeyCode::Char(digit @ '1'..='9') => {
            let number = digit as usize - '1' as usize;
            return (number < BOARDS.len()).then_some(Action::Board(number));
        }
        _ => {}
    }
    let mut codes = table.iter().flat_map(|key| key.codes);
    codes.find(|(code, _)| *code == key.code).map(|(_, action)| *action)
}

/// The keys as they stand at the bottom of the screen; `span` is the time that charts go back.
pub fn shown(is_typing: bool, span: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let table = if is_typing { TYPING } else { KEYS };
    table.iter().filter(|key| !key.shown.is_empty()).map(move |key| {
        let what = if key.what == SPAN { span } else { key.what };
        (key.shown, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode, is_typing: bool) -> Option<Action> {
        action(&KeyEvent::new(code, KeyModifiers::NONE), is_typing)
    }

    #[test]
    fn no_key_has_two_meanings() {
        for table in [KEYS, TYPING] {
            let codes: Vec<KeyCode> = table.iter().flat_map(|key| key.codes).map(|(code, _)| *code).collect();
            for (index, code) in codes.iter().enumerate() {
                assert!(!codes[..index].contains(code), "{code:?}");
            }
        }
    }

    #[test]
    fn letters_act_unless_a_filter_is_typed() {
        assert_eq!(press(KeyCode::Char('q'), false), Some(Action::Quit));
        assert_eq!(press(KeyCode::Char('q'), true), Some(Action::Type('q')));
        assert_eq!(press(KeyCode::Char('2'), false), Some(Action::Board(1)));
        assert_eq!(press(KeyCode::Char('2'), true), Some(Action::Type('2')));
        assert_eq!(press(KeyCode::Char('9'), false), None, "there is no such board");
        assert_eq!(press(KeyCode::Esc, true), Some(Action::Clear));
        assert_eq!(press(KeyCode::F(1), false), None);
    }

    #[test]
    fn control_letters_mean_what_they_mean_to_a_terminal() {
        for is_typing in [false, true] {
            let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(action(&key, is_typing), Some(Action::Quit));
            let key = KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL);
            assert_eq!(action(&key, is_typing), Some(Action::Suspend));
            let key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT);
            assert_eq!(action(&key, is_typing), None);
        }
    }
}
