//! What the user has chosen: a table, its order and filter, the row that is looked at, the time that charts go back.
//!
//! Pure. Before: `keys`, which turns keys into actions; next: `draw`.

use super::keys::Action;
use super::state::State;
use super::tables::{Cell, TABLES, Table};

/// Bytes of a filter, about.
const LONGEST_FILTER: usize = 100;
/// Rows that a page key goes.
const PAGE: usize = 10;

/// The times that charts go back: seconds, and words.
pub const SPANS: [(u64, &str); 4] = [(60, "minute"), (300, "5 minutes"), (900, "15 minutes"), (3600, "hour")];

/// A column by its number, and whether the largest comes first.
pub type Sorting = (usize, bool);

/// What is chosen of one table.
#[derive(Debug, Clone)]
struct Choice {
    order: Sorting,
    filter: String,
    row: usize,
}

#[derive(Debug)]
pub struct View {
    /// The number of the table.
    pub table: usize,
    /// The number of the time that charts go back.
    span: usize,
    /// Whether letters go into the filter.
    pub is_typing: bool,
    /// The number of rows when last drawn.
    rows: usize,
    choices: Vec<Choice>,
}

impl Default for View {
    fn default() -> Self {
        let choice =
            |table: &Table| Choice { order: order(table, table.sorted), filter: String::new(), row: 0 };
        View { table: 0, span: 1, is_typing: false, rows: 0, choices: TABLES.iter().map(choice).collect() }
    }
}

impl View {
    pub fn table(&self) -> &'static Table {
        &TABLES[self.table]
    }

    /// The time that charts go back, in seconds and in words.
    pub fn span(&self) -> (u64, &'static str) {
        SPANS[self.span]
    }

    pub fn filter(&self) -> &str {
        &self.choices[self.table].filter
    }

    pub fn sorted(&self) -> Sorting {
        self.choices[self.table].order
    }

    /// The row that is looked at.
    pub fn chosen(&self) -> usize {
        self.choices[self.table].row
    }

    /// The rows of the table in their order, and how many there are without the filter.
    pub fn rows(&mut self, state: &State) -> (Vec<Vec<Cell>>, usize) {
        let (rows, all) = rows(self.table(), state, self.filter(), self.sorted());
        self.rows = rows.len();
        let choice = &mut self.choices[self.table];
        choice.row = choice.row.min(self.rows.saturating_sub(1));
        (rows, all)
    }

    /// Does what a key asks for, as far as it is a choice.
    pub fn act(&mut self, action: Action) {
        let (table, last) = (self.table(), self.rows.saturating_sub(1));
        let choice = &mut self.choices[self.table];
        match action {
            Action::Quit | Action::Suspend => {}
            Action::Table(number) => self.table = number.min(TABLES.len() - 1),
            Action::NextTable => self.table = (self.table + 1) % TABLES.len(),
            Action::PreviousTable => self.table = (self.table + TABLES.len() - 1) % TABLES.len(),
            Action::Up => choice.row = choice.row.saturating_sub(1),
            Action::Down => choice.row = (choice.row + 1).min(last),
            Action::PageUp => choice.row = choice.row.saturating_sub(PAGE),
            Action::PageDown => choice.row = (choice.row + PAGE).min(last),
            Action::First => choice.row = 0,
            Action::Last => choice.row = last,
            Action::NextColumn => choice.order = order(table, choice.order.0 + 1),
            Action::PreviousColumn => choice.order = order(table, choice.order.0 + table.columns.len() - 1),
            Action::Reverse => choice.order.1 = !choice.order.1,
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

/// The order that a table has by a column at first; numbers go on from the first column after the last.
pub fn order(table: &Table, number: usize) -> Sorting {
    let column = number % table.columns.len();
    (column, !table.columns[column].is_text)
}

/// The rows of a table that fit a filter, in an order, and how many there are without the filter.
pub fn rows(table: &Table, state: &State, filter: &str, (column, down): Sorting) -> (Vec<Vec<Cell>>, usize) {
    let wanted = filter.to_lowercase();
    let fits = |row: &Vec<Cell>| {
        let mut texts = table.columns.iter().zip(row).filter(|(column, _)| column.is_text);
        wanted.is_empty() || texts.any(|(_, cell)| cell.text.to_lowercase().contains(&wanted))
    };
    let all = (table.rows)(state);
    let cells = all.iter().map(|row| table.columns.iter().map(|column| (column.cell)(row)).collect());
    let mut rows: Vec<Vec<Cell>> = cells.filter(fits).collect();
    rows.sort_by(|one, two| {
        let order = one[column].order(&two[column]);
        if down { order.reverse() } else { order }
    });
    (rows, all.len())
}

#[cfg(test)]
mod tests {
    use super::super::events::Event;
    use super::*;
    use serde_json::json;

    fn state() -> State {
        let zone = |requests: u64| json!({ "requests": requests, "responses": { "5xx": 0 } });
        let tables = json!({ "server_zones": { "Beta": zone(5), "alpha": zone(50), "gamma": zone(500) } });
        let mut state = State::default();
        state.take(Event::Second(json!({ "tables": tables })));
        state
    }

    fn names(view: &mut View) -> Vec<String> {
        view.rows(&state()).0.into_iter().map(|row| row[0].text.clone()).collect()
    }

    #[test]
    fn a_table_is_sorted_by_any_column_both_ways() {
        let mut view = View::default();
        view.act(Action::Table(4));
        view.act(Action::NextColumn);
        assert_eq!(names(&mut view), ["gamma", "alpha", "Beta"], "by requests, the most first");
        view.act(Action::Reverse);
        assert_eq!(names(&mut view), ["Beta", "alpha", "gamma"]);
        view.act(Action::PreviousColumn);
        view.act(Action::PreviousColumn);
        assert_eq!(names(&mut view), ["alpha", "Beta", "gamma"], "names are in the order of the alphabet");
        view.act(Action::PreviousColumn);
        assert_eq!(view.sorted().0, view.table().columns.len() - 1);
    }

    #[test]
    fn a_filter_is_each_table_s_own_and_keeps_the_row_in_bounds() {
        let mut view = View::default();
        view.act(Action::Table(4));
        names(&mut view);
        view.act(Action::Last);
        assert_eq!(view.chosen(), 2);
        view.act(Action::Filter);
        for letter in "ALP".chars() {
            view.act(Action::Type(letter));
        }
        assert_eq!((names(&mut view), view.chosen()), (vec!["alpha".to_owned()], 0));
        view.act(Action::Type('x'));
        assert!(names(&mut view).is_empty());
        view.act(Action::Down);
        view.act(Action::Erase);
        view.act(Action::Done);
        assert_eq!(names(&mut view), ["alpha"]);
        view.act(Action::NextTable);
        assert_eq!((view.filter(), view.table().name), ("", "Events"));
        view.act(Action::PreviousTable);
        assert_eq!(view.filter(), "ALP");
        view.act(Action::Clear);
        assert_eq!(names(&mut view).len(), 3);
    }

    #[test]
    fn no_order_of_keys_leads_out_of_bounds() {
        let every = [
            Action::Table(99),
            Action::PageDown,
            Action::Last,
            Action::NextColumn,
            Action::PreviousTable,
            Action::PageUp,
            Action::Span,
            Action::Erase,
            Action::NextTable,
            Action::Down,
        ];
        let (mut view, state) = (View::default(), state());
        for step in 0..1000 {
            view.act(every[step * 7 % every.len()]);
            view.act(every[step * step % every.len()]);
            view.rows(&state);
        }
        for _ in 0..1000 {
            view.act(Action::Type('é'));
        }
        assert!(view.filter().len() <= LONGEST_FILTER + 'é'.len_utf8());
    }
}
