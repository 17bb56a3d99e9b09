//! Sentences as lines of a terminal.

/// Columns of a line.
const COLUMNS: usize = 100;

/// A paragraph in lines of at most a hundred columns, each ended. A longer word stays whole.
pub(super) fn wrapped(paragraph: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split_ascii_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                line.extend([" ", word]);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn lines_end_before_the_hundredth_column_and_words_stay_whole() {
        let text = wrapped(&"word ".repeat(60));
        assert!(text.lines().all(|line| line.starts_with("word") && line.len() <= 100), "{text}");
        assert_eq!(text.matches("word").count(), 60);
        assert_eq!(wrapped(&"x".repeat(150)), "x".repeat(150) + "\n");
        assert_eq!(wrapped(""), "\n");
    }
}
