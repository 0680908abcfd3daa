//! One reservation, one allocation.

use rocmforge_memory::Reservation;

fn twice(reservation: Reservation) {
    drop(Reservation::commit(reservation));
    drop(Reservation::commit(reservation));
}

fn main() {
    let _ = twice;
}
