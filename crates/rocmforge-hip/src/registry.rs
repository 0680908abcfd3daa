//! Registry: kernels and variables of the program's fat binaries, by the addresses that host code has for them.

use crate::libraries;
use crate::state::{Process, started};
use parking_lot::RwLock;
use rocmforge_hip_sys::*;
use rocmforge_sim::HostAddresses;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::null_mut;

/// What [`add_binary`] gives to the program's start-up code, which passes it on and looks at nothing behind it.
pub(crate) type BinaryHandle = *mut *mut c_void;

/// The bundle of a translation unit.
struct Binary {
    /// Address of the bundle; 0: the wrapper made no sense.
    bundle: usize,
    /// By card: the loaded module, or why there is none.
    modules: FxHashMap<c_int, Result<usize, hipError_t>>,
}

/// A kernel.
struct Kernel {
    binary: usize,
    name: CString,
    /// The function on each card, once it was found.
    functions: FxHashMap<c_int, usize>,
}

/// A variable of device code.
struct Variable {
    binary: usize,
    name: CString,
    size: usize,
}

/// A `__managed__` variable.
struct Managed {
    binary: usize,
    name: CString,
    size: usize,
    /// Address of its memory.
    memory: usize,
}

#[derive(Default)]
struct Registry {
    /// None: unregistered.
    binaries: Vec<Option<Binary>>,
    kernels: FxHashMap<usize, Kernel>,
    variables: FxHashMap<usize, Variable>,
    managed: Vec<Managed>,
    /// Numbers of the calls that loaded modules.
    loads: BTreeSet<u64>,
}

static REGISTRY: RwLock<Option<Registry>> = RwLock::new(None);

fn change<T>(change: impl FnOnce(&mut Registry) -> T) -> T {
    // Start-up code of the program comes here as well, which is in no call: its signal handlers must not wait for this lock.
    let _inside = rocmforge_sim::enter_library();
    change(REGISTRY.write().get_or_insert_default())
}

fn index_of(handle: BinaryHandle) -> usize {
    handle.addr() / size_of::<usize>() - usize::from(!handle.is_null())
}

pub(crate) fn add_binary(bundle: *const c_void) -> BinaryHandle {
    change(|registry| {
        registry.binaries.push(Some(Binary {
            bundle: bundle.expose_provenance(),
            modules: FxHashMap::default(),
        }));
        std::ptr::without_provenance_mut(registry.binaries.len() * size_of::<usize>())
    })
}

pub(crate) fn add_function(handle: BinaryHandle, host: usize, name: &CStr) {
    // Of two kernels with one address the first stays, as in AMD's library.
    change(|registry| {
        registry.kernels.entry(host).or_insert(Kernel {
            binary: index_of(handle),
            name: name.to_owned(),
            functions: FxHashMap::default(),
        });
    });
}

pub(crate) fn add_variable(handle: BinaryHandle, shadow: usize, name: &CStr, size: usize) {
    let variable = Variable {
        binary: index_of(handle),
        name: name.to_owned(),
        size,
    };
    change(|registry| {
        registry.variables.entry(shadow).or_insert(variable);
    });
}

pub(crate) fn add_managed(handle: BinaryHandle, pointer: usize, name: &CStr, size: usize, memory: usize) {
    add_variable(handle, pointer, name, size);
    let managed = Managed {
        binary: index_of(handle),
        name: name.to_owned(),
        size,
        memory,
    };
    change(|registry| registry.managed.push(managed));
}

/// Forgets a binary, after what is queued on the cards has run.
pub(crate) fn remove_binary(handle: BinaryHandle) {
    let index = index_of(handle);
    let modules: Vec<usize> = change(|registry| {
        let binary = registry.binaries.get_mut(index).and_then(Option::take);
        registry.kernels.retain(|_, kernel| kernel.binary != index);
        registry.variables.retain(|_, variable| variable.binary != index);
        registry.managed.retain(|managed| managed.binary != index);
        binary
            .into_iter()
            .flat_map(|binary| binary.modules.into_values().flatten())
            .collect()
    });
    let Some(process) = started().filter(|_| !modules.is_empty()) else {
        return;
    };
    let _ = process.call(|process| {
        process.finish();
        for module in modules {
            // SAFETY: the module was loaded here and its handle was forgotten above. A status would have no reader.
            let _ = unsafe { process.sim.hipModuleUnload(std::ptr::without_provenance_mut(module)) };
        }
        hipSuccess
    });
}

/// Whether a call loaded a module for the program: it is no leak of the program's.
pub(crate) fn loaded_by(call: u64) -> bool {
    REGISTRY
        .read()
        .as_ref()
        .is_some_and(|registry| registry.loads.contains(&call))
}

/// What the machine asks for addresses in graphs.
pub(crate) struct Addresses;

impl Addresses {
    /// Looks an address up with another card as the current one.
    fn on<T>(device: i32, look: impl FnOnce(&Process) -> Result<T, hipError_t>) -> Result<T, hipError_t> {
        let process = started().ok_or(hipErrorNotInitialized)?;
        let before = process.current_card()?;
        // SAFETY: no pointers.
        let set = |card| unsafe { process.sim.hipSetDevice(card) };
        let status = set(device);
        if !status.is_success() {
            return Err(status);
        }
        let found = look(process);
        let _ = set(before);
        found
    }
}

impl HostAddresses for Addresses {
    fn kernel(&self, address: *const c_void, device: i32) -> Result<hipFunction_t, hipError_t> {
        Self::on(device, |process| function(process, address))
    }

    fn variable(&self, address: *const c_void, device: i32) -> Result<(hipDeviceptr_t, usize), hipError_t> {
        Self::on(device, |process| variable(process, address))
    }
}

/// The kernel of a host address, on the calling thread's current card.
///
/// # Errors
/// `hipErrorInvalidDeviceFunction` for an address of no kernel, `hipErrorNoBinaryForGpu` if the bundle has no code for the card, and
/// what loading the code object answers.
pub(crate) fn function(process: &Process, host: *const c_void) -> Result<hipFunction_t, hipError_t> {
    let card = process.current_card()?;
    let (binary, name) = {
        let registry = REGISTRY.read();
        let kernel = registry
            .as_ref()
            .and_then(|registry| registry.kernels.get(&host.addr()));
        let Some(kernel) = kernel else {
            // Kernels of libraries are launched by their handles.
            return libraries::function(host.addr()).ok_or(hipErrorInvalidDeviceFunction);
        };
        if let Some(function) = kernel.functions.get(&card) {
            return Ok(std::ptr::without_provenance_mut(*function));
        }
        (kernel.binary, kernel.name.clone())
    };
    let module = module(process, binary, card)?;
    let mut function = null_mut();
    // SAFETY: `function` is a live out-pointer, the name a text.
    let status = unsafe {
        process
            .sim
            .hipModuleGetFunction(&raw mut function, module, name.as_ptr())
    };
    if !status.is_success() {
        return Err(hipErrorInvalidDeviceFunction);
    }
    change(|registry| {
        if let Some(kernel) = registry.kernels.get_mut(&host.addr()) {
            kernel.functions.insert(card, function.addr());
        }
    });
    Ok(function)
}

/// The module of a binary on the current card, which is loaded the first time.
fn module(process: &Process, binary: usize, card: c_int) -> Result<hipModule_t, hipError_t> {
    let bundle = {
        let registry = REGISTRY.read();
        let known = registry
            .as_ref()
            .and_then(|registry| registry.binaries.get(binary)?.as_ref());
        let known = known.ok_or(hipErrorInvalidDeviceFunction)?;
        if let Some(module) = known.modules.get(&card) {
            return module.map(std::ptr::without_provenance_mut);
        }
        known.bundle
    };
    let mut module = null_mut();
    // SAFETY: the program has registered a bundle that lies there, and has not unregistered it; 0 is refused. The function knows a
    // bundle's length by its own tables.
    let status = unsafe {
        process
            .sim
            .hipModuleLoadData(&raw mut module, std::ptr::with_exposed_provenance(bundle))
    };
    let call = process.sim.latest_call();
    let loaded = status.ok().map(|()| module);
    let managed: Vec<_> = change(|registry| {
        registry.loads.insert(call);
        if let Some(known) = registry.binaries.get_mut(binary).and_then(Option::as_mut) {
            known.modules.insert(card, loaded.map(|module| module.addr()));
        }
        let own = registry.managed.iter().filter(|managed| managed.binary == binary);
        own.map(|managed| (managed.name.clone(), managed.memory, managed.size))
            .collect()
    });
    let module = loaded?;
    for (name, memory, size) in managed {
        point_to(process, module, &name, memory, size)?;
    }
    Ok(module)
}

/// Writes the address of a managed variable's memory to the pointer that device code has for it.
fn point_to(process: &Process, module: hipModule_t, name: &CStr, memory: usize, size: usize) -> Result<(), hipError_t> {
    let (mut at, mut bytes) = (null_mut(), 0);
    // SAFETY: live out-pointers and a text.
    let status = unsafe {
        process
            .sim
            .hipModuleGetGlobal(&raw mut at, &raw mut bytes, module, name.as_ptr())
    };
    if !status.is_success() || bytes != size_of::<usize>() {
        // The device code does not use it.
        return Ok(());
    }
    let address: *mut c_void = std::ptr::with_exposed_provenance_mut(memory);
    // SAFETY: the memory was allocated for the variable and stays. A second card finds it registered already.
    let _ = unsafe { process.sim.hipHostRegister(address, size.max(1), hipHostRegisterMapped) };
    // SAFETY: the global has the size of an address; the source lives until the copy has returned.
    let status = unsafe {
        process.sim.hipMemcpy(
            at,
            (&raw const memory).cast(),
            size_of::<usize>(),
            hipMemcpyHostToDevice,
        )
    };
    status.ok()
}

/// Address on the current card, and size, of the variable that has a shadow at a host address.
///
/// # Errors
/// `hipErrorInvalidSymbol`, and what loading the code object answers.
pub(crate) fn variable(process: &Process, shadow: *const c_void) -> Result<(hipDeviceptr_t, usize), hipError_t> {
    let card = process.current_card()?;
    let (binary, name, size) = {
        let registry = REGISTRY.read();
        let variable = registry
            .as_ref()
            .and_then(|registry| registry.variables.get(&shadow.addr()));
        let variable = variable.ok_or(hipErrorInvalidSymbol)?;
        (variable.binary, variable.name.clone(), variable.size)
    };
    let managed = REGISTRY.read().as_ref().and_then(|registry| {
        let managed = registry
            .managed
            .iter()
            .find(|managed| managed.binary == binary && managed.name == name)?;
        Some(managed.memory)
    });
    let module = module(process, binary, card)?;
    if let Some(memory) = managed {
        return Ok((std::ptr::with_exposed_provenance_mut(memory), size));
    }
    let (mut at, mut bytes) = (null_mut(), 0);
    // SAFETY: live out-pointers and a text.
    let status = unsafe {
        process
            .sim
            .hipModuleGetGlobal(&raw mut at, &raw mut bytes, module, name.as_ptr())
    };
    if status.is_success() {
        Ok((at, bytes))
    } else {
        Err(hipErrorInvalidSymbol)
    }
}
