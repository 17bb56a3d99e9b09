//! Values of `serve`'s options about clients: what the API is told of their address, and who of them may purge.
//!
//! They are read here and become directives in `serve_url`.

use std::path::PathBuf;
use std::str::FromStr;

/// `--client-address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ClientAddress {
    /// The API receives the address.
    Send,
    /// The API does not receive it.
    Hide,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeBy {
    Off,
    /// Programs on this machine.
    Local,
    /// Clients with the token in this file.
    Token(PathBuf),
}

impl FromStr for PurgeBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "off" => Ok(PurgeBy::Off),
            None if text == "local" => Ok(PurgeBy::Local),
            Some(("token", file)) if !file.is_empty() => Ok(PurgeBy::Token(file.into())),
            _ => Err("write off, local or token=FILE".to_owned()),
        }
    }
}
