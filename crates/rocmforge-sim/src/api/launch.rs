//! Launches: what is checked and copied when one is queued.

use super::device::{LDS_PER_BLOCK, MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK};
use super::module::resident;
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::module::Module;
use crate::queues::launch::Given;
use crate::queues::launch::Launch;
use crate::queues::op::OpKind;
use crate::report::ReportKind;
use rocmforge_amdgcn::{Geometry, kernarg_bytes};
use rocmforge_code_object::{ArgKind, KernelMeta};
use rocmforge_hip_sys::*;
use std::ffi::{c_uint, c_void};
use std::sync::Arc;

impl Call<'_> {
    /// Checks a launch and queues it; `cooperative`: its workgroups may wait for each other.
    ///
    /// # Safety
    /// As of `hipModuleLaunchKernel`.
    unsafe fn queue_launch(
        &mut self,
        function: hipFunction_t,
        [grid, block]: [[u32; 3]; 2],
        dynamic_lds: u32,
        stream: hipStream_t,
        [params, extra]: [*mut *mut c_void; 2],
        cooperative: bool,
    ) -> Hip {
        let (module, handle, kernel) = self.function(function)?;
        let bad_stream = if self.hip7() {
            hipErrorContextIsDestroyed
        } else {
            hipErrorInvalidValue
        };
        let stream = self.stream_or(stream, bad_stream)?;
        self.healthy(module.card)?;
        self.enqueuable(stream)?;
        let meta = &module.kernels[kernel];
        if self.queues.get(stream).is_some_and(|queue| queue.card != module.card) {
            let message = format!(
                "kernel {} is loaded on card {}, not on the stream's",
                meta.name, module.card
            );
            self.report(ReportKind::BadLaunch, message);
            return Err(hipErrorInvalidHandle);
        }
        // SAFETY: promised by the caller of the HIP function.
        let prepared =
            unsafe { self.prepare_launch((module, handle, kernel), (grid, block, dynamic_lds), params, extra) }?;
        let launch = Launch {
            cooperative,
            ..prepared
        };
        self.enqueue(stream, OpKind::Kernel(Box::new(launch)), Vec::new());
        Ok(())
    }

    /// Checks a launch and copies its arguments. Grid, block and LDS are its shape.
    ///
    /// # Safety
    /// `params` and `extra` are as `hipModuleLaunchKernel` takes them.
    pub(crate) unsafe fn prepare_launch(
        &mut self,
        (module, handle, kernel): (Arc<Module>, u64, usize),
        (grid, block, dynamic_lds): ([u32; 3], [u32; 3], u32),
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Hip<Launch> {
        let meta = &module.kernels[kernel];
        self.check_geometry(meta, grid, block, dynamic_lds)?;
        if let Some(why) = module.program.refusal(&meta.name) {
            self.report(ReportKind::Unmodelled, format!("kernel {}: {why}", meta.name));
            return Err(hipErrorNotSupported);
        }
        fail_if(!params.is_null() && !extra.is_null(), hipErrorInvalidValue)?;
        let arguments = if extra.is_null() {
            // SAFETY: promised by the caller of the HIP function.
            unsafe { self.gather(meta, params) }?
        } else {
            // SAFETY: promised by the caller of the HIP function.
            unsafe { self.unpack(meta, extra) }?
        };
        let slices: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
        let kernarg = match kernarg_bytes(
            meta,
            &slices,
            &Geometry {
                grid,
                block,
                dynamic_lds,
            },
        ) {
            Ok(kernarg) => kernarg,
            Err(error) => {
                self.report(ReportKind::BadLaunch, error.to_string());
                return Err(hipErrorInvalidValue);
            }
        };
        for number in grid.iter().chain(&block) {
            self.trace.number(u64::from(*number));
        }
        self.trace_arguments(meta, &arguments);
        let given = self.given(meta, &arguments);
        for given in &given {
            let found = self.cards[module.card].vram.find(given.address);
            if let Some(idle) = found.filter(|found| found.idle).cloned() {
                self.report_idle_access(&idle, given.address, 0, None);
            }
        }
        Ok(Launch {
            module: module.clone(),
            handle,
            kernel,
            grid,
            block,
            dynamic_lds,
            kernarg,
            cooperative: false,
            given,
        })
    }

    /// Host addresses differ between runs that are otherwise the same, so they stay out of the trace.
    fn trace_arguments(&mut self, meta: &KernelMeta, arguments: &[Vec<u8>]) {
        for (arg, bytes) in meta.explicit_args().zip(arguments) {
            let pointer = <[u8; 8]>::try_from(bytes.as_slice()).ok().map(u64::from_le_bytes);
            match pointer.filter(|_| arg.kind == ArgKind::GlobalPointer) {
                Some(address) if self.card_of(address).is_none() => self.trace.bytes(&[u8::from(address == 0)]),
                _ => self.trace.bytes(bytes),
            }
        }
    }

    /// The allocations that pointer arguments point into, or did.
    fn given(&self, meta: &KernelMeta, arguments: &[Vec<u8>]) -> Vec<Given> {
        let pointers = meta.explicit_args().zip(arguments).enumerate();
        pointers
            .filter(|(_, (arg, _))| arg.kind == ArgKind::GlobalPointer)
            .filter_map(|(argument, (_, bytes))| {
                let address = u64::from_le_bytes(bytes.as_slice().try_into().ok()?);
                let vram = &self.cards[self.card_of(address)?].vram;
                let id = match vram.find(address) {
                    Some(allocation) => allocation.id,
                    None => vram.find_freed(address).map(|_| 0)?,
                };
                Some(Given { argument, address, id })
            })
            .collect()
    }

    /// A launch whose workgroups may wait for each other: no more than fit on the card at once.
    pub(crate) unsafe fn launch_cooperative(
        &mut self,
        function: hipFunction_t,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_lds: u32,
        stream: hipStream_t,
        params: *mut *mut c_void,
    ) -> Hip {
        let (module, _, kernel) = self.function(function)?;
        self.working_stream(stream)?;
        let meta = &module.kernels[kernel];
        self.check_geometry(meta, grid, block, dynamic_lds)?;
        let per_processor = resident(&module, meta, block.iter().product(), u64::from(dynamic_lds));
        let at_once = u64::from(per_processor) * u64::from(self.cards[module.card].config.multiprocessors);
        let blocks = grid.iter().fold(1u64, |blocks, n| blocks.saturating_mul(u64::from(*n)));
        fail_if(blocks > at_once, hipErrorCooperativeLaunchTooLarge)?;
        let extra = std::ptr::null_mut();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.queue_launch(function, [grid, block], dynamic_lds, stream, [params, extra], true) }
    }

    /// The limits, in the order and with the codes of AMD's implementation.
    fn check_geometry(&mut self, meta: &KernelMeta, grid: [u32; 3], block: [u32; 3], dynamic_lds: u32) -> Hip {
        let too_large = if self.hip7() {
            hipErrorInvalidConfiguration
        } else {
            hipErrorInvalidValue
        };
        let exceeds = |size: [u32; 3], limit: [u32; 3]| size.iter().zip(limit).any(|(n, limit)| *n > limit);
        let threads: u64 = block.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        if grid.contains(&0) || block.contains(&0) || exceeds(grid, MAX_GRID) {
            return Err(hipErrorInvalidValue);
        }
        if block.iter().fold(1u32, |product, n| product.wrapping_mul(*n)) == 0 {
            let message = format!("{block:?} threads: the product wraps to 0 in 32 bits and passes HIP's own check");
            self.report(ReportKind::InvalidCall, message);
        }
        if exceeds(block, MAX_BLOCK) || threads > u64::from(MAX_THREADS_PER_BLOCK) {
            return Err(too_large);
        }
        let wraps = |(n, size): (&u32, u32)| n.checked_mul(size).is_none();
        fail_if(grid.iter().zip(block).any(wraps), hipErrorInvalidConfiguration)?;
        if u64::from(dynamic_lds) + u64::from(meta.lds_size) > u64::from(LDS_PER_BLOCK) {
            return Err(hipErrorInvalidValue);
        }
        let required = meta.required_workgroup_size.is_some_and(|size| size != block);
        if threads > u64::from(meta.max_workgroup_size) || required {
            let message = format!(
                "{block:?} threads, kernel {} was compiled for {}",
                meta.name, meta.max_workgroup_size
            );
            self.report(ReportKind::BadLaunch, message);
            return Err(hipErrorLaunchFailure);
        }
        Ok(())
    }

    /// Copies the arguments that `kernelParams` points at. Their number and sizes are the kernel's own word: HIP cannot
    /// know what is there.
    ///
    /// # Safety
    /// `params` is null or has a valid pointer for each argument of the kernel.
    unsafe fn gather(&mut self, meta: &KernelMeta, params: *mut *mut c_void) -> Hip<Vec<Vec<u8>>> {
        let mut arguments = Vec::new();
        for (index, arg) in meta.explicit_args().enumerate() {
            fail_if(params.is_null(), hipErrorInvalidValue)?;
            // SAFETY: promised by the caller.
            let pointer = unsafe { params.wrapping_add(index).read() };
            if pointer.is_null() {
                self.report(
                    ReportKind::BadLaunch,
                    format!("argument {index} of {} is a null pointer", meta.name),
                );
                return Err(hipErrorInvalidValue);
            }
            if self.card_of(pointer.addr() as u64).is_some() {
                let message = format!(
                    "argument {index} of {} is a device address itself; the list takes a pointer to each argument",
                    meta.name
                );
                self.report(ReportKind::BadLaunch, message);
                return Err(hipErrorInvalidValue);
            }
            // SAFETY: promised by the caller.
            arguments.push(unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), arg.size as usize) }.to_vec());
        }
        Ok(arguments)
    }

    /// Copies the arguments of a packed buffer.
    ///
    /// # Safety
    /// `extra` is a list as HIP defines it, up to where it stops being one.
    unsafe fn unpack(&mut self, meta: &KernelMeta, extra: *mut *mut c_void) -> Hip<Vec<Vec<u8>>> {
        let mut list = [std::ptr::null_mut(); 5];
        let expected = [
            Some(HIP_LAUNCH_PARAM_BUFFER_POINTER),
            None,
            Some(HIP_LAUNCH_PARAM_BUFFER_SIZE),
            None,
            Some(HIP_LAUNCH_PARAM_END),
        ];
        for (index, expected) in expected.into_iter().enumerate() {
            // SAFETY: every entry before was as HIP defines it, so this one is there.
            list[index] = unsafe { extra.wrapping_add(index).read() };
            if expected.is_some_and(|expected| expected != list[index]) || list[index].is_null() {
                return Err(hipErrorInvalidValue);
            }
        }
        // SAFETY: promised by the caller: the entry points at the size.
        let size = unsafe { list[3].cast::<usize>().read_unaligned() };
        let ends = meta.explicit_args().map(|arg| arg.offset as usize + arg.size as usize);
        let needed = ends.max().unwrap_or(0);
        if size < needed {
            let message = format!("{} takes {needed} B of arguments, {size} B were given", meta.name);
            self.report(ReportKind::BadLaunch, message);
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: promised by the caller: the buffer has this size.
        let buffer = unsafe { std::slice::from_raw_parts(list[1].cast::<u8>(), size) };
        let part = |offset: u32, size: u32| buffer[offset as usize..offset as usize + size as usize].to_vec();
        Ok(meta.explicit_args().map(|arg| part(arg.offset, arg.size)).collect())
    }

    cases! {
        fn hipModuleLaunchKernel(
            function: hipFunction_t,
            grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
            block_x: c_uint, block_y: c_uint, block_z: c_uint,
            shared_bytes: c_uint,
            stream: hipStream_t,
            params: *mut *mut c_void,
            extra: *mut *mut c_void,
        ) => |c| c.queue_launch(
            function, [[grid_x, grid_y, grid_z], [block_x, block_y, block_z]], shared_bytes, stream, [params, extra], false,
        );
        fn hipModuleLaunchCooperativeKernel(
            function: hipFunction_t,
            grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
            block_x: c_uint, block_y: c_uint, block_z: c_uint,
            shared_bytes: c_uint,
            stream: hipStream_t,
            params: *mut *mut c_void,
        ) => |c| c.launch_cooperative(
            function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z], shared_bytes, stream, params,
        );
    }
}
