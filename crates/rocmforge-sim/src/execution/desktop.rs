//! Desktops of the cards, played as simulated time passes.

use crate::machine::host::Host;
use crate::queues::point::StreamId;
use rocmforge_hip_sys::hipErrorUnknown;
use std::collections::BTreeMap;
use std::time::Duration;

impl Host {
    /// Plays every desktop up to now.
    pub(crate) fn play_desktops(&mut self) {
        let now = self.now();
        for index in 0..self.cards.len() {
            let card = &mut self.cards[index];
            let own = card.own();
            let Some(desktop) = &mut card.desktop else { continue };
            let before = (desktop.was_reset(), desktop.restore_at().is_some());
            desktop.play(now, own);
            let after = (desktop.was_reset(), desktop.restore_at().is_some());
            self.queues.stand_still(index, after.1);
            if before != after {
                self.trace.bytes(b"desktop");
                self.trace.number(u64::from(after.0) << 1 | u64::from(after.1));
            }
            if after.0 && !before.0 {
                // AMD documents no status for this; every one is an error.
                self.lose_device(hipErrorUnknown);
            }
        }
    }

    /// If a stream of `past` stands still, waits until it goes on. Whether any did.
    pub(crate) fn await_restore(&mut self, past: &BTreeMap<StreamId, u64>) -> bool {
        let card_of = |id: &StreamId| self.queues.get(*id).map(|queue| queue.card);
        let stopped = |card: usize| self.cards[card].desktop.as_ref()?.restore_at();
        let Some(until) = past.keys().filter_map(card_of).filter_map(stopped).min() else {
            return false;
        };
        self.advance(until.saturating_sub(self.now()));
        self.play_desktops();
        true
    }

    /// A launch on a card has run from `from` until now, or never ends. One with fewer workgroups than the card has places leaves
    /// room for graphics.
    pub(crate) fn occupy(&mut self, card: usize, grid: [u32; 3], from: Duration, ends: bool) {
        let until = if ends { self.now() } else { Duration::MAX };
        let card = &mut self.cards[card];
        card.overhead = card.config.overhead.0;
        let workgroups: u64 = grid.iter().map(|n| u64::from(*n)).product();
        if let Some(desktop) = &mut card.desktop
            && workgroups >= u64::from(card.config.multiprocessors)
        {
            desktop.occupied(from, until);
        }
    }
}
