//! Names of fields as CGI has them (RFC 3875 §4.1.18): `-` and `_` are the same, and case means nothing.
//!
//! What stands behind CGI and its kin takes `X_Real_IP` for X-Real-IP, and so do many servers of HTTP that put an application behind
//! such an interface. Whoever decides about a field by its name has to know all its spellings. Next: `fields`, which looks for them.

use crate::field_id::{FieldId, LONGEST};

pub(crate) const fn folded(byte: u8) -> u8 {
    if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() }
}

pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| folded(*one) == folded(*other))
}

/// The field an application takes a line for: the table's, if the name is another spelling of it.
pub fn field_of(id: FieldId, name: &[u8]) -> FieldId {
    if id != FieldId::Other || name.len() > LONGEST || !name.contains(&b'_') {
        return id;
    }
    let mut buffer = [0; LONGEST];
    let plain = &mut buffer[..name.len()];
    plain.iter_mut().zip(name).for_each(|(to, from)| *to = folded(*from));
    FieldId::of(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_table_is_known_in_every_spelling_that_an_application_takes_for_it() {
        for (name, id) in [
            ("X_Real_IP", FieldId::XRealIp),
            ("X_REAL-IP", FieldId::XRealIp),
            ("if_none_match", FieldId::IfNoneMatch),
            ("Access_Control_Request_Private_Network_X", FieldId::Other),
            ("X_Thing", FieldId::Other),
            ("_", FieldId::Other),
        ] {
            assert_eq!(field_of(FieldId::of(name.as_bytes()), name.as_bytes()), id, "{name}");
        }
        assert!(
            is_same(b"X-Api_Key", b"x_api-key")
                && !is_same(b"X-Api-Key", b"XApi-Key")
                && !is_same(b"a", b"ab")
        );
    }
}
