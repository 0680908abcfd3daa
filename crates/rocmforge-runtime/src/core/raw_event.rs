//! HIP event that destroys itself, with its entry in the ledger.

use crate::error::HipResult;
use crate::hip::{self, Driver};
use rocmforge_memory::{Card, HandleKind, HandleToken, Site};
use std::sync::Arc;

/// A HIP event that destroys itself.
pub(crate) struct RawEvent {
    driver: Arc<Driver>,
    raw: hip::Event,
    token: Option<HandleToken>,
}

impl RawEvent {
    pub(crate) fn new(driver: &Arc<Driver>, card: &Card, timing: bool, label: &str, site: Site) -> HipResult<Self> {
        let raw = hip::event::create(driver, timing)?;
        let token = card.ledger().track(HandleKind::Event, label, site);
        Ok(Self {
            driver: Arc::clone(driver),
            raw,
            token: Some(token),
        })
    }

    /// Declares that it belongs to the machinery of the backend: no leak of whoever made it necessary.
    pub(crate) fn retain(self) -> Self {
        if let Some(token) = &self.token {
            token.retain();
        }
        self
    }

    pub(crate) fn handle(&self) -> &hip::Event {
        &self.raw
    }

    /// Whether the work before the last record is done.
    pub(crate) fn is_done(&self) -> HipResult<bool> {
        hip::event::is_done(&self.driver, &self.raw)
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        if let Err(error) = hip::event::destroy(&self.driver, self.raw.take()) {
            self.driver.abandon(self.token.take(), error);
        }
    }
}
