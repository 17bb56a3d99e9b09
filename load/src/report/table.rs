//! Figures in rows and columns: as lines of a terminal, and as a table of a page.

use super::page::escape;
use millstream_net::terminal;
use std::iter;

/// A table whose first column names its rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FigureTable {
    /// What it shows.
    pub caption: String,
    /// The names of all columns but the first.
    pub head: Vec<&'static str>,
    /// A name and the cells behind it; a row that is shorter than the others ends with words.
    pub rows: Vec<Vec<String>>,
    /// The columns besides the first that are words: the others are numbers and stand to the right.
    pub words: &'static [usize],
}

/// A row out of its name and what stands behind it.
pub fn row(name: impl ToString, cells: impl IntoIterator<Item = impl ToString>) -> Vec<String> {
    iter::once(name.to_string()).chain(cells.into_iter().map(|cell| cell.to_string())).collect()
}

/// What a URL may hold must not reach a terminal as a command, nor as a line of ours.
pub(crate) fn printable(text: &str) -> String {
    terminal::visible(text).replace('\n', "\\x0a")
}

impl FigureTable {
    /// A table of these, see its fields.
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

    /// For a terminal: the caption above the names, which stand so many blanks further to the right than it. Each column is as wide as its
    /// widest cell and two blanks apart. Nothing without rows.
    pub fn text(&self, indent: usize) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let blanks = " ".repeat(indent);
        let mut lines = vec![row(blanks.clone() + &self.caption, &self.head)];
        lines.extend(self.rows.iter().map(|cells| {
            let mut cells: Vec<String> = cells.iter().map(|cell| printable(cell)).collect();
            cells[0].insert_str(0, &blanks.repeat(2));
            cells
        }));
        let columns = self.head.len() + 1;
        let length = |line: &Vec<String>, column: usize| {
            // The words that a shorter row ends with are as long as they like.
            let is_cell = line.len() == columns || column + 1 < line.len();
            line.get(column).filter(|_| is_cell).map_or(0, |cell| cell.chars().count())
        };
        let width = |column: usize| lines.iter().map(|line| length(line, column)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let cell = |(column, (cell, &width)): (usize, (&String, &usize))| {
            if self.is_words(column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        };
        let line = |line: &Vec<String>| {
            let cells: Vec<String> = line.iter().zip(&widths).enumerate().map(cell).collect();
            format!("{}\n", cells.join("  ").trim_end())
        };
        lines.iter().map(line).collect()
    }

    /// For a page. Nothing without rows.
    pub fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let cell = |tag: &str, scope: &str, column: usize, text: &str| {
            let class = if self.is_words(column) { " class=\"words\"" } else { "" };
            format!("<{tag}{scope}{class}>{}</{tag}>", escape(text))
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
                _ => cell("td", "", column, text),
            });
            format!("<tr>{}</tr>", cells.collect::<String>())
        };
        let (head, rows): (String, String) = (head.collect(), self.rows.iter().map(row).collect());
        let caption = escape(&self.caption);
        // A wide table scrolls by itself; whoever has no pointer reaches it by the keyboard.
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table><caption>{caption}</caption>\
             <thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
    }
}

/// The first of them, and how many there are besides.
pub(super) fn named(urls: &[String], most: usize) -> String {
    let named = urls.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(" ");
    match urls.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell_and_a_short_row_ends_as_it_likes() {
        let rows = vec![row("one", ["we", "7"]), row("two", ["cannot: they do not"])];
        let table = FigureTable { caption: "step".to_owned(), head: vec!["by", "rate"], rows, words: &[1] };
        assert_eq!(table.text(0), "step  by  rate\none   we     7\ntwo   cannot: they do not\n");
    }
}
