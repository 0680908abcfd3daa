//! Work that nothing orders: streams, events, the null stream, and the host.

use crate::machine::{Arg, BYTES, Host, N, at};
use rocmforge_hip_sys::hipStreamDefault;
use std::ptr::null_mut;

crate::programs! {
    "ordering.rs";
    read_after_write, read_after_write_correct;
    write_after_read, write_after_read_correct;
    write_after_write, write_after_write_correct;
    overlapping_halves, overlapping_halves_correct;
    event_on_the_wrong_stream, event_on_the_wrong_stream_correct;
    wait_before_record, wait_before_record_correct;
    recorded_again_while_pending, recorded_again_while_pending_correct;
    null_stream_and_non_blocking, null_stream_and_non_blocking_correct;
    blocking_streams_among_themselves, blocking_streams_among_themselves_correct;
    zeroed_on_another_stream, zeroed_on_another_stream_correct;
    kernel_and_copy, kernel_and_copy_correct;
    two_kernels, two_kernels_correct;
    read_before_download, read_before_download_correct;
    written_before_upload, written_before_upload_correct;
    pinned_used_twice, pinned_used_twice_correct;
    waited_for_the_wrong_stream, waited_for_the_wrong_stream_correct;
    allocated_on_another_stream, allocated_on_another_stream_correct;
}

fn end(h: &Host, streams: &[rocmforge_hip_sys::hipStream_t], memory: &[crate::machine::Ptr]) {
    h.sync_device();
    for stream in streams {
        h.destroy(*stream);
    }
    for ptr in memory {
        h.free(*ptr);
    }
}

fn read_after_write(h: &Host) {
    let (p, q, a, b) = (h.zeroed(), h.malloc(), h.stream(), h.stream());
    h.memset(p, BYTES, a); // FAULT: Race
    h.copy(q, p, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p, q]);
}

fn read_after_write_correct(h: &Host) {
    let (p, q, a, b, e) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.event());
    h.memset(p, BYTES, a);
    h.record(e, a);
    h.wait(b, e);
    h.copy(q, p, BYTES, b);
    end(h, &[a, b], &[p, q]);
    h.destroy_event(e);
}

fn write_after_read(h: &Host) {
    let (p, q, a, b) = (h.zeroed(), h.malloc(), h.stream(), h.stream());
    h.copy(q, p, BYTES, a); // FAULT: Race
    h.memset(p, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p, q]);
}

fn write_after_read_correct(h: &Host) {
    let (p, q, a, b) = (h.zeroed(), h.malloc(), h.stream(), h.stream());
    h.copy(q, p, BYTES, a);
    h.sync(a);
    h.memset(p, BYTES, b);
    end(h, &[a, b], &[p, q]);
}

fn write_after_write(h: &Host) {
    let (p, a, b) = (h.malloc(), h.stream(), h.stream());
    h.memset(p, BYTES, a); // FAULT: Race
    h.memset(p, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p]);
}

fn write_after_write_correct(h: &Host) {
    let (p, a, b) = (h.malloc(), h.stream(), h.stream());
    h.memset(p, BYTES, a);
    h.memset(p, BYTES, a);
    end(h, &[a, b], &[p]);
}

fn overlapping_halves(h: &Host) {
    let (p, a, b) = (h.malloc(), h.stream(), h.stream());
    h.memset(p, BYTES / 2 + 1, a); // FAULT: Race
    h.memset(at(p, BYTES / 2), BYTES / 2, b); // FAULT: Race
    end(h, &[a, b], &[p]);
}

fn overlapping_halves_correct(h: &Host) {
    let (p, a, b) = (h.malloc(), h.stream(), h.stream());
    h.memset(p, BYTES / 2, a);
    h.memset(at(p, BYTES / 2), BYTES / 2, b);
    end(h, &[a, b], &[p]);
}

fn event_on_the_wrong_stream(h: &Host) {
    let (p, q, a, b, e) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.event());
    h.memset(p, BYTES, a); // FAULT: Race
    h.record(e, b);
    h.wait(b, e);
    h.copy(q, p, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p, q]);
    h.destroy_event(e);
}

fn event_on_the_wrong_stream_correct(h: &Host) {
    let (p, q, a, b, e) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.event());
    h.memset(p, BYTES, a);
    h.record(e, a);
    h.wait(b, e);
    h.copy(q, p, BYTES, b);
    end(h, &[a, b], &[p, q]);
    h.destroy_event(e);
}

/// A wait for an event that is recorded later waits for nothing.
fn wait_before_record(h: &Host) {
    let (p, q, a, b, e) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.event());
    h.wait(b, e);
    h.memset(p, BYTES, a); // FAULT: Race
    h.record(e, a);
    h.copy(q, p, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p, q]);
    h.destroy_event(e);
}

fn wait_before_record_correct(h: &Host) {
    let (p, q, a, b, e) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.event());
    h.memset(p, BYTES, a);
    h.record(e, a);
    h.wait(b, e);
    h.copy(q, p, BYTES, b);
    end(h, &[a, b], &[p, q]);
    h.destroy_event(e);
}

/// A wait takes the latest record of an event: the first is forgotten.
fn recorded_again_while_pending(h: &Host) {
    let (p, q, a, b, c, e) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.stream(), h.event());
    h.memset(p, BYTES, a); // FAULT: Race
    h.record(e, a);
    h.record(e, c);
    h.wait(b, e);
    h.copy(q, p, BYTES, b); // FAULT: Race
    end(h, &[a, b, c], &[p, q]);
    h.destroy_event(e);
}

fn recorded_again_while_pending_correct(h: &Host) {
    let (p, q, a, b, c, e) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.stream(), h.event());
    h.memset(p, BYTES, a);
    h.record(e, a);
    h.wait(b, e);
    h.record(e, c);
    h.copy(q, p, BYTES, b);
    end(h, &[a, b, c], &[p, q]);
    h.destroy_event(e);
}

/// The null stream waits for blocking streams, and they for it. Not so the others.
fn null_stream_and_non_blocking(h: &Host) {
    let (p, q, s) = (h.zeroed(), h.malloc(), h.stream());
    h.memset(p, BYTES, null_mut()); // FAULT: Race
    h.copy(q, p, BYTES, s); // FAULT: Race
    end(h, &[s], &[p, q]);
}

fn null_stream_and_non_blocking_correct(h: &Host) {
    let (p, q, s) = (h.zeroed(), h.malloc(), h.stream_with(hipStreamDefault));
    h.memset(p, BYTES, null_mut());
    h.copy(q, p, BYTES, s);
    end(h, &[s], &[p, q]);
}

fn blocking_streams_among_themselves(h: &Host) {
    let (p, q) = (h.zeroed(), h.malloc());
    let (a, b) = (h.stream_with(hipStreamDefault), h.stream_with(hipStreamDefault));
    h.memset(p, BYTES, a); // FAULT: Race
    h.copy(q, p, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p, q]);
}

fn blocking_streams_among_themselves_correct(h: &Host) {
    let (p, q, r) = (h.zeroed(), h.malloc(), h.malloc());
    let (a, b) = (h.stream_with(hipStreamDefault), h.stream_with(hipStreamDefault));
    h.memset(p, BYTES, a);
    // Anything on the null stream stands between them.
    h.memset(r, BYTES, null_mut());
    h.copy(q, p, BYTES, b);
    end(h, &[a, b], &[p, q, r]);
}

fn zeroed_on_another_stream(h: &Host) {
    let (p, a, b, m) = (h.zeroed(), h.stream(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.memset(p, BYTES, a); // FAULT: Race
    h.fill(fill, p, b); // FAULT: Race
    end(h, &[a, b], &[p]);
    h.unload(m);
}

fn zeroed_on_another_stream_correct(h: &Host) {
    let (p, a, b, m) = (h.zeroed(), h.stream(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.memset(p, BYTES, b);
    h.fill(fill, p, b);
    end(h, &[a, b], &[p]);
    h.unload(m);
}

fn kernel_and_copy(h: &Host) {
    let (p, q, a, b, m) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, a); // FAULT: Race
    h.copy(q, p, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p, q]);
    h.unload(m);
}

fn kernel_and_copy_correct(h: &Host) {
    let (p, q, a, b, m) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.module());
    let fill = h.function(m, c"fill");
    h.fill(fill, p, a);
    h.sync(a);
    h.copy(q, p, BYTES, b);
    end(h, &[a, b], &[p, q]);
    h.unload(m);
}

fn two_kernels(h: &Host) {
    let (p, q, a, b, m) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.module());
    let (fill, copy) = (h.function(m, c"fill"), h.function(m, c"copy"));
    h.fill(fill, p, a); // FAULT: Race
    h.launch(copy, &[Arg::Ptr(p), Arg::Ptr(q), Arg::U32(N as u32)], b); // FAULT: Race
    end(h, &[a, b], &[p, q]);
    h.unload(m);
}

fn two_kernels_correct(h: &Host) {
    let (p, q, a, b, m, e) = (h.zeroed(), h.malloc(), h.stream(), h.stream(), h.module(), h.event());
    let (fill, copy) = (h.function(m, c"fill"), h.function(m, c"copy"));
    h.fill(fill, p, a);
    h.record(e, a);
    h.wait(b, e);
    h.launch(copy, &[Arg::Ptr(p), Arg::Ptr(q), Arg::U32(N as u32)], b);
    end(h, &[a, b], &[p, q]);
    h.unload(m);
    h.destroy_event(e);
}

fn read_before_download(h: &Host) {
    let (p, q, s) = (h.zeroed(), h.pinned(), h.stream());
    h.copy(q, p, BYTES, s); // FAULT: Race
    h.sim.host_reads(q.cast::<u8>(), BYTES); // FAULT: Race
    end(h, &[s], &[p]);
    h.host_free(q);
}

fn read_before_download_correct(h: &Host) {
    let (p, q, s) = (h.zeroed(), h.pinned(), h.stream());
    h.copy(q, p, BYTES, s);
    h.sync(s);
    h.sim.host_reads(q.cast::<u8>(), BYTES);
    end(h, &[s], &[p]);
    h.host_free(q);
}

fn written_before_upload(h: &Host) {
    let (p, q, s) = (h.malloc(), h.pinned(), h.stream());
    h.copy(p, q, BYTES, s); // FAULT: Race
    h.sim.host_writes(q.cast::<u8>(), BYTES); // FAULT: Race
    end(h, &[s], &[p]);
    h.host_free(q);
}

fn written_before_upload_correct(h: &Host) {
    let (p, q, s, e) = (h.malloc(), h.pinned(), h.stream(), h.event());
    h.copy(p, q, BYTES, s);
    h.record(e, s);
    h.sync_event(e);
    h.sim.host_writes(q.cast::<u8>(), BYTES);
    end(h, &[s], &[p]);
    h.host_free(q);
    h.destroy_event(e);
}

/// One staging buffer for two copies in two streams.
fn pinned_used_twice(h: &Host) {
    let (p, r, q, a, b) = (h.zeroed(), h.malloc(), h.pinned(), h.stream(), h.stream());
    h.copy(q, p, BYTES, a); // FAULT: Race
    h.copy(r, q, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p, r]);
    h.host_free(q);
}

fn pinned_used_twice_correct(h: &Host) {
    let (p, r, q, a, b) = (h.zeroed(), h.malloc(), h.pinned(), h.stream(), h.stream());
    h.copy(q, p, BYTES, a);
    h.copy(r, q, BYTES, a);
    end(h, &[a, b], &[p, r]);
    h.host_free(q);
}

fn waited_for_the_wrong_stream(h: &Host) {
    let (p, q, a, b) = (h.zeroed(), h.malloc(), h.stream(), h.stream());
    h.memset(p, BYTES, a); // FAULT: Race
    h.sync(b);
    h.copy(q, p, BYTES, b); // FAULT: Race
    end(h, &[a, b], &[p, q]);
}

fn waited_for_the_wrong_stream_correct(h: &Host) {
    let (p, q, a, b) = (h.zeroed(), h.malloc(), h.stream(), h.stream());
    h.memset(p, BYTES, a);
    h.sync(a);
    h.copy(q, p, BYTES, b);
    end(h, &[a, b], &[p, q]);
}

/// Stream-ordered memory that is filled in its own stream and read in another.
fn allocated_on_another_stream(h: &Host) {
    let (q, a, b) = (h.malloc(), h.stream(), h.stream());
    let p = h.malloc_async(a); // ALSO: Race
    h.memset(p, BYTES, a); // FAULT: Race
    h.copy(q, p, BYTES, b); // FAULT: Race ALSO: Uninitialised
    end(h, &[a, b], &[p, q]);
}

fn allocated_on_another_stream_correct(h: &Host) {
    let (q, a, b) = (h.malloc(), h.stream(), h.stream());
    let p = h.malloc_async(a);
    h.memset(p, BYTES, a);
    h.copy(q, p, BYTES, a);
    end(h, &[a, b], &[p, q]);
}
