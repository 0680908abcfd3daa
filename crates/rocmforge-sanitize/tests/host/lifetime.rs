//! Memory and handles that are used after their end, or ended twice.

use crate::machine::{BYTES, Host, at};
use rocmforge_hip_sys::hipStreamDefault;
use std::ptr::null_mut;

crate::programs! {
    "lifetime.rs";
    double_free, double_free_correct;
    interior_free, interior_free_correct;
    foreign_free, foreign_free_correct;
    pinned_freed_as_device, pinned_freed_as_device_correct;
    device_freed_as_pinned, device_freed_as_pinned_correct;
    pinned_freed_twice, pinned_freed_twice_correct;
    freed_while_queued, freed_while_queued_correct, strict;
    pinned_freed_while_queued, pinned_freed_while_queued_correct, strict;
    unregistered_while_queued, unregistered_while_queued_correct, strict;
    copied_after_free, copied_after_free_correct;
    filled_after_free, filled_after_free_correct;
    launched_after_free, launched_after_free_correct;
    stale_after_reuse, stale_after_reuse_correct, strict;
    launched_with_stale_pointer, launched_with_stale_pointer_correct;
    freed_after_another_allocation, freed_after_another_allocation_correct;
    used_after_reset, used_after_reset_correct;
    freed_on_another_stream, freed_on_another_stream_correct;
    unloaded_while_queued, unloaded_while_queued_correct, strict;
    unloaded_twice, unloaded_twice_correct;
    function_of_unloaded_module, function_of_unloaded_module_correct;
    stream_after_destroy, stream_after_destroy_correct;
    stream_destroyed_twice, stream_destroyed_twice_correct;
    event_after_destroy, event_after_destroy_correct;
    event_destroyed_twice, event_destroyed_twice_correct;
    never_a_stream, never_a_stream_correct;
    event_as_stream, event_as_stream_correct;
}

fn double_free(h: &Host) {
    let p = h.malloc();
    h.free(p);
    h.free(p); // FAULT: DoubleFree
}

fn double_free_correct(h: &Host) {
    let p = h.malloc();
    h.free(p);
    h.free(null_mut());
}

fn interior_free(h: &Host) {
    let p = h.malloc();
    h.free(at(p, 16)); // FAULT: InteriorFree
}

fn interior_free_correct(h: &Host) {
    let p = h.malloc();
    h.free(p);
}

fn foreign_free(h: &Host) {
    let mut mine = [0u8; BYTES];
    h.free(mine.as_mut_ptr().cast()); // FAULT: InvalidFree
}

fn foreign_free_correct(h: &Host) {
    let p = h.malloc();
    h.free(p);
}

fn pinned_freed_as_device(h: &Host) {
    let p = h.pinned();
    h.free(p); // FAULT: InvalidFree
}

fn pinned_freed_as_device_correct(h: &Host) {
    let p = h.pinned();
    h.host_free(p);
}

fn device_freed_as_pinned(h: &Host) {
    let p = h.malloc();
    h.host_free(p); // FAULT: InvalidFree
    h.free(p);
}

fn device_freed_as_pinned_correct(h: &Host) {
    let p = h.malloc();
    h.free(p);
}

fn pinned_freed_twice(h: &Host) {
    let p = h.pinned();
    h.host_free(p);
    h.host_free(p); // FAULT: InvalidFree
}

fn pinned_freed_twice_correct(h: &Host) {
    let p = h.pinned();
    h.host_free(p);
}

fn freed_while_queued(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(p, BYTES, s); // FAULT: UseAfterFree
    h.free(p); // ALSO: UseAfterFree
    h.sync(s);
    h.destroy(s);
}

fn freed_while_queued_correct(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(p, BYTES, s);
    h.sync(s);
    h.free(p);
    h.destroy(s);
}

fn pinned_freed_while_queued(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy(p, q, BYTES, s); // FAULT: UseAfterFree
    h.host_free(q); // ALSO: UseAfterFree
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

fn pinned_freed_while_queued_correct(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy(p, q, BYTES, s);
    h.sync(s);
    h.host_free(q);
    h.destroy(s);
    h.free(p);
}

fn unregistered_while_queued(h: &Host) {
    let mut mine = vec![0u8; BYTES];
    let q = mine.as_mut_ptr().cast();
    h.register(q, BYTES);
    let (p, s) = (h.malloc(), h.stream());
    h.copy(p, q, BYTES, s); // FAULT: UseAfterFree
    h.unregister(q); // ALSO: UseAfterFree
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

fn unregistered_while_queued_correct(h: &Host) {
    let mut mine = vec![0u8; BYTES];
    let q = mine.as_mut_ptr().cast();
    h.register(q, BYTES);
    let (p, s) = (h.malloc(), h.stream());
    h.copy(p, q, BYTES, s);
    h.sync(s);
    h.unregister(q);
    h.destroy(s);
    h.free(p);
}

fn copied_after_free(h: &Host) {
    let (p, q, s) = (h.zeroed(), h.malloc(), h.stream());
    h.free(p);
    h.copy(q, p, BYTES, s); // FAULT: UseAfterFree
    h.destroy(s);
    h.free(q);
}

fn copied_after_free_correct(h: &Host) {
    let (p, q, s) = (h.zeroed(), h.malloc(), h.stream());
    h.copy(q, p, BYTES, s);
    h.sync(s);
    h.free(p);
    h.destroy(s);
    h.free(q);
}

fn filled_after_free(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.free(p);
    h.memset(p, BYTES, s); // FAULT: UseAfterFree
    h.destroy(s);
}

fn filled_after_free_correct(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(p, BYTES, s);
    h.sync(s);
    h.free(p);
    h.destroy(s);
}

fn launched_after_free(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.free(p); // ALSO: UseAfterFree
    h.fill(fill, p, s); // FAULT: UseAfterFree
    h.sync(s);
    h.reset();
    h.destroy(s);
    h.unload(m);
}

fn launched_after_free_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s);
    h.sync(s);
    h.free(p);
    h.destroy(s);
    h.unload(m);
}

/// Memory is allocated between the free and a launch with the pointer.
fn launched_with_stale_pointer(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.free(p); // ALSO: UseAfterFree
    h.malloc();
    h.fill(fill, p, s); // FAULT: UseAfterFree
    h.sync(s);
    h.reset();
    h.destroy(s);
    h.unload(m);
}

fn launched_with_stale_pointer_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.free(p);
    let p = h.malloc();
    h.fill(fill, p, s);
    h.sync(s);
    h.free(p);
    h.destroy(s);
    h.unload(m);
}

/// The second free would take memory that somebody else has by then.
fn freed_after_another_allocation(h: &Host) {
    let p = h.malloc();
    h.free(p);
    let q = h.malloc();
    h.free(p); // FAULT: DoubleFree
    h.free(q);
}

fn freed_after_another_allocation_correct(h: &Host) {
    let p = h.malloc();
    h.free(p);
    let q = h.malloc();
    h.free(q);
}

/// Memory is allocated while a launch that was queued with a freed pointer waits.
fn stale_after_reuse(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s); // FAULT: UseAfterFree
    h.free(p); // ALSO: UseAfterFree
    h.try_malloc();
    h.sync(s);
    h.reset();
    h.destroy(s);
    h.unload(m);
}

fn stale_after_reuse_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s);
    h.sync(s);
    h.free(p);
    let q = h.malloc();
    h.free(q);
    h.destroy(s);
    h.unload(m);
}

fn used_after_reset(h: &Host) {
    let p = h.malloc();
    h.reset();
    h.memset(p, BYTES, null_mut()); // FAULT: UseAfterFree
}

fn used_after_reset_correct(h: &Host) {
    let p = h.malloc();
    h.free(p);
    h.reset();
    let p = h.malloc();
    h.memset(p, BYTES, null_mut());
    h.sync_device();
    h.free(p);
}

/// A stream-ordered free is ordered in its own stream only.
fn freed_on_another_stream(h: &Host) {
    let (a, b) = (h.stream(), h.stream());
    let p = h.malloc_async(a);
    h.memset(p, BYTES, a); // FAULT: UseAfterFree
    h.free_async(p, b); // ALSO: UseAfterFree
    h.sync(a);
    h.sync(b);
    h.destroy(a);
    h.destroy(b);
}

fn freed_on_another_stream_correct(h: &Host) {
    let (a, b, e) = (h.stream(), h.stream(), h.event());
    let p = h.malloc_async(a);
    h.memset(p, BYTES, a);
    h.record(e, a);
    h.wait(b, e);
    h.free_async(p, b);
    h.sync(a);
    h.sync(b);
    h.destroy(a);
    h.destroy(b);
    h.destroy_event(e);
}

fn unloaded_while_queued(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s); // FAULT: UseAfterFree
    h.unload(m); // ALSO: UseAfterFree
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

fn unloaded_while_queued_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s);
    h.sync(s);
    h.unload(m);
    h.destroy(s);
    h.free(p);
}

fn unloaded_twice(h: &Host) {
    let m = h.module();
    h.unload(m);
    h.unload(m); // FAULT: StaleHandle
}

fn unloaded_twice_correct(h: &Host) {
    let m = h.module();
    h.unload(m);
}

fn function_of_unloaded_module(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.unload(m);
    h.fill(fill, p, s); // FAULT: StaleHandle
    h.destroy(s);
    h.free(p);
}

fn function_of_unloaded_module_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s);
    h.sync(s);
    h.unload(m);
    h.destroy(s);
    h.free(p);
}

fn stream_after_destroy(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.destroy(s);
    h.memset(p, BYTES, s); // FAULT: StaleHandle
    h.free(p);
}

fn stream_after_destroy_correct(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(p, BYTES, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

fn stream_destroyed_twice(h: &Host) {
    let s = h.stream();
    h.destroy(s);
    h.destroy(s); // FAULT: StaleHandle
}

fn stream_destroyed_twice_correct(h: &Host) {
    let s = h.stream();
    h.destroy(s);
}

fn event_after_destroy(h: &Host) {
    let (s, e) = (h.stream(), h.event());
    h.destroy_event(e);
    h.record(e, s); // FAULT: StaleHandle
    h.destroy(s);
}

fn event_after_destroy_correct(h: &Host) {
    let (s, e) = (h.stream(), h.event());
    h.record(e, s);
    h.sync_event(e);
    h.destroy_event(e);
    h.destroy(s);
}

fn event_destroyed_twice(h: &Host) {
    let e = h.event();
    h.destroy_event(e);
    h.destroy_event(e); // FAULT: StaleHandle
}

fn event_destroyed_twice_correct(h: &Host) {
    let e = h.event();
    h.destroy_event(e);
}

fn never_a_stream(h: &Host) {
    let p = h.malloc();
    h.memset(p, BYTES, std::ptr::without_provenance_mut(0x5150)); // FAULT: StaleHandle
    h.free(p);
}

fn never_a_stream_correct(h: &Host) {
    let p = h.malloc();
    let s = h.stream_with(hipStreamDefault);
    h.memset(p, BYTES, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

fn event_as_stream(h: &Host) {
    let e = h.event();
    h.sync(e.cast()); // FAULT: StaleHandle
    h.destroy_event(e);
}

fn event_as_stream_correct(h: &Host) {
    let (s, e) = (h.stream(), h.event());
    h.record(e, s);
    h.sync_event(e);
    h.destroy_event(e);
    h.destroy(s);
}
