//! The kernels this repository ships.

use object::{Object as _, ObjectSection as _};
use rocmforge_code_object::PackFile;
use rocmforge_isa::Arch;
use rocmforge_test_support::llvm;

/// The code objects of the committed packs.
fn shipped(arch: Arch) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../kernels/prebuilt/{arch}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).expect("the kernels are committed");
    let objects = files.flat_map(|file| {
        let file = PackFile::open(&file.expect("readable").path()).expect("a pack");
        let objects: Vec<Vec<u8>> = file.objects().map(|(_, object)| object.to_vec()).collect();
        objects
    });
    objects.collect()
}

#[test]
fn every_shipped_kernel_decodes() {
    for arch in Arch::ALL {
        decodes(arch);
    }
}

fn decodes(arch: Arch) {
    let mut instructions = 0;
    for elf in shipped(arch) {
        let file = object::File::parse(&elf[..]).expect("an ELF file");
        let text = file.section_by_name(".text").expect("code").data().expect("readable");
        let words: Vec<u32> = text
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        let mut at = 0;
        while at < words.len() {
            let (text, size) = llvm::ours(arch, &words[at..]).unwrap_or_else(|error| panic!("word {at}: {error}"));
            assert!(!text.is_empty() && size > 0);
            at += size;
            instructions += 1;
        }
    }
    assert!(instructions > 5000, "only {instructions} instructions");
}

#[test]
fn every_shipped_instruction_has_llvms_text() {
    if !llvm::installed("llvm-objdump-19") {
        return;
    }
    for arch in Arch::ALL {
        has_llvms_text(arch);
    }
}

fn has_llvms_text(arch: Arch) {
    let folder = std::env::temp_dir().join(format!("rocmforge-shipped-{arch}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let mut compared = 0;
    let mut differences = Vec::new();
    for elf in shipped(arch) {
        let path = folder.join("object.co");
        std::fs::write(&path, elf).expect("writable");
        let answers = llvm::objdump("llvm-objdump-19", arch, &path);
        compared += answers.len();
        differences.extend(llvm::differences(arch, &answers));
    }
    std::fs::remove_dir_all(&folder).expect("removable");
    println!("{compared} {arch} instructions compared");
    assert!(compared > 5000, "only {compared} instructions were compared");
    assert!(
        differences.is_empty(),
        "{} of {compared}:\n{}",
        differences.len(),
        differences.join("\n")
    );
}
