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
