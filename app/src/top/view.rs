//! What the person at the keys has chosen: a board, its order and filter, the row that is looked at, the time that charts go back.
//!
//! Pure. Before: `keys`, which turns keys into actions; next: `draw`.

use super::boards::{BOARDS, Board, Cell, Column, Row};
use super::keys::Action;
use super::seen::Seen;

/// Letters of a filter at the most.
const LONGEST_FILTER: usize = 100;
/// Rows that a page key goes.
const PAGE: usize = 10;

/// The times that charts go back: seconds, and words.
pub const SPANS: [(u64, &str); 4] = [(60, "minute"), (300, "5 minutes"), (900, "15 minutes"), (3600, "hour")];

/// What is chosen of one board.
#[derive(Debug, Clone)]
struct Choice {
    column: usize,
    down: bool,
    filter: String,
    row: usize,
}

impl Choice {
    /// Sorts by the column with this number, counted on from the first behind the last.
    fn sort(&mut self, columns: &[Column], number: usize) {
        let column = number % columns.len();
        (self.column, self.down) = (column, !columns[column].is_text);
    }
}

/// All that is chosen.
#[derive(Debug)]
pub struct View {
    /// The number of the board.
    pub board: usize,
    /// The number of the time that charts go back.
    span: usize,
    /// Whether letters go into the filter.
    pub is_typing: bool,
    /// How many rows there were when last drawn.
    rows: usize,
    choices: Vec<Choice>,
}

/// A row with its cells.
#[derive(Debug)]
pub struct Listed {
    /// A cell for each column of the board.
    pub cells: Vec<Cell>,
}

impl Default for View {
    fn default() -> Self {
        let choice = |board: &Board| Choice {
            column: board.sorted,
            down: !board.columns[board.sorted].is_text,
            filter: String::new(),
            row: 0,
        };
        View { board: 0, span: 1, is_typing: false, rows: 0, choices: BOARDS.iter().map(choice).collect() }
    }
}

impl View {
    /// The board.
    pub fn board(&self) -> &'static Board {
        &BOARDS[self.board]
    }

    /// The time that charts go back, in seconds and in words.
    pub fn span(&self) -> (u64, &'static str) {
        SPANS[self.span]
    }

    /// What is filtered for.
    pub fn filter(&self) -> &str {
        &self.choices[self.board].filter
    }

    /// The column that is sorted by, and whether the largest comes first.
    pub fn sorted(&self) -> (usize, bool) {
        let choice = &self.choices[self.board];
        (choice.column, choice.down)
    }

    /// The row that is looked at.
    pub fn row(&self) -> usize {
        self.choices[self.board].row
    }

    /// The rows of the board in their order, and how many there are without the filter.
    pub fn lines(&mut self, seen: &Seen) -> (Vec<Listed>, usize) {
        let board = self.board();
        let (lines, all) = lines(board, seen, self.filter(), self.sorted());
        self.rows = lines.len();
        let choice = &mut self.choices[self.board];
        choice.row = choice.row.min(self.rows.saturating_sub(1));
        (lines, all)
    }

    /// Does what a key asks for, as far as it is a choice.
    pub fn act(&mut self, action: Action) {
        let columns = self.board().columns;
        let last = self.rows.saturating_sub(1);
        let choice = &mut self.choices[self.board];
        match action {
            Action::Quit | Action::Suspend => {}
            Action::Board(number) => self.board = number.min(BOARDS.len() - 1),
            Action::NextBoard => self.board = (self.board + 1) % BOARDS.len(),
            Action::PreviousBoard => self.board = (self.board + BOARDS.len() - 1) % BOARDS.len(),
            Action::Up => choice.row = choice.row.saturating_sub(1),
            Action::Down => choice.row = (choice.row + 1).min(last),
            Action::PageUp => choice.row = choice.row.saturating_sub(PAGE),
            Action::PageDown => choice.row = (choice.row + PAGE).min(last),
            Action::First => choice.row = 0,
            Action::Last => choice.row = last,
            Action::NextColumn => choice.sort(columns, choice.column + 1),
            Action::PreviousColumn => choice.sort(columns, choice.column + columns.len() - 1),
            Action::Reverse => choice.down = !choice.down,
            Action::Span => self.span = (self.span + 1) % SPANS.len(),
            Action::Filter => self.is_typing = true,
            Action::Type(letter) if choice.filter.len() < LONGEST_FILTER => choice.filter.push(letter),
            Action::Type(_) => {}
            Action::Erase => _ = choice.filter.pop(),
            Action::Done => self.is_typing = false,
            Action::Clear => {
                self.is_typing = false;
                choice.filter.clear();
            }
        }
    }
}

/// The rows of a board that fit a filter, in the order of a column (the largest first, or the least), and how many there are
/// without the filter.
pub fn lines(
    board: &Board,
    seen: &Seen,
    filter: &str,
    (column, down): (usize, bool),
) -> (Vec<Listed>, usize) {
    let wanted = filter.to_lowercase();
    let cells =
        |row: &Row<'_>| Listed { cells: board.columns.iter().map(|column| (column.of)(row)).collect() };
    let rows = (board.rows)(seen);
    let fits = |line: &Listed| {
        let mut texts = board.columns.iter().zip(&line.cells).filter(|(column, _)| column.is_text);
        wanted.is_empty() || texts.any(|(_, cell)| cell.text.to_lowercase().contains(&wanted))
    };
    let mut lines: Vec<Listed> = rows.iter().map(cells).filter(fits).collect();
    lines.sort_by(|one, two| {
        let order = one.cells[column].order(&two.cells[column]);
        if down { order.reverse() } else { order }
    });
    (lines, rows.len())
}

#[cfg(test)]
mod tests {
    use super::super::events::Event;
    use super::*;
    use serde_json::json;

    fn seen() -> Seen {
        let zone = |requests: u64| json!({ "requests": requests, "responses": { "5xx": 0 } });
        let tables = json!({ "server_zones": { "Beta": zone(5), "alpha": zone(50), "gamma": zone(500) } });
        let mut seen = Seen::default();
        seen.take(Event::Second(json!({ "tables": tables })));
        seen
    }

    fn names(view: &mut View) -> Vec<String> {
        view.lines(&seen()).0.into_iter().map(|line| line.cells[0].text.clone()).collect()
    }

    #[test]
    fn a_board_is_sorted_by_any_column_both_ways() {
        let mut view = View::default();
        view.act(Action::Board(4));
        view.act(Action::NextColumn);
        assert_eq!(names(&mut view), ["gamma", "alpha", "Beta"], "by requests, the most first");
        view.act(Action::Reverse);
        assert_eq!(names(&mut view), ["Beta", "alpha", "gamma"]);
        view.act(Action::PreviousColumn);
        view.act(Action::PreviousColumn);
        assert_eq!(names(&mut view), ["alpha", "Beta", "gamma"], "names are in the order of the alphabet");
        view.act(Action::PreviousColumn);
        assert_eq!(view.sorted().0, view.board().columns.len() - 1);
    }

    #[test]
    fn a_filter_is_each_board_s_own_and_keeps_the_row_in_bounds() {
        let mut view = View::default();
        view.act(Action::Board(4));
        names(&mut view);
        view.act(Action::Last);
        assert_eq!(view.row(), 2);
        view.act(Action::Filter);
        for letter in "ALP".chars() {
            view.act(Action::Type(letter));
        }
        assert_eq!((names(&mut view), view.row()), (vec!["alpha".to_owned()], 0));
        view.act(Action::Type('x'));
        assert!(names(&mut view).is_empty());
        view.act(Action::Down);
        view.act(Action::Erase);
        view.act(Action::Done);
        assert_eq!(names(&mut view), ["alpha"]);
        view.act(Action::NextBoard);
        assert_eq!((view.filter(), view.board().name), ("", "Events"));
        view.act(Action::PreviousBoard);
        assert_eq!(view.filter(), "ALP");
        view.act(Action::Clear);
        assert_eq!(names(&mut view).len(), 3);
    }

    #[test]
    fn no_order_of_keys_leads_out_of_bounds() {
        let every = [
            Action::Board(99),
            Action::PageDown,
            Action::Last,
            Action::NextColumn,
            Action::PreviousBoard,
            Action::PageUp,
            Action::Span,
            Action::Erase,
            Action::NextBoard,
            Action::Down,
        ];
        let (mut view, seen) = (View::default(), seen());
        for step in 0..1000 {
            view.act(every[step * 7 % every.len()]);
            view.act(every[step * step % every.len()]);
            view.lines(&seen);
        }
        for _ in 0..1000 {
            view.act(Action::Type('é'));
        }
        assert!(view.filter().len() <= LONGEST_FILTER + 'é'.len_utf8());
    }
}
