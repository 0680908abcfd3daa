//! I: launches.

use super::kernels::{Arg, GFX1100, function, launch, load, run, words};
use super::modes::*;
use hip::*;
use object::{Object, ObjectSection, ObjectSymbol};
use rocmforge_sim::ReportKind;
use std::ffi::c_void;
use std::ptr::null_mut;

rows! {
    i20_params_and_extra,
    i21_malformed_extra,
    i22_packed_arguments_are_those_at_the_launch,
    i_x6_launch_on_a_bad_stream,
    i23_launch_by_address_null,
    i24_more_threads_than_the_kernel_was_compiled_for,
    i25_a_cooperative_launch_too_large_to_be_resident,
    i26_function_attributes_null,
    i27_occupancy_of_empty_blocks,
}

fn launch_geometry(sim: &rocmforge_sim::SimHost, grid: [u32; 3], block: [u32; 3], lds: u32) -> hipError_t {
    let module = load(sim);
    let nothing = function(sim, module, "nothing");
    let [gx, gy, gz] = grid;
    let [bx, by, bz] = block;
    call!(sim.hipModuleLaunchKernel(nothing, gx, gy, gz, bx, by, bz, lds, null_mut(), null_mut(), null_mut()))
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

#[test]
fn a_kernel_with_code_that_is_not_modelled_is_refused_and_others_run() {
    let file = object::File::parse(GFX1100).expect("an ELF file");
    let text = file.section_by_name(".text").expect("code");
    let entry = file
        .symbols()
        .find(|symbol| symbol.name() == Ok("nothing"))
        .expect("the kernel");
    let at = text.file_range().expect("in the file").0 + entry.address() - text.address();
    let mut elf = GFX1100.to_vec();
    // s_rfe_b64 s[0:1]
    elf[at as usize..][..4].copy_from_slice(&0xbe80_4a00_u32.to_le_bytes());

    let sim = machine(Hip6);
    let mut module = null_mut();
    answers!(hipSuccess, sim.hipModuleLoadData(&raw mut module, elf.as_ptr().cast()));
    let nothing = function(&sim, module, "nothing");
    assert_eq!(launch(&sim, nothing, 1, 32, null_mut(), &[]), hipErrorNotSupported);
    let report = only_report(&sim, ReportKind::Unmodelled);
    assert!(
        report.message.contains("nothing") && report.message.contains("s_rfe_b64"),
        "{report}"
    );

    let out = malloc(&sim, 20);
    let look_up = function(&sim, module, "look_up");
    assert_eq!(
        launch(&sim, look_up, 1, 32, null_mut(), &[Arg::Pointer(out), Arg::Word(5)]),
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
    assert_eq!(go(fits, 256), hipSuccess);
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
