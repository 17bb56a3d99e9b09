//! uwsgi as bytes: the packet that a request begins with. What the application answers is text.
//!
//! The body follows the packet as it is. It does no I/O.

/// Of a packet, after its header.
pub const MOST: usize = u16::MAX as usize;

const HEADER: usize = 4;

#[derive(Debug)]
pub struct Packet<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    fits: bool,
}

impl<'o> Packet<'o> {
    /// The modifiers say what kind of request it is.
    pub fn begin(out: &'o mut Vec<u8>, modifiers: [u8; 2]) -> Packet<'o> {
        let start = out.len();
        out.extend_from_slice(&[modifiers[0], 0, 0, modifiers[1]]);
        Packet { out, start, fits: true }
    }

    pub fn pair(&mut self, name: &[u8], value: &[u8]) {
        for text in [name, value] {
            match u16::try_from(text.len()) {
                Ok(length) => self.text(&length.to_le_bytes()),
                Err(_) => self.fits = false,
            }
            self.text(text);
        }
    }

    /// Appended as it is. After the packet has become too long nothing more is kept.
    pub fn text(&mut self, text: &[u8]) {
        self.fits &= self.out.len() - self.start - HEADER + text.len() <= MOST;
        if self.fits {
            self.out.extend_from_slice(text);
        }
    }

    /// False if it is longer than the protocol allows, and unusable.
    #[must_use]
    pub fn end(self) -> bool {
        let length = self.out.len() - self.start - HEADER;
        let Ok(length) = u16::try_from(length) else { return false };
        self.out[self.start + 1..self.start + 3].copy_from_slice(&length.to_le_bytes());
        self.fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_its_parameters_behind_its_length() {
        let mut out = b"before".to_vec();
        let mut packet = Packet::begin(&mut out, [7, 9]);
        packet.pair(b"A", b"xyz");
        packet.pair(b"EMPTY", b"");
        packet.text(b"tail");
        assert!(packet.end());
        assert_eq!(out, b"before\x07\x15\x00\x09\x01\x00A\x03\x00xyz\x05\x00EMPTY\x00\x00tail");
    }

    #[test]
    fn a_packet_that_the_protocol_cannot_say_is_told_and_takes_no_more_memory() {
        for (lengths, fits) in [
            (&[65_530, 0][..], false),
            (&[65_529], true),
            (&[65_530], true),
            (&[65_531], false),
            (&[65_536], false),
            (&[40_000, 40_000, 40_000], false),
        ] {
            let mut out = Vec::new();
            let mut packet = Packet::begin(&mut out, [0, 0]);
            for length in lengths {
                packet.pair(b"A", &vec![b'x'; *length]);
            }
            assert_eq!(packet.end(), fits, "{lengths:?}");
            assert!(out.len() <= HEADER + MOST);
        }
    }
}
