//! One field line as places in the bytes of its head: what parsers write down and views read.
//!
//! It knows nothing of the other lines. Next: `fields`, the view over all of them.

use crate::field_id::FieldId;
use crate::span::Span;

/// One field line: which field, and where its name and value stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Field {
    pub id: FieldId,
    /// As it came; empty if it is the table's own and stands nowhere.
    name: Span,
    /// Without surrounding white space.
    pub value: Span,
}

impl Field {
    #[inline]
    pub fn new(id: FieldId, name: Span, value: Span) -> Field {
        Field { id, name, value }
    }

    /// As it came. `bytes` are those that the line was found in.
    #[inline]
    pub fn name(self, bytes: &[u8]) -> &[u8] {
        if self.name.is_empty() { self.id.name().as_bytes() } else { self.name.of(bytes) }
    }
}
