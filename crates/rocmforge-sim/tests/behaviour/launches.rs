//! I: launches.

use crate::kernels::{Arg, floats, function, launch, load, run, upload, words};
use crate::modes::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ffi::c_void;
use std::ptr::null_mut;

rows! {
    i13_launch_null,
    i14_launch_of_an_empty_grid,
    i15_launch_of_empty_blocks,
    i16_grid_too_large,
    i17_block_dimension_too_large,
    i18_too_many_threads,
    i_x5_a_product_that_wraps_is_reported,
    i19_too_much_dynamic_lds,
    i20_params_and_extra,
    i21_malformed_extra,
    i22_packed_arguments_are_those_at_the_launch,
    i22_arguments_are_those_at_the_launch,
    i_x6_launch_on_a_bad_stream,
    i_x7_launch_without_the_arguments,
    j05_division_by_zero_is_no_error,
    i23_launch_by_address_null,
    i24_more_threads_than_the_kernel_was_compiled_for,
    i25_a_cooperative_launch_too_large_to_be_resident,
    i26_function_attributes_null,
    i27_occupancy_of_empty_blocks,
    i28_kernels_have_private_arrays,
    i_x11_a_wild_pointer_stops_the_card,
}

fn i13_launch_null(mode: HipVersion) {
    let sim = machine(mode);
    assert_eq!(launch(&sim, null_mut(), 1, 1, null_mut(), &[]), hipErrorInvalidHandle);
}

fn launch_geometry(sim: &rocmforge_sim::SimHost, grid: [u32; 3], block: [u32; 3], lds: u32) -> hipError_t {
    let module = load(sim);
    let nothing = function(sim, module, "nothing");
    let [gx, gy, gz] = grid;
    let [bx, by, bz] = block;
    call!(sim.hipModuleLaunchKernel(nothing, gx, gy, gz, bx, by, bz, lds, null_mut(), null_mut(), null_mut()))
}

fn i14_launch_of_an_empty_grid(mode: HipVersion) {
    let sim = machine(mode);
    for axis in 0..3 {
        let mut size = [1; 3];
        size[axis] = 0;
        assert_eq!(launch_geometry(&sim, size, [1; 3], 0), hipErrorInvalidValue);
    }
}

fn i15_launch_of_empty_blocks(mode: HipVersion) {
    let sim = machine(mode);
    for axis in 0..3 {
        let mut size = [1; 3];
        size[axis] = 0;
        assert_eq!(launch_geometry(&sim, [1; 3], size, 0), hipErrorInvalidValue);
    }
}

fn i16_grid_too_large(mode: HipVersion) {
    let sim = machine(mode);
    assert_eq!(launch_geometry(&sim, [1 << 31, 1, 1], [1; 3], 0), hipErrorInvalidValue);
    assert_eq!(launch_geometry(&sim, [1, 65_537, 1], [1; 3], 0), hipErrorInvalidValue);
    assert_eq!(launch_geometry(&sim, [1, 1, 65_537], [1; 3], 0), hipErrorInvalidValue);
    assert_eq!(
        launch_geometry(&sim, [1 << 30, 1, 1], [256, 1, 1], 0),
        hipErrorInvalidConfiguration,
        "global size"
    );
}

fn i17_block_dimension_too_large(mode: HipVersion) {
    let sim = machine(mode);
    let expected = by_mode(mode, hipErrorInvalidValue, hipErrorInvalidConfiguration);
    for block in [[1025, 1, 1], [1, 1025, 1], [1, 1, 1025]] {
        assert_eq!(launch_geometry(&sim, [1; 3], block, 0), expected, "{block:?}");
    }
}

fn i18_too_many_threads(mode: HipVersion) {
    let sim = machine(mode);
    let expected = by_mode(mode, hipErrorInvalidValue, hipErrorInvalidConfiguration);
    assert_eq!(launch_geometry(&sim, [1; 3], [32, 32, 2], 0), expected);
}

fn i_x5_a_product_that_wraps_is_reported(mode: HipVersion) {
    let sim = machine(mode);
    let expected = by_mode(mode, hipErrorInvalidValue, hipErrorInvalidConfiguration);
    assert_eq!(launch_geometry(&sim, [1; 3], [65_536, 65_536, 1], 0), expected);
    only_report(&sim, ReportKind::InvalidCall);
}

fn i19_too_much_dynamic_lds(mode: HipVersion) {
    let sim = machine(mode);
    assert_eq!(launch_geometry(&sim, [1; 3], [1; 3], 65_537), hipErrorInvalidValue);
    assert_eq!(launch_geometry(&sim, [1; 3], [1; 3], 65_536), hipSuccess);
}

/// A packed launch of `divide`: the buffer, its size, and the list that names them.
struct Packed {
    buffer: [u8; 16],
    size: usize,
}

impl Packed {
    fn new(out: *mut c_void) -> Box<Self> {
        let mut buffer = [0u8; 16];
        buffer[..8].copy_from_slice(&(out.addr() as u64).to_le_bytes());
        buffer[8..12].copy_from_slice(&42i32.to_le_bytes());
        buffer[12..].copy_from_slice(&5i32.to_le_bytes());
        Box::new(Self { buffer, size: 16 })
    }

    fn list(&mut self) -> [*mut c_void; 5] {
        [
            HIP_LAUNCH_PARAM_BUFFER_POINTER,
            self.buffer.as_mut_ptr().cast(),
            HIP_LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut self.size).cast(),
            HIP_LAUNCH_PARAM_END,
        ]
    }
}

fn divide(sim: &rocmforge_sim::SimHost, params: *mut *mut c_void, extra: &mut [*mut c_void]) -> hipError_t {
    let module = load(sim);
    let divide = function(sim, module, "divide");
    call!(sim.hipModuleLaunchKernel(divide, 1, 1, 1, 1, 1, 1, 0, null_mut(), params, extra.as_mut_ptr()))
}

fn i20_params_and_extra(mode: HipVersion) {
    let sim = machine(mode);
    let out = malloc(&sim, 4);
    let mut packed = Packed::new(out);
    let mut extra = packed.list();
    let mut params = [packed.buffer.as_mut_ptr().cast(); 3];
    assert_eq!(divide(&sim, params.as_mut_ptr(), &mut extra), hipErrorInvalidValue);
    assert_eq!(sim.counters().operations, 0);
    clean(&sim);
}

fn i21_malformed_extra(mode: HipVersion) {
    let sim = machine(mode);
    let mut packed = Packed::new(malloc(&sim, 4));
    let [pointer_tag, buffer, size_tag, size_at, end] = packed.list();
    for mut malformed in [
        [size_tag, buffer, size_tag, size_at, end],
        [pointer_tag, null_mut(), size_tag, size_at, end],
        [pointer_tag, buffer, size_tag, size_at, size_tag],
        [end; 5],
    ] {
        assert_eq!(divide(&sim, null_mut(), &mut malformed), hipErrorInvalidValue);
    }
    clean(&sim);
    packed.size = 12;
    assert_eq!(divide(&sim, null_mut(), &mut packed.list()), hipErrorInvalidValue);
    assert!(only_report(&sim, ReportKind::BadLaunch).message.contains("takes 16 B"));
}

fn i22_packed_arguments_are_those_at_the_launch(mode: HipVersion) {
    let sim = machine(mode);
    let out = malloc(&sim, 4);
    let mut packed = Packed::new(out);
    assert_eq!(divide(&sim, null_mut(), &mut packed.list()), hipSuccess);
    packed.buffer.fill(0xEE);
    assert_eq!(words(&sim, out, 1), [8], "42 / 5, as the buffer was at the launch");
}

fn i22_arguments_are_those_at_the_launch(mode: HipVersion) {
    for n in [1, 31, 32, 33, 63, 64, 65, 127, 128, 129] {
        let sim = machine(mode);
        let input: Vec<f32> = (0..n).map(|i| i as f32 - 7.0).collect();
        let (from, to) = (upload(&sim, &input), malloc(&sim, 4 * n));
        // `launch` overwrites its arguments before it returns, and the kernel runs later.
        let args = [
            Arg::Pointer(from),
            Arg::Pointer(to),
            Arg::Float(2.5),
            Arg::Word(n as u32),
        ];
        assert_eq!(run(&sim, "scale", n.div_ceil(64) as u32, 64, &args), hipSuccess);
        let expected: Vec<f32> = input.iter().map(|x| x * 2.5).collect();
        assert_eq!(floats(&sim, to, n), expected);
        clean(&sim);
        assert_eq!(sim.launches(), 1);
    }
}

#[test]
fn hidden_arguments_tell_the_geometry() {
    let sim = machine(Hip6);
    let (module, out) = (load(&sim), malloc(&sim, 12));
    let geometry = function(&sim, module, "geometry");
    let mut pointer = out;
    let mut params: [*mut c_void; 1] = [(&raw mut pointer).cast()];
    let at = params.as_mut_ptr();
    answers!(
        hipSuccess,
        sim.hipModuleLaunchKernel(geometry, 2, 1, 1, 8, 4, 2, 0, null_mut(), at, null_mut())
    );
    assert_eq!(words(&sim, out, 3), [8, 4, 2]);
}

#[test]
fn kernels_read_the_variables_and_call_the_functions_of_their_module() {
    let sim = machine(Hip6);
    let out = malloc(&sim, 20);
    assert_eq!(
        run(&sim, "look_up", 1, 32, &[Arg::Pointer(out), Arg::Word(5)]),
        hipSuccess
    );
    assert_eq!(words(&sim, out, 5), [11, 21, 31, 41, 11]);
    clean(&sim);
}

fn i_x6_launch_on_a_bad_stream(mode: HipVersion) {
    let sim = machine(mode);
    let module = load(&sim);
    let nothing = function(&sim, module, "nothing");
    let bad = std::ptr::without_provenance_mut(0xDEAD_BEE0);
    let expected = by_mode(mode, hipErrorInvalidValue, hipErrorContextIsDestroyed);
    assert_eq!(launch(&sim, nothing, 1, 1, bad, &[]), expected);
    only_report(&sim, ReportKind::StaleHandle);
}

fn i_x7_launch_without_the_arguments(mode: HipVersion) {
    let sim = machine(mode);
    let module = load(&sim);
    let scale = function(&sim, module, "scale");
    let (params, extra) = (null_mut(), null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, null_mut(), params, extra)
    );
}

fn j05_division_by_zero_is_no_error(mode: HipVersion) {
    let sim = machine(mode);
    let out = malloc(&sim, 4);
    assert_eq!(
        run(&sim, "divide", 1, 1, &[Arg::Pointer(out), Arg::Word(7), Arg::Word(0)]),
        hipSuccess
    );
    answers!(hipSuccess, sim.hipGetLastError());
    clean(&sim);
}

#[test]
fn a_function_dies_with_its_module() {
    let sim = machine(Hip6);
    let module = load(&sim);
    let nothing = function(&sim, module, "nothing");
    answers!(hipSuccess, sim.hipModuleUnload(module));
    load(&sim);
    assert_eq!(launch(&sim, nothing, 1, 1, null_mut(), &[]), hipErrorInvalidHandle);
    assert!(only_report(&sim, ReportKind::StaleHandle).message.contains("unloaded"));
}

#[test]
fn a_module_works_on_its_own_card_only() {
    let sim = two_cards(Hip6);
    let module = load(&sim);
    let nothing = function(&sim, module, "nothing");
    answers!(hipSuccess, sim.hipSetDevice(1));
    assert_eq!(launch(&sim, nothing, 1, 1, null_mut(), &[]), hipErrorInvalidHandle);
    only_report(&sim, ReportKind::BadLaunch);
}

fn i23_launch_by_address_null(mode: HipVersion) {
    let sim = machine(mode);
    let (one, params) = (dim3 { x: 1, y: 1, z: 1 }, null_mut());
    answers!(
        hipErrorInvalidDeviceFunction,
        sim.hipLaunchKernel(std::ptr::null(), one, one, params, 0, null_mut())
    );
    // Not supported on purpose: no host program has registered a kernel.
    let address = i23_launch_by_address_null as *const c_void;
    answers!(
        hipErrorNotSupported,
        sim.hipLaunchKernel(address, one, one, params, 0, null_mut())
    );
}

fn i24_more_threads_than_the_kernel_was_compiled_for(mode: HipVersion) {
    let sim = machine(mode);
    assert_eq!(launch_geometry(&sim, [1; 3], [257, 1, 1], 0), hipErrorLaunchFailure);
    assert!(
        only_report(&sim, ReportKind::BadLaunch)
            .message
            .contains("compiled for 256")
    );
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    assert_eq!(sim.launches(), 0, "it does not run");
}

fn i25_a_cooperative_launch_too_large_to_be_resident(mode: HipVersion) {
    let sim = machine(mode);
    let module = load(&sim);
    let nothing = function(&sim, module, "nothing");
    let go = |blocks: u32, threads: u32| {
        let (stream, params) = (null_mut(), null_mut());
        call!(sim.hipModuleLaunchCooperativeKernel(nothing, blocks, 1, 1, threads, 1, 1, 0, stream, params))
    };
    let mut each = 0;
    answers!(
        hipSuccess,
        sim.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut each, nothing, 256, 0)
    );
    let fits = each.cast_unsigned() * 42;
    assert_eq!(go(fits + 1, 256), hipErrorCooperativeLaunchTooLarge);
    // Not supported on purpose: workgroups run one after the other, so a grid barrier would never be passed.
    assert_eq!(go(fits, 256), hipErrorNotSupported);
    assert_eq!(go(1, 0), hipErrorInvalidValue);
}

fn i26_function_attributes_null(mode: HipVersion) {
    let (sim, mut found) = (machine(mode), hipFuncAttributes::default());
    let address = i26_function_attributes_null as *const c_void;
    answers!(hipErrorInvalidValue, sim.hipFuncGetAttributes(null_mut(), address));
    answers!(
        hipErrorInvalidDeviceFunction,
        sim.hipFuncGetAttributes(&raw mut found, std::ptr::null())
    );
    // Not supported on purpose, as in i23.
    answers!(hipErrorNotSupported, sim.hipFuncGetAttributes(&raw mut found, address));
}

fn i27_occupancy_of_empty_blocks(mode: HipVersion) {
    let sim = machine(mode);
    let (module, mut blocks) = (load(&sim), -1);
    let (kernel, found) = (function(&sim, module, "with_barrier"), &raw mut blocks);
    for (size, flags, expected) in [
        (0, 0, hipErrorInvalidValue),
        (-1, 0, hipErrorInvalidValue),
        (64, 2, hipErrorInvalidValue),
        (64, 1, hipSuccess),
    ] {
        answers!(
            expected,
            sim.hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(found, kernel, size, 0, flags)
        );
        assert_eq!(blocks > 0, expected == hipSuccess);
    }
}

fn i28_kernels_have_private_arrays(mode: HipVersion) {
    for (kernel, seed) in [("private_constant_size", 3u32), ("private_variable_index", 17)] {
        let sim = machine(mode);
        let n = 96;
        let out = malloc(&sim, 4 * n as usize);
        let args = [Arg::Pointer(out), Arg::Word(n), Arg::Word(seed)];
        assert_eq!(run(&sim, kernel, 2, 64, &args), hipSuccess);
        let expected: Vec<u32> = (0..n).map(|i| private_sum(i, seed)).collect();
        assert_eq!(words(&sim, out, n as usize), expected, "{kernel}");
        clean(&sim);
    }
}

/// What both kernels compute: a table of 64 words of a thread, summed in another order than it was written.
fn private_sum(i: u32, seed: u32) -> u32 {
    let table: Vec<u32> = (0..64).map(|k| k * seed + i).collect();
    (0..64).fold(0u32, |sum, k| {
        sum.wrapping_mul(31).wrapping_add(table[((k * 7 + i) % 64) as usize])
    })
}

fn i_x11_a_wild_pointer_stops_the_card(mode: HipVersion) {
    let sim = machine(mode);
    let mut ptr = null_mut();
    let wild = std::ptr::without_provenance_mut(0x0000_8000_7FFF_0000);
    // HIP 6 ends the process here. A simulator must not; both versions answer what HIP 7 does.
    let args = [Arg::Pointer(wild), Arg::Word(1)];
    assert_eq!(run(&sim, "one_too_many", 1, 32, &args), hipErrorIllegalAddress);
    let report = &sim.take_reports()[0];
    assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
    answers!(hipErrorIllegalAddress, sim.hipMalloc(&raw mut ptr, N));
    answers!(hipErrorIllegalAddress, sim.hipDeviceSynchronize());
}
