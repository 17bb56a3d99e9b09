//! Sentences as lines of a terminal.

/// Columns of a line.
const COLUMNS: usize = 100;

/// A paragraph in lines of at most a hundred columns, each with so many blanks before it and ended. A longer word stays whole.
pub fn wrapped(paragraph: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut width = 0;
    for word in paragraph.split_ascii_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > COLUMNS {
            out.push('\n');
            width = 0;
        }
        let blanks = if width == 0 { indent } else { 1 };
        out.extend(std::iter::repeat_n(' ', blanks));
        out.push_str(word);
        width += blanks + length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_end_before_the_hundredth_column_and_words_stay_whole() {
        let text = wrapped(&"word ".repeat(60), 2);
        assert!(text.lines().all(|line| line.starts_with("  word") && line.len() <= 100), "{text}");
        assert_eq!(text.matches("word").count(), 60);
        assert_eq!(wrapped(&"x".repeat(150), 2).trim_start(), "x".repeat(150) + "\n");
        assert_eq!(wrapped("", 2), "\n");
    }
}
