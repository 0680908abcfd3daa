//! Turns of clients: waiting requests are ordered so that a turn has one request of each client.
//!
//! A request has the turn after that of its client's last one, and none that is over. So a client with many requests delays another's first by one
//! request of its own, and a client that asks again at once does not come before those that wait for their second turn.

use std::collections::HashMap;

/// Most clients of a turn: a turn with more is over, so that ever new clients do not keep others from their next turn.
const MOST_CLIENTS: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The turn that is served.
    now: u64,
    /// The last turn of each client that was served in this one.
    served: HashMap<String, u64>,
}

impl Turns {
    /// The turn of a client's next request. `open` are the turns of those that it has.
    pub(super) fn next(&self, client: &str, open: impl Iterator<Item = u64>) -> u64 {
        let served = self.served.get(client).copied();
        let next = open.chain(served).map(|turn| turn + 1).max();
        next.unwrap_or(0).max(self.now)
    }

    /// Notes that a request of this turn is served.
    pub(super) fn serve(&mut self, client: &str, turn: u64) {
        self.now = self.now.max(turn);
        let last = self.served.entry(client.to_owned()).or_default();
        *last = turn.max(*last);
        if self.served.len() > MOST_CLIENTS {
            self.now += 1;
        }
        self.served.retain(|_, last| *last >= self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_asks_again_waits_for_its_next_turn() {
        let mut turns = Turns::default();
        let none = std::iter::empty;
        assert_eq!((turns.next("a", none()), turns.next("a", [0, 1].into_iter())), (0, 2));
        turns.serve("a", 0);
        assert_eq!((turns.next("a", none()), turns.next("b", none())), (1, 0));
        turns.serve("b", 0);
        assert_eq!(turns.next("b", none()), 1, "as a's second");
        turns.serve("a", 1);
        assert_eq!((turns.next("a", none()), turns.next("b", none())), (2, 1));
    }

    #[test]
    fn ever_new_clients_do_not_keep_a_turn_open() {
        let mut turns = Turns::default();
        let second = turns.next("a", [0].into_iter());
        for client in 0..=MOST_CLIENTS {
            let client = client.to_string();
            let turn = turns.next(&client, std::iter::empty());
            assert!(turn < second);
            turns.serve(&client, turn);
        }
        assert_eq!(turns.next("new", std::iter::empty()), second);
        assert!(turns.served.len() <= MOST_CLIENTS);
    }
}
