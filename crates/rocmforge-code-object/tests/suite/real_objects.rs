//! Parsing of objects that compilers made.

use rocmforge_code_object::{ArgKind, CodeObject, FeatureSetting, HiddenArg, KernelMeta, UserSgpr};

macro_rules! fixture {
    ($name:literal) => {
        CodeObject::parse(include_bytes!(concat!("../fixtures/", $name))).expect($name)
    };
}

fn all() -> [(&'static str, CodeObject); 5] {
    [
        ("gfx1100", fixture!("gfx1100-v4.co")),
        ("gfx1100", fixture!("gfx1100-v5.co")),
        ("gfx1201", fixture!("gfx1201-v5.co")),
        ("gfx90a", fixture!("gfx90a-v5.co")),
        ("gfx11-generic", fixture!("gfx11-generic-v6.co")),
    ]
}

fn explicit(kernel: &KernelMeta) -> Vec<(u32, u32, ArgKind)> {
    kernel
        .explicit_args()
        .map(|arg| (arg.offset, arg.size, arg.kind.clone()))
        .collect()
}

#[test]
fn every_version_and_target_is_read() {
    let versions: Vec<u8> = all().iter().map(|(_, object)| object.code_object_version).collect();
    assert_eq!(versions, [4, 5, 5, 5, 6]);
    for (arch, object) in all() {
        assert_eq!(object.target.arch, arch);
        let names: Vec<&str> = object.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["scale", "clamp_sum", "gather"], "{arch}");
        let wave = if arch == "gfx90a" { 64 } else { 32 };
        for kernel in &object.kernels {
            assert_eq!(kernel.symbol, format!("{}.kd", kernel.name));
            assert_eq!(
                (kernel.wavefront_size, kernel.max_workgroup_size),
                (wave, 256),
                "{arch} {}",
                kernel.name
            );
            assert!(
                kernel.vgpr_count > 0 && kernel.sgpr_count > 0 && kernel.kernarg_align == 8,
                "{kernel:?}"
            );
            assert_eq!(
                (kernel.vgpr_spills, kernel.sgpr_spills, kernel.uses_dynamic_stack),
                (0, 0, false)
            );
        }
    }
}

#[test]
fn explicit_arguments_are_the_sources() {
    use ArgKind::{GlobalPointer, Value};
    for (arch, object) in all() {
        let scale = object.kernel("scale").unwrap();
        assert_eq!(
            explicit(scale),
            [
                (0, 8, GlobalPointer),
                (8, 8, GlobalPointer),
                (16, 4, Value),
                (20, 4, Value)
            ]
        );
        assert!(
            scale.kernarg_size == 24 && scale.lds_size == 0 && scale.private_size == 0,
            "{arch}: {scale:?}"
        );

        let clamp_sum = object.kernel("clamp_sum").unwrap();
        assert_eq!(
            explicit(clamp_sum),
            [(0, 8, GlobalPointer), (8, 8, Value), (16, 8, Value)],
            "{arch}"
        );
        assert_eq!(clamp_sum.lds_size, 256, "{arch}");

        let gather = object.kernel("gather").unwrap();
        assert_eq!(explicit(gather), [(0, 8, GlobalPointer), (8, 4, Value)], "{arch}");
        assert!(gather.private_size >= 128, "{arch}: {}", gather.private_size);
    }
}

#[test]
fn hidden_arguments_have_their_names() {
    let object = fixture!("gfx1100-v5.co");
    let kernel = object.kernel("clamp_sum").unwrap();
    let hidden: Vec<(u32, u32, HiddenArg)> = kernel
        .args
        .iter()
        .filter_map(|arg| match arg.kind {
            ArgKind::Hidden(hidden) => Some((arg.offset, arg.size, hidden)),
            _ => None,
        })
        .collect();
    assert_eq!(hidden.len() + 3, kernel.args.len());
    assert_eq!(hidden[0], (24, 4, HiddenArg::BlockCountX));
    assert_eq!(hidden[3], (36, 2, HiddenArg::GroupSizeX));
    assert_eq!(hidden[8], (46, 2, HiddenArg::RemainderZ));
    assert_eq!(hidden[12], (88, 2, HiddenArg::GridDims));
    assert_eq!(kernel.kernarg_size, 280);
    assert_eq!(kernel.args[0].address_space.as_deref(), Some("global"));
}

#[test]
fn targets_are_taken_apart() {
    let gfx90a = fixture!("gfx90a-v5.co").target;
    assert_eq!(gfx90a.triple, "amdgcn-amd-amdhsa--gfx90a:xnack-");
    assert_eq!(
        (gfx90a.xnack, gfx90a.sramecc, gfx90a.mach),
        (FeatureSetting::Off, FeatureSetting::Any, 0x3f)
    );
    let generic = fixture!("gfx11-generic-v6.co").target;
    assert_eq!((generic.mach, generic.generic_version), (0x54, 1));
    let gfx1100 = fixture!("gfx1100-v5.co").target;
    assert_eq!((gfx1100.mach, gfx1100.generic_version), (0x41, 0));
}

/// The figures `llvm-readelf -s` prints for the same file.
#[test]
fn code_is_where_the_symbols_say() {
    let object = fixture!("gfx1100-v5.co");
    let places: Vec<(u64, u64)> = object
        .kernels
        .iter()
        .map(|kernel| kernel.code.as_ref().expect("an ELF kernel has code"))
        .map(|code| (code.descriptor_address, code.entry_address))
        .collect();
    assert_eq!(places, [(0xc80, 0x1e00), (0xcc0, 0x1f00), (0xd00, 0x2100)]);
    assert_eq!(object.kernels[0].code.unwrap().code_limit, 0x900);
}

#[test]
fn descriptors_say_how_a_wave_starts() {
    for (arch, object) in all() {
        for kernel in &object.kernels {
            let descriptor = kernel.code.unwrap().descriptor;
            let sgprs: Vec<(UserSgpr, u8)> = descriptor.user_sgprs().collect();
            assert!(
                sgprs.iter().any(|(what, _)| *what == UserSgpr::KernargSegmentPtr),
                "{arch} {sgprs:?}"
            );
            let taken: u8 = sgprs.iter().map(|(what, _)| what.registers()).sum();
            // The count may exceed what is enabled (it then has padding), never fall short of it.
            assert!(taken <= descriptor.user_sgpr_count(), "{arch} {}: {taken}", kernel.name);
            let mut next = 0;
            for (what, first) in sgprs {
                assert_eq!(first, next, "{arch} {what:?}");
                next += what.registers();
            }
            assert_eq!(
                descriptor.enable_private_segment(),
                kernel.private_size > 0,
                "{arch} {}",
                kernel.name
            );
            assert_eq!(descriptor.enable_vgpr_workitem_id(), 0, "{arch} {}", kernel.name);
            assert_eq!(descriptor.float_denorm_mode_32(), 3, "{arch} {}", kernel.name);
            assert_eq!(descriptor.float_round_mode_32(), 0, "{arch} {}", kernel.name);
        }
    }
}
