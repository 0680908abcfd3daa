//! Code objects on the device and their kernels.

use crate::core::Core;
use crate::core::deferred::Resource;
use crate::core::stream_shared::{StreamShared, Uses};
use crate::error::{HipError, HipResult};
use crate::hip;
use parking_lot::Mutex;
use rocmforge_code_object::{CodeObject, KernelMeta};
use rocmforge_memory::{Access, HandleKind, HandleToken, Site};
use std::ffi::CString;
use std::sync::Arc;

/// A loaded code object. Its kernels keep it loaded; so does queued work.
#[derive(Clone)]
pub struct HipModule(Arc<Module>);

/// What it and its kernels share.
struct Module {
    core: Arc<Core>,
    label: String,
    handle: hip::Module,
    object: CodeObject,
    /// HIP does not promise to have copied it; words, because an ELF file wants that alignment; a zero follows it.
    image: Vec<u64>,
    token: Option<HandleToken>,
    uses: Mutex<Uses>,
}

impl HipModule {
    pub(crate) fn load(core: &Arc<Core>, bytes: &[u8], label: &str, site: Site) -> HipResult<Self> {
        core.driver.enter()?;
        let object = CodeObject::parse(bytes).map_err(|source| HipError::CodeObject {
            label: label.to_owned(),
            source,
        })?;
        if !object.target.runs_on(&core.device.arch) {
            return Err(HipError::ArchMismatch {
                label: label.to_owned(),
                object: object.target.arch.clone(),
                device: core.device.arch.clone(),
            });
        }
        // At least one byte more than there is: the zero that ends PTX text.
        let mut image = vec![0u64; bytes.len() / size_of::<u64>() + 1];
        bytemuck::cast_slice_mut::<u64, u8>(&mut image)[..bytes.len()].copy_from_slice(bytes);

        // SAFETY: the image is a whole, parsed object with a zero after it, kept as long as the module.
        let handle = unsafe { hip::module::load(&core.driver, &image) }?;
        let token = core.card.ledger().track(HandleKind::Module, label, site);
        Ok(Self(Arc::new(Module {
            core: Arc::clone(core),
            label: label.to_owned(),
            handle,
            object,
            image,
            token: Some(token),
            uses: Mutex::default(),
        })))
    }

    /// Its label.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// What the code object says of itself.
    pub fn code_object(&self) -> &CodeObject {
        &self.0.object
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> HipResult<HipKernel> {
        let module = &self.0;
        module.core.driver.enter()?;
        let not_found = || HipError::KernelNotFound {
            module: module.label.clone(),
            kernel: name.to_owned(),
            available: module.object.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
        };
        let mut kernels = module.object.kernels.iter();
        let index = kernels.position(|kernel| kernel.name == name).ok_or_else(not_found)?;
        let symbol = CString::new(name).map_err(|_| not_found())?;
        let function = hip::module::function(&module.core.driver, &module.handle, &symbol)?;
        Ok(HipKernel {
            module: Arc::clone(module),
            index,
            name: name.into(),
            function: Arc::new(function),
        })
    }
}

debug_fields!(HipModule, |module| label: module.0.label, kernels: module.0.object.kernels.len());

/// A kernel. Keeps its module loaded.
#[derive(Clone)]
pub struct HipKernel {
    module: Arc<Module>,
    index: usize,
    name: Arc<str>,
    function: Arc<hip::Function>,
}

impl HipKernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.meta().name
    }

    /// What the code object says of it: arguments, LDS, registers, block size.
    pub fn meta(&self) -> &KernelMeta {
        &self.module.object.kernels[self.index]
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.module.core
    }

    pub(crate) fn handle(&self) -> &hip::Function {
        &self.function
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(crate) fn shares_module(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.module, &other.module)
    }

    pub(crate) fn note_launch(&self, stream: &Arc<StreamShared>, cursor: u64) {
        self.module.uses.lock().note(Access::Read, stream, cursor);
    }
}

debug_fields!(HipKernel, |kernel| name: kernel.name(), module: kernel.module.label);

impl Drop for Module {
    fn drop(&mut self) {
        let uses = std::mem::take(self.uses.get_mut());
        let image = std::mem::take(&mut self.image);
        self.core.deferred.release(
            Resource::Module {
                handle: self.handle.take(),
                image,
                token: self.token.take(),
            },
            uses,
        );
    }
}
