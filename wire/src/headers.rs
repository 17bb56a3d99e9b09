//! Header fields that somebody owns and may change: the counterpart of the borrowed view.
//!
//! Names and values lie one behind the other in one buffer, so a whole set of fields is two allocations. Removing a
//! field leaves its bytes behind until [`Headers::compact`] or [`Headers::clear`]. Values are stored as given:
//! whoever takes them from a configuration or a peer has checked them.

use crate::field::Field;
use crate::field_id::FieldId;
use crate::fields::Fields;
use crate::octets::trim;
use crate::span::Span;

/// An owned, growable list of fields in order.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    bytes: Vec<u8>,
    fields: Vec<Field>,
}

/// All of the fields, packed tightly.
impl From<Fields<'_>> for Headers {
    fn from(view: Fields<'_>) -> Headers {
        Headers::copied_from(view, |_, _, _| true)
    }
}

impl Headers {
    pub const fn new() -> Headers {
        Headers { bytes: Vec::new(), fields: Vec::new() }
    }

    /// `bytes` is for all names and values together.
    pub fn with_capacity(fields: usize, bytes: usize) -> Headers {
        Headers { bytes: Vec::with_capacity(bytes), fields: Vec::with_capacity(fields) }
    }

    /// The fields for which `keep` holds, packed tightly.
    pub fn copied_from(view: Fields<'_>, mut keep: impl FnMut(FieldId, &[u8], &[u8]) -> bool) -> Headers {
        let mut headers = Headers::new();
        for (id, name, value) in view.iter() {
            if keep(id, name, value) {
                headers.append(id, name, value);
            }
        }
        headers.bytes.shrink_to_fit();
        headers.fields.shrink_to_fit();
        headers
    }

    /// White space around the value is dropped.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.append(FieldId::of(name), name, trim(value));
    }

    /// For a field of the table, under its canonical name.
    pub fn push_id(&mut self, id: FieldId, value: &[u8]) {
        debug_assert!(id != FieldId::Other);
        self.append(id, id.name().as_bytes(), trim(value));
    }

    /// Makes this the only line of its name: the first such line gets the value, others are removed, else it
    /// is added.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        let id = FieldId::of(name);
        let value = self.store(trim(value));
        let bytes = &self.bytes;
        let mut seen = false;
        self.fields.retain_mut(|field| {
            if field.id != id || (id == FieldId::Other && !field.name(bytes).eq_ignore_ascii_case(name)) {
                return true;
            }
            field.value = value;
            !std::mem::replace(&mut seen, true)
        });
        if !seen {
            let name = self.store(name);
            self.fields.push(Field::new(id, name, value));
        }
    }

    /// Removes all lines of the field; returns whether there was one.
    pub fn remove(&mut self, id: FieldId) -> bool {
        debug_assert!(id != FieldId::Other);
        let before = self.fields.len();
        self.fields.retain(|field| field.id != id);
        before != self.fields.len()
    }

    /// In any case; returns whether there was one.
    pub fn remove_named(&mut self, name: &[u8]) -> bool {
        let id = FieldId::of(name);
        if id != FieldId::Other {
            return self.remove(id);
        }
        let before = self.fields.len();
        let bytes = &self.bytes;
        self.fields
            .retain(|field| field.id != FieldId::Other || !field.name(bytes).eq_ignore_ascii_case(name));
        before != self.fields.len()
    }

    /// Keeps only the lines for which `keep(field, name, value)` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(FieldId, &[u8], &[u8]) -> bool) {
        let bytes = &self.bytes;
        self.fields.retain(|field| keep(field.id, field.name(bytes), field.value.of(bytes)));
    }

    #[inline]
    pub fn view(&self) -> Fields<'_> {
        Fields::new(&self.bytes, &self.fields)
    }

    /// Keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    /// Heap memory, including spare capacity and removed fields.
    pub fn byte_len(&self) -> usize {
        self.bytes.capacity() + self.fields.capacity() * size_of::<Field>()
    }

    /// Frees the memory of removed fields and spare capacity; for lists that are kept long.
    pub fn compact(&mut self) {
        *self = Headers::from(self.view());
    }

    /// The value must have no surrounding white space.
    pub(crate) fn append(&mut self, id: FieldId, name: &[u8], value: &[u8]) {
        let (name, value) = (self.store(name), self.store(value));
        self.fields.push(Field::new(id, name, value));
    }

    fn store(&mut self, text: &[u8]) -> Span {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        Span::new(start, self.bytes.len())
    }
}

impl PartialEq for Headers {
    fn eq(&self, other: &Headers) -> bool {
        self.view().iter().eq(other.view().iter())
    }
}

impl Eq for Headers {}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(headers: &Headers) -> Vec<String> {
        headers
            .view()
            .iter()
            .map(|(_, name, value)| {
                format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
            })
            .collect()
    }

    #[test]
    fn set_replaces_the_first_line_and_drops_the_others() {
        let mut headers = Headers::new();
        headers.push(b"X-A", b"1");
        headers.push(b"Server", b"a");
        headers.push(b"x-a", b"2");
        headers.set(b"X-a", b" 3 ");
        headers.set(b"X-New", b"4");
        assert_eq!(lines(&headers), ["X-A: 3", "Server: a", "X-New: 4"]);
        assert!(headers.remove(FieldId::Server) && !headers.remove_named(b"server"));
        assert!(headers.remove_named(b"x-new"));
        headers.compact();
        assert_eq!(lines(&headers), ["X-A: 3"]);
    }

    #[test]
    fn fields_are_found_by_id_and_by_name_in_any_case() {
        let mut headers = Headers::new();
        headers.push(b"connection", b"keep-alive, X-Hop");
        headers.push(b"X-Hop", b"secret");
        headers.push(b"Connection", b"te");
        let view = headers.view();
        assert_eq!(view.all(FieldId::Connection).count(), 2);
        assert_eq!(view.named(b"x-hOP"), Some(&b"secret"[..]));
        assert_eq!(view.all_named(b"CONNECTION").count(), 2);
        assert!(view.connection_lists("x-hop") && view.connection_lists("TE"));
        assert!(!view.connection_lists("hop") && !view.connection_lists("close"));
    }
}
