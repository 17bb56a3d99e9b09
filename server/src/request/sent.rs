//! The response so far, for variables and logs.

#[derive(Debug, Default, Clone)]
pub struct Sent {
    /// 0 before the head is made.
    pub status: u16,
    /// As sent; kept only if the configuration reads `$sent_http_`.
    pub head: Vec<u8>,
    pub trailers: Vec<u8>,
    /// Head included.
    pub bytes: u64,
    pub body_bytes: u64,
    pub complete: bool,
    /// Bytes before and after compression, if compressed here.
    pub compressed: Option<(u64, u64)>,
}

impl Sent {
    pub(super) fn clear(&mut self) {
        self.head.clear();
        self.trailers.clear();
        let (head, trailers) = (std::mem::take(&mut self.head), std::mem::take(&mut self.trailers));
        *self = Sent { head, trailers, ..Sent::default() };
    }
}
