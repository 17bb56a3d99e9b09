//! `fastcgi_pass`: speaking FastCGI to an application, such as PHP-FPM.
//!
//! Here is only what no other protocol has. Before: `params`, what applications have in common; next: `millstream-server`'s
//! `exchange/params`.

use super::exchange::Exchange;
use super::http::SetHeader;
use super::params::{self, Param, Params};
use super::target::PassDraft;
use super::{Family, Sent, Spoken};
use crate::features::context::{HTTP_SERVER_LOCATION, LOCATION_IF};
use crate::features::level::level;
use crate::features::location::LocationMatch;
use crate::features::templates::record;
use crate::features::{Apply, Level, Row, often, once};
use crate::reading::Reading;
use crate::regular_expression::Regex;
use crate::tree::Word;

record! {
    pub struct FastCgiPass {
        pub params: Vec<Param>,
        /// The request fields among them (`HTTP_…`), by field name.
        pub set_headers: Vec<SetHeader>,
        /// Empty = none.
        pub index: String,
        pub split_path_info: Option<Regex>,
        pub keep_conn: bool,
        pub catch_stderr: Vec<String>,
    }
}

level! {
    pub struct FastCgiLevel {
        params: Params,
        index: String,
        split_path_info: Regex,
        keep_conn: bool,
        catch_stderr: Vec<String>,
    }
}

impl Spoken for FastCgiLevel {
    type Settings = FastCgiPass;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn sent(&self) -> Sent<'_> {
        params::sent(self.params.as_ref())
    }

    fn adjust(exchange: &mut Exchange) {
        params::adjust(exchange);
    }

    fn resolve(&self, _: &PassDraft, _: &LocationMatch, _: &mut Reading<'_>) -> FastCgiPass {
        let Params { all, fields } = self.params.clone().unwrap_or_default();
        FastCgiPass {
            params: all,
            set_headers: fields,
            index: self.index.clone().unwrap_or_default(),
            split_path_info: self.split_path_info.clone(),
            keep_conn: self.keep_conn.unwrap_or(false),
            catch_stderr: self.catch_stderr.clone().unwrap_or_default(),
        }
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("fastcgi_pass", LOCATION_IF, (1, 1), "address", "",
        "Passes requests to a FastCGI application: an upstream group, `host:port` or `unix:/path`. If the parameter contains variables, its value is \
        the whole address.",
        Apply::Level(|l, d, r| params::pass(Family::FastCgi, l, d, r))),
    often("fastcgi_param", HTTP_SERVER_LOCATION, (2, 3), "name value [if_not_empty]", "",
        "Sets a parameter for the application; with `if_not_empty`, only if the value is not empty. Request fields are passed as parameters \
        (`HTTP_ACCEPT` …), and for SCGI also CONTENT_LENGTH, unless a parameter with the same name is set. For uwsgi, all parameters of a request are \
        limited to 64 KiB. These directives are inherited only if the current level has none.",
        Apply::Level(|l, d, r| of(l).params.get_or_insert_default().read(d, r))),
    once("fastcgi_index", HTTP_SERVER_LOCATION, (1, 1), "name", "",
        "Sets the file name that is appended to `$fastcgi_script_name` if the URI ends with a slash.",
        Apply::Level(|l, d, _| of(l).index = Some(d.args[0].text.clone()))),
    once("fastcgi_split_path_info", HTTP_SERVER_LOCATION, (1, 1), "regex", "",
        "Sets a regular expression with two groups that splits the URI into `$fastcgi_script_name` and `$fastcgi_path_info`.",
        Apply::Level(|l, d, r| of(l).split_path_info = split_path_info(&d.args[0], r))),
    once("fastcgi_keep_conn", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Asks the application to keep connections open, so that they can be reused.",
        Apply::Level(|l, d, r| of(l).keep_conn = r.flag(&d.args[0]))),
    often("fastcgi_catch_stderr", HTTP_SERVER_LOCATION, (1, 1), "text", "",
        "Treats a response as invalid if the application writes this string to its error stream before the head.",
        Apply::Level(|l, d, _| of(l).catch_stderr.get_or_insert_default().push(d.args[0].text.clone()))),
];

pub const TLS_ROWS: &[Row] = &[];

fn of(level: &mut Level) -> &mut FastCgiLevel {
    &mut level.pass.fastcgi.protocol
}

fn split_path_info(word: &Word, reading: &mut Reading<'_>) -> Option<Regex> {
    let regex = reading.regex(word, &word.text, false)?;
    if regex.groups() < 3 {
        reading
            .error(word.span, format!("pattern \"{}\" must have 2 captures", word.text))
            .help("write ^(.+\\.php)(/.*)$, of which the first is the script and the second what follows it");
        return None;
    }
    Some(regex)
}
