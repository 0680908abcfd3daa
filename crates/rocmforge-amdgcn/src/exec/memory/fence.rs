//! Waits and cache invalidations, which do nothing here but tell racecheck what they order.

use crate::exec::code::isa::Handler;
use crate::exec::state::ctx::{Ctx, Fence, Ins};
use crate::exec::state::wave::Wave;

/// Waits until the wave's stores are done.
pub(crate) struct Stores;
/// Invalidates the cache of the workgroup.
pub(crate) struct Workgroup;
/// Invalidates the caches between the workgroup and the L2.
pub(crate) struct Device;

fn tell(w: &Wave, c: &mut Ctx<'_>, fence: Fence) {
    if c.observed {
        c.observer.borrow_mut().fence(w.index, fence);
    }
}

impl Handler for Stores {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, _: &Ins) {
        tell(w, c, Fence::Stores);
    }
}

impl Handler for Workgroup {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, _: &Ins) {
        tell(w, c, Fence::Workgroup);
    }
}

impl Handler for Device {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, _: &Ins) {
        tell(w, c, Fence::Device);
    }
}
