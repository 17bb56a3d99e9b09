//! The page that pictures and tables stand on: one file, no script, nothing fetched from anywhere.
//!
//! Its policy forbids everything but its own style, so that a page somebody is sent can be opened without a thought.

use super::drawing::escape;
use std::fmt::Write as _;

/// Light and dark by the reader's system; three widths of picture of which one is shown.
const STYLE: &str = include_str!("page.css");

/// A whole page. `title` is text, `body` is HTML.
pub(super) fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\n\
         <footer class=\"soft\">Made by Millstream {}. The page is whole: no script, nothing is fetched.</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// A table whose first column names its rows. All cells are text; the other columns are numbers and stand to the right,
/// but for those in `words`.
pub(super) fn table(caption: &str, head: &[&str], rows: &[Vec<String>], words: &[usize]) -> String {
    let class = |column: usize| if column == 0 || words.contains(&column) { " class=\"words\"" } else { "" };
    let caption = escape(caption);
    // A wide table scrolls by itself; whoever has no pointer reaches it by the keyboard.
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table><caption>{caption}</caption><thead><tr>"
    );
    for (column, name) in head.iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(column), escape(name));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = if column == 0 {
                write!(html, "<th scope=\"row\" class=\"words\">{cell}</th>")
            } else {
                write!(html, "<td{}>{cell}</td>", class(column))
            };
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// What is folded away until it is asked for. `summary` is text, `body` is HTML.
pub(super) fn folded(summary: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>{body}</details>", escape(summary))
}

/// The figures that matter, large: name, value, and a remark that may be empty.
pub(super) fn tiles(tiles: &[(&str, String, String)]) -> String {
    let mut html = String::from("<dl class=\"tiles\">");
    for (name, value, remark) in tiles {
        let _ = write!(
            html,
            "<div><dt>{}</dt><dd>{}</dd><dd class=\"soft\">{}</dd></div>",
            escape(name),
            escape(value),
            escape(remark)
        );
    }
    html.push_str("</dl>");
    html
}

/// A paragraph of text that must not be overlooked.
pub(super) fn warning(text: &str) -> String {
    format!("<p class=\"warning\" role=\"note\">{}</p>", escape(text))
}
