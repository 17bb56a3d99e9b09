//! One run of `wrk`, and its report read back.

use std::process::{Command, Stdio};

#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) requests: u64,
    pub(crate) requests_per_second: f64,
    /// Milliseconds.
    pub(crate) median: f64,
    /// Milliseconds.
    pub(crate) p99: f64,
    /// Socket errors and statuses outside 2xx and 3xx.
    pub(crate) errors: u64,
}

pub(crate) fn run(url: &str, fields: &[&str], connections: u32, seconds: u32) -> Result<Run, String> {
    let mut command = Command::new("wrk");
    command.arg("-t2").arg(format!("-c{connections}")).arg(format!("-d{seconds}s")).arg("--latency");
    for field in fields {
        command.args(["-H", field]);
    }
    let output = command.arg(url).stdin(Stdio::null()).output().map_err(|error| format!("wrk: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| {
        format!("wrk said nothing that can be read: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

pub(crate) fn parse(text: &str) -> Option<Run> {
    let mut run = Run::default();
    for line in text.lines().map(str::trim) {
        let mut words = line.split_ascii_whitespace();
        if let Some(rate) = line.strip_prefix("Requests/sec:") {
            run.requests_per_second = rate.trim().parse().ok()?;
        } else if let Some(rest) = line.strip_prefix("50%") {
            run.median = milliseconds(rest.trim())?;
        } else if let Some(rest) = line.strip_prefix("99%") {
            run.p99 = milliseconds(rest.trim())?;
        } else if let Some(rest) = line.strip_prefix("Socket errors:") {
            run.errors += rest
                .split(|byte: char| !byte.is_ascii_digit())
                .filter_map(|part| part.parse::<u64>().ok())
                .sum::<u64>();
        } else if let Some(rest) = line.strip_prefix("Non-2xx or 3xx responses:") {
            run.errors += rest.trim().parse::<u64>().ok()?;
        } else if line.contains(" requests in ") {
            run.requests = words.next()?.parse().ok()?;
        }
    }
    (run.requests_per_second > 0.0 || run.requests == 0).then_some(run)
}

/// `1.20ms`, `950.00us` or `1.02s` in milliseconds.
fn milliseconds(text: &str) -> Option<f64> {
    let unit = text.find(|byte: char| byte.is_ascii_alphabetic())?;
    let number: f64 = text[..unit].parse().ok()?;
    Some(match &text[unit..] {
        "us" => number / 1000.0,
        "ms" => number,
        "s" => number * 1000.0,
        "m" => number * 60_000.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_with_its_errors() {
        let text = "Running 5s test @ http://127.0.0.1:1/\n  Latency Distribution\n     50%  1.20ms\n     75%    1.83ms\n     \
                    90%    2.60ms\n     99%    1.02s \n  10012 requests in 5.00s, 12.00MB read\n  Socket errors: connect 1, read 2, \
                    write 0, timeout 4\n  Non-2xx or 3xx responses: 3\nRequests/sec:   2002.40\nTransfer/sec:      2.40MB\n";
        let run = Run { requests: 10012, requests_per_second: 2002.4, median: 1.2, p99: 1020.0, errors: 10 };
        assert_eq!(parse(text), Some(run));
    }
}
