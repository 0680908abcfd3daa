//! I: launches.

use crate::rig::*;
use rocmforge_hip_sys::*;
use rocmforge_sim::ReportKind;
use std::ptr::null_mut;

both! {
    i13_launch_null,
    i14_launch_of_an_empty_grid,
    i15_launch_of_empty_blocks,
    i16_grid_too_large,
    i17_block_dimension_too_large,
    i18_too_many_threads,
    i_x5_a_product_that_wraps_is_reported,
    i19_too_much_dynamic_lds,
    i22_arguments_are_those_at_the_launch,
    i_x7_launch_without_the_arguments,
    j05_division_by_zero_is_no_error,
    i28_kernels_have_private_arrays,
    i_x11_a_wild_pointer_stops_the_card,
}

fn launch_geometry(rig: &Rig, grid: [u32; 3], block: [u32; 3], lds: u32) -> hipError_t {
    let nothing = rig.function(rig.load(), "nothing");
    let [gx, gy, gz] = grid;
    let [bx, by, bz] = block;
    call!(rig.hipModuleLaunchKernel(nothing, gx, gy, gz, bx, by, bz, lds, null_mut(), null_mut(), null_mut()))
}

fn i13_launch_null(rig: &Rig) {
    assert_eq!(rig.launch(null_mut(), 1, 1, null_mut(), &[]), hipErrorInvalidHandle);
}

fn i14_launch_of_an_empty_grid(rig: &Rig) {
    for axis in 0..3 {
        let mut size = [1; 3];
        size[axis] = 0;
        assert_eq!(launch_geometry(rig, size, [1; 3], 0), hipErrorInvalidValue);
    }
}

fn i15_launch_of_empty_blocks(rig: &Rig) {
    for axis in 0..3 {
        let mut size = [1; 3];
        size[axis] = 0;
        assert_eq!(launch_geometry(rig, [1; 3], size, 0), hipErrorInvalidValue);
    }
}

fn i16_grid_too_large(rig: &Rig) {
    assert_eq!(launch_geometry(rig, [1 << 31, 1, 1], [1; 3], 0), hipErrorInvalidValue);
    assert_eq!(launch_geometry(rig, [1, 65_537, 1], [1; 3], 0), hipErrorInvalidValue);
    assert_eq!(launch_geometry(rig, [1, 1, 65_537], [1; 3], 0), hipErrorInvalidValue);
    // NVIDIA's cards count no further than groups: this would run.
    if !rig.is_nvidia() {
        let status = launch_geometry(rig, [1 << 30, 1, 1], [256, 1, 1], 0);
        assert_eq!(status, hipErrorInvalidConfiguration, "global size");
    }
}

fn i17_block_dimension_too_large(rig: &Rig) {
    let expected = rig.by_platform(
        rig.by_version(hipErrorInvalidValue, hipErrorInvalidConfiguration),
        hipErrorInvalidValue,
    );
    for block in [[1025, 1, 1], [1, 1025, 1], [1, 1, 1025]] {
        assert_eq!(launch_geometry(rig, [1; 3], block, 0), expected, "{block:?}");
    }
}

fn i18_too_many_threads(rig: &Rig) {
    let expected = rig.by_platform(
        rig.by_version(hipErrorInvalidValue, hipErrorInvalidConfiguration),
        hipErrorInvalidValue,
    );
    assert_eq!(launch_geometry(rig, [1; 3], [32, 32, 2], 0), expected);
}

fn i_x5_a_product_that_wraps_is_reported(rig: &Rig) {
    let expected = rig.by_platform(
        rig.by_version(hipErrorInvalidValue, hipErrorInvalidConfiguration),
        hipErrorInvalidValue,
    );
    assert_eq!(launch_geometry(rig, [1; 3], [65_536, 65_536, 1], 0), expected);
    rig.only_report(ReportKind::InvalidCall);
}

fn i19_too_much_dynamic_lds(rig: &Rig) {
    let mut most = 0;
    answers!(
        hipSuccess,
        rig.hipDeviceGetAttribute(&raw mut most, hipDeviceAttributeMaxSharedMemoryPerBlock, rig.ordinal)
    );
    let most = most.cast_unsigned();
    assert_eq!(launch_geometry(rig, [1; 3], [1; 3], most + 1), hipErrorInvalidValue);
    assert_eq!(launch_geometry(rig, [1; 3], [1; 3], most), hipSuccess);
    rig.wait(null_mut());
}

fn i22_arguments_are_those_at_the_launch(rig: &Rig) {
    for n in [1, 31, 32, 33, 63, 64, 65, 127, 128, 129] {
        let input: Vec<f32> = (0..n).map(|i| i as f32 - 7.0).collect();
        let (from, to) = (rig.upload(&input), rig.malloc(4 * n));
        // `launch` overwrites its arguments before it returns, and the kernel runs later.
        let args = [
            Arg::Pointer(from),
            Arg::Pointer(to),
            Arg::Float(2.5),
            Arg::Word(n as u32),
        ];
        assert_eq!(rig.run("scale", n.div_ceil(64) as u32, 64, &args), hipSuccess);
        let expected: Vec<f32> = input.iter().map(|x| x * 2.5).collect();
        assert_eq!(rig.floats(to, n), expected);
        rig.clean();
    }
}

fn i_x7_launch_without_the_arguments(rig: &Rig) {
    let module = rig.load();
    let scale = rig.function(module, "scale");
    let (params, extra) = (null_mut(), null_mut());
    answers!(
        hipErrorInvalidValue,
        rig.hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, null_mut(), params, extra)
    );
}

fn j05_division_by_zero_is_no_error(rig: &Rig) {
    let out = rig.malloc(4);
    assert_eq!(
        rig.run("divide", 1, 1, &[Arg::Pointer(out), Arg::Word(7), Arg::Word(0)]),
        hipSuccess
    );
    answers!(hipSuccess, rig.hipGetLastError());
    rig.clean();
}

fn i28_kernels_have_private_arrays(rig: &Rig) {
    for (kernel, seed) in [("private_constant_size", 3u32), ("private_variable_index", 17)] {
        let n = 96;
        let out = rig.malloc(4 * n as usize);
        let args = [Arg::Pointer(out), Arg::Word(n), Arg::Word(seed)];
        assert_eq!(rig.run(kernel, 2, 64, &args), hipSuccess);
        let expected: Vec<u32> = (0..n).map(|i| private_sum(i, seed)).collect();
        assert_eq!(rig.words(out, n as usize), expected, "{kernel}");
        rig.clean();
    }
}

/// What both kernels compute: a table of 64 words of a thread, summed in another order than it was written.
fn private_sum(i: u32, seed: u32) -> u32 {
    let table: Vec<u32> = (0..64).map(|k| k * seed + i).collect();
    (0..64).fold(0u32, |sum, k| {
        sum.wrapping_mul(31).wrapping_add(table[((k * 7 + i) % 64) as usize])
    })
}

fn i_x11_a_wild_pointer_stops_the_card(rig: &Rig) {
    let mut ptr = null_mut();
    let wild = std::ptr::without_provenance_mut(0x0000_8000_7FFF_0000);
    // HIP 6 ends the process here. A simulator must not; both versions answer what HIP 7 does.
    let args = [Arg::Pointer(wild), Arg::Word(1)];
    assert_eq!(rig.run("one_too_many", 1, 32, &args), hipErrorIllegalAddress);
    rig.simulated(|sim| {
        let report = &sim.take_reports()[0];
        assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
        answers!(hipErrorIllegalAddress, sim.hipDeviceSynchronize());
    });
    answers!(hipErrorIllegalAddress, rig.hipMalloc(&raw mut ptr, N));
    answers!(hipErrorIllegalAddress, rig.hipStreamSynchronize(null_mut()));
}
