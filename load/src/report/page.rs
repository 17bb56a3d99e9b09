//! The page that pictures and tables stand on: one file, no script, nothing fetched from anywhere.
//!
//! Its policy forbids everything but its own style, so that a page somebody is sent can be opened without a thought. All text
//! of users passes [`escape`]: what takes `&str` here escapes it, what takes or gives a `String` of HTML says so.

const STYLE: &str = include_str!("page.css");

/// Text that can stand between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

/// A whole page: its heading with a line below, and `body`, which is HTML.
pub(super) fn page(title: &str, heading: &str, soft: &str, body: &str) -> String {
    let [title, heading, soft] = [title, heading, soft].map(escape);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{heading}</h1><p class=\"soft\">{soft}</p></header>{body}\n\
         <footer class=\"soft\">Made by Millstream {}. The page is whole: no script, nothing is fetched.</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

pub(super) fn paragraphs<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(|text| format!("<p>{}</p>", escape(text))).collect()
}

pub(super) fn warning(text: &str) -> String {
    format!("<p class=\"warning\" role=\"note\">{}</p>", escape(text))
}

pub(super) fn section(heading: &str) -> String {
    format!("<h2>{}</h2>", escape(heading))
}

/// What is folded away until it is asked for. `summary` is text, `body` is HTML.
pub(super) fn folded(summary: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>{body}</details>", escape(summary))
}

/// A picture with its caption and its legend (class and name of each colour). `picture` is HTML, and so is what stands `below`.
/// Who does not see the picture is told the description.
pub(super) fn figure(
    (id, caption): (&str, &str),
    legend: &[(&str, &str)],
    (class, picture): (&str, &str),
    description: &str,
    below: &str,
) -> String {
    let entry = |(class, name): &(&str, &str)| {
        let line = "<svg viewBox=\"0 0 28 8\"><path d=\"M0 4H28\"/></svg>";
        format!("<li class=\"{class}\">{line}{}</li>", escape(name))
    };
    let legend: String = legend.iter().map(entry).collect();
    let [caption, description] = [caption, description].map(escape);
    format!(
        "<figure id=\"{id}\"><figcaption>{caption}</figcaption><ul class=\"legend\" aria-hidden=\"true\">{legend}</ul>\
         <div class=\"{class}\" role=\"img\" aria-label=\"{caption}: {description}\">{picture}</div>{below}</figure>"
    )
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_that_a_user_writes_is_markup() {
        assert_eq!(escape("<a b='c'>\"&"), "&lt;a b=&#39;c&#39;&gt;&quot;&amp;");
    }
}
