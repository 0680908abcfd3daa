//! Places of requests that generate text: how many there are, and how many each owner of a key has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::app::Asker;
use crate::error::{ApiError, Kind};
use crate::options::ServerOptions;

/// Requests that generate text now.
#[derive(Default)]
pub(crate) struct Places {
    of_owners: Mutex<HashMap<String, usize>>,
    /// All of them.
    pub(crate) all: watch::Sender<usize>,
}

/// A request's place, until it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    owner: Option<String>,
}

impl Place {
    /// Takes a place. Where there are several owners of keys, one has at most half of the places, so that others have some.
    pub(crate) fn take(places: &Arc<Places>, asker: &Asker, options: &ServerOptions) -> Result<Self, ApiError> {
        let all = options.limits.requests;
        let full = |most: usize, whose: &str| {
            let text = format!("{most} requests{whose} are open, and no more may be: try again later");
            Err(ApiError::new(Kind::Busy, text))
        };
        // One lock for both counts.
        let mut owners = places.lock();
        if *places.all.borrow() >= all {
            return full(all, "");
        }
        if let Some(owner) = &asker.0 {
            let most = match options.keys.len() {
                0 | 1 => all,
                _ => (all / 2).max(1),
            };
            let own = owners.entry(owner.clone()).or_default();
            if *own >= most {
                return full(most, " with this key");
            }
            *own += 1;
        }
        places.all.send_modify(|all| *all += 1);
        Ok(Self {
            places: Arc::clone(places),
            owner: asker.0.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut owners = self.places.lock();
        if let Some(own) = self.owner.as_ref().and_then(|owner| owners.get_mut(owner)) {
            *own -= 1;
        }
        self.places.all.send_modify(|all| *all -= 1);
    }
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.of_owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
