//! Kernels: what each needs, and what its waves start with.

use crate::exec::number::mode::Mode;
use crate::limits::limits;
use rocmforge_code_object::{KernelDescriptor, KernelMeta, UserSgpr};
use rocmforge_isa::Arch;

/// A kernel of a [`Program`](crate::Program).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its name, as `hipModuleGetFunction` takes it.
    pub name: String,
    /// Static LDS in bytes.
    pub lds_size: u32,
    /// Private memory in bytes per work-item.
    pub private_size: u32,
    /// Size of its argument segment in bytes.
    pub kernarg_size: u32,
    /// Largest workgroup it was compiled for, in work-items.
    pub max_workgroup_size: u32,
    pub(crate) entry: u64,
    pub(crate) setup: Setup,
}

impl Kernel {
    /// Address of its first instruction in the ELF file, as `llvm-objdump` prints it.
    pub fn entry(&self) -> u64 {
        self.entry
    }
}

/// What a wave's registers hold when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Setup {
    /// First SGPR of each user value.
    pub(crate) user: Vec<(UserSgpr, u8)>,
    /// First SGPR after the user SGPRs.
    pub(crate) user_count: u8,
    /// Whether the workgroup id's x, y, z are wanted.
    pub(crate) group_id: [bool; 3],
    pub(crate) group_info: bool,
    /// Its waves have 64 lanes, not 32.
    pub(crate) wide: bool,
    /// Granted vector registers.
    pub(crate) vgprs: u32,
    pub(crate) dynamic_stack: bool,
    /// All waves of a workgroup run on one compute unit, rather than on two that have a cache each.
    pub(crate) cu_mode: bool,
    /// Floating-point mode, as the `MODE` register has it.
    pub(crate) mode: u32,
}

/// The `MODE` register that a descriptor's `COMPUTE_PGM_RSRC1` asks for.
fn float_mode(arch: Arch, rsrc1: u32) -> u32 {
    if arch == Arch::Gfx1201 {
        // Clamps make NaN zero and minima are of IEEE 754-2019, always. The IEEE bit also keeps output modifiers off,
        // which is right where denormals are kept.
        let rest = rsrc1 >> 12 & 0xFF;
        return if rest == 0xF0 { Mode::DEFAULT.0 } else { rest | 1 << 8 };
    }
    let (rounding_and_denormals, dx10_clamp, ieee) = (rsrc1 >> 12 & 0xFF, rsrc1 >> 21 & 1, rsrc1 >> 23 & 1);
    rounding_and_denormals | dx10_clamp << 8 | ieee << 9
}

/// A kernel as its metadata and descriptor have it; an error says what it needs that is not modelled.
pub(crate) fn kernel(arch: Arch, meta: &KernelMeta) -> Result<Kernel, String> {
    limits(meta)?;
    let code = meta.code.as_ref().ok_or("a kernel descriptor")?;
    Ok(Kernel {
        name: meta.name.clone(),
        lds_size: meta.lds_size,
        private_size: meta.private_size,
        kernarg_size: meta.kernarg_size,
        max_workgroup_size: meta.max_workgroup_size,
        entry: code.entry_address,
        setup: setup(arch, &code.descriptor)?,
    })
}

fn setup(arch: Arch, descriptor: &KernelDescriptor) -> Result<Setup, String> {
    let (rsrc1, rsrc2) = (descriptor.compute_pgm_rsrc1, descriptor.compute_pgm_rsrc2);
    let wide = !descriptor.wavefront_size32();
    let user: Vec<_> = descriptor.user_sgprs().collect();
    if let Some((what, _)) = user.iter().find(|(what, _)| {
        !matches!(
            what,
            UserSgpr::KernargSegmentPtr
                | UserSgpr::DispatchPtr
                | UserSgpr::QueuePtr
                | UserSgpr::DispatchId
                | UserSgpr::PrivateSegmentSize
        )
    }) {
        return Err(format!("{what:?} in its SGPRs"));
    }
    Ok(Setup {
        user,
        user_count: (rsrc2 >> 1 & 0x1F) as u8,
        group_id: [7, 8, 9].map(|bit| arch == Arch::Gfx1100 && rsrc2 >> bit & 1 != 0),
        group_info: rsrc2 >> 10 & 1 != 0,
        wide,
        vgprs: ((rsrc1 & 0x3F) + 1) * if wide { 4 } else { 8 },
        cu_mode: !descriptor.enable_wgp_mode(),
        dynamic_stack: descriptor.kernel_code_properties >> 11 & 1 != 0,
        mode: float_mode(arch, rsrc1),
    })
}
