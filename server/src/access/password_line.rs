//! The line of passwords that take long to be computed: a few at a time over the whole process, and one at a time of each address.
//!
//! So however many wrong ones an address sends, a right one from elsewhere waits for a few at the most. Behind an address that has too many
//! in line already nothing more is taken. Before: nothing; next: `auth_basic`, which asks for a turn.

use millstream_net::Address;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Passwords computed at a time in the process.
const AT_A_TIME: usize = 2;
/// Passwords of one address in line.
const OF_AN_ADDRESS: usize = 16;

pub(super) static LINE: PasswordLine =
    PasswordLine { places: Semaphore::const_new(AT_A_TIME), addresses: Mutex::new(None) };

pub(super) struct PasswordLine {
    places: Semaphore,
    addresses: Mutex<Option<HashMap<IpAddr, AddressQueue>>>,
}

struct AddressQueue {
    count: usize,
    turn: Arc<Semaphore>,
}

/// The right to compute a password, given back on drop.
pub(super) struct PasswordTurn {
    _place: SemaphorePermit<'static>,
    _turn: OwnedSemaphorePermit,
    _member: Member,
}

struct Member {
    line: &'static PasswordLine,
    address: IpAddr,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl PasswordLine {
    pub(super) async fn turn(&'static self, client: &Address) -> Result<PasswordTurn, TooMany> {
        let (member, turn) = self.enter(client.subscriber())?;
        // Neither is ever closed.
        let turn = turn.acquire_owned().await.map_err(|_| TooMany)?;
        let place = self.places.acquire().await.map_err(|_| TooMany)?;
        Ok(PasswordTurn { _place: place, _turn: turn, _member: member })
    }

    fn enter(&'static self, address: IpAddr) -> Result<(Member, Arc<Semaphore>), TooMany> {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = addresses
            .get_or_insert_default()
            .entry(address)
            .or_insert_with(|| AddressQueue { count: 0, turn: Arc::new(Semaphore::new(1)) });
        if waiting.count >= OF_AN_ADDRESS {
            return Err(TooMany);
        }
        waiting.count += 1;
        Ok((Member { line: self, address }, waiting.turn.clone()))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut addresses = self.line.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(addresses) = addresses.as_mut() else { return };
        if let Some(waiting) = addresses.get_mut(&self.address) {
            waiting.count -= 1;
            if waiting.count == 0 {
                addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn client(text: &str) -> Address {
        Address::Tcp(text.parse().expect("an address with a port"))
    }

    #[test]
    fn an_address_with_many_passwords_in_line_keeps_no_other_waiting() {
        static OWN: PasswordLine =
            PasswordLine { places: Semaphore::const_new(AT_A_TIME), addresses: Mutex::new(None) };
        let mut cx = Context::from_waker(Waker::noop());
        let greedy = client("192.0.2.1:4000");
        let mut first = pin!(OWN.turn(&greedy));
        let Poll::Ready(Ok(turn)) = first.as_mut().poll(&mut cx) else { panic!("it is the first") };
        let mut waiting: Vec<_> = (1..OF_AN_ADDRESS).map(|_| Box::pin(OWN.turn(&greedy))).collect();
        assert!(waiting.iter_mut().all(|turn| turn.as_mut().poll(&mut cx).is_pending()), "one at a time");
        let mut past = pin!(OWN.turn(&greedy));
        assert!(matches!(past.as_mut().poll(&mut cx), Poll::Ready(Err(TooMany))));
        let other = client("192.0.2.2:4000");
        let mut others = pin!(OWN.turn(&other));
        assert!(matches!(others.as_mut().poll(&mut cx), Poll::Ready(Ok(_))), "it waits for nobody");
        drop(turn);
        assert!(waiting[0].as_mut().poll(&mut cx).is_ready(), "the next of the same address");
        drop(waiting);
        assert!(OWN.addresses.lock().expect("no test panics").as_ref().is_some_and(HashMap::is_empty));
    }
}
