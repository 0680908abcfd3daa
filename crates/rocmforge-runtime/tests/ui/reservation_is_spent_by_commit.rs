//! One reservation, one allocation.

use rocmforge_memory::Reservation;

fn twice(reservation: Reservation) {
    drop(reservation.commit());
    drop(reservation.commit());
}

fn main() {
    let _ = twice;
}
