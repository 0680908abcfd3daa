//! Kernel arguments, as the metadata lists them.

/// One argument: `size` bytes at `offset` of the kernarg segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgMeta {
    /// Bytes from the start of the kernarg segment.
    pub offset: u32,
    /// Bytes it takes. A pointer takes 8.
    pub size: u32,
    /// What it is.
    pub kind: ArgKind,
    /// Its name in the source, where the compiler kept it.
    pub name: Option<String>,
    /// Its type in the source, where the compiler kept it.
    pub type_name: Option<String>,
    /// The address space of a pointer: `global`, `local`, `generic`, …
    pub address_space: Option<String>,
    /// Whether the metadata promises that the kernel does not write through the pointer.
    pub is_const: bool,
}

/// What an argument is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgKind {
    /// Bytes, copied: a number or a struct.
    Value,
    /// A device address.
    GlobalPointer,
    /// LDS that the launch adds; the value is its offset.
    DynamicSharedPointer,
    /// Filled in by the runtime at launch, not by the caller.
    Hidden(HiddenArg),
    /// A kind this crate has no name for: samplers, images, queues, pipes.
    Other(String),
}

macro_rules! hidden_args {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// An argument the launch fills in. The names are those of the metadata, without `hidden_`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum HiddenArg { $($(#[$doc])* $variant,)* }

        impl HiddenArg {
            fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }

            /// The metadata's own word for it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

hidden_args! {
    /// Whole workgroups along X; a partial last one is not counted.
    BlockCountX = "hidden_block_count_x",
    /// Whole workgroups along Y.
    BlockCountY = "hidden_block_count_y",
    /// Whole workgroups along Z.
    BlockCountZ = "hidden_block_count_z",
    /// Work-items of a workgroup along X.
    GroupSizeX = "hidden_group_size_x",
    /// Work-items of a workgroup along Y.
    GroupSizeY = "hidden_group_size_y",
    /// Work-items of a workgroup along Z.
    GroupSizeZ = "hidden_group_size_z",
    /// Work-items of a partial last workgroup along X, 0 if there is none.
    RemainderX = "hidden_remainder_x",
    /// Work-items of a partial last workgroup along Y.
    RemainderY = "hidden_remainder_y",
    /// Work-items of a partial last workgroup along Z.
    RemainderZ = "hidden_remainder_z",
    /// OpenCL's global offset along X; 0 in HIP.
    GlobalOffsetX = "hidden_global_offset_x",
    /// OpenCL's global offset along Y; 0 in HIP.
    GlobalOffsetY = "hidden_global_offset_y",
    /// OpenCL's global offset along Z; 0 in HIP.
    GlobalOffsetZ = "hidden_global_offset_z",
    /// Dimensions of the grid: 1, 2 or 3.
    GridDims = "hidden_grid_dims",
    /// Padding.
    None = "hidden_none",
    /// Where OpenCL's printf writes.
    PrintfBuffer = "hidden_printf_buffer",
    /// Where calls to the host are written (printf and assert of HIP).
    HostcallBuffer = "hidden_hostcall_buffer",
    /// The heap of device-side malloc.
    HeapV1 = "hidden_heap_v1",
    /// OpenCL's default device queue.
    DefaultQueue = "hidden_default_queue",
    /// OpenCL's completion action.
    CompletionAction = "hidden_completion_action",
    /// What cooperative launches over several devices synchronise on.
    MultigridSyncArg = "hidden_multigrid_sync_arg",
    /// LDS the launch added, in bytes.
    DynamicLdsSize = "hidden_dynamic_lds_size",
    /// High half of the addresses of scratch (processors without apertures in registers).
    PrivateBase = "hidden_private_base",
    /// High half of the addresses of LDS.
    SharedBase = "hidden_shared_base",
    /// The HSA queue.
    QueuePtr = "hidden_queue_ptr",
}

impl ArgKind {
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "by_value" => Self::Value,
            "global_buffer" => Self::GlobalPointer,
            "dynamic_shared_pointer" => Self::DynamicSharedPointer,
            _ => HiddenArg::parse(text).map_or_else(|| Self::Other(text.to_owned()), Self::Hidden),
        }
    }

    /// Whether the launch fills it in rather than the caller. An unknown `hidden_…` counts.
    pub fn is_hidden(&self) -> bool {
        match self {
            Self::Hidden(_) => true,
            Self::Other(text) => text.starts_with("hidden_"),
            _ => false,
        }
    }
}
