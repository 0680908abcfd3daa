//! Budgeted allocator: no memory without a reservation.

use super::{Allocator, AllocatorError, Block, Request};
use crate::{Card, OutOfBudget};
use std::sync::Arc;

/// Reserves at the card, allocates, commits, in this order: at no time does the card hold bytes that the budget does not
/// know, and memory that the driver refuses was never the ledger's. Every buffer of a backend comes through here.
///
/// Whoever is below takes the ledger entry back with the block, and drops it when the driver has the memory.
pub struct Budgeted<A> {
    card: Arc<Card>,
    inner: A,
}

impl<A> Budgeted<A> {
    /// `inner`'s memory under the budget of `card`.
    pub fn new(card: Arc<Card>, inner: A) -> Self {
        Self { card, inner }
    }
}

impl<A: Allocator<Error: From<OutOfBudget>>> Allocator for Budgeted<A> {
    type Memory = A::Memory;
    type Stream = A::Stream;
    type Error = A::Error;

    fn allocate(&self, request: &Request<'_, Self::Stream>) -> Result<Block<Self::Memory, Self::Stream>, Self::Error> {
        let &Request {
            bytes,
            class,
            label,
            site,
            ..
        } = request;
        // What was freed but is still in use counts; with it gone the request may fit.
        let free_deferred = || self.inner.free_deferred();
        let reservation = self.card.reserve_with(bytes, class, label, site, free_deferred)?;
        let mut block = match self.inner.allocate(request) {
            Ok(block) => block,
            Err(error) => {
                if error.is_out_of_memory() {
                    reservation.refused_by_driver();
                }
                return Err(error);
            }
        };
        block.entry = Some(reservation.commit());
        Ok(block)
    }

    fn free(&self, block: Block<Self::Memory, Self::Stream>) {
        self.inner.free(block);
    }

    fn free_deferred(&self) -> Result<bool, Self::Error> {
        self.inner.free_deferred()
    }
}
