//! Copies, fills and launches that leave their memory, and reads of what nobody wrote.

use crate::machine::{Arg, BYTES, Host, N, at};
use rocmforge_hip_sys::{hipMemcpyDeviceToHost, hipMemcpyHostToDevice};
use std::ptr::null_mut;

crate::programs! {
    "bounds.rs";
    upload_past_end, upload_past_end_correct;
    download_past_end, download_past_end_correct;
    device_copy_past_end, device_copy_past_end_correct;
    fill_past_end, fill_past_end_correct;
    fill_far_past_end, fill_far_past_end_correct;
    fill_with_wrapped_size, fill_with_wrapped_size_correct;
    pinned_past_end, pinned_past_end_correct;
    no_allocation_there, no_allocation_there_correct;
    length_in_bytes, length_in_bytes_correct;
    host_pointer_to_kernel, host_pointer_to_kernel_correct;
    pinned_pointer_of_the_past, pinned_pointer_of_the_past_correct;
    memory_of_the_other_card, memory_of_the_other_card_correct;
    download_of_nothing, download_of_nothing_correct;
    download_of_a_half, download_of_a_half_correct;
    kernel_reads_nothing, kernel_reads_nothing_correct;
}

fn upload_past_end(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy(at(p, 4), q, BYTES, s); // FAULT: OutOfBounds
    h.destroy(s);
    h.host_free(q);
    h.free(p);
}

fn upload_past_end_correct(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy(at(p, 4), q, BYTES - 4, s);
    h.sync(s);
    h.destroy(s);
    h.host_free(q);
    h.free(p);
}

fn download_past_end(h: &Host) {
    let (p, s) = (h.zeroed(), h.stream());
    let mut mine = vec![0u8; BYTES + 1];
    h.copy(mine.as_mut_ptr().cast(), p, BYTES + 1, s); // FAULT: OutOfBounds
    h.destroy(s);
    h.free(p);
}

fn download_past_end_correct(h: &Host) {
    let (p, s) = (h.zeroed(), h.stream());
    let mut mine = vec![0u8; BYTES + 1];
    h.copy(mine.as_mut_ptr().cast(), p, BYTES, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

fn device_copy_past_end(h: &Host) {
    let (p, q, s) = (h.zeroed(), h.malloc(), h.stream());
    h.copy(q, at(p, BYTES / 2), BYTES / 2 + 1, s); // FAULT: OutOfBounds
    h.destroy(s);
    h.free(p);
    h.free(q);
}

fn device_copy_past_end_correct(h: &Host) {
    let (p, q, s) = (h.zeroed(), h.malloc(), h.stream());
    h.copy(q, at(p, BYTES / 2), BYTES / 2, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
    h.free(q);
}

fn fill_past_end(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(p, BYTES + 1, s); // FAULT: OutOfBounds
    h.destroy(s);
    h.free(p);
}

fn fill_past_end_correct(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(p, BYTES, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

/// A row of another pitch: it would lie in the buffer that was allocated next.
fn fill_far_past_end(h: &Host) {
    let (p, q) = (h.malloc_of(1 << 20), h.malloc_of(1 << 20));
    h.memset(at(p, (1 << 20) + 4096), BYTES, null_mut()); // FAULT: OutOfBounds
    h.free(q);
    h.free(p);
}

fn fill_far_past_end_correct(h: &Host) {
    let (p, q) = (h.malloc_of(1 << 20), h.malloc_of(1 << 20));
    h.memset(at(p, (1 << 20) - 4096), BYTES, null_mut());
    h.sync_device();
    h.free(q);
    h.free(p);
}

/// What is left of a buffer, computed in the wrong order.
fn fill_with_wrapped_size(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    let (used, all) = (BYTES, BYTES / 2);
    h.memset(p, all.wrapping_sub(used), s); // FAULT: OutOfBounds
    h.destroy(s);
    h.free(p);
}

fn fill_with_wrapped_size_correct(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    let (used, all) = (BYTES / 2, BYTES);
    h.memset(p, all.wrapping_sub(used), s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

fn pinned_past_end(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy(p, at(q, 8), BYTES, s); // FAULT: OutOfBounds
    h.destroy(s);
    h.host_free(q);
    h.free(p);
}

fn pinned_past_end_correct(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy(p, at(q, 8), BYTES - 8, s);
    h.sync(s);
    h.destroy(s);
    h.host_free(q);
    h.free(p);
}

fn no_allocation_there(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(at(p, 1 << 20), BYTES, s); // FAULT: OutOfBounds
    h.destroy(s);
    h.free(p);
}

fn no_allocation_there_correct(h: &Host) {
    let (p, s) = (h.malloc(), h.stream());
    h.memset(at(p, 0), BYTES, s);
    h.sync(s);
    h.destroy(s);
    h.free(p);
}

/// The kernel takes elements.
fn length_in_bytes(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let length = Arg::U32(BYTES as u32);
    h.launch_with(fill, [8, 1, 1], [32, 1, 1], &[Arg::Ptr(p), Arg::F32(1.0), length], s); // FAULT: OutOfBounds
    h.sync(s);
    h.reset();
    h.destroy(s);
    h.unload(m);
}

fn length_in_bytes_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let length = Arg::U32(N as u32);
    h.launch_with(fill, [8, 1, 1], [32, 1, 1], &[Arg::Ptr(p), Arg::F32(1.0), length], s);
    h.sync(s);
    h.free(p);
    h.destroy(s);
    h.unload(m);
}

fn host_pointer_to_kernel(h: &Host) {
    let (s, m) = (h.stream(), h.module());
    let fill = h.function(m, c"fill");
    let mut mine = vec![0f32; N];
    h.fill(fill, mine.as_mut_ptr().cast(), s); // FAULT: OutOfBounds
    h.sync(s);
    h.reset();
    h.destroy(s);
    h.unload(m);
}

fn host_pointer_to_kernel_correct(h: &Host) {
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s);
    h.sync(s);
    h.free(p);
    h.destroy(s);
    h.unload(m);
}

/// A pointer that HIP knew when it was pinned, and no longer knows.
fn pinned_pointer_of_the_past(h: &Host) {
    let mut mine = vec![0u8; BYTES];
    let q = mine.as_mut_ptr().cast();
    let (s, m) = (h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.register(q, BYTES);
    h.unregister(q);
    h.fill(fill, q, s); // FAULT: UseAfterFree
    h.sync(s);
    h.reset();
    h.destroy(s);
    h.unload(m);
}

fn pinned_pointer_of_the_past_correct(h: &Host) {
    let mut mine = vec![0u8; BYTES];
    let q = mine.as_mut_ptr().cast();
    let (p, s, m) = (h.malloc(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.register(q, BYTES);
    h.fill(fill, p, s);
    h.copy(q, p, BYTES, s);
    h.sync(s);
    h.unregister(q);
    h.free(p);
    h.destroy(s);
    h.unload(m);
}

fn memory_of_the_other_card(h: &Host) {
    h.set_device(1);
    let p = h.malloc();
    h.set_device(0);
    let (s, m) = (h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s); // FAULT: OutOfBounds
    h.sync(s);
    h.reset();
    h.destroy(s);
    h.unload(m);
    h.set_device(1);
    h.free(p);
}

fn memory_of_the_other_card_correct(h: &Host) {
    h.set_device(1);
    let p = h.malloc();
    let (s, m) = (h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, s);
    h.sync(s);
    h.destroy(s);
    h.unload(m);
    h.free(p);
}

fn download_of_nothing(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy_as(hipMemcpyDeviceToHost, q, p, s); // FAULT: Uninitialised
    h.sync(s);
    h.destroy(s);
    h.host_free(q);
    h.free(p);
}

fn download_of_nothing_correct(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy_as(hipMemcpyHostToDevice, p, q, s);
    h.copy_as(hipMemcpyDeviceToHost, q, p, s);
    h.sync(s);
    h.destroy(s);
    h.host_free(q);
    h.free(p);
}

fn download_of_a_half(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.memset(p, BYTES / 2, s);
    h.copy(q, p, BYTES, s); // FAULT: Uninitialised
    h.sync(s);
    h.destroy(s);
    h.host_free(q);
    h.free(p);
}

fn download_of_a_half_correct(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.memset(p, BYTES / 2, s);
    h.copy(q, p, BYTES / 2, s);
    h.sync(s);
    h.destroy(s);
    h.host_free(q);
    h.free(p);
}

/// The input was allocated and never filled.
fn kernel_reads_nothing(h: &Host) {
    let (p, q, s, m) = (h.malloc(), h.malloc(), h.stream(), h.module());
    let copy = h.function(m, c"copy");
    h.launch(copy, &[Arg::Ptr(p), Arg::Ptr(q), Arg::U32(N as u32)], s); // FAULT: Uninitialised
    h.sync(s);
    h.free(p);
    h.free(q);
    h.destroy(s);
    h.unload(m);
}

fn kernel_reads_nothing_correct(h: &Host) {
    let (p, q, s, m) = (h.malloc(), h.malloc(), h.stream(), h.module());
    let copy = h.function(m, c"copy");
    h.memset(p, BYTES, s);
    h.launch(copy, &[Arg::Ptr(p), Arg::Ptr(q), Arg::U32(N as u32)], s);
    h.sync(s);
    h.free(p);
    h.free(q);
    h.destroy(s);
    h.unload(m);
}
