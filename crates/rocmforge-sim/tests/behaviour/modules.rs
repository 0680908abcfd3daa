//! I: modules, functions, launches.

use crate::kernels::{Arg, GFX1100, GFX1201, floats, function, launch, load, run, upload, words};
use crate::support::*;
use hip::*;
use rocmforge_sim::{CardConfig, ReportKind};
use std::ffi::c_void;
use std::ptr::null_mut;

#[test]
fn i04_load_null() {
    let sim = machine();
    let mut module = null_mut();
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleLoadData(null_mut(), GFX1100.as_ptr().cast())
    );
    answers!(hipErrorInvalidValue, sim.hipModuleLoadData(&raw mut module, null_mut()));
}

#[test]
fn i05_load_of_an_empty_text() {
    let sim = machine();
    let mut module = null_mut();
    answers!(
        hipErrorInvalidImage,
        sim.hipModuleLoadData(&raw mut module, c"".as_ptr().cast())
    );
    answers!(
        hipErrorInvalidImage,
        sim.hipModuleLoadData(&raw mut module, c"no code object".as_ptr().cast())
    );
}

#[test]
fn load_of_a_damaged_object() {
    let sim = machine();
    let mut module = null_mut();
    let note = GFX1100
        .windows(14)
        .position(|w| w == b"amdhsa.kernels")
        .expect("the metadata is there");
    let mut damaged = GFX1100.to_vec();
    damaged[note] = b'X';
    answers!(
        hipErrorInvalidImage,
        sim.hipModuleLoadData(&raw mut module, damaged.as_ptr().cast())
    );
    assert!(
        sim.warnings()[0].message.contains("amdhsa.kernels"),
        "the reason is kept"
    );
}

#[test]
fn load_for_another_processor() {
    let sim = machine();
    let mut module = null_mut();
    answers!(
        hipErrorNoBinaryForGpu,
        sim.hipModuleLoadData(&raw mut module, GFX1201.as_ptr().cast())
    );
    assert!(sim.warnings()[0].message.contains("gfx1201"));
    let other = machine_with(|config| {
        config.cards = vec![CardConfig {
            arch: "gfx1030".to_owned(),
            ..CardConfig::default()
        }];
    });
    answers!(
        hipErrorNoBinaryForGpu,
        other.hipModuleLoadData(&raw mut module, GFX1100.as_ptr().cast())
    );
}

#[test]
fn i06_unload_null() {
    let sim = machine();
    answers!(hipErrorInvalidHandle, sim.hipModuleUnload(null_mut()));
}

#[test]
fn i07_unload_twice() {
    let sim = machine();
    let module = load(&sim);
    answers!(hipSuccess, sim.hipModuleUnload(module));
    answers!(hipErrorNotFound, sim.hipModuleUnload(module));
    only_report(&sim, ReportKind::StaleHandle);
}

#[test]
fn i08_get_function_null() {
    let sim = machine();
    let (module, mut function) = (load(&sim), null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleGetFunction(null_mut(), module, c"scale".as_ptr())
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleGetFunction(&raw mut function, module, null_mut())
    );
}

#[test]
fn i09_i10_get_function_of_what_is_no_kernel() {
    let sim = machine();
    let (module, mut function) = (load(&sim), null_mut());
    for name in [c"no_such_kernel", c"helper", c"table", c"scale.kd", c""] {
        answers!(
            hipErrorNotFound,
            sim.hipModuleGetFunction(&raw mut function, module, name.as_ptr())
        );
    }
    assert!(function.is_null());
}

#[test]
fn i11_i12_get_global() {
    let sim = machine();
    let (module, mut address, mut bytes) = (load(&sim), null_mut(), 0);
    let (at, size) = (&raw mut address, &raw mut bytes);
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleGetGlobal(at, size, module, null_mut())
    );
    answers!(
        hipErrorNotFound,
        sim.hipModuleGetGlobal(at, size, module, c"no_such_variable".as_ptr())
    );
    answers!(
        hipErrorNotFound,
        sim.hipModuleGetGlobal(at, size, module, c"scale.kd".as_ptr())
    );
    answers!(hipSuccess, sim.hipModuleGetGlobal(at, size, module, c"table".as_ptr()));
    assert_eq!(bytes, 16);
    assert!(!address.is_null());
}

#[test]
fn i13_launch_null() {
    let sim = machine();
    assert_eq!(launch(&sim, null_mut(), 1, 1, null_mut(), &[]), hipErrorInvalidHandle);
}

fn launch_geometry(sim: &rocmforge_sim::SimHost, grid: [u32; 3], block: [u32; 3], lds: u32) -> hipError_t {
    let module = load(sim);
    let nothing = function(sim, module, "nothing");
    let [gx, gy, gz] = grid;
    let [bx, by, bz] = block;
    call!(sim.hipModuleLaunchKernel(nothing, gx, gy, gz, bx, by, bz, lds, null_mut(), null_mut(), null_mut()))
}

#[test]
fn i14_i15_launch_of_nothing() {
    for sim in [machine(), hip7()] {
        for axis in 0..3 {
            let mut size = [1; 3];
            size[axis] = 0;
            assert_eq!(launch_geometry(&sim, size, [1; 3], 0), hipErrorInvalidValue);
            assert_eq!(launch_geometry(&sim, [1; 3], size, 0), hipErrorInvalidValue);
        }
    }
}

#[test]
fn i16_grid_too_large() {
    let sim = machine();
    assert_eq!(launch_geometry(&sim, [1 << 31, 1, 1], [1; 3], 0), hipErrorInvalidValue);
    assert_eq!(launch_geometry(&sim, [1, 65_537, 1], [1; 3], 0), hipErrorInvalidValue);
    assert_eq!(launch_geometry(&sim, [1, 1, 65_537], [1; 3], 0), hipErrorInvalidValue);
    assert_eq!(
        launch_geometry(&sim, [1 << 30, 1, 1], [256, 1, 1], 0),
        hipErrorInvalidConfiguration,
        "global size"
    );
}

#[test]
fn i17_block_dimension_too_large() {
    for (sim, expected) in [
        (machine(), hipErrorInvalidValue),
        (hip7(), hipErrorInvalidConfiguration),
    ] {
        for block in [[1025, 1, 1], [1, 1025, 1], [1, 1, 1025]] {
            assert_eq!(launch_geometry(&sim, [1; 3], block, 0), expected, "{block:?}");
        }
    }
}

#[test]
fn i18_too_many_threads() {
    for (sim, expected) in [
        (machine(), hipErrorInvalidValue),
        (hip7(), hipErrorInvalidConfiguration),
    ] {
        assert_eq!(launch_geometry(&sim, [1; 3], [32, 32, 2], 0), expected);
    }
}

#[test]
fn ix5_a_product_that_wraps_is_reported() {
    let sim = machine();
    assert_eq!(
        launch_geometry(&sim, [1; 3], [65_536, 65_536, 1], 0),
        hipErrorInvalidValue
    );
    only_report(&sim, ReportKind::InvalidCall);
}

#[test]
fn more_threads_than_the_kernel_was_compiled_for() {
    let sim = machine();
    assert_eq!(launch_geometry(&sim, [1; 3], [257, 1, 1], 0), hipErrorLaunchFailure);
    assert!(
        only_report(&sim, ReportKind::BadLaunch)
            .message
            .contains("compiled for 256")
    );
}

#[test]
fn i19_too_much_dynamic_lds() {
    let sim = machine();
    assert_eq!(launch_geometry(&sim, [1; 3], [1; 3], 65_537), hipErrorInvalidValue);
    assert_eq!(launch_geometry(&sim, [1; 3], [1; 3], 65_536), hipSuccess);
}

#[test]
fn i20_i21_params_and_extra() {
    let sim = machine();
    let module = load(&sim);
    let divide = function(&sim, module, "divide");
    let out = malloc(&sim, 4);
    let mut packed = [0u8; 16];
    packed[..8].copy_from_slice(&(out.addr() as u64).to_le_bytes());
    packed[8..12].copy_from_slice(&42i32.to_le_bytes());
    packed[12..].copy_from_slice(&5i32.to_le_bytes());
    let mut size = 16usize;
    let buffer: *mut c_void = packed.as_mut_ptr().cast();
    let (pointer_tag, size_tag) = (HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE);
    let size_at: *mut c_void = (&raw mut size).cast();
    let go = |params: *mut *mut c_void, extra: &mut [*mut c_void]| {
        call!(sim.hipModuleLaunchKernel(divide, 1, 1, 1, 1, 1, 1, 0, null_mut(), params, extra.as_mut_ptr()))
    };
    let mut good = [pointer_tag, buffer, size_tag, size_at, HIP_LAUNCH_PARAM_END];
    let mut params = [buffer; 3];
    assert_eq!(go(params.as_mut_ptr(), &mut good), hipErrorInvalidValue, "both");
    for malformed in [
        [size_tag, buffer, size_tag, size_at, HIP_LAUNCH_PARAM_END],
        [pointer_tag, null_mut(), size_tag, size_at, HIP_LAUNCH_PARAM_END],
        [pointer_tag, buffer, size_tag, size_at, size_tag],
        [HIP_LAUNCH_PARAM_END; 5],
    ] {
        assert_eq!(
            go(null_mut(), &mut malformed.clone()),
            hipErrorInvalidValue,
            "malformed"
        );
    }
    clean(&sim);
    let mut short = 12usize;
    let mut too_short = [
        pointer_tag,
        buffer,
        size_tag,
        (&raw mut short).cast(),
        HIP_LAUNCH_PARAM_END,
    ];
    assert_eq!(go(null_mut(), &mut too_short), hipErrorInvalidValue);
    assert!(only_report(&sim, ReportKind::BadLaunch).message.contains("takes 16 B"));
    assert_eq!(go(null_mut(), &mut good), hipSuccess);
    packed.fill(0xEE);
    assert_eq!(words(&sim, out, 1), [8], "42 / 5, as the buffer was at the launch");
}

#[test]
fn i22_arguments_are_those_at_the_launch() {
    for n in [1, 31, 32, 33, 63, 64, 65, 127, 128, 129] {
        let sim = machine();
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
    let sim = machine();
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
    let sim = machine();
    let out = malloc(&sim, 20);
    assert_eq!(
        run(&sim, "look_up", 1, 32, &[Arg::Pointer(out), Arg::Word(5)]),
        hipSuccess
    );
    assert_eq!(words(&sim, out, 5), [11, 21, 31, 41, 11]);
    clean(&sim);
}

#[test]
fn ix6_launch_on_a_bad_stream() {
    for (sim, expected) in [(machine(), hipErrorInvalidValue), (hip7(), hipErrorContextIsDestroyed)] {
        let module = load(&sim);
        let nothing = function(&sim, module, "nothing");
        let bad = std::ptr::without_provenance_mut(0xDEAD_BEE0);
        assert_eq!(launch(&sim, nothing, 1, 1, bad, &[]), expected);
    }
}

#[test]
fn ix7_launch_without_the_arguments() {
    let sim = machine();
    let module = load(&sim);
    let scale = function(&sim, module, "scale");
    let (params, extra) = (null_mut(), null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, null_mut(), params, extra)
    );
}

#[test]
fn j05_division_by_zero_is_no_error() {
    let sim = machine();
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
    let sim = machine();
    let module = load(&sim);
    let nothing = function(&sim, module, "nothing");
    answers!(hipSuccess, sim.hipModuleUnload(module));
    load(&sim);
    assert_eq!(launch(&sim, nothing, 1, 1, null_mut(), &[]), hipErrorInvalidHandle);
    assert!(only_report(&sim, ReportKind::StaleHandle).message.contains("unloaded"));
}

#[test]
fn a_module_works_on_its_own_card_only() {
    let sim = two_cards();
    let module = load(&sim);
    let nothing = function(&sim, module, "nothing");
    answers!(hipSuccess, sim.hipSetDevice(1));
    assert_eq!(launch(&sim, nothing, 1, 1, null_mut(), &[]), hipErrorInvalidHandle);
    only_report(&sim, ReportKind::BadLaunch);
}

#[test]
fn function_attributes_are_the_metadata() {
    let sim = machine();
    let module = load(&sim);
    let kernel = function(&sim, module, "with_barrier");
    let get = |attribute| {
        let mut value = -1;
        answers!(hipSuccess, sim.hipFuncGetAttribute(&raw mut value, attribute, kernel));
        value
    };
    assert_eq!(get(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);
    assert_eq!(get(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 512);
    assert_eq!(get(HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 65_536 - 512);
    assert!(get(HIP_FUNC_ATTRIBUTE_NUM_REGS) > 0);
    let mut blocks = 0;
    let at = &raw mut blocks;
    answers!(
        hipSuccess,
        sim.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(at, kernel, 256, 65_000)
    );
    assert_eq!(blocks, 2, "128 KiB of LDS hold two workgroups of 64 KiB");
}
