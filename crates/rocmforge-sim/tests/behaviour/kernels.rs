//! Loading the probe kernels and launching them.

use super::modes::*;
pub(crate) use crate::rig::Arg;
use hip::*;
use rocmforge_sim::SimHost;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;

pub(crate) const GFX1100: &[u8] = include_bytes!("../kernels/probe-gfx1100.co");
pub(crate) const GFX1201: &[u8] = include_bytes!("../kernels/probe-gfx1201.co");

pub(crate) fn load(sim: &SimHost) -> hipModule_t {
    let mut module = null_mut();
    answers!(
        hipSuccess,
        sim.hipModuleLoadData(&raw mut module, GFX1100.as_ptr().cast())
    );
    module
}

pub(crate) fn function(sim: &SimHost, module: hipModule_t, name: &str) -> hipFunction_t {
    let (name, mut function) = (CString::new(name).expect("no NUL"), null_mut());
    answers!(
        hipSuccess,
        sim.hipModuleGetFunction(&raw mut function, module, name.as_ptr())
    );
    function
}

/// A launch on a stream; the arguments are gone when it returns.
pub(crate) fn launch(
    sim: &SimHost,
    function: hipFunction_t,
    blocks: u32,
    threads: u32,
    stream: hipStream_t,
    args: &[Arg],
) -> hipError_t {
    let mut values: Vec<Vec<u8>> = args.iter().map(Arg::bytes).collect();
    let mut params: Vec<*mut c_void> = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
    let status = call!(sim.hipModuleLaunchKernel(
        function,
        blocks,
        1,
        1,
        threads,
        1,
        1,
        0,
        stream,
        params.as_mut_ptr(),
        null_mut()
    ));
    values.iter_mut().for_each(|value| value.fill(0xEE));
    status
}

/// Launches one kernel of the probe module on the null stream and waits.
pub(crate) fn run(sim: &SimHost, name: &str, blocks: u32, threads: u32, args: &[Arg]) -> hipError_t {
    let module = load(sim);
    let function = function(sim, module, name);
    let status = launch(sim, function, blocks, threads, null_mut(), args);
    if status == hipSuccess {
        call!(sim.hipStreamSynchronize(null_mut()))
    } else {
        status
    }
}

pub(crate) fn upload(sim: &SimHost, values: &[f32]) -> *mut c_void {
    let size = size_of_val(values);
    let ptr = malloc(sim, size);
    answers!(
        hipSuccess,
        sim.hipMemcpy(ptr, values.as_ptr().cast(), size, hipMemcpyHostToDevice)
    );
    ptr
}

pub(crate) fn words(sim: &SimHost, ptr: *mut c_void, n: usize) -> Vec<u32> {
    download(sim, ptr, 4 * n)
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect()
}
