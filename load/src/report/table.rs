//! Figures in rows and columns: as lines of a terminal, and as a table of a page.

use super::page::escape;
use millstream_net::terminal;
use std::iter;
use std::ops::Range;

/// Words at the end of a row have so many columns at least.
const NARROWEST: usize = 24;

/// A table with more columns than these is a list of named values where the window is narrow.
const MOST_ACROSS: usize = 5;

/// A table whose first column names its rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FigureTable {
    pub caption: String,
    /// The names of all columns but the first.
    pub head: Vec<&'static str>,
    /// A name and the cells behind it; a row that is shorter than the others ends with words.
    pub rows: Vec<Vec<String>>,
    /// The columns besides the first that are words: the others are numbers and stand to the right.
    pub words: &'static [usize],
}

pub fn row(name: impl ToString, cells: impl IntoIterator<Item = impl ToString>) -> Vec<String> {
    iter::once(name.to_string()).chain(cells.into_iter().map(|cell| cell.to_string())).collect()
}

/// What a URL may hold must not reach a terminal as a command, nor as a line of ours.
pub(crate) fn printable(text: &str) -> String {
    terminal::visible(text).replace('\n', "\\x0a")
}

impl FigureTable {
    pub fn of(
        caption: impl Into<String>,
        head: &[&'static str],
        words: &'static [usize],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> FigureTable {
        FigureTable { caption: caption.into(), head: head.to_vec(), rows: rows.into_iter().collect(), words }
    }

    fn is_words(&self, column: usize) -> bool {
        column == 0 || self.words.contains(&column)
    }

    /// For a terminal of so many columns: the caption above the names, which stand so many blanks further to the right than it. Each
    /// column is as wide as its widest cell and two blanks apart. What is too wide is told in several blocks, each with the names of
    /// its rows; words at the end of a row are folded. Nothing without rows.
    pub fn text(&self, indent: usize, columns: usize) -> String {
        self.blocks_of(indent, columns).concat()
    }

    /// Only the columns that have room beside each other.
    pub fn first_block(&self, indent: usize, columns: usize) -> String {
        self.blocks_of(indent, columns).into_iter().next().unwrap_or_default()
    }

    pub fn is_wider_than(&self, columns: usize) -> bool {
        self.blocks_of(0, columns).len() > 1
    }

    fn blocks_of(&self, indent: usize, columns: usize) -> Vec<String> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let blanks = " ".repeat(indent);
        let mut lines = vec![row(blanks.clone() + &self.caption, &self.head)];
        lines.extend(self.rows.iter().map(|cells| {
            let mut cells: Vec<String> = cells.iter().map(|cell| printable(cell)).collect();
            cells[0].insert_str(0, &blanks.repeat(2));
            cells
        }));
        let count = self.head.len() + 1;
        let length = |line: &Vec<String>, column: usize| {
            // The words that a shorter row ends with are as long as they like.
            let is_cell = line.len() == count || column + 1 < line.len();
            line.get(column).filter(|_| is_cell).map_or(0, |cell| cell.chars().count())
        };
        let width = |column: usize| lines.iter().map(|line| length(line, column)).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..count).map(width).collect();
        // A longer name has a line of its own.
        if widths.iter().sum::<usize>() + 2 * (count - 1) > columns {
            widths[0] = widths[0].min(columns / 2);
        }
        let keys = self.keys();
        let blocks = self.blocks(&widths, keys, columns);
        let in_block = |block: &Range<usize>| {
            let is_first = block.start == keys;
            let told = lines.iter().filter(|line| is_first || line.len() > block.start);
            told.map(|line| self.line(line, &widths, keys, block.clone(), columns)).collect::<String>()
        };
        blocks.iter().map(in_block).collect()
    }

    /// So many columns, the first included, say what a row is.
    fn keys(&self) -> usize {
        let words = (1..=self.head.len()).take_while(|column| self.words.contains(column)).count();
        if words < self.head.len() { 1 + words } else { 1 }
    }

    /// The columns behind the keys, as many at once as there is room for.
    fn blocks(&self, widths: &[usize], keys: usize, columns: usize) -> Vec<Range<usize>> {
        let taken = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
        let (mut blocks, mut start) = (Vec::new(), keys);
        for column in keys..widths.len() {
            let is_folded = column + 1 == widths.len() && self.is_words(column);
            let last = if is_folded { widths[column].min(NARROWEST) } else { widths[column] };
            if column > start && taken(&widths[..keys]) + taken(&widths[start..column]) + last > columns {
                blocks.push(start..column);
                start = column;
            }
        }
        blocks.push(start..widths.len());
        blocks
    }

    fn line(
        &self,
        cells: &[String],
        widths: &[usize],
        keys: usize,
        block: Range<usize>,
        columns: usize,
    ) -> String {
        let (mut out, mut place) = (String::new(), 0);
        let shown = (0..keys).chain(block).filter(|column| *column < cells.len());
        for column in shown {
            let (cell, width) = (&cells[column], widths[column]);
            if column > 0 {
                out.push_str("  ");
                place += 2;
            }
            let is_end = column + 1 == cells.len() && column > 0;
            if is_end && (cells.len() < widths.len() || self.is_words(column)) {
                let room = columns.saturating_sub(place).max(NARROWEST);
                let folded = terminal::words(cell, room);
                out += &folded.join(&format!("\n{:place$}", ""));
            } else if self.is_words(column) {
                out += &format!("{cell:<width$}");
            } else {
                out += &format!("{cell:>width$}");
            }
            place += width;
            if column == 0 && cell.chars().count() > width {
                out += &format!("\n{:width$}", "");
            }
        }
        out.truncate(out.trim_end().len());
        out + "\n"
    }

    /// For a page. Nothing without rows.
    pub fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let is_stacked = self.head.len() >= MOST_ACROSS;
        let name = |column: usize| match self.head.get(column.wrapping_sub(1)) {
            Some(name) if is_stacked => format!(" data-name=\"{}\"", escape(name)),
            _ => String::new(),
        };
        let cell = |tag: &str, more: &str, column: usize, text: &str| {
            let class = if self.is_words(column) { " class=\"words\"" } else { "" };
            format!("<{tag}{more}{class}>{}</{tag}>", escape(text))
        };
        let head =
            self.head.iter().enumerate().map(|(place, name)| cell("th", " scope=\"col\"", place + 1, name));
        let columns = self.head.len() + 1;
        let row = |cells: &Vec<String>| {
            let cells = cells.iter().enumerate().map(|(column, text)| match column {
                0 => cell("th", " scope=\"row\"", 0, text),
                _ if column + 1 == cells.len() && cells.len() < columns => {
                    let across = columns - column;
                    format!("<td class=\"words\" colspan=\"{across}\">{}</td>", escape(text))
                }
                _ => cell("td", &name(column), column, text),
            });
            format!("<tr>{}</tr>", cells.collect::<String>())
        };
        let (head, rows): (String, String) = (head.collect(), self.rows.iter().map(row).collect());
        let caption = escape(&self.caption);
        let class = if is_stacked { " class=\"stacked\"" } else { "" };
        // A wide table scrolls by itself; whoever has no pointer reaches it by the keyboard.
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table{class}><caption>{caption}</caption>\
             <thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell_and_a_short_row_ends_as_it_likes() {
        let rows = vec![row("one", ["we", "7"]), row("two", ["cannot: they do not"])];
        let table = FigureTable { caption: "step".to_owned(), head: vec!["by", "rate"], rows, words: &[1] };
        assert_eq!(table.text(0, 80), "step  by  rate\none   we     7\ntwo   cannot: they do not\n");
    }

    #[test]
    fn what_a_terminal_has_no_room_for_stands_in_further_blocks_with_the_names_of_their_rows() {
        let rows = vec![row("the first", ["we", "1", "22,222", "3"]), row("second", ["cannot: they do not"])];
        let table = FigureTable {
            caption: "step".to_owned(),
            head: vec!["by", "a", "bbbbbb", "c"],
            rows,
            words: &[1],
        };
        assert_eq!(
            table.text(0, 24),
            "step       by  a  bbbbbb\nthe first  we  1  22,222\nsecond     cannot: they do not\n\
             step       by  c\nthe first  we  3\n"
        );
        let words = vec![row("status", ["7", "the response has an unexpected status"])];
        let table =
            FigureTable { caption: "kind".to_owned(), head: vec!["n", "meaning"], rows: words, words: &[2] };
        assert_eq!(
            table.text(0, 40),
            "kind    n  meaning\nstatus  7  the response has an\n           unexpected status\n"
        );
        let url = "http://127.0.0.1:8000/a/very/long/path";
        let table = FigureTable {
            caption: "URL".to_owned(),
            head: vec!["n"],
            rows: vec![row(url, ["7"])],
            words: &[],
        };
        assert_eq!(table.text(0, 40), format!("URL                   n\n{url}\n                      7\n"));
    }
}
