//! A pair of sockets between two processes of one machine: whole messages, each with open files.
//!
//! What a message means is its users' matter. A message and its files are bounded, and [`Channel::send_at_once`] never waits: the other end may be
//! anybody by now. Next: `millstream`'s `opener`.

use rustix::cmsg_space;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Of one message; Linux passes 253 at most.
pub const MOST_FILES: usize = 128;
/// Bytes of one message: fits a send buffer smaller than the kernel's default.
pub const LONGEST: usize = 64 << 10;

#[derive(Debug)]
pub struct Channel(OwnedFd);

pub type Message = (Vec<u8>, Vec<OwnedFd>);

impl Channel {
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(one), Channel(other)))
    }

    /// Waits for room. Fails if the other end is closed or the message is too long.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.send_with(bytes, &[], SendFlags::NOSIGNAL)
    }

    /// Fails without room.
    pub fn send_at_once(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_with(bytes, files, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn send_with(&self, bytes: &[u8], files: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
        if bytes.is_empty() || bytes.len() > LONGEST {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FILES))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        loop {
            match sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, flags) {
                Err(rustix::io::Errno::INTR) => {}
                sent => return Ok(sent.map(drop)?),
            }
        }
    }

    /// `None` if the other end is closed.
    pub fn receive(&self) -> io::Result<Option<Message>> {
        let mut bytes = vec![0; LONGEST];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut slices = [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                received => break received?,
            }
        };
        let mut files = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                files.extend(passed);
            }
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.truncate(received.bytes);
        Ok(Some((bytes, files)))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    #[test]
    fn a_message_arrives_whole_with_its_files_and_the_end_is_heard() {
        let (one, other) = Channel::pair().expect("a pair");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        one.send_at_once(b"first", &[writer.as_fd()]).expect("sent");
        one.send(b"second").expect("sent");
        drop(writer);
        let (bytes, mut files) = other.receive().expect("received").expect("a message");
        assert_eq!((&*bytes, files.len()), (&b"first"[..], 1));
        File::from(files.remove(0)).write_all(b"through").expect("written");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "through");
        assert_eq!(other.receive().expect("received").expect("a message").0, b"second");
        drop(one);
        assert!(other.receive().expect("received").is_none());
    }

    #[test]
    fn one_who_does_not_read_holds_nobody_up() {
        let (one, _other) = Channel::pair().expect("a pair");
        let refused = (0..10_000).find_map(|_| one.send_at_once(&[1; 1000], &[]).err()).expect("it is full");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(one.send(&[]).is_err() && one.send(&vec![0; LONGEST + 1]).is_err());
    }
}
