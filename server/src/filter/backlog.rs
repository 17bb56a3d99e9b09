//! What has come of a body and still has to go through a filter.
//!
//! How much that is, is the source's to bound: it goes on once what is queued has gone. Next: `chain` and `client/assembly`, which
//! take from it.

#[derive(Debug, Default)]
pub struct Backlog {
    bytes: Vec<u8>,
    used: usize,
}

impl Backlog {
    pub fn put(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub fn len(&self) -> usize {
        self.bytes.len() - self.used
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn first(&self, most: usize) -> &[u8] {
        let rest = &self.bytes[self.used..];
        &rest[..rest.len().min(most)]
    }

    /// Frees their room once most bytes are consumed.
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
