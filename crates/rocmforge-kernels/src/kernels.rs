//! The kernels of one device.

use crate::{KernelError, KernelResult, Launched, Pack, PackError, Tuning};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rocmforge_code_object::CodeObject;
use rocmforge_runtime::{HipBackend, HipKernel, HipModule, HipStream, LaunchArgs, LaunchConfig};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kernels of one device, and safe launchers for them.
///
/// Every launcher takes the stream it enqueues on and returns before the work is done. Shapes, lengths, strides and aliasing are
/// checked first; an error means that nothing was enqueued. Clones share the loaded modules. A family's module is loaded at its
/// first use.
#[derive(Clone)]
pub struct Kernels {
    shared: Arc<Shared>,
    observer: Option<Observer>,
    choice: Option<Choice>,
    prepares: bool,
    tuning: Tuning,
}

/// Sees each launch before it is enqueued.
type Observer = Arc<dyn Fn(&Launched) + Send + Sync>;

/// Says which launches are enqueued.
type Choice = Arc<dyn Fn(&Launched) -> bool + Send + Sync>;

struct Shared {
    backend: Arc<HipBackend>,
    pack: Pack,
    modules: Mutex<BTreeMap<&'static str, HipModule>>,
    /// The kernels used so far: every launch looks here, without a lock. A new one makes a new map.
    kernels: ArcSwap<FxHashMap<&'static str, HipKernel>>,
}

impl Kernels {
    /// Takes the embedded pack for the backend's device.
    ///
    /// # Errors
    ///
    /// [`KernelError::NoPack`] if this build has none for its architecture.
    pub fn load(backend: &Arc<HipBackend>) -> KernelResult<Self> {
        let arch = &backend.device().arch;
        match Pack::for_processor(arch) {
            // SAFETY: an embedded pack is the code that the launchers of this version were written for and tested with.
            Some(pack) => unsafe { Self::from_pack_unverified(backend, pack) },
            None => Err(KernelError::NoPack {
                arch: arch.clone(),
                known: Pack::embedded_archs().collect(),
            }),
        }
    }

    /// Takes a pack from elsewhere, if it is byte for byte the one that this build embeds for the same architecture.
    ///
    /// # Errors
    ///
    /// [`KernelError::UnverifiedPack`] if it is not: the launchers are safe because of what the embedded code does. See
    /// [`Kernels::from_pack_unverified`]. [`KernelError::WrongArch`] if it is for another architecture than the device's.
    pub fn from_pack(backend: &Arc<HipBackend>, pack: Pack) -> KernelResult<Self> {
        let pack = pack.verified()?;
        // SAFETY: `verified` gives the embedded pack.
        unsafe { Self::from_pack_unverified(backend, pack) }
    }

    /// Takes any pack: one that you have made with `cargo xtask kernels build` for a target that this build does not embed, or
    /// from sources that you have changed. A pack of few families, such as that for `sm_90a`, wants [`Pack::with_fallback`].
    ///
    /// # Safety
    ///
    /// The launchers of this crate check shapes, lengths and overlap, then run the pack's machine code. Each kernel in the pack
    /// must do what `kernels/README.md` says of the kernel of that name in this version, and access nothing beyond.
    ///
    /// # Errors
    ///
    /// [`KernelError::WrongArch`] if it is for another architecture than the device's.
    pub unsafe fn from_pack_unverified(backend: &Arc<HipBackend>, pack: Pack) -> KernelResult<Self> {
        let device = &backend.device().arch;
        if !pack.runs_on(device) {
            return Err(KernelError::WrongArch {
                pack: pack.arch().to_owned(),
                device: device.clone(),
            });
        }
        Ok(Self {
            shared: Arc::new(Shared {
                backend: Arc::clone(backend),
                pack,
                modules: Mutex::default(),
                kernels: ArcSwap::default(),
            }),
            observer: None,
            choice: None,
            prepares: false,
            tuning: Tuning::RULES,
        })
    }

    /// The same kernels, with an observer that sees each launch of this value before it is enqueued: its kernel, its grid, and its operands with their bytes.
    #[must_use]
    pub fn observed(&self, observer: impl Fn(&Launched) + Send + Sync + 'static) -> Self {
        Self {
            observer: Some(Arc::new(observer)),
            prepares: false,
            ..self.clone()
        }
    }

    /// The same kernels, of whose launches only those that `wanted` accepts are enqueued, and those that [prepare](Launched::prepares) operands. The others are
    /// checked and observed, and leave their outputs as they are: a tool that counts one kernel does not wait for all.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&Launched) -> bool + Send + Sync + 'static) -> Self {
        Self {
            choice: Some(Arc::new(wanted)),
            ..self.clone()
        }
    }

    /// The same kernels, whose launches are shared out as a [`Tuning`] says. Only the rounding of results may change.
    #[must_use]
    pub fn tuned(&self, tuning: Tuning) -> Self {
        Self { tuning, ..self.clone() }
    }

    /// What decides how launches are shared out.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// The same kernels, whose launches an observer sees as preparations.
    pub(crate) fn preparing(&self) -> Self {
        Self {
            prepares: true,
            ..self.clone()
        }
    }

    pub(crate) fn prepares(&self) -> bool {
        self.prepares
    }

    /// Shows a launch to the observer, and says whether it is enqueued. It is made only where somebody looks at it.
    pub(crate) fn accepts(&self, launched: impl FnOnce() -> Launched) -> bool {
        if self.observer.is_none() && self.choice.is_none() {
            return true;
        }
        let launched = launched();
        if let Some(observer) = &self.observer {
            observer(&launched);
        }
        launched.prepares || self.choice.as_ref().is_none_or(|wanted| wanted(&launched))
    }

    /// The backend they were loaded for.
    pub fn backend(&self) -> &Arc<HipBackend> {
        &self.shared.backend
    }

    /// The pack they come from.
    pub fn pack(&self) -> &Pack {
        &self.shared.pack
    }

    /// A kernel by name, for a raw launch. `family` is the name of its source file.
    ///
    /// # Errors
    ///
    /// [`KernelError::NotForDevice`] if it exists for other processors only, [`KernelError::MissingFamily`] if the pack lacks it,
    /// or the runtime's error if the device does not accept the module.
    pub fn kernel(&self, family: &'static str, name: &'static str) -> KernelResult<HipKernel> {
        if let Some(kernel) = self.shared.kernels.load().get(name) {
            return Ok(kernel.clone());
        }
        let module = self.module(family)?.filter(|module| has_kernel(module, name));
        let Some(module) = module else {
            return Err(self.lacks(family, name));
        };
        let kernel = module.kernel(name)?;
        self.shared.kernels.rcu(|known| {
            let mut known = FxHashMap::clone(known);
            known.insert(name, kernel.clone());
            known
        });
        Ok(kernel)
    }

    /// Why the device has no such kernel.
    pub(crate) fn lacks(&self, family: &'static str, name: &'static str) -> KernelError {
        let (arch, pack) = (&self.shared.backend.device().arch, self.shared.pack.arch());
        missing(arch, pack, family, name).unwrap_or_else(KernelError::from)
    }

    /// Whether the device has a kernel: some exist for some targets only, those of wgmma for `sm_90a` for one. Loads the
    /// family's module, if it has one here.
    ///
    /// # Errors
    ///
    /// The runtime's, if the device does not accept the module.
    pub fn has(&self, family: &'static str, name: &'static str) -> KernelResult<bool> {
        if self.shared.kernels.load().contains_key(name) {
            return Ok(true);
        }
        Ok(self.module(family)?.is_some_and(|module| has_kernel(&module, name)))
    }

    /// Whether the pack has a family; nothing is loaded.
    pub(crate) fn has_family(&self, family: &str) -> bool {
        self.shared.pack.has(family)
    }

    /// The module of a family, unless the pack lacks it.
    fn module(&self, family: &'static str) -> KernelResult<Option<HipModule>> {
        let mut modules = self.shared.modules.lock();
        if let Some(module) = modules.get(family) {
            return Ok(Some(module.clone()));
        }
        let Some(object) = self.shared.pack.object(family)? else {
            return Ok(None);
        };
        let module = self.shared.backend.load_module(&object, family)?;
        modules.insert(family, module.clone());
        Ok(Some(module))
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    ///
    /// For these arguments the kernel stays inside of the buffers, what it writes is given as an output, and operands alias only as
    /// its source allows: `kernels/README.md`.
    pub(crate) unsafe fn launch(
        &self,
        stream: &HipStream,
        family: &'static str,
        name: &'static str,
        config: LaunchConfig,
        args: LaunchArgs<'_>,
    ) -> KernelResult<()> {
        let known = self.shared.kernels.load();
        let first;
        let kernel = match known.get(name) {
            Some(kernel) => kernel,
            None => {
                first = self.kernel(family, name)?;
                &first
            }
        };
        // SAFETY: promised by the caller.
        unsafe { stream.launch(kernel, config, args) }?;
        Ok(())
    }
}

fn has_kernel(module: &HipModule, name: &str) -> bool {
    module.code_object().kernel(name).is_some()
}

/// What takes the place of a family that some processors lack.
const INSTEAD: [(&str, &str); 12] = [
    ("attention16_f16", FLASH_ATTENTION),
    ("attention16_f16_extra", FLASH_ATTENTION),
    ("attention16_bf16", FLASH_ATTENTION),
    ("attention16_bf16_extra", FLASH_ATTENTION),
    ("attention16_split", FLASH_ATTENTION),
    (
        "matmul16",
        "matmul does it with operands in f32, and up to 8 rows matmul16 works everywhere",
    ),
    ("paged16", PAGED_ATTENTION),
    ("paged16_capped", PAGED_ATTENTION),
    ("paged16_bf16", PAGED_ATTENTION),
    ("paged16_q8_0", PAGED_ATTENTION),
    ("paged_wide16", PAGED_ATTENTION),
    ("recurrent16", "delta_net_rows and ssm_scan do it with operands in f32"),
];
const PAGED_ATTENTION: &str = "paged_attention does it with operands in f32";
const FLASH_ATTENTION: &str = "flash_attention does it with operands in f32";

/// Why a kernel is not in the pack `pack` on a device of architecture `arch`.
fn missing(arch: &str, pack: &str, family: &'static str, kernel: &'static str) -> Result<KernelError, PackError> {
    let has = |pack: &Pack| -> Result<bool, PackError> {
        let object = pack.object(family)?;
        let object = object.and_then(|object| CodeObject::parse(&object).ok());
        Ok(object.is_some_and(|object| object.kernel(kernel).is_some()))
    };
    let lacks = KernelError::MissingFamily {
        arch: pack.to_owned(),
        family,
    };
    // A build that has it for this device, or has no pack for it, says nothing of the device.
    match Pack::for_processor(arch) {
        Some(pack) if !has(&pack)? => {}
        _ => return Ok(lacks),
    }
    let of_one_maker = |other: &str| other.starts_with("sm_") == arch.starts_with("sm_");
    let mut needs = Vec::new();
    for other in Pack::embedded_archs().filter(|other| of_one_maker(other)) {
        let Some(pack) = Pack::embedded(other) else { continue };
        // Where it falls back to another pack for it, that one is named.
        if pack.families().any(|name| name == family) && has(&pack)? {
            needs.push(other);
        }
    }
    if needs.is_empty() {
        return Ok(lacks);
    }
    Ok(KernelError::NotForDevice {
        arch: arch.to_owned(),
        kernel,
        needs,
        instead: INSTEAD
            .iter()
            .find(|(of, _)| *of == family)
            .map(|(_, instead)| *instead),
    })
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernels")
            .field("arch", &self.shared.pack.arch())
            .field("loaded", &self.shared.modules.lock().keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(arch: &str, family: &'static str, kernel: &'static str) -> String {
        missing(arch, arch, family, kernel)
            .expect("the embedded packs are sound")
            .to_string()
    }

    #[test]
    fn a_card_without_matrix_instructions_is_refused_with_what_it_needs() {
        assert_eq!(
            text("sm_75", "attention16_f16", "attention16_f16_d64"),
            "sm_75 has no attention16_f16_d64, which needs compute capability 8.0 and later; \
             flash_attention does it with operands in f32"
        );
        let decode = text("sm_75", "attention16_split", "attention16_split_f16_d64");
        assert!(
            decode.ends_with("; flash_attention does it with operands in f32"),
            "{decode}"
        );
        let paged = text("sm_75", "paged16", "paged16_d64");
        assert!(
            paged.ends_with("; paged_attention does it with operands in f32"),
            "{paged}"
        );
        let wgmma = text("sm_86", "matmul16_hopper", "matmul16_hopper_f16");
        assert!(wgmma.ends_with("which needs compute capability 9.0 alone"), "{wgmma}");
    }

    #[test]
    fn a_card_with_too_few_registers_is_refused_with_those_that_have_enough() {
        let text = text("gfx1030", "attention16_bf16", "attention16_bf16_d256");
        assert!(
            text.starts_with("gfx1030 has no attention16_bf16_d256, which needs gfx1100 or "),
            "{text}"
        );
        assert!(!text.contains("sm_") && !text.contains("or gfx1030"), "{text}");
    }

    #[test]
    fn an_own_pack_that_lacks_a_kernel_is_to_be_built_again() {
        for arch in ["gfx1100", "gfx1103", "sm_80"] {
            let text = text(arch, "matmul16", "matmul16_f16");
            assert!(text.contains(&format!("kernels build --arch {arch}")), "{text}");
        }
    }
}
