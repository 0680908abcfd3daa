//! NVIDIA's assembler over the packs of PTX, where a machine has it: whether it accepts every kernel, and what it makes of it.
//!
//! A card's driver does the same when it loads a module. The registers are not in the manifest: they are this assembler's
//! choice, and another release's are others.

use crate::compile::scratch;
use crate::parallel::in_parallel;
use crate::prebuilt::{self, Pack};
use crate::targets::{TARGETS, is_ptx};
use crate::{KernelsError, at, write};
use rocmforge_code_object::{CodeObject, Target};
use rocmforge_gpu_test::say;
use std::collections::BTreeSet;
use std::process::Command;

/// The cards that are assembled for: the oldest that the packs are for, and those with most changes since. PTX for one compute
/// capability alone is assembled for that one.
const CARDS: [&str; 3] = ["sm_75", "sm_80", "sm_90"];

/// What it says where it runs the wgmma of a kernel one after another, because registers of theirs are touched while they are
/// under way (C7510 to C7519).
const SERIALIZED: &str = "wgmma.mma_async instructions are serialized";

/// Where the assembler is, if not on the path.
const VARIABLE: &str = "ROCMFORGE_PTXAS";

/// An assembler that answers.
pub(crate) struct Assembler {
    program: String,
    /// `12.8`.
    version: String,
}

/// What it says of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Assembled {
    kernel: String,
    registers: u32,
    shared: u32,
    /// Bytes of registers kept in memory, and of other private memory.
    spilled: u32,
    stack: u32,
}

impl Assembler {
    /// The one that the variable names, or `ptxas`. `None`: the machine has none, and the variable names none.
    pub(crate) fn find() -> Result<Option<Self>, KernelsError> {
        let named = std::env::var(VARIABLE).ok();
        let program = named.clone().unwrap_or_else(|| "ptxas".to_owned());
        let answer = Command::new(&program).arg("--version").output();
        let text = match answer {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
            _ => String::new(),
        };
        match (release(&text), named) {
            (Some(version), _) => Ok(Some(Self { program, version })),
            (None, None) => Ok(None),
            (None, Some(program)) => Err(KernelsError::NoAssembler { program }),
        }
    }

    /// Assembles families of a target for every card that they run on.
    fn assemble(&self, arch: &str, families: &[&str]) -> Result<Vec<(String, Vec<Assembled>)>, KernelsError> {
        let cards = cards(arch);
        let jobs: Vec<(&str, &String)> = (cards.iter())
            .flat_map(|card| families.iter().map(move |family| (*family, card)))
            .collect();
        let done = in_parallel(&jobs, |(family, card)| {
            self.assemble_one(family, Pack::load(arch, family)?.object(family), card)
        })?;
        let of_card = |card: &String| {
            let made = jobs.iter().zip(&done).filter(|(job, _)| job.1 == card);
            made.flat_map(|(_, kernels)| kernels.iter().cloned()).collect()
        };
        Ok(cards.iter().map(|card| (card.clone(), of_card(card))).collect())
    }

    fn assemble_one(&self, family: &str, ptx: &[u8], card: &str) -> Result<Vec<Assembled>, KernelsError> {
        let source = scratch(&format!("{card}.ptx"))?;
        // A NUL byte ends the text for the driver; the assembler takes it for a character.
        write(&source, ptx.strip_suffix(b"\0").unwrap_or(ptx))?;
        let output = Command::new(&self.program)
            .args(["-v", &format!("-arch={card}"), "-o", "/dev/null"])
            .arg(&source)
            .output();
        // Best effort: a leftover under target/ is harmless.
        let _ = std::fs::remove_file(&source);
        let output = output.map_err(at(&self.program))?;
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(KernelsError::NotAssembled {
                card: card.to_owned(),
                family: family.to_owned(),
                log,
            });
        }
        if log.contains(SERIALIZED) {
            return Err(KernelsError::Serialized {
                card: card.to_owned(),
                family: family.to_owned(),
                log,
            });
        }
        let kernels = parse(&log);
        let declared = CodeObject::parse(ptx).map_err(|error| KernelsError::BadObject {
            arch: card.to_owned(),
            family: family.to_owned(),
            reason: error.to_string(),
        })?;
        for kernel in &declared.kernels {
            if !kernels.iter().any(|made| made.kernel == kernel.name) {
                return Err(KernelsError::NotAssembled {
                    card: card.to_owned(),
                    family: family.to_owned(),
                    log: format!("it says nothing of {}: {log:?}", kernel.name),
                });
            }
        }
        Ok(kernels)
    }
}

/// What a pack is assembled for, as the assembler names it.
fn cards(arch: &str) -> Vec<String> {
    let target = Target {
        arch: arch.to_owned(),
        ..Target::default()
    };
    if target.arch_specific() {
        return vec![target.arch];
    }
    let cards = CARDS.into_iter().filter(|card| target.runs_on(card));
    cards.map(str::to_owned).collect()
}

/// `12.8` of "Cuda compilation tools, release 12.8, V12.8.93".
fn release(version: &str) -> Option<String> {
    let (_, rest) = version.split_once("release ")?;
    Some(rest.split(',').next()?.trim().to_owned())
}

/// The kernels of a verbose log.
fn parse(log: &str) -> Vec<Assembled> {
    let mut kernels: Vec<Assembled> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            kernels.push(Assembled {
                kernel: rest.split('\'').next().unwrap_or_default().to_owned(),
                ..Assembled::default()
            });
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        let before = |unit: &str| {
            let (number, _) = line.split_once(unit)?;
            number.rsplit([' ', ',']).next()?.parse::<u32>().ok()
        };
        if let Some(stack) = before(" bytes stack frame") {
            kernel.stack = stack;
            kernel.spilled = before(" bytes spill stores").unwrap_or(0) + before(" bytes spill loads").unwrap_or(0);
        }
        if let Some(registers) = before(" registers") {
            (kernel.registers, kernel.shared) = (registers, before(" bytes smem").unwrap_or(0));
        }
    }
    kernels
}

/// Assembles the PTX of these targets and families, and says so. Fails where a kernel is refused. Spills are named and no failure: how
/// many registers a kernel may have is this assembler's choice, and another release's is another.
pub(crate) fn check(ptx: &[(&str, &str)]) -> Result<(), KernelsError> {
    if ptx.is_empty() {
        return Ok(());
    }
    let Some(assembler) = Assembler::find()? else {
        say!("no ptxas on the path and none in {VARIABLE}: whether it accepts the PTX is not looked at");
        return Ok(());
    };
    let archs: BTreeSet<&str> = ptx.iter().map(|(arch, _)| *arch).collect();
    for arch in archs {
        let families = ptx.iter().filter(|(of, _)| *of == arch);
        let families: Vec<&str> = families.map(|(_, family)| *family).collect();
        for (card, kernels) in assembler.assemble(arch, &families)? {
            say!(
                "{arch}: ptxas {} accepts {} kernels for {card}; {}",
                assembler.version,
                kernels.len(),
                spills(&kernels)
            );
        }
    }
    Ok(())
}

/// Which kernels have registers or other private data in memory.
fn spills(kernels: &[Assembled]) -> String {
    let spilling: Vec<String> = kernels
        .iter()
        .filter(|kernel| kernel.spilled > 0 || kernel.stack > 0)
        .map(|k| format!("{} ({} bytes, {} of stack)", k.kernel, k.spilled, k.stack))
        .collect();
    if spilling.is_empty() {
        "none spills".to_owned()
    } else {
        format!("spilling: {}", spilling.join(", "))
    }
}

/// Prints what becomes of every kernel of these packs, or of all packs of PTX.
pub(crate) fn table(mut archs: Vec<String>) -> Result<(), KernelsError> {
    if archs.is_empty() {
        let ptx = TARGETS.iter().filter(|target| is_ptx(target.arch));
        archs = ptx.map(|target| target.arch.to_owned()).collect();
    }
    let Some(assembler) = Assembler::find()? else {
        return Err(KernelsError::NoAssembler {
            program: "ptxas".to_owned(),
        });
    };
    let files = prebuilt::files()?;
    for arch in archs {
        let families: Vec<&str> = files.get(&arch).into_iter().flatten().map(String::as_str).collect();
        if families.is_empty() {
            return Err(KernelsError::NoPack { target: arch });
        }
        for (card, kernels) in assembler.assemble(&arch, &families)? {
            say!(
                "{card:<8} {:<28} {:>5} {:>7} {:>6} {:>6}   {arch}, ptxas {}",
                "kernel",
                "regs",
                "shared",
                "spills",
                "stack",
                assembler.version
            );
            for k in kernels {
                say!(
                    "{card:<8} {:<28} {:>5} {:>7} {:>6} {:>6}",
                    k.kernel,
                    k.registers,
                    k.shared,
                    k.spilled,
                    k.stack
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// What ptxas 12.8 printed, with other numbers.
    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'flash_attention_d256' for 'sm_90'
ptxas info    : Function properties for flash_attention_d256
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 34560 bytes smem
ptxas info    : Compile time = 163.359 ms
ptxas info    : Compiling entry function 'add' for 'sm_90'
ptxas info    : Function properties for add
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 22 registers, 384 bytes cmem[0]
";

    #[test]
    fn the_assemblers_log_is_read() {
        let kernels = parse(LOG);
        let flash = Assembled {
            kernel: "flash_attention_d256".to_owned(),
            registers: 128,
            shared: 34_560,
            ..Assembled::default()
        };
        let add = Assembled {
            kernel: "add".to_owned(),
            registers: 22,
            spilled: 20,
            stack: 16,
            ..Assembled::default()
        };
        assert_eq!(kernels, [flash.clone(), add]);
        assert_eq!(spills(&[flash]), "none spills");
        assert_eq!(spills(&kernels), "spilling: add (20 bytes, 16 of stack)");
        assert!(parse("").is_empty());
    }

    const PTX: &[u8] = b".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry add()\n{\n\tret;\n}\n\0";

    /// An assembler that is a shell script.
    fn script(commands: &str) -> (tempfile::TempDir, Assembler) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ptxas");
        std::fs::write(&path, format!("#!/bin/sh\n{commands}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        // A test that starts a process meanwhile has the file open for writing until that process has begun.
        while let Err(error) = Command::new(&path).output() {
            assert_eq!(error.kind(), std::io::ErrorKind::ExecutableFileBusy);
        }
        let (program, version) = (path.display().to_string(), "0.0".to_owned());
        (folder, Assembler { program, version })
    }

    #[test]
    fn a_kernel_that_is_refused_or_passed_over_is_an_error_with_the_log() {
        let (_folder, refuses) = script("echo 'line 5; error: no such instruction' >&2; exit 1");
        let error = refuses.assemble_one("family", PTX, "sm_90").unwrap_err().to_string();
        assert!(
            error.contains("family") && error.contains("no such instruction"),
            "{error}"
        );
        let (_folder, silent) = script("exit 0");
        let error = silent.assemble_one("family", PTX, "sm_90").unwrap_err().to_string();
        assert!(error.contains("nothing of add"), "{error}");
        let (_folder, slow) = script(
            "echo \"Compiling entry function 'add' for '$2'\" >&2; \
             echo 'ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized' >&2",
        );
        let error = slow.assemble_one("family", PTX, "sm_90a").unwrap_err();
        assert!(matches!(error, KernelsError::Serialized { .. }), "{error}");
        let (_folder, works) = script(
            "for last; do :; done; cp \"$last\" \"$0.seen\"; echo \"Compiling entry function 'add' for '$2'\" >&2",
        );
        let kernels = works.assemble_one("family", PTX, "sm_90").unwrap();
        assert_eq!(kernels.len(), 1);
        let seen = std::fs::read(format!("{}.seen", works.program)).unwrap();
        assert_eq!(seen, PTX[..PTX.len() - 1], "without the NUL byte");
    }

    #[test]
    fn ptx_of_one_capability_is_assembled_for_that_one() {
        for (arch, expected) in [
            ("sm_75", vec!["sm_75", "sm_80", "sm_90"]),
            ("sm_80", vec!["sm_80", "sm_90"]),
            ("sm_90a", vec!["sm_90a"]),
        ] {
            assert_eq!(cards(arch), expected);
        }
    }

    #[test]
    fn the_release_is_read() {
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.8, V12.8.93\n";
        assert_eq!(release(text).as_deref(), Some("12.8"));
        assert_eq!(release("something else"), None);
    }
}
