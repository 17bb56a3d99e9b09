//! `millstream explain URL`: asks a running process why the URL is answered as it is, and prints what it says.

use crate::cli::Explain;
use crate::control;
use millstream_admin::explain::Explanation;
use millstream_admin::resource::encoded;
use millstream_conf::load::Options;
use millstream_net::terminal;
use std::process::ExitCode;

pub fn run(options: &Options, explain: &Explain) -> ExitCode {
    control::print(explained(options, explain))
}

fn explained(options: &Options, explain: &Explain) -> Result<String, String> {
    let api = control::find(options, &explain.reach, Some(&explain.url))?;
    let mut path = "/explain?url=".to_owned();
    encoded(explain.url.as_bytes(), &mut path);
    path += "&method=";
    encoded(explain.method.as_bytes(), &mut path);
    for header in &explain.header {
        path += "&header=";
        encoded(header.as_bytes(), &mut path);
    }
    let answer = control::ask(&api, explain.reach.token.as_deref(), &path, None)?;
    if explain.json {
        return Ok(String::from_utf8_lossy(&answer).into_owned());
    }
    let explanation: Explanation =
        serde_json::from_slice(&answer).map_err(|error| format!("invalid response: {error}"))?;
    // What an API said stands in it.
    Ok(terminal::fitting(&terminal::visible(&explanation.to_string()), &std::io::stdout()).into_owned())
}
