//! What a program calls its memory, for providers that report about it.

use std::ffi::c_void;

/// A provider that wants to know what allocations are called and where the program made them. HIP has no call for that;
/// the simulated device has this beside it, so that its reports say "`kv cache`, made at src/model.rs:71".
pub trait HipNames: Send + Sync {
    /// The live allocation that starts at `ptr` (of `hipMalloc` or `hipHostMalloc`) is called `label` and was made at
    /// `site`, a `file:line:column`. Any other pointer is ignored.
    fn name_allocation(&self, ptr: *const c_void, label: &str, site: &str);
}
