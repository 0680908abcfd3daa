//! Any bytes: a code object or a typed error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocmforge_code_object::CodeObject;

fuzz_target!(|bytes: &[u8]| {
    match CodeObject::parse(bytes) {
        Ok(object) => {
            for kernel in &object.kernels {
                assert!(object.kernel(&kernel.name).is_some());
                let _ = kernel.explicit_args().map(|arg| u64::from(arg.size)).sum::<u64>();
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
