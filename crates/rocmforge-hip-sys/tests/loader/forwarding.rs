//! Arguments and statuses pass through as they are.

use crate::fake::Fake;
use rocmforge_hip_sys::{HipApi, HipLibrary, hipError_t, hipMemcpyDeviceToHost};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;

#[test]
fn eleven_arguments_arrive_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let launch = "unsigned hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
                  unsigned bz, unsigned lds, void* stream, void** params, void** extra) {
                      if ((size_t)f != 11 || (size_t)stream != 19 || (size_t)params != 20 || (size_t)extra != 21) return 1;
                      if (gx != 12 || gy != 13 || gz != 14 || bx != 15 || by != 16 || bz != 17 || lds != 18) return 2;
                      return 719;
                  }";
    let copy = "unsigned hipMemcpyAsync(void* dst, const void* src, size_t size, unsigned kind, void* stream) {
                    for (size_t i = 0; i < size; ++i) ((char*)dst)[i] = ((const char*)src)[size - 1 - i];
                    return kind == 2 && stream == NULL ? 12345 : 1;
                }";
    let elapsed = "unsigned hipEventElapsedTime(float* ms, void* a, void* b) { *ms = 1.5f; return 0; }";
    let fake = Fake::new()
        .with("hipModuleLaunchKernel", launch)
        .with("hipMemcpyAsync", copy)
        .with("hipEventElapsedTime", elapsed);
    let hip: Arc<dyn HipApi> = Arc::new(HipLibrary::load_from(fake.build(&folder.path().join("libfake.so"))).unwrap());

    let (function, stream) = (without_provenance_mut(11), without_provenance_mut(19));
    let (params, extra) = (without_provenance_mut(20), without_provenance_mut(21));
    // SAFETY: the fake compares the numbers and follows none of them.
    let status = unsafe { hip.hipModuleLaunchKernel(function, 12, 13, 14, 15, 16, 17, 18, stream, params, extra) };
    assert_eq!(status, hipError_t(719));

    let (from, mut to) = ([1_u8, 2, 3], [0_u8; 3]);
    let (dst, src) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
    // SAFETY: both are 3 bytes.
    let status = unsafe { hip.hipMemcpyAsync(dst, src, 3, hipMemcpyDeviceToHost, null_mut()) };
    // A status without a name comes through as well.
    assert_eq!((status, to), (hipError_t(12345), [3, 2, 1]));

    let mut milliseconds = 0.0;
    // SAFETY: it writes one float.
    let status = unsafe { hip.hipEventElapsedTime(&mut milliseconds, null_mut(), null_mut()) };
    assert!(status.is_success() && milliseconds == 1.5);
}

#[test]
fn it_works_from_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let hip = HipLibrary::load_from(Fake::new().version(7).build(&folder.path().join("libfake.so"))).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut version = 0;
                // SAFETY: it writes one int.
                let status = unsafe { hip.hipRuntimeGetVersion(&mut version) };
                assert!(status.is_success() && version == 7);
            });
        }
    });
}
