//! A code object: its target and kernels.

use crate::elf::AmdElf;
use crate::{KernelMeta, ParseError, Target, metadata, ptx};

/// A code object's target and kernels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeObject {
    /// The processor it is for.
    pub target: Target,
    /// Version of AMD's format: 4, 5 or 6. PTX has none, and 0 here.
    pub code_object_version: u8,
    /// Its kernels, in the file's order.
    pub kernels: Vec<KernelMeta>,
}

impl CodeObject {
    /// Reads an AMD code object, or PTX.
    ///
    /// # Errors
    ///
    /// [`ParseError`] says what is wrong; nothing in `bytes` makes this panic.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if ptx::is_ptx(bytes) {
            let (target, kernels) = ptx::parse(bytes)?;
            return Ok(Self {
                target,
                code_object_version: 0,
                kernels,
            });
        }
        let elf = AmdElf::parse(bytes)?;
        let document = metadata::parse(elf.metadata_note()?)?;
        let target = Target::parse(&document.target, elf.flags())?;
        let mut kernels = document.kernels;
        let symbols = elf.symbols()?;
        for kernel in &mut kernels {
            let code = symbols
                .code_of(&kernel.symbol)
                .map_err(|reason| kernel.refuse(reason))?;
            kernel.code = Some(code);
            kernel.check()?;
        }
        let mut names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ParseError::Kernel {
                kernel: twice[0].to_owned(),
                reason: "listed twice".to_owned(),
            });
        }
        Ok(Self {
            target,
            code_object_version: elf.code_object_version(),
            kernels,
        })
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&KernelMeta> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}
