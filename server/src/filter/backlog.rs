//! What has come of a body and still has to go through a filter.
//!
//! How much that is, is the source's to bound: it goes on once what is queued has gone. Next: `chain` and `client/assembly`, which
//! take from it.

/// Bytes in their order.
#[derive(Debug, Default)]
pub struct Backlog {
    bytes: Vec<u8>,
    /// How many of them are used.
    used: usize,
}

impl Backlog {
    /// Adds a piece.
    pub fn put(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// Where pieces are added.
    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many bytes are left.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.used
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first that are left, so many at the most.
    pub fn first(&self, most: usize) -> &[u8] {
        let rest = &self.bytes[self.used..];
        &rest[..rest.len().min(most)]
    }

    /// So many of the first are used. Their room is free once they are most of all.
    pub fn advance(&mut self, count: usize) {
        self.used += count;
        if self.used == self.bytes.len() {
            *self = Backlog::default();
        } else if self.used > self.bytes.len() / 2 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Backlog;

    #[test]
    fn bytes_come_out_in_their_order() {
        let (mut backlog, mut out) = (Backlog::default(), Vec::new());
        for piece in [&b"abc"[..], b"", b"defgh"] {
            backlog.put(piece);
            let first = backlog.first(2);
            out.extend_from_slice(first);
            let count = first.len();
            backlog.advance(count);
        }
        assert_eq!((backlog.len(), backlog.is_empty()), (3, false));
        out.extend_from_slice(backlog.first(9));
        backlog.advance(3);
        assert_eq!((out.as_slice(), backlog.is_empty()), (&b"abcdefgh"[..], true));
    }
}
