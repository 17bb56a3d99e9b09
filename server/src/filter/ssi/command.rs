//! The commands and their parameters.
//!
//! Before: `parser`, which finds them; next: `ssi`, which carries them out.

use super::parser::WrittenCommand;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Include,
    Echo,
    Config,
    Set,
    If,
    Elif,
    Else,
    EndIf,
    Block,
    EndBlock,
}

#[derive(Debug)]
pub(super) struct Command {
    text: &'static str,
    pub(super) name: Name,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    /// Whether it belongs to an `if`, and is parsed in branches not taken too.
    pub(super) needs_if: bool,
}

const fn command(
    text: &'static str,
    name: Name,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> Command {
    let needs_if = matches!(name, Name::Elif | Name::Else | Name::EndIf);
    Command { text, name, required, optional, needs_if }
}

static COMMANDS: [Command; 10] = [
    command("include", Name::Include, &[], &["virtual", "file", "wait", "set", "stub"]),
    command("echo", Name::Echo, &["var"], &["default", "encoding"]),
    command("config", Name::Config, &[], &["errmsg", "timefmt"]),
    command("set", Name::Set, &["var", "value"], &[]),
    command("if", Name::If, &["expr"], &[]),
    command("elif", Name::Elif, &["expr"], &[]),
    command("else", Name::Else, &[], &[]),
    command("endif", Name::EndIf, &[], &[]),
    command("block", Name::Block, &["name"], &[]),
    command("endblock", Name::EndBlock, &[], &[]),
];

#[derive(Debug)]
pub(super) struct Parameters(Vec<(Vec<u8>, Vec<u8>)>);

impl Command {
    pub(super) fn of(name: &[u8]) -> Option<&'static Command> {
        COMMANDS.iter().find(|command| command.text.as_bytes() == name)
    }

    pub(super) fn parameters(&self, written: WrittenCommand) -> Result<Parameters, String> {
        let mut known: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (name, value) in written.parameters {
            let is_it = |own: &&&str| own.as_bytes() == name;
            let shown = || String::from_utf8_lossy(&name).into_owned();
            if self.required.iter().chain(self.optional).find(is_it).is_none() {
                return Err(format!(
                    "invalid parameter name: \"{}\" in \"{}\" SSI command",
                    shown(),
                    self.text
                ));
            }
            if known.iter().any(|(before, _)| *before == name) {
                return Err(format!("duplicate \"{}\" parameter in \"{}\" SSI command", shown(), self.text));
            }
            known.push((name, value));
        }
        let parameters = Parameters(known);
        match self.required.iter().find(|name| parameters.optional(name).is_none()) {
            Some(name) => {
                Err(format!("mandatory \"{name}\" parameter is absent in \"{}\" SSI command", self.text))
            }
            None => Ok(parameters),
        }
    }
}

impl Parameters {
    pub(super) fn optional(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, value)| value.as_slice())
    }

    pub(super) fn required(&self, name: &str) -> &[u8] {
        self.optional(name).unwrap_or_default()
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        let at = self.0.iter().position(|(known, _)| known == name.as_bytes())?;
        Some(self.0.swap_remove(at).1)
    }
}

pub(super) fn text(written: &WrittenCommand) -> Vec<u8> {
    let mut text = [b"<!--#", &written.name[..]].concat();
    for (name, value) in &written.parameters {
        let quote = if has_bare_quote(value) { b'\'' } else { b'"' };
        text.push(b' ');
        text.extend_from_slice(name);
        text.extend_from_slice(&[b'=', quote]);
        text.extend_from_slice(value);
        text.push(quote);
    }
    text.extend_from_slice(b" -->");
    text
}

/// Whether a value was in single quotes: it has an unescaped double one.
fn has_bare_quote(value: &[u8]) -> bool {
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            b'"' => return true,
            _ => {}
        }
    }
    false
}
