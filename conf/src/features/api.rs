//! Directives of the API: where it is, who may use it, and the socket for this machine's administrator.
//!
//! Next: `own_server`, which turns the socket into a server; `millstream-admin`'s `api`, which answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::{HTTP_SERVER_LOCATION, LOCATION, MAIN};
use super::dashboard::Dashboard;
use super::main::Main;
use super::right::{ManageRight, RightLevel, Write, token, write_parameter};
use super::templates::without_templates;
use super::{Apply, Feature, Level, MANY, Need, Place, Row, often, once};
use crate::reading::{Reading, parameter};
use crate::source::Span;
use crate::suggest;
use crate::tree::Directive;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Api {
    pub write: Write,
    pub right: Arc<ManageRight>,
    /// Whether it is that of the `dashboard`, with its page.
    pub is_dashboard: bool,
}

without_templates!(Api);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnApi {
    pub write: Write,
    pub is_dashboard: bool,
    pub span: Span,
}

#[derive(Debug, Clone, Default)]
pub struct ApiLevel {
    pub own: Option<OwnApi>,
    pub dashboard: Option<Dashboard>,
    pub right: RightLevel,
}

impl Feature for ApiLevel {
    type Settings = Option<Api>;

    fn inherit(&mut self, above: &Self) {
        self.right.inherit_open(&above.right);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Option<Api> {
        let OwnApi { write, is_dashboard, .. } = self.own?;
        Some(Api { write, right: self.right.right(), is_dashboard })
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("api", LOCATION, (0, 1), "[write=on|token|off]", "",
        "Serves the API in this location, as in NGINX Plus. Changes, such as purging, require `write=on`. With `write=token`, they also require the \
        token of `api_token`. `api_allow` and `api_token` control access.",
        Apply::Level(api)),
    often("api_allow", HTTP_SERVER_LOCATION, (1, MANY), "local | address | CIDR | unix: | all …", "",
        "Sets the clients that may use the API without a token. By default, `local` may read, and no client may make changes. If a token is set and \
        this directive is not, no client may read without the token either. The parameters are those of `proxy_cache_purge_allow`. These directives are \
        inherited only if the current level has none.",
        Apply::Level(|l, d, r| l.api.right.allow(&d.args, r))).needing(Need::Api),
    once("api_token", HTTP_SERVER_LOCATION, (1, 1), "token", "",
        "Allows requests with this token, in `Authorization: Bearer token`, to use the API from any address.",
        Apply::Level(|l, d, r| l.api.right.token = token(&d.args[0], r))).needing(Need::Api),
    once("control_socket", MAIN, (1, 1), "path | off", "logs/nginx.sock",
        "Opens a Unix socket with the API (`write=on`), which only the user who started the process can open. `millstream purge`, `explain` and `top` \
        use it. By default, it is next to the pid file and has the same name with `.sock` instead of `.pid`.",
        Apply::Main(socket)),
];

fn api(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    let mut write = Write::Off;
    for word in &directive.args {
        if !write_parameter(word, &mut write, reading) {
            let name = parameter(word).map_or(word.text.as_str(), |(name, _)| name);
            let help = suggest::did_you_mean(name, ["write"]);
            reading
                .error(word.span, format!("invalid parameter \"{}\"", word.text))
                .help(help.unwrap_or_else(|| "write api; or api write=on;".to_owned()));
        }
    }
    level.api.own = Some(OwnApi { write, is_dashboard: false, span: directive.span });
}

/// Bytes: the system's limit (108) less some room for files made beside the socket.
const LONGEST_SOCKET_PATH: usize = 100;

/// Beside the pid file; `None` if the pid file is discarded (`/dev/null`).
pub fn default_socket(pid: &Path) -> Option<PathBuf> {
    if pid.starts_with("/dev") {
        return None;
    }
    if pid.extension().is_some_and(|extension| extension == "pid") {
        return Some(pid.with_extension("sock"));
    }
    let mut path = pid.as_os_str().to_owned();
    path.push(".sock");
    Some(path.into())
}

pub fn wrong_socket_path(path: &Path) -> Option<String> {
    let length = path.as_os_str().len();
    (length > LONGEST_SOCKET_PATH).then(|| {
        format!(
            "the path of the control_socket has {length} bytes, a socket's may have {LONGEST_SOCKET_PATH}: {}",
            path.display()
        )
    })
}

fn socket(main: &mut Main, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    if word.text == "off" || !reading.without_variables(word, "control_socket") {
        return;
    }
    let written = word.text.strip_prefix("unix:").unwrap_or(&word.text);
    let path = reading.path(written);
    let wrong = match written {
        "" => Some("the path of the control_socket is empty".to_owned()),
        "on" => {
            Some("\"on\" is not a path: without this directive, there is a control_socket already".to_owned())
        }
        _ => wrong_socket_path(&path),
    };
    if let Some(wrong) = wrong {
        reading.error(word.span, wrong).help("write a path such as /run/millstream.sock, or off");
        return;
    }
    main.control_socket = Some(path);
}
