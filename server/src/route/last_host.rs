//! The Host that came last, and what it led to: nearly all clients name a server in the same way.
//!
//! Only what the bytes alone decide is kept. Before: `server_name`, which decides; next: `admission`.

use millstream_conf::model::ServerId;

/// Longer ones are judged each time.
const LONGEST: usize = 256;

#[derive(Default)]
pub struct LastHost {
    came: Vec<u8>,
    listener: usize,
    found: Option<(Vec<u8>, ServerId)>,
}

impl LastHost {
    /// `$host`, and the server without captures.
    pub fn find(&self, listener: usize, came: &[u8]) -> Option<(&[u8], ServerId)> {
        let (host, server) = self.found.as_ref()?;
        (self.listener == listener && self.came == came).then_some((host, *server))
    }

    pub fn keep(&mut self, listener: usize, came: &[u8], host: &[u8], server: ServerId) {
        if came.len() > LONGEST {
            return;
        }
        self.came.clear();
        self.came.extend_from_slice(came);
        self.listener = listener;
        let kept = self.found.get_or_insert_with(|| (Vec::new(), server));
        kept.0.clear();
        kept.0.extend_from_slice(host);
        kept.1 = server;
    }
}
