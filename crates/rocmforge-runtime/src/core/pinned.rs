//! Pinned host memory: within the budget of host memory, and in the card's ledger.

use super::deferred::Resource;
use crate::error::HipResult;
use crate::hip::{self, Driver, HostMemory};
use rocmforge_memory::{Bytes, Card, HandleKind, HandleToken, HostAllocation, HostBudget, HostKind, Site};
use std::sync::Arc;

/// A backend's source of pinned memory.
pub(crate) struct PinnedSource {
    pub(super) driver: Arc<Driver>,
    pub(super) card: Arc<Card>,
    pub(super) host: Arc<HostBudget>,
}

impl PinnedSource {
    pub(crate) fn allocate(&self, bytes: usize, label: &str, site: Site) -> HipResult<Pinned> {
        let size = Bytes::from_usize(bytes);
        let reservation = self.host.try_reserve_at(size, HostKind::Pinned, label, site)?;
        let memory = hip::memory::host_malloc(&self.driver, bytes)?;
        self.driver.name_allocation(memory.ptr().cast(), label, site);
        let token = self.card.ledger().track(HandleKind::PinnedHost(size), label, site);
        Ok(Pinned {
            memory,
            token: Some(token),
            host: reservation.commit(),
        })
    }
}

/// Pinned host memory.
pub(crate) struct Pinned {
    memory: HostMemory,
    token: Option<HandleToken>,
    host: HostAllocation,
}

impl Pinned {
    pub(crate) fn ptr(&self) -> *mut u8 {
        self.memory.ptr()
    }

    /// Its bytes, between copies.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        self.memory.as_mut_slice()
    }

    /// Declares that it lives as long as the backend: no leak.
    pub(super) fn retain(&self) {
        if let Some(token) = &self.token {
            token.retain();
        }
    }

    pub(crate) fn into_resource(self) -> Resource {
        Resource::Pinned {
            memory: self.memory,
            token: self.token,
            host: self.host,
        }
    }
}
