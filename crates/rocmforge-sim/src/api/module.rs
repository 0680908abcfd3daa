//! Modules and their functions.

use super::host_memory::is_mapped;
use super::memory::pointer_to;
use super::{answer, answer_if_asked, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::handle::Found;
use crate::machine::host::Host;
use crate::machine::module::{ForeignCode, Function, Module, Refused};
use crate::report::ReportKind;
use rocmforge_code_object::{Bundle, Image, KernelMeta};
use rocmforge_hip_sys::*;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Kinds of code for other cards that are remembered.
const KEPT_FOREIGN: usize = 16;

impl Call<'_> {
    pub(crate) unsafe fn hipModuleLoadData(&mut self, module: *mut hipModule_t, image: *const c_void) -> Hip {
        required(module)?;
        required(image)?;
        let card = self.healthy_device()?;
        // SAFETY: promised by the caller of the HIP function: it is an image.
        let found = unsafe { Image::at_if(image.cast(), |start, size| is_mapped(start.addr(), size)) };
        let elf = match found.map_err(|error| self.refuse(error.into()))? {
            None => return Err(hipErrorInvalidImage),
            Some(Image::Elf(elf)) => Cow::Borrowed(elf),
            Some(Image::Bundle(bundle)) => Cow::Owned(self.unbundle(&bundle, card)?),
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.load(module, &elf, card) }
    }

    pub(crate) unsafe fn hipModuleLoad(&mut self, module: *mut hipModule_t, path: *const c_char) -> Hip {
        required(module)?;
        required(path)?;
        let card = self.healthy_device()?;
        // SAFETY: promised by the caller of the HIP function: a text that ends with NUL.
        let path = unsafe { CStr::from_ptr(path) };
        fail_if(path.is_empty(), hipErrorInvalidValue)?;
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
        let file = std::fs::read(path).map_err(|_| hipErrorFileNotFound)?;
        let bundle = Bundle::parse(&file).map_err(|error| self.refuse(error.into()))?;
        let elf = match &bundle {
            Some(bundle) => self.unbundle(bundle, card)?,
            None if file.starts_with(b"\x7fELF") => file,
            None => return Err(hipErrorInvalidImage),
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.load(module, &elf, card) }
    }

    /// The code object of a bundle that runs on a card.
    fn unbundle(&mut self, bundle: &Bundle<'_>, card: usize) -> Hip<Vec<u8>> {
        let arch = &self.cards[card].config.arch;
        if let Some(entry) = bundle.for_processor(arch) {
            return Ok(entry.bytes.to_vec());
        }
        let targets = bundle.entries().map(|entry| entry.arch().to_owned()).collect();
        let foreign = ForeignCode::new(arch, targets, |arch| bundle.for_processor(arch).is_some());
        Err(self.refuse(Refused::Arch(foreign)))
    }

    /// # Safety
    /// `module` is valid for writing.
    unsafe fn load(&mut self, module: *mut hipModule_t, elf: &[u8], card: usize) -> Hip {
        self.trace.bytes(elf);
        let target = &mut self.cards[card];
        match Module::load(elf, card, &target.config.arch, &mut target.vram) {
            Ok(loaded) => {
                let call = self.number;
                for (name, place) in &loaded.globals {
                    let id = self.new_id();
                    self.cards[card].vram.add_global(name, *place, id, call);
                }
                let handle = self.modules.insert(Arc::new(loaded), call);
                // SAFETY: promised by the caller of the HIP function.
                unsafe { answer(module, std::ptr::without_provenance_mut(handle as usize)) }
            }
            Err(refused) => Err(self.refuse(refused)),
        }
    }

    fn refuse(&mut self, refused: Refused) -> hipError_t {
        let (status, message) = match refused {
            Refused::Image(error) => (hipErrorInvalidImage, error.to_string()),
            Refused::Bundle(error) => (hipErrorInvalidImage, error.to_string()),
            Refused::Arch(foreign) => {
                let message = foreign.to_string();
                if self.foreign_code.len() < KEPT_FOREIGN {
                    self.foreign_code.insert(foreign);
                }
                (hipErrorNoBinaryForGpu, message)
            }
            Refused::Memory => (hipErrorOutOfMemory, "no room for the code object".to_owned()),
            Refused::Program(error) => {
                self.report(ReportKind::Unmodelled, error.to_string());
                return hipErrorNotSupported;
            }
        };
        self.warn(message);
        status
    }

    pub(crate) fn hipModuleUnload(&mut self, module: hipModule_t) -> Hip {
        fail_if(module.is_null(), hipErrorInvalidHandle)?;
        let handle = module.addr() as u64;
        let Some(loaded) = self.modules.get(handle).cloned() else {
            self.report(ReportKind::StaleHandle, "the module is not loaded");
            return Err(hipErrorNotFound);
        };
        self.wait_for_card(loaded.card)?;
        let actor = self.as_actor();
        self.free_code(handle, &actor);
        self.modules.remove(handle);
        self.functions.retain(|function| function.module != handle);
        self.races.forget_module(loaded.card, loaded.base, loaded.size);
        let vram = &mut self.cards[loaded.card].vram;
        vram.remove_globals(loaded.base, loaded.size);
        vram.release_system(loaded.base, loaded.size);
        Ok(())
    }

    fn module(&mut self, module: hipModule_t) -> Hip<Arc<Module>> {
        if let Some(module) = self.modules.get(module.addr() as u64) {
            return Ok(module.clone());
        }
        if !module.is_null() {
            self.report(ReportKind::StaleHandle, "the module is not loaded");
        }
        Err(hipErrorInvalidHandle)
    }

    pub(crate) unsafe fn hipModuleGetFunction(
        &mut self,
        function: *mut hipFunction_t,
        module: hipModule_t,
        name: *const c_char,
    ) -> Hip {
        required(function)?;
        required(name)?;
        let loaded = self.module(module)?;
        // SAFETY: promised by the caller of the HIP function: a text that ends with NUL.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| hipErrorNotFound)?;
        let kernel = loaded.kernel(name).ok_or(hipErrorNotFound)?;
        let found = Function {
            module: module.addr() as u64,
            kernel,
        };
        let call = self.number;
        let handle = self.functions.insert(found, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(function, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) unsafe fn hipModuleGetGlobal(
        &mut self,
        address: *mut hipDeviceptr_t,
        bytes: *mut usize,
        module: hipModule_t,
        name: *const c_char,
    ) -> Hip {
        required(name)?;
        let loaded = self.module(module)?;
        // SAFETY: promised by the caller of the HIP function: a text that ends with NUL.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| hipErrorNotFound)?;
        if name.is_empty() || address.is_null() && bytes.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let (at, size) = *loaded.globals.get(name).ok_or(hipErrorNotFound)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(address, pointer_to(at)) };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(bytes, size as usize) };
        Ok(())
    }

    /// The module, its handle and the kernel of a function.
    pub(crate) fn function(&mut self, function: hipFunction_t) -> Hip<(Arc<Module>, u64, usize)> {
        fail_if(function.is_null(), hipErrorInvalidHandle)?;
        let handle = function.addr() as u64;
        let host: &Host = self;
        let found = host
            .functions
            .get(handle)
            .and_then(|f| Some((host.modules.get(f.module)?.clone(), f.module, f.kernel)));
        if found.is_none() {
            let what = match self.functions.find(handle) {
                Found::Unknown => "this never was a function",
                _ => "the function's module has been unloaded",
            };
            self.report(ReportKind::StaleHandle, what.to_owned());
        }
        found.ok_or(hipErrorInvalidHandle)
    }

    pub(crate) unsafe fn hipFuncGetAttribute(
        &mut self,
        value: *mut c_int,
        attribute: hipFunction_attribute,
        function: hipFunction_t,
    ) -> Hip {
        required(value)?;
        let (module, _, kernel) = self.function(function)?;
        let kernel = &module.kernels[kernel];
        let found = match attribute {
            HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => kernel.max_workgroup_size,
            HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => kernel.lds_size,
            HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => kernel.private_size,
            HIP_FUNC_ATTRIBUTE_NUM_REGS => kernel.vgpr_count,
            HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES | HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA => 0,
            HIP_FUNC_ATTRIBUTE_PTX_VERSION | HIP_FUNC_ATTRIBUTE_BINARY_VERSION => 110,
            HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                super::device::LDS_PER_BLOCK.saturating_sub(kernel.lds_size)
            }
            _ => return Err(hipErrorInvalidValue),
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(value, c_int::try_from(found).unwrap_or(c_int::MAX)) }
    }

    pub(crate) unsafe fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        &mut self,
        blocks: *mut c_int,
        function: hipFunction_t,
        block_size: c_int,
        dynamic_lds: usize,
    ) -> Hip {
        required(blocks)?;
        let (module, _, kernel) = self.function(function)?;
        let size = u32::try_from(block_size)
            .ok()
            .filter(|size| *size > 0)
            .ok_or(hipErrorInvalidValue)?;
        let found = resident(&module, &module.kernels[kernel], size, dynamic_lds as u64);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(blocks, found as c_int) }
    }

    /// The block that fills a workgroup processor best, and as many blocks as fill the card.
    pub(crate) unsafe fn hipModuleOccupancyMaxPotentialBlockSize(
        &mut self,
        grid: *mut c_int,
        block: *mut c_int,
        function: hipFunction_t,
        dynamic_lds: usize,
        limit: c_int,
    ) -> Hip {
        required(grid)?;
        required(block)?;
        fail_if(function.is_null() || limit < 0, hipErrorInvalidValue)?;
        let (module, _, kernel) = self.function(function)?;
        let kernel = &module.kernels[kernel];
        let most = match limit {
            0 => kernel.max_workgroup_size,
            limit => kernel.max_workgroup_size.min(limit.cast_unsigned()),
        };
        // Whole waves; and what is not even one wave, as it is.
        let sizes = (1..=most / 32)
            .map(|waves| 32 * waves)
            .chain((most < 32).then_some(most));
        let threads = |size: u32| resident(&module, kernel, size, dynamic_lds as u64) * size;
        let best = sizes.max_by_key(|size| (threads(*size), *size)).unwrap_or(0);
        let blocks = resident(&module, kernel, best.max(1), dynamic_lds as u64);
        let all = blocks.saturating_mul(self.cards[module.card].config.multiprocessors);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(block, best as c_int) }?;
        // SAFETY: as above.
        unsafe { answer(grid, all as c_int) }
    }

    /// Refuses flags that HIP does not have. Its only one, `hipOccupancyDisableCachingOverride` (1), changes nothing here.
    fn check_occupancy_flags(flags: c_uint) -> Hip {
        if flags > 1 { Err(hipErrorInvalidValue) } else { Ok(()) }
    }

    cases! {
        fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks: *mut c_int, function: hipFunction_t, block_size: c_int, dynamic_lds: usize, flags: c_uint)
            => |c| Self::check_occupancy_flags(flags).and_then(|()| c.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_lds));
        fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(grid: *mut c_int, block: *mut c_int, function: hipFunction_t, dynamic_lds: usize, limit: c_int, flags: c_uint)
            => |c| Self::check_occupancy_flags(flags).and_then(|()| c.hipModuleOccupancyMaxPotentialBlockSize(grid, block, function, dynamic_lds, limit));
    }
}

/// Workgroups that fit a workgroup processor at once.
pub(super) fn resident(module: &Module, kernel: &KernelMeta, block: u32, dynamic_lds: u64) -> u32 {
    let lds = u64::from(kernel.lds_size).saturating_add(dynamic_lds);
    let lds = u32::try_from(lds).unwrap_or(u32::MAX);
    let unit = module.program.arch().compute_unit();
    unit.occupancy(kernel.vgpr_count, lds, block).workgroups
}
