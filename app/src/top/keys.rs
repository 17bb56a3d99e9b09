//! What keys do: one table, which the line at the bottom of the screen is made of too. Before: `keyboard`; next: `view`, which acts.

use super::keyboard::Key;
use super::tables::TABLES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Quit,
    /// To leave the terminal to the shell for a while.
    Suspend,
    /// The table with this number, from 0.
    Table(usize),
    NextTable,
    PreviousTable,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
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
    Type(char),
    Erase,
    /// The filter is as it is wanted.
    Done,
    /// To remove the filter.
    Clear,
}

/// A key, or several that belong together.
struct Binding {
    /// As it is shown at the bottom; empty where it is not.
    label: &'static str,
    effect: &'static str,
    keys: &'static [(Key, Action)],
}

/// Stands for the time that charts go back.
const SPAN: &str = "time";

const fn binding(label: &'static str, effect: &'static str, keys: &'static [(Key, Action)]) -> Binding {
    Binding { label, effect, keys }
}

/// All but the digits, in the order of their use.
const BINDINGS: &[Binding] = &[
    binding("q", "quit", &[(Key::Char('q'), Action::Quit)]),
    binding("Tab 1-9", "table", &[(Key::Tab, Action::NextTable), (Key::BackTab, Action::PreviousTable)]),
    binding("↑↓", "row", &[(Key::Up, Action::Up), (Key::Down, Action::Down)]),
    binding("", "", &[(Key::Char('k'), Action::Up), (Key::Char('j'), Action::Down)]),
    binding("←→", "sort", &[(Key::Left, Action::PreviousColumn), (Key::Right, Action::NextColumn)]),
    binding("", "", &[(Key::Char('S'), Action::PreviousColumn), (Key::Char('s'), Action::NextColumn)]),
    binding("r", "reverse", &[(Key::Char('r'), Action::Reverse)]),
    binding("/", "filter", &[(Key::Char('/'), Action::Filter)]),
    binding("t", SPAN, &[(Key::Char('t'), Action::Span)]),
    binding("", "", &[(Key::PageUp, Action::PageUp), (Key::PageDown, Action::PageDown)]),
    binding("", "", &[(Key::Home, Action::First), (Key::End, Action::Last), (Key::Escape, Action::Clear)]),
];

/// The keys while a filter is typed, where letters are letters.
const TYPING: &[Binding] = &[
    binding("Enter", "keep", &[(Key::Enter, Action::Done)]),
    binding("Esc", "clear", &[(Key::Escape, Action::Clear)]),
    binding("", "", &[(Key::Up, Action::Up), (Key::Down, Action::Down)]),
    binding("", "", &[(Key::Tab, Action::NextTable), (Key::Backspace, Action::Erase)]),
];

fn bindings(is_typing: bool) -> &'static [Binding] {
    if is_typing { TYPING } else { BINDINGS }
}

/// What a key does, if anything; `is_typing` says whether a filter is typed.
pub fn action(key: Key, is_typing: bool) -> Option<Action> {
    match key {
        // What the terminal would do with them by itself.
        Key::Control('c') => Some(Action::Quit),
        Key::Control('z') => Some(Action::Suspend),
        Key::Char(letter) if is_typing => (!letter.is_control()).then_some(Action::Type(letter)),
        Key::Char(digit @ '1'..='9') => {
            let number = digit as usize - '1' as usize;
            (number < TABLES.len()).then_some(Action::Table(number))
        }
        _ => {
            let mut keys = bindings(is_typing).iter().flat_map(|binding| binding.keys);
            keys.find(|(known, _)| *known == key).map(|(_, action)| *action)
        }
    }
}

/// Labels and effects of the keys at the bottom of the screen; `span` is the time that charts go back.
pub fn shown(is_typing: bool, span: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    bindings(is_typing).iter().filter(|binding| !binding.label.is_empty()).map(move |binding| {
        let effect = if binding.effect == SPAN { span } else { binding.effect };
        (binding.label, effect)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_has_two_meanings() {
        for table in [BINDINGS, TYPING] {
            let keys: Vec<Key> = table.iter().flat_map(|binding| binding.keys).map(|(key, _)| *key).collect();
            for (index, key) in keys.iter().enumerate() {
                assert!(!keys[..index].contains(key), "{key:?}");
            }
        }
    }

    #[test]
    fn letters_act_unless_a_filter_is_typed() {
        for (key, is_typing, expected) in [
            (Key::Char('q'), false, Some(Action::Quit)),
            (Key::Char('q'), true, Some(Action::Type('q'))),
            (Key::Char('2'), false, Some(Action::Table(1))),
            (Key::Char('2'), true, Some(Action::Type('2'))),
            (Key::Char('9'), false, Some(Action::Table(8))),
            (Key::Char('\u{9b}'), true, None),
            (Key::Escape, true, Some(Action::Clear)),
            (Key::PageUp, true, None),
        ] {
            assert_eq!(action(key, is_typing), expected, "{key:?}, {is_typing}");
        }
    }

    #[test]
    fn control_letters_mean_what_they_mean_to_a_terminal() {
        for is_typing in [false, true] {
            assert_eq!(action(Key::Control('c'), is_typing), Some(Action::Quit));
            assert_eq!(action(Key::Control('z'), is_typing), Some(Action::Suspend));
            assert_eq!(action(Key::Control('q'), is_typing), None);
        }
    }
}
