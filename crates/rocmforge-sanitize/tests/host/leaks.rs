//! Leaks: programs that end without freeing what they allocated.

use crate::machine::{BYTES, Host};
use rocmforge_hip_sys::hipStreamDefault;

crate::programs! {
    "leaks.rs";
    leaked_buffer, leaked_buffer_correct;
    leaked_on_the_error_path, leaked_on_the_error_path_correct;
    leaked_pinned, leaked_pinned_correct;
    leaked_registration, leaked_registration_correct;
    leaked_stream, leaked_stream_correct;
    leaked_event, leaked_event_correct;
    leaked_module, leaked_module_correct;
}

fn leaked_buffer(h: &Host) {
    let p = h.malloc(); // FAULT: Leak
    let q = h.malloc();
    h.free(q);
    assert_ne!(p, q);
}

fn leaked_buffer_correct(h: &Host) {
    let p = h.malloc();
    let q = h.malloc();
    h.free(q);
    h.free(p);
}

/// The second step fails, and what the first made is forgotten.
fn leaked_on_the_error_path(h: &Host) {
    let two = |h: &Host| {
        let p = h.malloc(); // FAULT: Leak
        let bad = h.memset(std::ptr::null_mut(), BYTES, std::ptr::null_mut());
        bad.is_success().then_some(p)
    };
    if let Some(p) = two(h) {
        h.free(p);
    }
}

fn leaked_on_the_error_path_correct(h: &Host) {
    let p = h.malloc();
    h.memset(std::ptr::null_mut(), BYTES, std::ptr::null_mut());
    h.free(p);
}

fn leaked_pinned(h: &Host) {
    h.pinned(); // FAULT: Leak
}

fn leaked_pinned_correct(h: &Host) {
    let p = h.pinned();
    h.host_free(p);
}

fn leaked_registration(h: &Host) {
    let mut mine = vec![0u8; BYTES];
    h.register(mine.as_mut_ptr().cast(), BYTES); // FAULT: Leak
    h.register(mine.as_mut_ptr().cast(), BYTES);
}

fn leaked_registration_correct(h: &Host) {
    let mut mine = vec![0u8; BYTES];
    h.register(mine.as_mut_ptr().cast(), BYTES);
    h.unregister(mine.as_mut_ptr().cast());
}

fn leaked_stream(h: &Host) {
    h.stream_with(hipStreamDefault); // FAULT: Leak
}

fn leaked_stream_correct(h: &Host) {
    let s = h.stream_with(hipStreamDefault);
    h.destroy(s);
}

fn leaked_event(h: &Host) {
    let s = h.stream();
    let e = h.event(); // FAULT: Leak
    h.record(e, s);
    h.sync(s);
    h.destroy(s);
}

fn leaked_event_correct(h: &Host) {
    let s = h.stream();
    let e = h.event();
    h.record(e, s);
    h.sync(s);
    h.destroy(s);
    h.destroy_event(e);
}

fn leaked_module(h: &Host) {
    let m = h.module(); // FAULT: Leak
    h.function(m, c"fill");
}

fn leaked_module_correct(h: &Host) {
    let m = h.module();
    h.function(m, c"fill");
    h.unload(m);
}
