//! Any bytes: a program that the interpreter can run or a typed error, with source positions read either way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocmforge_amdgcn::{DEVICE_BASE, Program};

fuzz_target!(|bytes: &[u8]| {
    match Program::load(bytes, DEVICE_BASE) {
        Ok(program) => {
            for kernel in program.kernels() {
                let _ = program.frames(kernel.entry());
            }
            assert!(program.image().iter().all(|segment| segment.address >= program.base()));
            let _ = program.size();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
