//! Managed memory: one address for the host and for kernels.

use super::rig::{Arg, machines, read, write};
use rocmforge_hip_sys::*;
use rocmforge_sim::ReportKind;
use std::ffi::c_void;
use std::ptr::null_mut;

#[test]
fn host_and_kernels_share_it() {
    for machine in machines() {
        let memory = machine.managed(400);
        write(memory, &(0..100u32).collect::<Vec<_>>());
        for round in 1..4 {
            machine.run(
                "copy_words",
                1,
                128,
                &[Arg::Ptr(memory), Arg::Ptr(memory), Arg::U32(100)],
            );
            assert_eq!(read::<u32>(memory, 100), (round..100 + round).collect::<Vec<_>>());
        }
        // SAFETY: both have this size.
        unsafe {
            assert_eq!(machine.sim.hipMemset(memory, 0, 400), hipSuccess);
            assert_eq!(machine.wait(), hipSuccess);
            assert_eq!(read::<u32>(memory, 100), [0; 100]);
            let device = machine.zeros(400);
            write(memory, &[7u32; 100]);
            for kind in [hipMemcpyHostToDevice, hipMemcpyDeviceToDevice, hipMemcpyDefault] {
                assert_eq!(machine.sim.hipMemcpy(device, memory, 400, kind), hipSuccess);
            }
            assert_eq!(machine.download::<u32>(device, 100), [7; 100]);
            assert_eq!(machine.sim.hipFree(memory), hipSuccess);
        }
        assert!(machine.sim.leaks().iter().all(|leak| leak.api != "hipMallocManaged"));
        machine.clean();
    }
}

#[test]
fn its_attributes_say_so() {
    for machine in machines() {
        let memory = machine.managed(256);
        let inside = memory.wrapping_byte_add(16);
        let mut found = hipPointerAttribute_t {
            r#type: hipMemoryTypeUnregistered,
            device: 9,
            devicePointer: null_mut(),
            hostPointer: null_mut(),
            isManaged: 0,
            allocationFlags: 9,
        };
        // SAFETY: valid pointers.
        assert_eq!(
            unsafe { machine.sim.hipPointerGetAttributes(&raw mut found, inside) },
            hipSuccess
        );
        assert_eq!(
            (found.r#type, found.isManaged, found.device),
            (hipMemoryTypeManaged, 1, 0)
        );
        assert_eq!((found.devicePointer, found.hostPointer), (inside, inside));
        let (mut base, mut size, mut managed) = (null_mut(), 0, false);
        // SAFETY: valid pointers, of the type that the attribute has.
        unsafe {
            assert_eq!(
                machine.sim.hipMemGetAddressRange(&raw mut base, &raw mut size, inside),
                hipSuccess
            );
            let data: *mut c_void = (&raw mut managed).cast();
            let attribute = HIP_POINTER_ATTRIBUTE_IS_MANAGED;
            assert_eq!(machine.sim.hipPointerGetAttribute(data, attribute, inside), hipSuccess);
        }
        assert_eq!((base, size, managed), (memory, 256, true));
        assert_eq!(machine.sim.managed_bytes(inside), Some(240));
        assert_eq!(machine.sim.managed_bytes(machine.pinned(16)), None);
        for attribute in [hipDeviceAttributeManagedMemory, hipDeviceAttributeCanMapHostMemory] {
            let mut value = 0;
            // SAFETY: a valid pointer.
            assert_eq!(
                unsafe { machine.sim.hipDeviceGetAttribute(&raw mut value, attribute, 0) },
                hipSuccess
            );
            assert_eq!(value, 1);
        }
    }
}

#[test]
fn a_prefetch_is_a_hint() {
    for machine in machines() {
        let memory = machine.managed(256);
        for device in [0, -1] {
            // SAFETY: memory of this size.
            let status = unsafe { machine.sim.hipMemPrefetchAsync(memory, 256, device, null_mut()) };
            assert_eq!(status, hipSuccess);
        }
        // SAFETY: refused without a look at the memory.
        let status = unsafe { machine.sim.hipMemPrefetchAsync(memory, 257, 0, null_mut()) };
        assert_eq!(status, hipErrorInvalidValue);
        assert_eq!(machine.wait(), hipSuccess);
        machine.clean();
    }
}

#[test]
fn freed_twice_or_never() {
    for machine in machines() {
        let memory = machine.managed(256);
        let leaks = machine.sim.leaks();
        assert_eq!(leaks.iter().filter(|leak| leak.api == "hipMallocManaged").count(), 1);
        // SAFETY: hipFree takes any pointer.
        unsafe {
            assert_eq!(machine.sim.hipFree(memory), hipSuccess);
            assert_eq!(machine.sim.hipFree(memory), hipErrorInvalidValue);
        }
        machine.only_report(ReportKind::InvalidFree);
    }
}
