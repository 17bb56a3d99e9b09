//! Cells as columns of a terminal.

/// Lines of cells, each column as wide as its widest cell and two blanks apart, so many columns to the left and the others to the right. A
/// line that is shorter than the first ends with a text that is as long as it likes.
pub fn aligned(lines: &[Vec<String>], left: usize) -> String {
    columns(lines, |column| column < left)
}

/// The same where the columns that stand to the left are anywhere.
pub(super) fn columns(lines: &[Vec<String>], is_left: impl Fn(usize) -> bool) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let length = |line: &Vec<String>, column: usize| {
        let is_cell = line.len() == columns || column + 1 < line.len();
        line.get(column).filter(|_| is_cell).map_or(0, |cell| cell.chars().count())
    };
    let width = |column: usize| lines.iter().map(|line| length(line, column)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let cell = |(column, (cell, &width)): (usize, (&String, &usize))| {
        if is_left(column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    };
    let line = |line: &Vec<String>| {
        let cells: Vec<String> = line.iter().zip(&widths).enumerate().map(cell).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell_and_a_short_line_ends_as_it_likes() {
        let lines = ["step,by,rate", "one,we,7", "two,cannot: they do not"]
            .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(aligned(&lines, 2), "step  by  rate\none   we     7\ntwo   cannot: they do not\n");
    }
}
