//! Priorities of responses (RFC 9218 §4): the value of a Priority field or of a PRIORITY_UPDATE frame.
//!
//! What is sent first is decided by whoever has several responses to send.

use crate::structured::{self, BareItem, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// 0 (first) to 7 (last).
    pub urgency: u8,
    /// Responses of the same urgency may share the connection with it.
    pub incremental: bool,
}

impl Default for Priority {
    /// RFC 9218 §4.1, §4.2.
    fn default() -> Priority {
        Priority { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Unknown or out-of-range parameters are ignored, and so is a value that is no dictionary (§4).
    #[inline]
    pub fn of(value: &[u8]) -> Priority {
        // What browsers send, read without the memory that a dictionary takes.
        match *value {
            [b'u', b'=', digit @ b'0'..=b'7'] => Priority { urgency: digit - b'0', incremental: false },
            [b'u', b'=', digit @ b'0'..=b'7', b',', b' ', b'i'] => {
                Priority { urgency: digit - b'0', incremental: true }
            }
            [b'i'] => Priority { incremental: true, ..Priority::default() },
            _ => Priority::of_dictionary(value),
        }
    }

    fn of_dictionary(value: &[u8]) -> Priority {
        let mut priority = Priority::default();
        for (key, value) in structured::dictionary(value).unwrap_or_default() {
            match (key, value) {
                (b"u", Value::Item(BareItem::Integer(urgency @ 0..=7))) => priority.urgency = urgency as u8,
                (b"i", Value::Item(BareItem::Boolean(incremental))) => priority.incremental = incremental,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_and_incremental_are_read_and_all_else_is_the_default() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i", 3, true),
            ("i, u=2", 2, true),
            ("u=5,i=?0", 5, false),
            ("u=5;x=1, i;q", 5, true),
            ("u=1, u=2", 2, false),
            ("u=8", 3, false),
            ("u=-1, i", 3, true),
            ("u=1.5", 3, false),
            ("u=\"1\"", 3, false),
            ("i=1, u=1", 1, false),
            ("u=0, other=(1 2), i", 0, true),
            ("u=0, i,", 3, false),
            ("U=0", 3, false),
            ("u=0 i", 3, false),
        ] {
            assert_eq!(Priority::of(value.as_bytes()), Priority { urgency, incremental }, "{value}");
        }
    }
}
