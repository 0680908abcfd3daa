//! Names that a program gives its memory, for providers that report about it.

use std::ffi::c_void;

/// A provider that wants to know what allocations are called and where the program made them. HIP has no call for that;
/// the simulated device has this beside it, so that its reports say "`kv cache`, made at src/model.rs:71".
pub trait HipNames: Send + Sync {
    /// The live allocation that starts at `ptr` (of `hipMalloc` or `hipHostMalloc`) is called `label` and was made at
    /// `site`, a `file:line:column`. Any other pointer is ignored.
    fn name_allocation(&self, ptr: *const c_void, label: &str, site: &str);

    /// The live allocation that starts at `ptr` has no owner from now on: the program keeps it in a pool, or is about to free it.
    /// Work enqueued so far may still use it; whatever is enqueued before it is in use again must not.
    fn mark_idle(&self, ptr: *const c_void) {
        let _ = ptr;
    }

    /// The live allocation that starts at `ptr` has a new owner from now on, who may use its first `bytes` bytes and finds
    /// nothing of value in them. It is called `label` and was asked for at `site`.
    fn mark_in_use(&self, ptr: *const c_void, bytes: u64, label: &str, site: &str) {
        let _ = bytes;
        self.name_allocation(ptr, label, site);
    }
}
