//! The names of the variables that nginx knows and Millstream does not, so that one can be told apart from a misspelling.
//!
//! Names only; what a variable holds is never looked up here. Before: `variables`, the table of those that are there; next:
//! `template`, which tells the two apart.

/// Fixed names; a trailing asterisk stands for all that begin so.
const NAMES: &str = "geoip_* http3 \
    memcached_key proxy_internal_body_length session_log_* session_time ssl_ech_* ssl_preread_* tcpinfo_* \
    upstream_first_byte_time upstream_last_server_name upstream_queue_time upstream_session_time jwt_* oidc_*";

/// In any case.
pub fn is_known(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.split_whitespace().any(|known| match known.strip_suffix('*') {
        Some(start) => name.len() > start.len() && name.starts_with(start),
        None => name == known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::VARIABLES;

    #[test]
    fn a_variable_that_is_there_is_not_said_to_be_missing() {
        for (_, name, _) in VARIABLES {
            assert!(!NAMES.split_whitespace().any(|known| known == *name), "{name}");
        }
        assert!(is_known("tcpinfo_rtt") && is_known("SSL_ech_status") && is_known("geoip_city"));
        assert!(!is_known("geoip_") && !is_known("session_tim"));
    }
}
