//! Loading of packs.

use crate::support::device;
use rocmforge_code_object::PackFile;
use rocmforge_kernels::{KernelError, Kernels, Pack};
use rocmforge_testkit::gpu;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn every_family_of_the_pack_loads_and_every_kernel_resolves() {
    let d = device();
    let mut count = 0;
    let packs = || std::iter::successors(Some(d.kernels.pack()), |pack| pack.fallback());
    let families: BTreeSet<&str> = packs().flat_map(Pack::families).collect();
    for family in families {
        let object = d.kernels.pack().object(family).unwrap().unwrap();
        let module = d.lease().backend().load_module(&object, family).unwrap();
        for kernel in rocmforge_code_object::CodeObject::parse(&object).unwrap().kernels {
            assert_eq!(module.kernel(&kernel.name).unwrap().name(), kernel.name);
            count += 1;
        }
    }
    assert!(count >= 40, "{count} kernels");
}

#[test]
fn a_launcher_can_ask_whether_a_kernel_exists() {
    let d = device();
    assert!(d.kernels.has("softmax", "softmax_rows").unwrap());
    // Of the same family, once it is loaded and a kernel of it is known.
    d.kernels.kernel("softmax", "softmax_rows").unwrap();
    for (family, kernel, exists) in [
        ("softmax", "softmax_rows", true),
        ("softmax", "softmax_block", true),
        ("softmax", "softmax_wgmma", false),
        ("no_such_family", "softmax_wgmma", false),
    ] {
        assert_eq!(d.kernels.has(family, kernel).unwrap(), exists, "{family} {kernel}");
    }
}

#[test]
fn a_pack_for_another_architecture_is_refused() {
    let lease = gpu();
    let other = Pack::embedded_archs().find(|arch| *arch != lease.backend().device().arch);
    let Some(other) = other else { return };
    let pack = Pack::embedded(other).unwrap();
    let error = Kernels::from_pack(lease.backend(), pack).unwrap_err();
    assert!(matches!(error, KernelError::WrongArch { .. }));
    assert!(
        error.to_string().contains("cargo xtask kernels build --arch"),
        "{error}"
    );
}

/// Every object of a pack, without its fallback.
fn objects(pack: &Pack) -> BTreeMap<String, Vec<u8>> {
    let object = |family: &str| (family.to_owned(), pack.object(family).unwrap().unwrap());
    pack.families().map(object).collect()
}

/// A pack from the bytes of one file.
fn read(arch: &str, objects: &BTreeMap<String, Vec<u8>>) -> Pack {
    let file = PackFile::new(arch, "{}", objects).expect("sizes of packs");
    Pack::read(&file.compress(None, None).unwrap()).expect("still a pack")
}

/// The same pack with one byte changed in the middle of a code object.
fn with_one_changed_byte(pack: &Pack, family: &str) -> Pack {
    let mut objects = objects(pack);
    let object = objects.get_mut(family).unwrap();
    let middle = object.len() / 2;
    object[middle] ^= 1;
    read(pack.arch(), &objects)
}

#[test]
fn safe_code_runs_no_pack_but_the_embedded_one() {
    let lease = gpu();
    let best = Pack::for_processor(&lease.backend().device().arch).unwrap();
    // The one that has all families.
    let pack = std::iter::successors(Some(&best), |pack| pack.fallback())
        .last()
        .unwrap();
    let changed = with_one_changed_byte(pack, "softmax");
    let error = Kernels::from_pack(lease.backend(), changed.clone()).unwrap_err();
    let text = error.to_string();
    let KernelError::UnverifiedPack {
        arch,
        families,
        found,
        embedded,
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((arch.as_str(), families), (pack.arch(), vec!["softmax".to_owned()]));
    assert_eq!(
        (found, embedded),
        (changed.sha256().unwrap(), Some(pack.sha256().unwrap()))
    );
    for part in [
        "softmax differs",
        &changed.sha256().unwrap(),
        &pack.sha256().unwrap(),
        "from_pack_unverified",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // The same bytes from elsewhere are the embedded pack.
    let same = read(pack.arch(), &objects(pack));
    Kernels::from_pack(lease.backend(), same).expect("the embedded pack");
}
