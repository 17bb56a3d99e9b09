//! Lines of the exposition formats: a family's head where it begins, then its samples.

use super::Exposition;
use crate::histogram::HistogramSnapshot;
use crate::metrics::figures::{BOUNDS, FamilyKind, Figure, FigureSink, Labels};
use std::fmt::{self, Display, Write};

pub(super) struct Samples {
    text: String,
    exposition: Exposition,
    family: &'static str,
}

impl Samples {
    pub(super) fn new(exposition: Exposition) -> Self {
        Samples { text: String::with_capacity(32 << 10), exposition, family: "" }
    }

    pub(super) fn end(mut self) -> String {
        if self.exposition == Exposition::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl FigureSink for Samples {
    fn family(&mut self, name: &'static str, doc: &str, kind: FamilyKind) {
        self.family = name;
        let shown = match self.exposition {
            Exposition::Text => name,
            Exposition::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        };
        let _ = writeln!(self.text, "# HELP {shown} {doc}\n# TYPE {shown} {}", kind.name());
    }

    fn value(&mut self, labels: &Labels<'_>, figure: Figure) {
        let _ = writeln!(self.text, "{}{} {figure}", self.family, Braced(labels, None));
    }

    fn histogram(&mut self, labels: &Labels<'_>, values: &HistogramSnapshot) {
        let (name, count) = (self.family, values.count());
        for (bound, seconds) in BOUNDS {
            let below = values.count_up_to(bound);
            let _ = writeln!(self.text, "{name}_bucket{} {below}", Braced(labels, Some(seconds)));
        }
        let _ = writeln!(self.text, "{name}_bucket{} {count}", Braced(labels, Some("+Inf")));
        let (braced, sum) = (Braced(labels, None), Figure::Time(values.sum()));
        let _ = writeln!(self.text, "{name}_sum{braced} {sum}\n{name}_count{braced} {count}");
    }
}

/// Labels between braces, perhaps followed by the bound of a bucket.
struct Braced<'l>(&'l Labels<'l>, Option<&'static str>);

impl Display for Braced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = '{';
        for (name, value) in self.0.iter().chain(self.1.map(|bound| ("le", bound))) {
            write!(f, "{before}{name}=\"{}\"", escape_label(value))?;
            before = ',';
        }
        if before == ',' { f.write_char('}') } else { Ok(()) }
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Count(value) => value.fmt(f),
            Figure::Level(value) => value.fmt(f),
            Figure::Time(microseconds) => {
                write!(f, "{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000)
            }
        }
    }
}

/// The exposition format escapes backslash, quote and line feed.
fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
