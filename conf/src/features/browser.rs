//! `modern_browser`, `ancient_browser`: which browsers are modern, by their User-Agent field.
//!
//! Next: `millstream-server`'s `browser`, which judges.

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::templates::{record, without_templates};
use super::{Apply, Feature, Level, MANY, Place, Row, often};
use crate::reading::Reading;
use crate::tree::Directive;

/// In the order they are looked for: Opera may also name itself MSIE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Browser {
    Opera,
    Msie,
    Gecko,
    Safari,
    Konqueror,
}

impl Browser {
    const NAMES: &[(&str, Browser)] = &[
        ("opera", Browser::Opera),
        ("msie", Browser::Msie),
        ("gecko", Browser::Gecko),
        ("safari", Browser::Safari),
        ("konqueror", Browser::Konqueror),
    ];

    /// Minimum offset of its mark, the mark, and the offset of the version from the mark's start.
    pub fn mark(self) -> (usize, &'static str, usize) {
        match self {
            // Behind the name stands a blank or a slash.
            Browser::Opera => (0, "Opera", 6),
            Browser::Msie => ("Mozilla/4.0 (compatible; ".len(), "MSIE ", 5),
            Browser::Gecko => ("Mozilla/5.0 (".len(), "rv:", 3),
            Browser::Safari => ("Mozilla/5.0 (".len(), "Safari/", 7),
            Browser::Konqueror => ("Mozilla/5.0 (compatible; ".len(), "Konqueror/", 10),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModernBrowser {
    pub browser: Browser,
    /// Modern from this version on, encoded by [`version`].
    pub since: u64,
}

/// No version is as high.
const NEVER: u64 = u64::MAX;

record! {
    pub struct Browsers {
        pub modern: Vec<ModernBrowser>,
        /// `modern_browser unlisted`: unknown browsers are modern.
        pub unlisted: bool,
        /// Texts in the fields of old browsers.
        pub ancient: Vec<Box<str>>,
        pub netscape4: bool,
        pub modern_value: Box<str>,
        pub ancient_value: Box<str>,
    }
}

/// The flag is `unlisted`.
type Modern = (Vec<ModernBrowser>, bool);
/// The flag is `netscape4`.
type Ancient = (Vec<Box<str>>, bool);

level! {
    pub struct BrowserLevel {
        modern: Modern,
        ancient: Ancient,
        modern_value: Box<str>,
        ancient_value: Box<str>,
    }
}

impl Feature for BrowserLevel {
    type Settings = Browsers;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Browsers {
        let (mut modern, unlisted) = self.modern.clone().unwrap_or_default();
        if !modern.is_empty() && modern.iter().all(|one| one.browser != Browser::Opera) {
            modern.push(ModernBrowser { browser: Browser::Opera, since: NEVER });
        }
        modern.sort_by_key(|one| one.browser);
        let (ancient, netscape4) = self.ancient.clone().unwrap_or_default();
        let value = |value: &Option<Box<str>>| value.clone().unwrap_or_else(|| "1".into());
        let (modern_value, ancient_value) = (value(&self.modern_value), value(&self.ancient_value));
        Browsers { modern, unlisted, ancient, netscape4, modern_value, ancient_value }
    }
}

without_templates!(ModernBrowser);

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("modern_browser", HTTP_SERVER_LOCATION, (1, 2), "browser version | unlisted", "",
        "Sets the lowest version of a browser that counts as modern. The browser is `opera`, `msie`, `gecko`, `safari` or `konqueror`, the version for example \
        `5.5` or `1.0.0.4`. With `unlisted`, a browser that matches neither this directive nor `ancient_browser` counts as modern.",
        Apply::Level(modern)),
    often("ancient_browser", HTTP_SERVER_LOCATION, (1, MANY), "text …", "",
        "Treats browsers as ancient if their User-Agent contains one of the strings. `netscape4` stands for the regular expression `^Mozilla/[1-4]`.",
        Apply::Level(ancient)),
    often("modern_browser_value", HTTP_SERVER_LOCATION, (1, 1), "text", "1",
        "Sets the value of `$modern_browser` for a modern browser.",
        Apply::Level(|l, d, _| l.browser.modern_value = Some(d.args[0].text.as_str().into()))),
    often("ancient_browser_value", HTTP_SERVER_LOCATION, (1, 1), "text", "1",
        "Sets the value of `$ancient_browser` for an ancient browser.",
        Apply::Level(|l, d, _| l.browser.ancient_value = Some(d.args[0].text.as_str().into()))),
];

fn modern(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let (modern, unlisted) = level.browser.modern.get_or_insert_default();
    match &directive.args[..] {
        [word] => *unlisted |= reading.one_of(word, &["unlisted"]).is_some(),
        [name, word, ..] => {
            let browser = reading.choice(name, Browser::NAMES);
            let since = version(word.text.as_bytes());
            match (browser, since) {
                (_, (_, rest)) if !rest.is_empty() => {
                    let message = format!("invalid browser version \"{}\"", word.text);
                    reading.error(word.span, message).help("write numbers with dots, as in 1.0.0.4");
                }
                (Some(browser), (since, _)) => modern.push(ModernBrowser { browser, since }),
                (None, _) => {}
            }
        }
        [] => {}
    }
}

fn ancient(level: &mut Level, directive: &Directive, _: &mut Reading<'_>) {
    let (texts, netscape4) = level.browser.ancient.get_or_insert_default();
    for word in &directive.args {
        match word.text.as_str() {
            "netscape4" => *netscape4 = true,
            text => texts.push(text.into()),
        }
    }
}

/// The leading version as a comparable number, and the rest of the text. As in nginx each part but the first
/// has room for two digits, and a fifth part is ignored.
pub fn version(text: &[u8]) -> (u64, &[u8]) {
    let (mut sum, mut part, mut scale) = (0u64, 0u64, 1_000_000);
    let add = |sum: u64, part: u64, scale: u64| sum.saturating_add(part.saturating_mul(scale));
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => part = part.saturating_mul(10).saturating_add(u64::from(byte - b'0')),
            b'.' => {
                sum = add(sum, part, scale);
                (part, scale) = (0, scale / 100);
            }
            _ => return (add(sum, part, scale), &text[at..]),
        }
    }
    (add(sum, part, scale), &[])
}
