//! I: modules and their functions.

use super::kernels::{GFX1100, GFX1201, function, load};
use super::modes::*;
use hip::*;
use rocmforge_sim::{CardConfig, ReportKind};
use std::ffi::CString;
use std::ptr::null_mut;

rows! {
    i07_unload_twice,
    i01_load_file_null,
    i02_load_of_a_file_that_is_not_there,
    i03_load_of_a_file_that_is_no_code_object,
}

#[test]
fn load_of_a_damaged_object() {
    let sim = machine(Hip6);
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
    let sim = machine(Hip6);
    let mut module = null_mut();
    answers!(
        hipErrorNoBinaryForGpu,
        sim.hipModuleLoadData(&raw mut module, GFX1201.as_ptr().cast())
    );
    assert!(sim.warnings()[0].message.contains("gfx1201"));
    let other = machine_with(Hip6, |config| {
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
fn load_of_code_for_a_family_of_processors() {
    let object = |family: &str| {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../rocmforge-amdgcn/tests/fixtures");
        std::fs::read(format!("{fixtures}/{family}-generic.co")).expect("it is in the repository")
    };
    let sim = machine(Hip6);
    let mut module = null_mut();
    let [own, other] = ["gfx11", "gfx12"].map(object);
    answers!(hipSuccess, sim.hipModuleLoadData(&raw mut module, own.as_ptr().cast()));
    clean(&sim);
    answers!(
        hipErrorNoBinaryForGpu,
        sim.hipModuleLoadData(&raw mut module, other.as_ptr().cast())
    );
    assert!(sim.warnings()[0].message.contains("gfx12-generic"));
}

fn i07_unload_twice(mode: HipVersion) {
    let sim = machine(mode);
    let module = load(&sim);
    answers!(hipSuccess, sim.hipModuleUnload(module));
    answers!(hipErrorNotFound, sim.hipModuleUnload(module));
    only_report(&sim, ReportKind::StaleHandle);
}

#[test]
fn function_attributes_are_the_metadata() {
    let sim = machine(Hip6);
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

fn i01_load_file_null(mode: HipVersion) {
    let (sim, mut module) = (machine(mode), null_mut());
    answers!(hipErrorInvalidValue, sim.hipModuleLoad(null_mut(), c"x.co".as_ptr()));
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleLoad(&raw mut module, std::ptr::null())
    );
    answers!(hipErrorInvalidValue, sim.hipModuleLoad(&raw mut module, c"".as_ptr()));
    assert!(module.is_null());
}

fn i02_load_of_a_file_that_is_not_there(mode: HipVersion) {
    let (sim, mut module) = (machine(mode), null_mut());
    answers!(
        hipErrorFileNotFound,
        sim.hipModuleLoad(&raw mut module, c"/nonexistent/kernels.co".as_ptr())
    );
}

fn i03_load_of_a_file_that_is_no_code_object(mode: HipVersion) {
    let (sim, mut module) = (machine(mode), null_mut());
    let file = |name| CString::new(format!("{}/tests/kernels/{name}", env!("CARGO_MANIFEST_DIR"))).expect("no NUL");
    answers!(
        hipErrorInvalidImage,
        sim.hipModuleLoad(&raw mut module, file("README.md").as_ptr())
    );
    answers!(
        hipSuccess,
        sim.hipModuleLoad(&raw mut module, file("probe-gfx1100.co").as_ptr())
    );
    function(&sim, module, "scale");
}
