//! Launches that do not fit their kernel, kernels that do not end, and calls that must not be made.

use crate::machine::{Arg, BYTES, Host, N};
use std::ffi::c_void;
use std::ptr::null_mut;

crate::programs! {
    "launches.rs";
    too_few_bytes_of_arguments, too_few_bytes_of_arguments_correct;
    argument_left_out, argument_left_out_correct;
    address_instead_of_its_address, address_instead_of_its_address_correct;
    more_threads_than_compiled_for, more_threads_than_compiled_for_correct;
    threads_wrap_to_zero, threads_wrap_to_zero_correct;
    kernel_of_the_other_card, kernel_of_the_other_card_correct;
    endless_kernel, endless_kernel_correct;
    endless_kernel_before_event, endless_kernel_before_event_correct;
    call_in_callback, call_in_callback_correct;
    sync_in_callback, sync_in_callback_correct;
}

fn too_few_bytes_of_arguments(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let bytes = (p.addr() as u64).to_le_bytes();
    h.launch_packed(fill, &bytes, s); // FAULT: BadLaunch
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn too_few_bytes_of_arguments_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let mut bytes = (p.addr() as u64).to_le_bytes().to_vec();
    bytes.extend(1.0f32.to_le_bytes());
    bytes.extend((N as u32).to_le_bytes());
    h.launch_packed(fill, &bytes, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn argument_left_out(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let mut address = p;
    let mut params = [(&raw mut address).cast(), null_mut(), null_mut()];
    h.launch_raw(fill, [1, 1, 1], [32, 1, 1], &mut params, s); // FAULT: BadLaunch
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn argument_left_out_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let (mut address, mut value, mut n) = (p, 1.0f32, N as u32);
    let mut params = [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut n).cast()];
    h.launch_raw(fill, [1, 1, 1], [32, 1, 1], &mut params, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

/// The list takes a pointer to each argument, also to one that is a pointer.
fn address_instead_of_its_address(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let (mut value, mut n) = (1.0f32, N as u32);
    let mut params = [p, (&raw mut value).cast(), (&raw mut n).cast()];
    h.launch_raw(fill, [1, 1, 1], [32, 1, 1], &mut params, s); // FAULT: BadLaunch
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn address_instead_of_its_address_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn more_threads_than_compiled_for(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let small = h.function(m, c"at_most_64");
    h.launch_with(small, [1, 1, 1], [65, 1, 1], &[Arg::Ptr(p)], s); // FAULT: BadLaunch
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn more_threads_than_compiled_for_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let small = h.function(m, c"at_most_64");
    h.launch_with(small, [1, 1, 1], [64, 1, 1], &[Arg::Ptr(p)], s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

/// 65536 * 65536 is 0 in 32 bits, which HIP's own check lets through.
fn threads_wrap_to_zero(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let args = [Arg::Ptr(p), Arg::F32(1.0), Arg::U32(N as u32)];
    h.launch_with(fill, [1, 1, 1], [65536, 65536, 1], &args, s); // FAULT: InvalidCall
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn threads_wrap_to_zero_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let args = [Arg::Ptr(p), Arg::F32(1.0), Arg::U32(N as u32)];
    h.launch_with(fill, [1, 1, 1], [64, 1, 1], &args, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn kernel_of_the_other_card(h: &Host) {
    h.set_device(1);
    let (p, s) = (h.malloc(), h.stream());
    h.set_device(0);
    let m = h.module();
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s); // FAULT: BadLaunch
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn kernel_of_the_other_card_correct(h: &Host) {
    h.set_device(1);
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
    h.unload(m);
}

fn endless_kernel(h: &Host) {
    let (p, s, m) = (h.zeroed(), h.stream(), h.module());
    let wait_for = h.function(m, c"wait_for");
    h.launch(wait_for, &[Arg::Ptr(p)], s); // FAULT: EndlessKernel
    h.sync(s); // FAULT: EndlessWait
    h.reset(); // ALSO: EndlessWait
    h.destroy(s);
    h.unload(m);
}

fn endless_kernel_correct(h: &Host) {
    let (p, s, m) = (h.zeroed(), h.stream(), h.module());
    let (fill, wait_for) = (h.function(m, c"fill"), h.function(m, c"wait_for"));
    h.fill(fill, p, s);
    h.launch(wait_for, &[Arg::Ptr(p)], s);
    h.sync(s);
    h.free(p);
    h.destroy(s);
    h.unload(m);
}

fn endless_kernel_before_event(h: &Host) {
    let (p, s, m, e) = (h.zeroed(), h.stream(), h.module(), h.event());
    let wait_for = h.function(m, c"wait_for");
    h.launch(wait_for, &[Arg::Ptr(p)], s); // FAULT: EndlessKernel
    h.record(e, s);
    h.sync_event(e); // FAULT: EndlessWait
    h.reset(); // ALSO: EndlessWait
    h.destroy_event(e);
    h.destroy(s);
    h.unload(m);
}

fn endless_kernel_before_event_correct(h: &Host) {
    let (p, s, m, e) = (h.zeroed(), h.stream(), h.module(), h.event());
    let (fill, wait_for) = (h.function(m, c"fill"), h.function(m, c"wait_for"));
    h.fill(fill, p, s);
    h.launch(wait_for, &[Arg::Ptr(p)], s);
    h.record(e, s);
    h.sync_event(e);
    h.free(p);
    h.destroy_event(e);
    h.destroy(s);
    h.unload(m);
}

extern "C" fn queues_a_fill(host: *mut c_void) {
    // SAFETY: `call_back` passes the host, which outlives the wait for the stream.
    let h = unsafe { &*host.cast::<Host>() };
    h.memset(null_mut(), 0, null_mut());
}

extern "C" fn waits(host: *mut c_void) {
    // SAFETY: as above.
    let h = unsafe { &*host.cast::<Host>() };
    h.sync(null_mut());
}

extern "C" fn only_computes(host: *mut c_void) {
    assert!(!host.is_null());
}

// The report is about the call inside of the callback: it is marked where the callback is queued, which is how the test
// finds it, see `machine.rs`.
fn call_in_callback(h: &Host) {
    let s = h.stream();
    h.inside(s, queues_a_fill); // FAULT: InvalidCall
    h.destroy(s);
}

fn call_in_callback_correct(h: &Host) {
    let s = h.stream();
    h.inside(s, only_computes);
    h.memset(null_mut(), 0, null_mut());
    h.destroy(s);
}

fn sync_in_callback(h: &Host) {
    let s = h.stream();
    h.inside(s, waits); // FAULT: InvalidCall
    h.destroy(s);
}

fn sync_in_callback_correct(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(p, BYTES, s);
    h.inside(s, only_computes);
    h.sync(null_mut());
    h.free(p);
    h.destroy(s);
}
