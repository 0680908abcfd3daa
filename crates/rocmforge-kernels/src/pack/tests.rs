//! Tests of packs: embedded ones, those of a folder, and fallbacks.

use super::*;

/// A pack with these families, whose objects are the architecture's name.
fn pack(arch: &str, families: &[&str]) -> Pack {
    let objects = (families.iter()).map(|family| ((*family).to_owned(), arch.as_bytes().to_vec()));
    let file = PackFile::new(arch, "{}", &objects.collect()).unwrap();
    Pack::read(&file.compress(None, None).unwrap()).unwrap()
}

#[test]
fn a_pack_gives_its_objects() {
    let pack = pack("gfx0", &["one"]);
    assert_eq!(pack.arch(), "gfx0");
    assert_eq!(pack.object("one").unwrap().as_deref(), Some(&b"gfx0"[..]));
    assert_eq!(pack.object("two").unwrap(), None);
}

#[test]
fn a_family_comes_from_the_first_pack_that_has_it() {
    let base = pack("sm_75", &["copy", "gemm", "softmax"]);
    let middle = pack("sm_80", &["gemm", "softmax"]).with_fallback(base);
    let pack = pack("sm_90a", &["gemm"]).with_fallback(middle);
    for (family, from) in [
        ("gemm", Some("sm_90a")),
        ("softmax", Some("sm_80")),
        ("copy", Some("sm_75")),
        ("rope", None),
    ] {
        let object = pack.object(family).unwrap();
        assert_eq!(object.as_deref(), from.map(str::as_bytes), "{family}");
    }
    let own: Vec<&str> = pack.families().collect();
    assert_eq!(own, ["gemm"]);
    assert_eq!(pack.fallback().map(Pack::arch), Some("sm_80"));
}

#[test]
fn the_best_pack_that_runs_is_chosen() {
    // In no order that could help.
    let targets = [
        ("sm_90a", Some("sm_80")),
        ("gfx1100", None),
        ("sm_75", None),
        ("sm_80", Some("sm_75")),
        ("gfx1201", None),
    ];
    for (processor, arch) in [
        ("gfx1100", Some("gfx1100")),
        ("gfx1201", Some("gfx1201")),
        ("gfx1101", None),
        ("sm_70", None),
        ("sm_75", Some("sm_75")),
        ("sm_80", Some("sm_80")),
        ("sm_86", Some("sm_80")),
        ("sm_89", Some("sm_80")),
        ("sm_90", Some("sm_90a")),
        ("sm_100", Some("sm_80")),
        ("sm_120", Some("sm_80")),
    ] {
        assert_eq!(best(&targets, processor), arch, "{processor}");
        if processor != "gfx1101" {
            // The embedded ones are these and Radeons of other names.
            let embedded = Pack::for_processor(processor).map(|pack| pack.arch().to_owned());
            assert_eq!(embedded.as_deref(), arch, "{processor}");
        }
    }
}

#[test]
fn every_family_is_found_on_every_nvidia_card() {
    let base = Pack::embedded("sm_75").unwrap();
    for processor in ["sm_75", "sm_86", "sm_90", "sm_120"] {
        let pack = Pack::for_processor(processor).unwrap();
        for family in base.families() {
            assert!(pack.object(family).unwrap().is_some(), "{family} on {processor}");
        }
        // As read from files: the pack alone. The embedded one has its fallback again.
        let alone = Pack {
            fallback: None,
            ..pack.clone()
        };
        assert_eq!(alone.verified().unwrap(), pack);
    }
}

#[test]
fn a_folder_is_one_pack_of_one_target() {
    let root = std::env::temp_dir().join(format!("rocmforge-packs-{}", std::process::id()));
    let place = |target: &str, name: &str| root.join(target).join(format!("{name}.pack"));
    let file =
        |target: &str, name: &str| PackFile::new(target, "{}", &[(name.to_owned(), b"code".to_vec())].into()).unwrap();
    let write = |path: PathBuf, bytes: Vec<u8>| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    let near = file("gfx0", "one");
    write(place("gfx0", "one"), near.compress(None, None).unwrap());
    write(
        place("gfx1", "one"),
        file("gfx1", "one").compress(Some(&near), None).unwrap(),
    );
    write(place("gfx1", "two"), file("gfx1", "two").compress(None, None).unwrap());
    write(root.join("gfx1/README"), b"no pack".to_vec());
    let pack = Pack::open(&root.join("gfx1"));
    // The same family in a second file, a file of another target, none at all.
    write(
        place("gfx1", "three"),
        file("gfx1", "two").compress(None, None).unwrap(),
    );
    let twice = Pack::open(&root.join("gfx1"));
    write(
        place("gfx1", "three"),
        file("gfx2", "three").compress(None, None).unwrap(),
    );
    let target = Pack::open(&root.join("gfx1"));
    std::fs::remove_file(place("gfx0", "one")).unwrap();
    let empty = Pack::open(&root.join("gfx0"));
    std::fs::remove_dir_all(&root).unwrap();
    let pack = pack.unwrap();
    assert_eq!((pack.arch(), pack.families().count()), ("gfx1", 2));
    assert_eq!(pack.object("two").unwrap().as_deref(), Some(&b"code"[..]));
    assert!(matches!(twice.unwrap_err(), PackError::Twice { object, .. } if object == "two"));
    assert!(matches!(target.unwrap_err(), PackError::Target { .. }));
    assert!(matches!(empty.unwrap_err(), PackError::Empty { .. }));
}

#[test]
fn every_embedded_pack_is_readable_and_for_its_architecture() {
    assert!(Pack::embedded_archs().any(|arch| arch == "gfx1100"));
    for arch in Pack::embedded_archs() {
        let pack = Pack::embedded(arch).unwrap();
        assert_eq!(pack.arch(), arch);
        for family in pack.families() {
            let object = pack.object(family).unwrap().unwrap();
            let object = rocmforge_code_object::CodeObject::parse(&object).unwrap();
            assert_eq!(object.target.arch, arch, "{family}");
            // What static shared memory may have: 48 KiB in PTX, 64 KiB on AMD's targets.
            let lds = if arch.starts_with("sm_") { 48 << 10 } else { 64 << 10 };
            for kernel in object.kernels {
                assert!(
                    kernel.lds_size <= lds,
                    "{arch} {}: {} bytes",
                    kernel.name,
                    kernel.lds_size
                );
                assert_eq!(
                    (kernel.vgpr_spills, kernel.sgpr_spills, kernel.private_size),
                    (0, 0, 0),
                    "{arch} {}",
                    kernel.name
                );
                assert!(
                    kernel
                        .args
                        .iter()
                        .all(|arg| !matches!(arg.kind, rocmforge_code_object::ArgKind::Hidden(_)))
                );
            }
        }
    }
}

#[test]
fn no_embedded_file_is_large() {
    for (family, files) in registry::FILES {
        for (arch, file) in *files {
            assert!(file.len() <= 300_000, "{family} for {arch}: {} bytes", file.len());
        }
    }
}

/// Before it waits for the launches before, a kernel writes nothing. One that reads no weights then has no loads of what nobody writes while it runs:
/// compilers make them as early as they like.
#[test]
fn kernels_that_begin_early_wait_before_they_read_and_write() {
    let mut kernels = 0;
    let pack = Pack::embedded("sm_90a").unwrap();
    for family in pack.families() {
        let ptx = String::from_utf8(pack.object(family).unwrap().unwrap()).unwrap();
        for kernel in ptx.split(".entry ").skip(1) {
            let Some((before, after)) = kernel.split_once("griddepcontrol.wait;") else {
                continue;
            };
            let name = before.split('(').next().unwrap_or_default();
            kernels += 1;
            for writes in ["st.global", "atom.", "red.", "cp.async", "griddepcontrol"] {
                assert!(!before.contains(writes), "{name}: {writes} before it waits");
            }
            assert!(after.contains("griddepcontrol.launch_dependents;"), "{name}");
            let weights = before.contains("ld.global");
            let loads = after.matches("ld.global.nc").count() - after.matches("ld.global.nc.L1::no_allocate").count();
            assert!(weights || loads == 0, "{name}: {loads} loads may come before it waits");
        }
    }
    assert!(kernels > 150, "{kernels} kernels begin early");
}
