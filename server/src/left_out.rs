//! Variables of what `proxy_cache_vary unlisted` leaves out, as far as the configuration reads them.
//!
//! `unlisted` leaves out fields that seldom mean anything to an API, and does not look at the connection. But where the configuration
//! reads one, in a condition, to choose a resource or in what it sends, the response may depend on it. So the cache
//! compares each such variable: for `if ($bot)` with a `map` of User-Agent the value of `$bot`, which many programs share.
//! Next: `generation`, which has them; `caching/noted`, which reads them.

use crate::variable_name;
use millstream_cache::leaves_out;
use millstream_conf::model::{Http, Template, Upstream, Variable, made};
use millstream_conf::variables::{Builtin, Source};

#[derive(Debug)]
pub struct LeftOut {
    /// Of its note: `=` and the variable's name. No field's name begins so (RFC 9110 §5.1).
    pub note: Box<[u8]>,
    pub variable: Variable,
}

/// Those that any location, upstream group or limit of the configuration reads before a response is stored.
pub fn read_by(http: &Http) -> Box<[LeftOut]> {
    let mut all: Vec<LeftOut> = Vec::new();
    let of_locations =
        http.locations.iter().flat_map(|location| location.settings.templates_before_storing());
    let of_upstreams = http.upstreams.iter().flat_map(Upstream::templates);
    let requests = http.request_zones.iter().map(|of| &of.zone.key);
    let connections = http.connection_zones.iter().map(|of| &of.zone.key);
    let templates = of_locations.chain(of_upstreams).chain(requests).chain(connections);
    for variable in templates.flat_map(Template::variables) {
        let is_known = all.iter().any(|known| known.variable == *variable);
        if !is_known && made::made_of(&http.made, variable).into_iter().any(is_left_out) {
            let note = variable_name::written(variable, http).replacen('$', "=", 1);
            all.push(LeftOut { note: note.into_bytes().into(), variable: variable.clone() });
        }
    }
    all.into()
}

fn is_left_out(variable: &Variable) -> bool {
    match (variable, variable.source()) {
        (_, Source::Connection) => true,
        (Variable::RequestHeader(name), Source::Field) => leaves_out(name.as_bytes()),
        // A body is no field: `proxy_cache_key` names it or not.
        (Variable::Builtin(Builtin::ContentType | Builtin::RequestBody | Builtin::RequestBodyFile), _) => {
            false
        }
        (_, source) => source == Source::Field,
    }
}
