//! Loading.

use crate::support::device;
use rocmforge_kernels::{KernelError, Kernels, Pack};
use rocmforge_testkit::gpu;

#[test]
fn every_family_of_the_pack_loads_and_every_kernel_resolves() {
    let d = device();
    let mut count = 0;
    for (family, object) in d.kernels.pack().objects() {
        let module = d.lease().backend().load_module(object, family).unwrap();
        for kernel in rocmforge_code_object::CodeObject::parse(object).unwrap().kernels {
            assert_eq!(module.kernel(&kernel.name).unwrap().name(), kernel.name);
            count += 1;
        }
    }
    assert!(count >= 40, "{count} kernels");
}

#[test]
fn a_pack_for_another_architecture_is_refused() {
    let lease = gpu();
    let other = Pack::embedded_archs().find(|arch| *arch != lease.backend().device().arch);
    let Some(other) = other else { return };
    let pack = Pack::embedded(other).unwrap().unwrap();
    let error = Kernels::from_pack(lease.backend(), pack).unwrap_err();
    assert!(matches!(error, KernelError::WrongArch { .. }));
    assert!(
        error.to_string().contains("cargo xtask kernels build --arch"),
        "{error}"
    );
}

/// A pack's unpacked bytes in its file's layout, with one byte changed in the middle of a code object.
fn with_one_changed_byte(pack: &Pack, family: &str) -> Pack {
    let mut bytes = b"RFKPACK1".to_vec();
    let name = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    name(&mut bytes, pack.arch());
    bytes.extend(u32::try_from(pack.objects().count()).unwrap().to_le_bytes());
    for (family, object) in pack.objects() {
        name(&mut bytes, family);
        bytes.extend((object.len() as u64).to_le_bytes());
    }
    for (other, object) in pack.objects() {
        let at = bytes.len() + object.len() / 2;
        bytes.extend(object);
        if other == family {
            bytes[at] ^= 1;
        }
    }
    Pack::read(&zstd::encode_all(bytes.as_slice(), 1).unwrap()).expect("still a pack")
}

#[test]
fn safe_code_runs_no_pack_but_the_embedded_one() {
    let lease = gpu();
    let pack = Pack::for_processor(&lease.backend().device().arch).unwrap().unwrap();
    let changed = with_one_changed_byte(&pack, "softmax");
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
    assert_eq!((found, embedded), (changed.sha256(), Some(pack.sha256())));
    for part in [
        "softmax differs",
        &changed.sha256(),
        &pack.sha256(),
        "from_pack_unverified",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // The same bytes from elsewhere are the embedded pack.
    Kernels::from_pack(lease.backend(), pack).expect("the embedded pack");
}
