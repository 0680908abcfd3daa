//! A clone would count bytes once and give them back twice.

use rocmforge_memory::Reservation;

fn twice(reservation: Reservation) -> (Reservation, Reservation) {
    (reservation.clone(), reservation)
}

fn main() {
    let _ = twice;
}
