//! Runs a program: what each operation calls.

use super::{Arg, Name, Op, Run, Task};
use crate::faults::plan::{FaultPlan, When};
use crate::queues::launch::KERNARG_BYTES;
use crate::{SimConfig, SimHost};
use rocmforge_code_object::CodeObject;
use rocmforge_hip_sys::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Arguments of a kernel, at most: `CodeObject` refuses more.
const MAX_ARGUMENTS: usize = 4096;

#[derive(Clone, Copy)]
struct Memory {
    address: usize,
    size: usize,
    made_by: usize,
}

impl Memory {
    fn new<T>(start: *mut T, size: usize, made_by: usize) -> Self {
        let address = start.expose_provenance();
        Self { address, size, made_by }
    }
}

struct HostMemory {
    memory: Memory,
    /// The bytes, if HIP did not allocate them.
    own: Option<Vec<u8>>,
    alive: bool,
}

impl HostMemory {
    /// Where it starts. The simulator knows how long memory is that HIP knows; beyond the rest nobody may go.
    fn start(&self, size: usize) -> Result<*mut c_void, hipError_t> {
        if self.own.is_some() && size > self.memory.size {
            return Err(hipErrorInvalidValue);
        }
        Ok(pointer(self.memory.address, 0))
    }
}

/// How often [`Op::PollStream`] asks at most.
const POLLS: u32 = 10_000;
/// How long it waits for a host function before it asks again: that runs on a thread of its own, which may have to wait on a busy host.
const HOST_FUNCTION: Duration = Duration::from_secs(10);

/// What a host function gets.
struct HostTask {
    sim: Arc<SimHost>,
    work: HostWork,
}

enum HostWork {
    Accesses(HostAccess),
    CallsHip,
    Takes(Duration),
}

#[derive(Clone, Copy)]
struct HostAccess {
    address: usize,
    size: usize,
    writes: bool,
    /// HIP allocated the memory, so it can be gone when the function runs.
    pinned: bool,
}

impl HostAccess {
    fn is_there(&self, sim: &SimHost) -> bool {
        // Pinned memory comes in pages.
        let mut pages = (self.address..self.address + self.size).step_by(4096);
        !self.pinned || pages.all(|page| sim.is_pinned(pointer(page, 0)))
    }
}

unsafe extern "C" fn host_function(user: *mut c_void) {
    // SAFETY: the machine keeps the tasks it has queued until it ends.
    let task = unsafe { &*user.cast::<HostTask>() };
    match task.work {
        HostWork::Accesses(access) if !access.is_there(&task.sim) => {}
        HostWork::Accesses(HostAccess {
            address,
            size,
            writes: true,
            ..
        }) => write_host(&task.sim, address, size, 0xC3),
        HostWork::Accesses(HostAccess { address, size, .. }) => read_host(&task.sim, address, size),
        HostWork::Takes(time) => std::thread::sleep(time),
        HostWork::CallsHip => {
            // SAFETY: the function takes no pointers.
            let _ = unsafe { task.sim.hipDeviceSynchronize() };
        }
    }
}

#[track_caller]
fn write_host(sim: &SimHost, address: usize, size: usize, value: u8) {
    let start = std::ptr::with_exposed_provenance_mut::<u8>(address);
    sim.host_writes(start, size);
    // SAFETY: the machine touches only memory that it knows to be alive.
    unsafe { start.write_bytes(value, size) };
}

#[track_caller]
fn read_host(sim: &SimHost, address: usize, size: usize) {
    sim.host_reads(std::ptr::with_exposed_provenance::<u8>(address), size);
}

struct Machine<'a> {
    sim: Arc<SimHost>,
    images: &'a [&'a [u8]],
    buffers: BTreeMap<Name, Memory>,
    hosts: BTreeMap<Name, HostMemory>,
    /// Host memory that has lost its name: queued copies may still go there.
    former: Vec<Vec<u8>>,
    streams: BTreeMap<Name, hipStream_t>,
    events: BTreeMap<Name, hipEvent_t>,
    modules: BTreeMap<Name, hipModule_t>,
    functions: BTreeMap<Name, hipFunction_t>,
    tasks: Vec<Arc<HostTask>>,
    thread: u32,
    value: u8,
}

/// Runs a program on a fresh machine, to the end of what it has queued.
///
/// # Panics
/// If the machine cannot be built, see [`SimHost::new`].
pub fn run(ops: &[Op], config: SimConfig, images: &[&[u8]]) -> Run {
    let cards = config.cards.len();
    let sim = SimHost::new(config);
    let mut machine = Machine {
        sim: sim.clone(),
        images,
        buffers: BTreeMap::new(),
        hosts: BTreeMap::new(),
        former: Vec::new(),
        streams: BTreeMap::from([(0, null_mut())]),
        events: BTreeMap::new(),
        modules: BTreeMap::new(),
        functions: BTreeMap::new(),
        tasks: Vec::new(),
        thread: 0,
        value: 0,
    };
    let (mut statuses, mut calls) = (Vec::with_capacity(ops.len()), Vec::with_capacity(ops.len() + 1));
    for (index, op) in ops.iter().enumerate() {
        calls.push(sim.counters().calls);
        let status = sim.as_thread(machine.thread, || machine.step(index, op));
        statuses.push(status.err().unwrap_or(hipSuccess));
    }
    calls.push(sim.counters().calls);
    for card in 0..cards {
        // SAFETY: neither function takes a pointer.
        let _ = unsafe { sim.hipSetDevice(card as i32) };
        // SAFETY: as above.
        let _ = unsafe { sim.hipDeviceSynchronize() };
    }
    Run {
        reports: sim.take_reports(),
        statuses,
        calls,
        trace: sim.trace_hash(),
        leaks: machine.leaks(),
        memory: machine
            .hosts
            .into_iter()
            .filter_map(|(name, host)| Some((name, host.own?)))
            .collect(),
    }
}

/// Calls a HIP function; the machine passes pointers to its own memory and handles it got, dead ones included, which the
/// simulator recognises.
macro_rules! hip {
    ($self:ident . $function:ident ( $($arg:expr),* $(,)? )) => {
        // SAFETY: see the macro's comment.
        unsafe { $self.sim.$function($($arg),*) }.ok()
    };
}

/// The value of a name, or nothing to do.
macro_rules! get {
    ($table:expr, $name:expr) => {
        match $table.get($name) {
            Some(found) => found,
            None => return Ok(()),
        }
    };
}

fn pointer(address: usize, at: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut::<u8>(address)
        .wrapping_add(at)
        .cast()
}

impl Machine<'_> {
    fn step(&mut self, index: usize, op: &Op) -> Result<(), hipError_t> {
        match op {
            Op::Malloc { buffer, size } => {
                let mut ptr = null_mut();
                let status = hip!(self.hipMalloc(&raw mut ptr, *size));
                self.made(*buffer, ptr, *size, index);
                status
            }
            Op::MallocAsync { buffer, size, stream } => {
                let stream = *get!(self.streams, stream);
                let mut ptr = null_mut();
                let status = hip!(self.hipMallocAsync(&raw mut ptr, *size, stream));
                self.made(*buffer, ptr, *size, index);
                status
            }
            Op::Free { buffer } => {
                let address = get!(self.buffers, buffer).address;
                hip!(self.hipFree(pointer(address, 0)))
            }
            Op::FreeInside { buffer, at } => {
                let address = get!(self.buffers, buffer).address;
                hip!(self.hipFree(pointer(address, *at)))
            }
            Op::FreeAsync { buffer, stream } => {
                let (address, stream) = (get!(self.buffers, buffer).address, *get!(self.streams, stream));
                hip!(self.hipFreeAsync(pointer(address, 0), stream))
            }
            Op::HostMalloc { .. }
            | Op::HostVec { .. }
            | Op::HostFree { .. }
            | Op::Register { .. }
            | Op::Unregister { .. }
            | Op::HostRead { .. }
            | Op::HostWrite { .. } => self.host_memory(index, op),
            Op::Stream { stream, blocking } => {
                let flags = match blocking {
                    true => hipStreamDefault,
                    false => hipStreamNonBlocking,
                };
                let mut handle = null_mut();
                hip!(self.hipStreamCreateWithFlags(&raw mut handle, flags))?;
                self.streams.insert(*stream, handle);
                Ok(())
            }
            Op::DestroyStream { stream } => hip!(self.hipStreamDestroy(*get!(self.streams, stream))),
            Op::Event { event } => {
                let mut handle = null_mut();
                hip!(self.hipEventCreateWithFlags(&raw mut handle, hipEventDisableTiming))?;
                self.events.insert(*event, handle);
                Ok(())
            }
            Op::DestroyEvent { event } => hip!(self.hipEventDestroy(*get!(self.events, event))),
            Op::Record { event, stream } => {
                hip!(self.hipEventRecord(*get!(self.events, event), *get!(self.streams, stream)))
            }
            Op::Wait { stream, event } => {
                hip!(self.hipStreamWaitEvent(*get!(self.streams, stream), *get!(self.events, event), 0))
            }
            Op::SyncEvent { event } => hip!(self.hipEventSynchronize(*get!(self.events, event))),
            Op::SyncStream { stream } => hip!(self.hipStreamSynchronize(*get!(self.streams, stream))),
            Op::PollStream { stream } => {
                let stream = *get!(self.streams, stream);
                for _ in 0..POLLS {
                    match hip!(self.hipStreamQuery(stream)) {
                        Err(hipErrorNotReady) => self.sim.wait_for_host_functions(Instant::now() + HOST_FUNCTION),
                        other => return other,
                    }
                }
                Err(hipErrorNotReady)
            }
            Op::SyncDevice => hip!(self.hipDeviceSynchronize()),
            Op::SetDevice { card } => hip!(self.hipSetDevice(*card)),
            Op::Thread { thread } => {
                self.thread = *thread;
                Ok(())
            }
            Op::FailNext { api, status } => {
                self.sim
                    .set_fault_plan(FaultPlan::new().call(api, When::Nth(1), *status));
                Ok(())
            }
            Op::Load { .. }
            | Op::Unload { .. }
            | Op::Function { .. }
            | Op::Launch { .. }
            | Op::LaunchShort { .. }
            | Op::HostFunction { .. } => self.launch(op),
            Op::Fill { .. }
            | Op::FillSync { .. }
            | Op::Upload { .. }
            | Op::Download { .. }
            | Op::UploadSync { .. }
            | Op::DownloadSync { .. }
            | Op::Copy { .. } => self.copy(op),
        }
    }

    fn made(&mut self, buffer: Name, ptr: *mut c_void, size: usize, index: usize) {
        self.buffers.insert(buffer, Memory::new(ptr, size, index));
    }

    fn host_memory(&mut self, index: usize, op: &Op) -> Result<(), hipError_t> {
        match *op {
            Op::HostMalloc { host, size } => {
                let mut ptr = null_mut();
                hip!(self.hipHostMalloc(&raw mut ptr, size, 0))?;
                let memory = Memory::new(ptr, size, index);
                let (own, alive) = (None, true);
                let before = self.hosts.insert(host, HostMemory { memory, own, alive });
                self.former.extend(before.and_then(|before| before.own));
            }
            Op::HostVec { host, size } if !self.hosts.contains_key(&host) => {
                let mut bytes = vec![0; size];
                let memory = Memory::new(bytes.as_mut_ptr(), size, index);
                let (own, alive) = (Some(bytes), true);
                self.hosts.insert(host, HostMemory { memory, own, alive });
            }
            Op::HostFree { host } => {
                let address = get!(self.hosts, &host).memory.address;
                hip!(self.hipHostFree(pointer(address, 0)))?;
                if let Some(host) = self.hosts.get_mut(&host) {
                    host.alive = false;
                }
            }
            Op::Register { host } => {
                let memory = get!(self.hosts, &host).memory;
                hip!(self.hipHostRegister(pointer(memory.address, 0), memory.size, 0))?;
            }
            Op::Unregister { host, at } => {
                let memory = get!(self.hosts, &host).memory;
                hip!(self.hipHostUnregister(pointer(memory.address, at)))?;
            }
            Op::HostRead { host } => {
                let host = get!(self.hosts, &host);
                if host.alive {
                    read_host(&self.sim, host.memory.address, host.memory.size);
                }
            }
            Op::HostWrite { host } => {
                self.value = self.value.wrapping_add(1);
                let host = get!(self.hosts, &host);
                if host.alive {
                    write_host(&self.sim, host.memory.address, host.memory.size, self.value);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn copy(&mut self, op: &Op) -> Result<(), hipError_t> {
        self.value = self.value.wrapping_add(1);
        let value = i32::from(self.value);
        match *op {
            Op::Fill {
                buffer,
                at,
                size,
                stream,
            } => {
                let (to, stream) = (get!(self.buffers, &buffer).address, *get!(self.streams, &stream));
                hip!(self.hipMemsetAsync(pointer(to, at), value, size, stream))
            }
            Op::FillSync { buffer, at, size } => {
                let to = get!(self.buffers, &buffer).address;
                hip!(self.hipMemset(pointer(to, at), value, size))
            }
            Op::Upload {
                host,
                buffer,
                at,
                size,
                stream,
            } => {
                let from = get!(self.hosts, &host).start(size)?;
                let to = pointer(get!(self.buffers, &buffer).address, at);
                hip!(self.hipMemcpyAsync(to, from, size, hipMemcpyHostToDevice, *get!(self.streams, &stream)))
            }
            Op::Download {
                buffer,
                host,
                at,
                size,
                stream,
            } => {
                let from = pointer(get!(self.buffers, &buffer).address, at);
                let to = get!(self.hosts, &host).start(size)?;
                hip!(self.hipMemcpyAsync(to, from, size, hipMemcpyDeviceToHost, *get!(self.streams, &stream)))
            }
            Op::UploadSync { host, buffer, at, size } => {
                let from = get!(self.hosts, &host).start(size)?;
                let to = pointer(get!(self.buffers, &buffer).address, at);
                hip!(self.hipMemcpy(to, from, size, hipMemcpyHostToDevice))
            }
            Op::DownloadSync { buffer, host, at, size } => {
                let from = pointer(get!(self.buffers, &buffer).address, at);
                let to = get!(self.hosts, &host).start(size)?;
                hip!(self.hipMemcpy(to, from, size, hipMemcpyDeviceToHost))
            }
            Op::Copy { from, to, size, stream } => {
                let (from, to) = (get!(self.buffers, &from).address, get!(self.buffers, &to).address);
                let (to, from) = (pointer(to, 0), pointer(from, 0));
                hip!(self.hipMemcpyAsync(to, from, size, hipMemcpyDeviceToDevice, *get!(self.streams, &stream)))
            }
            _ => Ok(()),
        }
    }

    fn launch(&mut self, op: &Op) -> Result<(), hipError_t> {
        match op {
            Op::Load { module, image } => {
                let Some(image) = self.images.get(*image) else {
                    return Ok(());
                };
                // HIP gets the address of an image and takes its length from the image.
                CodeObject::parse(image).map_err(|_| hipErrorInvalidImage)?;
                let mut handle = null_mut();
                hip!(self.hipModuleLoadData(&raw mut handle, image.as_ptr().cast()))?;
                self.modules.insert(*module, handle);
                Ok(())
            }
            Op::Unload { module } => hip!(self.hipModuleUnload(*get!(self.modules, module))),
            Op::Function {
                function,
                module,
                kernel,
            } => {
                let module = *get!(self.modules, module);
                let name = CString::new(*kernel).map_err(|_| hipErrorInvalidValue)?;
                let mut handle = null_mut();
                hip!(self.hipModuleGetFunction(&raw mut handle, module, name.as_ptr()))?;
                self.functions.insert(*function, handle);
                Ok(())
            }
            Op::Launch {
                function,
                grid,
                block,
                args,
                stream,
            } => {
                let (function, stream) = (*get!(self.functions, function), *get!(self.streams, stream));
                let mut values: Vec<u64> = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(match arg {
                        Arg::Buffer(buffer, at) => get!(self.buffers, buffer).address as u64 + u64::from(*at),
                        Arg::Host(host) => get!(self.hosts, host).memory.address as u64,
                        Arg::U32(value) => u64::from(*value),
                    });
                }
                // HIP reads as many arguments of as many bytes as the kernel has: there must be something for all of them.
                values.resize(args.len() + KERNARG_BYTES as usize / size_of::<u64>(), 0);
                let first = values.as_mut_ptr();
                let mut pointers: Vec<*mut c_void> = (0..args.len()).map(|n| first.wrapping_add(n).cast()).collect();
                pointers.resize(args.len().max(MAX_ARGUMENTS), null_mut());
                let ([x, y, z], [bx, by, bz]) = (*grid, *block);
                let (args, extra) = (pointers.as_mut_ptr(), null_mut());
                hip!(self.hipModuleLaunchKernel(function, x, y, z, bx, by, bz, 0, stream, args, extra))
            }
            Op::LaunchShort {
                function,
                bytes,
                stream,
            } => {
                let (function, stream) = (*get!(self.functions, function), *get!(self.streams, stream));
                let (mut packed, mut size) = (vec![0u8; *bytes], *bytes);
                let mut extra = [
                    HIP_LAUNCH_PARAM_BUFFER_POINTER,
                    packed.as_mut_ptr().cast(),
                    HIP_LAUNCH_PARAM_BUFFER_SIZE,
                    (&raw mut size).cast(),
                    HIP_LAUNCH_PARAM_END,
                ];
                let extra = extra.as_mut_ptr();
                hip!(self.hipModuleLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, null_mut(), extra))
            }
            Op::HostFunction { stream, task } => {
                let stream = *get!(self.streams, stream);
                let work = match *task {
                    Task::Writes(host) | Task::Reads(host) => {
                        let found = get!(self.hosts, &host);
                        if !found.alive {
                            return Ok(());
                        }
                        HostWork::Accesses(HostAccess {
                            address: found.memory.address,
                            size: found.memory.size,
                            writes: matches!(task, Task::Writes(_)),
                            pinned: found.own.is_none(),
                        })
                    }
                    Task::CallsHip => HostWork::CallsHip,
                    Task::Takes(time) => HostWork::Takes(time),
                };
                let task = Arc::new(HostTask {
                    sim: self.sim.clone(),
                    work,
                });
                let user = Arc::as_ptr(&task).cast_mut().cast();
                self.tasks.push(task);
                hip!(self.hipLaunchHostFunc(stream, Some(host_function), user))
            }
            _ => Ok(()),
        }
    }

    /// The operations that made memory which is still there. An address that was given out again belongs to the last of them.
    fn leaks(&self) -> Vec<usize> {
        let pinned = self.hosts.values().filter(|host| host.own.is_none());
        let memories = self.buffers.values().chain(pinned.map(|host| &host.memory));
        let mut made: BTreeMap<usize, usize> = BTreeMap::new();
        for memory in memories {
            let by = made.entry(memory.address).or_insert(memory.made_by);
            *by = (*by).max(memory.made_by);
        }
        let live = (0..self.sim.card_count()).flat_map(|card| self.sim.live_allocations(card));
        let live: BTreeSet<u64> = live.map(|allocation| allocation.address).collect();
        let still = |address: usize| live.contains(&(address as u64)) || self.sim.is_pinned(pointer(address, 0));
        made.retain(|address, _| still(*address));
        let mut leaks: Vec<usize> = made.into_values().collect();
        leaks.sort_unstable();
        leaks
    }
}
