//! `ssi`: commands in an answer are carried out on its way to the client.
//!
//! `parser` finds them, here is what each does: text comes of it, or a subrequest that is to be asked ([`Ask`]). Errors are nginx's: a
//! message in the answer, a line in the error log. What the parts of a page share is `page`'s. Before: `chain`; next: `text`, what the
//! values of parameters mean; `client/assembly`, which asks.

pub mod parser;
mod command;
mod text;
#[cfg(test)]
mod tests;

use super::body::{Draft, ENOUGH};
use super::coding;
use crate::failure;
use crate::html;
use crate::page::{Page, Stub, TooMuch};
use crate::request::{Request, SubrequestPart};
use bytes::Bytes;
use command::{Command, Name, Parameters};
use millstream_conf::model::Level;
use millstream_wire::FieldId;
use millstream_wire::target::{self, escape_link};
use parser::{Fragment, Parser, WrittenCommand};

const MESSAGE: &[u8] = b"[an error occurred while processing the directive]";

/// Bytes of a value that `echo` writes in one step.
const ECHOED_AT_ONCE: usize = 4 * 1024;
/// Work of commands, as in [`Page::work`], before other tasks get their turn: some expressions, or a large
/// value.
const WORK_AT_ONCE: u64 = 32 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub enum Pause {
    Used,
    Ask(Ask),
    /// [`ENOUGH`] output or work; there is more, even if the input is used up.
    Enough,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ask {
    pub path: Vec<u8>,
    pub query: Vec<u8>,
    /// Replaces an empty or failed response.
    pub stub: Option<Stub>,
    /// The variable that gets the response; `None`: it becomes part of the page.
    pub variable: Option<Vec<u8>>,
    /// `wait="yes"`.
    pub waits: bool,
}

impl Ask {
    pub fn path(path: &str) -> Ask {
        Ask { path: path.as_bytes().to_vec(), ..Ask::default() }
    }
}

pub(super) fn begin(request: &Request, draft: &mut Draft) -> Option<Box<Ssi>> {
    let settings = &request.location().settings.ssi;
    let fields = draft.headers.view();
    if !settings.enabled || draft.length == Some(0) || draft.status == 206 {
        return None;
    }
    // What is coded has no commands.
    let is_coded = fields.get(FieldId::ContentEncoding).is_some();
    if is_coded || !coding::covers_type(settings.any_type, &settings.types, fields) {
        return None;
    }
    let ssi = Ssi {
        parser: Parser::new(settings.value_length),
        is_silent: settings.silent_errors,
        media: fields.get(FieldId::ContentType).unwrap_or_default().to_vec(),
        message: MESSAGE.to_vec(),
        encoding: Encoding::Entity,
        goes_out: true,
        is_chosen: false,
        within: Within::Nothing,
        in_block: false,
        echoed: Bytes::new(),
    };
    draft.rewrite(settings.last_modified);
    Some(Box::new(ssi))
}

#[derive(Debug)]
pub struct Ssi {
    parser: Parser,
    is_silent: bool,
    media: Vec<u8>,
    message: Vec<u8>,
    encoding: Encoding,
    goes_out: bool,
    is_chosen: bool,
    within: Within,
    in_block: bool,
    echoed: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    None,
    Url,
    Entity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    If,
    Else,
}

type CommandFailure = String;

impl Ssi {
    /// Consumes input, which becomes shorter, and appends output; stops at a subrequest and when it was
    /// enough.
    pub fn next(&mut self, request: &Request, rest: &mut &[u8], out: &mut Vec<u8>) -> Pause {
        let page = &request.sheet().page;
        let most = page.work() + WORK_AT_ONCE;
        loop {
            if out.len() >= ENOUGH || page.work() >= most {
                return Pause::Enough;
            }
            if !self.echoed.is_empty() {
                self.write_echoed(out);
                continue;
            }
            let Some(found) = self.parser.next(rest) else { return Pause::Used };
            let carried_out = match found {
                Fragment::Text(text) if self.goes_out => {
                    out.extend_from_slice(text);
                    Ok(None)
                }
                Fragment::Text(text) if self.in_block => grow(page, text).map(|()| None),
                Fragment::Text(_) => Ok(None),
                Fragment::Wrong(what) => Err(what),
                Fragment::Command(written) => self.carry_out(request, written),
            };
            match carried_out {
                Ok(None) => {}
                Ok(Some(ask)) => return Pause::Ask(ask),
                Err(what) => self.fail(request, &what, out),
            }
        }
    }

    pub fn end(&mut self) -> &'static [u8] {
        let rest = self.parser.end();
        if self.goes_out { rest } else { b"" }
    }

    fn fail(&self, request: &Request, what: &str, out: &mut Vec<u8>) {
        let (line, uri) = (self.parser.line(), String::from_utf8_lossy(&request.route.uri));
        failure::log(request, Level::Error, format_args!("{what} in line {line} of \"{uri}\""));
        if !self.is_silent {
            out.extend_from_slice(&self.message);
        }
    }

    fn carry_out(
        &mut self,
        request: &Request,
        written: WrittenCommand,
    ) -> Result<Option<Ask>, CommandFailure> {
        let name = || String::from_utf8_lossy(&written.name).into_owned();
        let Some(command) = Command::of(&written.name) else {
            return if self.goes_out {
                Err(format!("invalid SSI command: \"{}\"", name()))
            } else {
                Ok(None)
            };
        };
        if !self.goes_out && command.name != Name::EndBlock {
            if self.in_block {
                return grow(&request.sheet().page, &command::text(&written)).map(|()| None);
            }
            if !command.needs_if {
                return Ok(None);
            }
        }
        let is_in_place = match command.name {
            Name::Elif | Name::Else => self.within == Within::If,
            Name::EndIf => self.within != Within::Nothing,
            _ => true,
        };
        if !is_in_place {
            return Err(format!("invalid context of SSI command: \"{}\"", name()));
        }
        let parameters = command.parameters(written)?;
        match command.name {
            Name::Include => return self.include(request, parameters).map(Some),
            Name::Echo => self.echo(request, &parameters),
            Name::Config => self.config(request, parameters),
            Name::Set => set(request, parameters)?,
            Name::If if self.within != Within::Nothing => {
                return Err("the \"if\" command inside the \"if\" command".to_owned());
            }
            Name::If | Name::Elif => self.branch(request, &parameters)?,
            Name::Else => (self.goes_out, self.within) = (!self.is_chosen, Within::Else),
            Name::EndIf => (self.goes_out, self.is_chosen, self.within) = (true, false, Within::Nothing),
            Name::Block => {
                request.sheet().page.begin_block(parameters.required("name")).map_err(no_room)?;
                (self.goes_out, self.in_block) = (false, true);
            }
            Name::EndBlock => (self.goes_out, self.in_block) = (true, false),
        }
        Ok(None)
    }

    fn branch(&mut self, request: &Request, parameters: &Parameters) -> Result<(), CommandFailure> {
        if self.is_chosen {
            self.goes_out = false;
            return Ok(());
        }
        let holds = text::holds(request, parameters.required("expr"))?;
        (self.goes_out, self.is_chosen, self.within) = (holds, holds, Within::If);
        Ok(())
    }

    fn echo(&mut self, request: &Request, parameters: &Parameters) {
        let found = text::variable(request, parameters.required("var"));
        let value = match found {
            Some(value) => value,
            None => Bytes::copy_from_slice(parameters.optional("default").unwrap_or(b"(none)")),
        };
        if value.is_empty() {
            return;
        }
        match parameters.optional("encoding") {
            None => {}
            Some(b"none") => self.encoding = Encoding::None,
            Some(b"url") => self.encoding = Encoding::Url,
            Some(b"entity") => self.encoding = Encoding::Entity,
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                let what = format_args!("unknown encoding \"{other}\" in the \"echo\" command");
                failure::log(request, Level::Error, what);
            }
        }
        self.echoed = value;
    }

    fn write_echoed(&mut self, out: &mut Vec<u8>) {
        let value = self.echoed.split_to(self.echoed.len().min(ECHOED_AT_ONCE));
        match self.encoding {
            Encoding::None => out.extend_from_slice(&value),
            Encoding::Url => escape_link(&value, out),
            Encoding::Entity => html::escape(&value, out),
        }
    }

    fn config(&mut self, request: &Request, mut parameters: Parameters) {
        if let Some(format) = parameters.take("timefmt") {
            *request.sheet().time_format.borrow_mut() = Some(format);
        }
        if let Some(message) = parameters.take("errmsg") {
            self.message = message;
        }
    }

    fn include(&self, request: &Request, mut parameters: Parameters) -> Result<Ask, CommandFailure> {
        let (uri, file) = (parameters.take("virtual"), parameters.take("file"));
        let (variable, stub) = (parameters.take("set"), parameters.take("stub"));
        let waits = match (parameters.take("wait"), &uri) {
            (None, _) => false,
            (Some(_), None) => return Err("\"wait\" cannot be used with \"file\"".to_owned()),
            (Some(word), _) if word.eq_ignore_ascii_case(b"no") => false,
            (Some(word), _) if word.eq_ignore_ascii_case(b"yes") => true,
            (Some(word), _) => {
                let word = String::from_utf8_lossy(&word);
                return Err(format!("invalid value \"{word}\" in the \"wait\" parameter"));
            }
        };
        let is_file = file.is_some();
        let uri = match (uri, file) {
            (Some(_), Some(_)) => return Err("inclusion may be either \"virtual\" or \"file\"".to_owned()),
            (None, None) => return Err("no parameter in \"include\" SSI command".to_owned()),
            (Some(uri), None) | (None, Some(uri)) => uri,
        };
        if variable.is_some() && stub.is_some() {
            return Err("\"set\" and \"stub\" cannot be used together in \"include\" SSI command".to_owned());
        }
        let mut uri = text::evaluate(request, &uri)?;
        if !uri.starts_with(b"/") {
            let folder = request.route.uri.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
            uri.splice(0..0, request.route.uri[..folder].iter().copied());
        }
        let Some((path, query)) = target::safe(&uri) else {
            return Err(format!("unsafe URI \"{}\" was detected", String::from_utf8_lossy(&uri)));
        };
        let stub = match stub {
            None => None,
            Some(name) => Some(self.stub(&request.sheet().page, &name)?),
        };
        if request.descent.wanted == Some(SubrequestPart::Variable) {
            return Err(format!("nested in-memory subrequest \"{}\"", String::from_utf8_lossy(&path)));
        }
        if !request.sheet().may_ask() {
            let path = String::from_utf8_lossy(&path);
            return Err(format!("subrequests cycle while processing \"{path}\""));
        }
        let waits = waits || is_file || variable.is_some();
        let variable = variable.map(|name| name.to_ascii_lowercase());
        if let Some(name) = variable.as_ref().filter(|name| request.sheet().page.value(name).is_none()) {
            // As in nginx it is empty until it is answered, and where it is not.
            request.sheet().page.set(name, Vec::new()).map_err(no_room)?;
        }
        Ok(Ask { path, query: query.to_vec(), stub, variable, waits })
    }

    fn stub(&self, page: &Page, name: &[u8]) -> Result<Stub, CommandFailure> {
        match page.block(name) {
            Some(text) => Ok(Stub { text, media: self.media.clone() }),
            None => {
                let name = String::from_utf8_lossy(name);
                Err(format!("\"stub\"=\"{name}\" for \"include\" not found"))
            }
        }
    }
}

fn set(request: &Request, parameters: Parameters) -> Result<(), CommandFailure> {
    let value = text::evaluate(request, parameters.required("value"))?;
    let name = parameters.required("var").to_ascii_lowercase();
    request.sheet().page.set(&name, value).map_err(no_room)
}

fn grow(page: &Page, text: &[u8]) -> Result<(), CommandFailure> {
    page.grow(text).map_err(no_room)
}

fn no_room(TooMuch: TooMuch) -> CommandFailure {
    "the SSI variables and blocks of this page need too much memory".to_owned()
}
