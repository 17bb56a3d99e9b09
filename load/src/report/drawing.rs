//! SVG and HTML as text: escaping, and the few shapes that the pictures are made of.
//!
//! Everything that comes from a user passes [`escape`] here. Colours and sizes are classes; `page` says what they mean in
//! the light and in the dark.

use std::fmt::Write as _;

/// Pixels of a letter of the pictures' text, about: wide enough for the widest of the usual fonts.
const LETTER: f64 = 7.7;

/// Text that can stand between tags and in quoted attributes. What XML cannot hold becomes U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(' '),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// How wide a label will be, in pixels, rather too much than too little.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// As much of a text as has room, with an ellipsis where it was cut.
pub(super) fn shortened(text: &str, room: f64) -> String {
    let letters = (room / LETTER).max(1.0) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(letters.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// Where a text stands by its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making.
pub(super) struct Drawing {
    width: f64,
    height: f64,
    shapes: String,
}

impl Drawing {
    /// An empty one of so many pixels.
    pub(super) fn new(width: f64, height: f64) -> Drawing {
        Drawing { width, height, shapes: String::new() }
    }

    /// A text whose baseline begins, is centred or ends at the place.
    pub(super) fn text(&mut self, (x, y): (f64, f64), class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        let _ = write!(
            self.shapes,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        );
    }

    /// A straight line.
    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        let _ = write!(
            self.shapes,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// A rectangle from its upper left corner, with what a pointer that rests on it is told.
    pub(super) fn bar(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str, told: &str) {
        let told = escape(told);
        let _ = write!(
            self.shapes,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" rx="2"><title>{told}</title></rect>"#,
            width.max(0.0),
            height.max(0.0)
        );
    }

    /// A line through points; of a single one a dot.
    pub(super) fn curve(&mut self, points: &[(f64, f64)], class: &str) {
        if let [(x, y)] = points {
            let _ = write!(self.shapes, r#"<circle class="{class} dot" cx="{x:.1}" cy="{y:.1}" r="3"/>"#);
            return;
        }
        let mut path = String::with_capacity(points.len() * 12);
        for (number, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
        }
        if !path.is_empty() {
            let _ = write!(self.shapes, r#"<path class="{class}" d="{path}"/>"#);
        }
    }

    /// The picture as an element of a page, with a name and a description for those who do not see it. `id` must be the
    /// only one of its page.
    pub(super) fn finish(self, id: &str, class: &str, name: &str, description: &str) -> String {
        let Drawing { width, height, shapes } = self;
        let (name, description) = (escape(name), escape(description));
        format!(
            r#"<svg class="{class}" viewBox="0 0 {width:.0} {height:.0}" role="img" aria-labelledby="{id}-t {id}-d"><title id="{id}-t">{name}</title><desc id="{id}-d">{description}</desc>{shapes}</svg>"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_user_writes_is_markup() {
        assert_eq!(escape("<a b='c'>\"&\u{0}\n"), "&lt;a b=&#39;c&#39;&gt;&quot;&amp;\u{fffd} ");
    }

    #[test]
    fn what_has_no_room_ends_in_an_ellipsis() {
        assert_eq!(shortened("keep-alive", 200.0), "keep-alive");
        assert_eq!(shortened("compression and log off", 96.0), "compression…");
        assert_eq!(shortened("ß", 0.0), "ß");
    }
}
