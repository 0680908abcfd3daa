//! Ten million random words: LLVM's disassembler called in this process, which is what `llvm-mc` calls for each line.

use crate::random::{Random, Tally, words};
use libloading::Library;
use rocmforge_isa::Arch;
use rocmforge_test_support::llvm::{self, Answer};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Where distributions put it.
const LIBRARIES: [&str; 2] = ["libLLVM.so.19.1", "/usr/lib/llvm-19/lib/libLLVM.so.1"];

type Create =
    unsafe extern "C" fn(*const c_char, *const c_char, *mut c_void, c_int, *const c_void, *const c_void) -> *mut c_void;
type Disassemble = unsafe extern "C" fn(*mut c_void, *mut u8, u64, u64, *mut c_char, usize) -> usize;

/// LLVM's disassembler of one instruction set, through `llvm-c/Disassembler.h`.
struct Disassembler {
    context: *mut c_void,
    disassemble: Disassemble,
    /// Keeps the code of the two above.
    _library: Library,
}

impl Disassembler {
    /// `None` where LLVM 19 is not installed.
    fn new(arch: Arch) -> Option<Self> {
        let library = LIBRARIES.iter().find_map(|name| {
            // SAFETY: LLVM's library has no initialisers that ask anything of us.
            unsafe { Library::new(*name) }.ok()
        })?;
        for name in [
            c"LLVMInitializeAMDGPUTargetInfo",
            c"LLVMInitializeAMDGPUTargetMC",
            c"LLVMInitializeAMDGPUDisassembler",
        ] {
            // SAFETY: the type is the one in `llvm-c/Target.h`.
            let initialise: unsafe extern "C" fn() = *unsafe { library.get(name.to_bytes_with_nul()) }.ok()?;
            // SAFETY: may be called at any time, also again.
            unsafe { initialise() };
        }
        // SAFETY: the types are those in `llvm-c/Disassembler.h`.
        let create: Create = *unsafe { library.get(b"LLVMCreateDisasmCPU\0") }.ok()?;
        // SAFETY: as above.
        let disassemble: Disassemble = *unsafe { library.get(b"LLVMDisasmInstruction\0") }.ok()?;
        let null = std::ptr::null_mut::<c_void>();
        let cpu = CString::new(arch.name()).expect("no zero in it");
        // SAFETY: strings that live through the call, which copies them; no callbacks.
        let context = unsafe { create(c"amdgcn--".as_ptr(), cpu.as_ptr(), null, 0, null, null) };
        assert!(!context.is_null(), "LLVM knows {}", arch.name());
        Some(Self {
            context,
            disassemble,
            _library: library,
        })
    }

    fn ask(&self, words: &[u32]) -> Answer {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut text = [0u8; 512];
        let (out, room) = (text.as_mut_ptr().cast(), text.len());
        // SAFETY: the context is live, and both buffers are as long as stated.
        let size = unsafe { (self.disassemble)(self.context, bytes.as_mut_ptr(), bytes.len() as u64, 0, out, room) };
        let text = CStr::from_bytes_until_nul(&text)
            .expect("LLVM ends the text")
            .to_string_lossy();
        // Warnings follow a semicolon here, and go to the error output of `llvm-mc`.
        let text = text.split(" ;").next().unwrap_or_default().trim();
        // As in `llvm::machine_code`: comments mark operands that the operation cannot have.
        let good = size > 0 && (text.starts_with("s_delay_alu") || !text.contains("/*"));
        Answer {
            words: if good {
                words[..size / 4].to_vec()
            } else {
                words.to_vec()
            },
            text: good.then(|| text.to_string()),
        }
    }
}

#[test]
fn both_ways_to_ask_llvm_give_the_same_answers() {
    for arch in Arch::ALL {
        let Some(library) = Disassembler::new(arch).filter(|_| llvm::installed("llvm-mc-19")) else {
            println!("skipped: llvm-mc-19 or its library is not installed");
            return;
        };
        let mut random = Random(0xb01d);
        let questions: Vec<Vec<u32>> = (0..4000).map(|_| words(&mut random)).collect();
        for (question, answer) in questions.iter().zip(llvm::machine_code(arch, &questions)) {
            let other = library.ask(question);
            assert_eq!(
                (&other.words, &other.text),
                (&answer.words, &answer.text),
                "{question:08x?} of {}",
                arch.name()
            );
        }
    }
}

#[test]
#[ignore = "ten million words (or ROCMFORGE_WORDS of them) of each instruction set: minutes; needs libLLVM 19"]
fn ten_million_random_words_have_llvms_verdict() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |n| n.parse().expect("a number"));
    let (count, seed) = (number("ROCMFORGE_WORDS", 10_000_000), number("ROCMFORGE_SEED", 10));
    for arch in Arch::ALL {
        println!("{}, seed {seed}", arch.name());
        let library = Disassembler::new(arch).expect("libLLVM 19");
        let mut random = Random(seed);
        let mut tally = Tally::default();
        for _ in 0..count {
            tally.add(arch, &library.ask(&words(&mut random)));
        }
        tally.finish(arch);
    }
}
