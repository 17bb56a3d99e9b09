//! Flow-control windows (RFC 9113 §5.2, §6.9).
//!
//! A number with its rules: how much may still be sent, or be received. Whether a broken rule ends a stream or the
//! connection depends on whose window it was, which the caller knows.

/// 2^31-1 octets (RFC 9113 §6.9.1).
pub const LARGEST: u32 = 0x7fff_ffff;

/// The window is exceeded, or would grow past [`LARGEST`]: FLOW_CONTROL_ERROR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadWindow;

/// Octets that one side may send; by default none. A smaller initial window can make it negative (§6.9.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window(i64);

impl Window {
    /// At most [`LARGEST`].
    pub const fn new(octets: u32) -> Window {
        debug_assert!(octets <= LARGEST);
        Window(octets as i64)
    }

    /// 0 if the window is negative.
    #[inline]
    pub fn available(self) -> u32 {
        self.0.max(0) as u32
    }

    #[inline]
    pub fn octets(self) -> i64 {
        self.0
    }

    /// On an error the window stays as it was.
    #[inline]
    pub fn consume(&mut self, octets: u32) -> Result<(), BadWindow> {
        if octets > self.available() {
            // A frame without payload always has room, also in a negative window.
            return if octets == 0 { Ok(()) } else { Err(BadWindow) };
        }
        self.0 -= i64::from(octets);
        Ok(())
    }

    /// For WINDOW_UPDATE. On an error the window stays as it was.
    #[inline]
    pub fn increase(&mut self, octets: u32) -> Result<(), BadWindow> {
        self.shift(i64::from(octets))
    }

    /// For a changed SETTINGS_INITIAL_WINDOW_SIZE, see
    /// [`PeerSettings::apply`](super::settings::PeerSettings::apply). On an error the window stays as it was.
    #[inline]
    pub fn shift(&mut self, octets: i64) -> Result<(), BadWindow> {
        let octets = self.0.saturating_add(octets);
        if octets > i64::from(LARGEST) {
            return Err(BadWindow);
        }
        self.0 = octets;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let mut window = Window::new(10);
        assert_eq!(window.consume(11), Err(BadWindow));
        assert_eq!(window.consume(10), Ok(()));
        assert_eq!(window.consume(0), Ok(()));
        assert_eq!(window.consume(1), Err(BadWindow));
    }

    #[test]
    fn a_window_grows_to_its_largest_size_and_no_further() {
        let mut window = Window::new(1);
        assert_eq!(window.increase(LARGEST - 1), Ok(()));
        assert_eq!(window.increase(1), Err(BadWindow));
        assert_eq!(window.available(), LARGEST);
    }

    #[test]
    fn a_smaller_initial_window_makes_it_negative_and_updates_bring_it_back() {
        // The example of RFC 9113 §6.9.2.
        let mut window = Window::new(65_535);
        assert_eq!(window.consume(60 * 1024), Ok(()));
        assert_eq!(window.shift(16 * 1024 - 65_535), Ok(()));
        assert_eq!((window.octets(), window.available()), (-44 * 1024, 0));
        assert_eq!((window.consume(0), window.consume(1)), (Ok(()), Err(BadWindow)));
        assert_eq!(window.increase(44 * 1024 + 1), Ok(()));
        assert_eq!(window.available(), 1);
    }
}
