//! `millstream explain`.
use crate::cli::Explain;
use millstream_conf::load::Options;
use std::process::ExitCode;
/// x
pub fn run(_options: &Options, _explain: &Explain) -> ExitCode { ExitCode::SUCCESS }
