//! Graphs: nodes that streams have captured or a program has added, and executable copies of them.

use crate::queues::launch::Launch;
use crate::queues::op::{HostFunction, OpKind, Place};
use crate::queues::point::Point;
use crate::races::shadow::Actor;
use rocmforge_hip_sys::*;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

/// A node of a graph.
#[derive(Clone)]
pub(crate) struct Node {
    /// The handle of its graph.
    pub(crate) graph: u64,
    pub(crate) work: Work,
    /// The nodes it comes after, by their handles.
    pub(crate) after: Vec<u64>,
    /// The node of another graph that it is a copy of.
    pub(crate) original: Option<u64>,
    /// Attributes of a kernel, by HIP's numbers. They change nothing here.
    pub(crate) attributes: BTreeMap<u32, [u64; 4]>,
}

/// What a node does.
#[derive(Clone)]
pub(crate) enum Work {
    Empty,
    Kernel(KernelWork),
    Copy(OpKind, Shown<hipMemcpy3DParms>),
    Fill(OpKind, Shown<hipMemsetParams>),
    Host(HostFunction, usize),
    /// A graph of its own, which goes with the node.
    Child(u64),
    Record(u64),
    Wait(u64),
    Alloc(Block),
    Free(Block),
}

/// A launch as a node.
#[derive(Clone)]
pub(crate) struct KernelWork {
    pub(crate) launch: Box<Launch>,
    /// What the program named the kernel by: a function, or an address of its own. 0 for a captured launch.
    pub(crate) function: usize,
    arguments: Arguments,
}

/// Memory that a graph allocates.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) id: u64,
    pub(crate) size: u64,
}

/// The same while any graph has it.
pub(crate) struct GraphBlock {
    pub(crate) card: usize,
    pub(crate) block: Block,
    /// Nodes and executable graphs that may allocate it.
    pub(crate) holders: usize,
    /// Whether it is allocated now.
    pub(crate) used: bool,
    /// Whether a node frees it.
    pub(crate) has_free: bool,
    /// What it was asked for with, and its address.
    pub(crate) params: Shown<hipMemAllocNodeParams>,
}

/// Parameters as the program gave them, to be shown again.
#[derive(Clone, Copy)]
pub(crate) struct Shown<T>(pub(crate) T);

// SAFETY: the pointers in it are numbers here: they are handed back to the program and never followed.
unsafe impl<T> Send for Shown<T> {}

/// Arguments of a kernel, with the list of pointers to them that HIP shows.
struct Arguments {
    /// Where `pointers` point to.
    values: Vec<Box<[u8]>>,
    pointers: Vec<usize>,
}

impl Clone for Arguments {
    fn clone(&self) -> Self {
        Self::new(self.values.clone())
    }
}

impl Arguments {
    fn new(values: Vec<Box<[u8]>>) -> Self {
        let pointers = values.iter().map(|value| value.as_ptr().expose_provenance()).collect();
        Self { values, pointers }
    }
}

impl KernelWork {
    pub(crate) fn new(launch: Box<Launch>, function: usize) -> Self {
        let meta = &launch.module.kernels[launch.kernel];
        let value = |offset: u32, size: u32| {
            let range = offset as usize..offset as usize + size as usize;
            launch.kernarg.get(range).map(Box::from).unwrap_or_default()
        };
        let values = meta.explicit_args().map(|arg| value(arg.offset, arg.size)).collect();
        Self {
            arguments: Arguments::new(values),
            launch,
            function,
        }
    }

    /// As HIP shows it. The list lives as long as the node has these parameters.
    pub(crate) fn shown(&self) -> hipKernelNodeParams {
        let dim = |[x, y, z]: [u32; 3]| dim3 { x, y, z };
        hipKernelNodeParams {
            blockDim: dim(self.launch.block),
            extra: std::ptr::null_mut(),
            func: std::ptr::with_exposed_provenance_mut(self.function),
            gridDim: dim(self.launch.grid),
            kernelParams: self.arguments.pointers.as_ptr().cast_mut().cast(),
            sharedMemBytes: self.launch.dynamic_lds,
        }
    }
}

fn pointer(place: Place) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(place.address() as usize)
}

/// A copy of so many bytes in each of so many rows, one behind the other, as the parameters of a node.
pub(crate) fn copy_of_rows(
    dst: *mut c_void,
    src: *mut c_void,
    [width, height]: [usize; 2],
    kind: hipMemcpyKind,
) -> hipMemcpy3DParms {
    let pitched = |ptr| hipPitchedPtr {
        ptr,
        pitch: width,
        xsize: width,
        ysize: height,
    };
    let nowhere = hipPos { x: 0, y: 0, z: 0 };
    let depth = 1;
    hipMemcpy3DParms {
        srcArray: std::ptr::null_mut(),
        srcPos: nowhere,
        srcPtr: pitched(src),
        dstArray: std::ptr::null_mut(),
        dstPos: nowhere,
        dstPtr: pitched(dst),
        extent: hipExtent { width, height, depth },
        kind,
    }
}

impl Work {
    /// What an operation of a stream becomes. None for those that make no node.
    pub(crate) fn captured(kind: OpKind) -> Option<Self> {
        let first = match &kind {
            OpKind::Many(parts) => parts.first().cloned().unwrap_or(OpKind::Wait),
            one => one.clone(),
        };
        let rows = match &kind {
            OpKind::Many(parts) => parts.len(),
            _ => 1,
        };
        Some(match (first, kind) {
            (_, OpKind::Wait) => Work::Empty,
            (_, OpKind::Kernel(launch)) => Work::Kernel(KernelWork::new(launch, 0)),
            (_, OpKind::Host { function, user }) => Work::Host(function, user),
            (OpKind::Copy { to, from, size }, kind) => {
                let shown = copy_of_rows(pointer(to), pointer(from), [size, rows], hipMemcpyDefault);
                Work::Copy(kind, Shown(shown))
            }
            (
                OpKind::Fill {
                    to,
                    pattern,
                    width,
                    size,
                },
                kind,
            ) => {
                let bits = u32::from_le_bytes(pattern) & (u32::MAX >> (32 - 8 * width.min(4)));
                let shown = hipMemsetParams {
                    dst: pointer(to),
                    elementSize: width as u32,
                    height: rows,
                    pitch: size,
                    value: bits,
                    width: size / width,
                };
                Work::Fill(kind, Shown(shown))
            }
            _ => return None,
        })
    }

    pub(crate) fn kind(&self) -> hipGraphNodeType {
        match self {
            Work::Empty => hipGraphNodeTypeEmpty,
            Work::Kernel(_) => hipGraphNodeTypeKernel,
            Work::Copy(..) => hipGraphNodeTypeMemcpy,
            Work::Fill(..) => hipGraphNodeTypeMemset,
            Work::Host(..) => hipGraphNodeTypeHost,
            Work::Child(_) => hipGraphNodeTypeGraph,
            Work::Record(_) => hipGraphNodeTypeEventRecord,
            Work::Wait(_) => hipGraphNodeTypeWaitEvent,
            Work::Alloc(_) => hipGraphNodeTypeMemAlloc,
            Work::Free(_) => hipGraphNodeTypeMemFree,
        }
    }
}

/// A graph.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) card: usize,
    /// Its nodes, by their handles, in the order in which they were made.
    pub(crate) nodes: Vec<u64>,
    /// The graph that it is a copy of.
    pub(crate) original: Option<u64>,
    /// Whether it belongs to a node.
    pub(crate) owned: bool,
    /// Whether an executable graph was made of it.
    pub(crate) instantiated: bool,
    /// How often it holds which objects of the program.
    pub(crate) objects: BTreeMap<u64, u32>,
}

impl Graph {
    pub(crate) fn new(card: usize) -> Self {
        Self {
            card,
            ..Self::default()
        }
    }
}

/// Something of the program that graphs keep alive.
pub(crate) struct UserObject {
    pub(crate) destroy: hipHostFn_t,
    pub(crate) user: usize,
    pub(crate) count: u32,
}

/// A node that is ready to run.
#[derive(Clone)]
pub(crate) struct Step {
    /// The node it was made from, by its handle.
    pub(crate) node: u64,
    pub(crate) work: Work,
    /// The steps of a child graph.
    pub(crate) child: Vec<Step>,
    /// The steps it comes after, by their places; all are earlier ones.
    pub(crate) after: Vec<usize>,
    pub(crate) enabled: bool,
}

/// A graph ready to launch: a copy of its own.
pub(crate) struct Exec {
    pub(crate) card: usize,
    pub(crate) steps: Vec<Step>,
    pub(crate) flags: u64,
    /// Its launches that may still be queued.
    pub(crate) runs: Vec<Run>,
    /// How often it holds which objects of the program.
    pub(crate) objects: BTreeMap<u64, u32>,
}

/// A launch of an executable graph: its end, and where that is in its stream.
pub(crate) struct Run {
    pub(crate) end: Arc<Actor>,
    pub(crate) point: Point,
}

impl Exec {
    /// The step that was made from a node, in the graph or in those inside it.
    pub(crate) fn step_mut(&mut self, node: u64) -> Option<&mut Step> {
        fn find(steps: &mut [Step], node: u64) -> Option<&mut Step> {
            for step in steps {
                if step.node == node {
                    return Some(step);
                }
                if let Some(found) = find(&mut step.child, node) {
                    return Some(found);
                }
            }
            None
        }
        find(&mut self.steps, node)
    }
}
