//! The fields are private and there is no constructor: a reservation comes from a card.

use rocmforge_memory::{Bytes, Reservation};

fn main() {
    let _ = Reservation::new(Bytes(1));
}
