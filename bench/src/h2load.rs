//! One run of `h2load`, and its report read back.

use std::process::{Command, Stdio};

#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) requests: u64,
    pub(crate) requests_per_second: f64,
    /// Requests that completed without success.
    pub(crate) failed: u64,
}

pub(crate) fn is_here() -> bool {
    Command::new("h2load").arg("--version").stdin(Stdio::null()).output().is_ok()
}

/// `streams`: at a time, on each connection.
pub(crate) fn run(url: &str, connections: u32, streams: u32, seconds: u32) -> Result<Loaded, String> {
    let mut command = Command::new("h2load");
    command.args(["-t1", &format!("-c{connections}"), &format!("-m{streams}"), &format!("-D{seconds}"), url]);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("h2load: {error}: apt-get install nghttp2-client"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text).ok_or_else(|| {
        format!("h2load said nothing that can be read: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

pub(crate) fn parse(text: &str) -> Option<Loaded> {
    let mut run = Loaded::default();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("finished in ") {
            run.requests_per_second = rest.split(", ").nth(1)?.strip_suffix(" req/s")?.parse().ok()?;
        } else if let Some(rest) = line.strip_prefix("requests: ") {
            let number =
                |of: &str| rest.split(", ").find_map(|part| part.strip_suffix(of)?.parse::<u64>().ok());
            run.requests = number(" succeeded")?;
            // What was on its way at the end is not done.
            run.failed = number(" done")?.checked_sub(run.requests)?;
        }
    }
    (run.requests_per_second > 0.0).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_with_what_failed() {
        let text = "finished in 2.00s, 104518.50 req/s, 96.01MB/s\nrequests: 209037 total, 209087 started, 209037 done, 209030 \
                    succeeded, 7 failed, 0 errored, 0 timeout\nstatus codes: 209030 2xx, 0 3xx, 0 4xx, 7 5xx\n";
        let run = Loaded { requests: 209_030, requests_per_second: 104_518.5, failed: 7 };
        assert_eq!(parse(text), Some(run));
        assert_eq!(parse("no connection"), None);
    }
}
