//! `ssi*`: commands in an answer, which are carried out on its way to the client.
//!
//! Next: `millstream-server`'s `filter/ssi`.

use super::context::{HTTP_SERVER_LOCATION, UP_TO_IF};
use super::gzip::media_types;
use super::level::settings;
use super::phases::Phases;
use super::{Apply, MANY, Row, idle, often, once};

settings! {
    pub struct Ssi, SsiLevel(place, reading) {
        enabled: bool = false,
        last_modified: bool = false,
        silent_errors: bool = false,
        /// In addition to `text/html`, in lower case.
        types: Vec<String> = Vec::new(),
        any_type: bool = false,
        /// In bytes.
        value_length: usize = 255,
        /// In bytes.
        variable_size: usize = 4096,
    }
    phases |made| Phases::FILTERS.only_if(made.enabled)
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("ssi", UP_TO_IF, (1, 1), "on | off", "off",
        "Processes SSI commands in responses, `<!--# command parameter=\"value\" … -->`, as in nginx: `include` (`virtual`, `file`, `wait`, `set`, \
        `stub`), `echo` (`var`, `default`, `encoding`), `set` (`var`, `value`), `if`, `elif` (`expr`), `else`, `endif`, `block` (`name`), \
        `endblock`, `config` (`errmsg`, `timefmt`). Included parts are subrequests, handled like other requests of their location. The cache stores \
        responses with their commands, which are executed for each client. Such a response has no length and does not support ranges. Responses with a \
        Content-Encoding and partial responses (206) are not processed. A page may have 1,000 subrequests, nested 51 deep, and 1 MiB of variables \
        and blocks.",
        Apply::Level(|l, d, r| l.ssi.enabled = r.flag(&d.args[0]))),
    once("ssi_last_modified", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Keeps Last-Modified, and the ETag as a weak one. If off, both are removed.",
        Apply::Level(|l, d, r| l.ssi.last_modified = r.flag(&d.args[0]))),
    once("ssi_silent_errors", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Omits the message for a failed command. The message is `[an error occurred while processing the directive]`, or that of `config errmsg`.",
        Apply::Level(|l, d, r| l.ssi.silent_errors = r.flag(&d.args[0]))),
    often("ssi_types", HTTP_SERVER_LOCATION, (1, MANY), "type …", "text/html",
        "Sets the media types of responses with commands, in addition to `text/html`; `*` means all.",
        Apply::Level(|l, d, r| {
            let (list, any) = (l.ssi.types.get_or_insert_default(), l.ssi.any_type.get_or_insert_default());
            media_types((list, any), d, r);
        })),
    once("ssi_value_length", HTTP_SERVER_LOCATION, (1, 1), "size", "255",
        "The maximum length of a command's parameter value.",
        Apply::Level(|l, d, r| l.ssi.value_length = r.memory_size(&d.args[0]))),
    once("subrequest_output_buffer_size", HTTP_SERVER_LOCATION, (1, 1), "size", "4k",
        "The maximum size of a response that `include` stores in a variable (`set`); a larger one is discarded.",
        Apply::Level(|l, d, r| l.ssi.variable_size = r.memory_size(&d.args[0]))),
    idle("ssi_ignore_recycled_buffers", HTTP_SERVER_LOCATION, (1, 1), "on | off",
        "Ignores recycled buffers.",
        "buffers with a body are never recycled"),
    idle("ssi_min_file_chunk", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The minimum size of a part of a response that is sent from its file.",
        "responses with SSI commands are processed in memory"),
];
