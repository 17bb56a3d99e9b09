//! Between a histogram and what an outcome says of it.
//!
//! The text form is HdrHistogram's own (V2, deflated, Base64), so that its other tools can read it. Next: `report`.

use crate::outcome::Latency;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// The percentiles that are listed.
const PERCENTILES: [f64; 6] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99];

/// What an outcome says of a histogram of microseconds; all zeros where it is empty.
pub fn latency(of: &Histogram<u64>) -> Latency {
    let mut bytes = Vec::new();
    // Into memory, which cannot fail.
    _ = V2DeflateSerializer::new().serialize(of, &mut bytes);
    let is_empty = of.is_empty();
    let value = |value: u64| if is_empty { 0 } else { value };
    Latency {
        mean: if is_empty { 0.0 } else { of.mean() },
        deviation: if is_empty { 0.0 } else { of.stdev() },
        min: value(of.min()),
        max: value(of.max()),
        percentiles: PERCENTILES
            .iter()
            .map(|&percent| (percent, value(of.value_at_percentile(percent).min(of.max()))))
            .collect(),
        histogram: STANDARD.encode(&bytes),
    }
}

/// The histogram of microseconds that an outcome carries; `None` where the text is none.
pub fn histogram(of: &Latency) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(&of.histogram).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}
