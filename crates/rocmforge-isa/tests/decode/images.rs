//! Operations on images: random fields have LLVM's verdict and text, apart from the listed ways in which we are stricter.

use crate::corpus::corpus_file;
use crate::random::{Random, Tally};
use rocmforge_isa::Arch;
use rocmforge_test_support::llvm;

fn recorded(arch: Arch) -> &'static str {
    match arch {
        Arch::Gfx1100 => "images.txt.zst",
        Arch::Gfx1201 => "images-gfx1201.txt.zst",
    }
}

/// Opcodes of the tables, which both have. Those above are of samples.
const CODES: [u32; 10] = [0x00, 0x01, 0x06, 0x07, 0x1b, 0x1c, 0x1d, 0x1f, 0x32, 0x39];

/// Words with a random value in each field, most often one that the instruction may have.
fn words(arch: Arch, random: &mut Random) -> Vec<u32> {
    let known = CODES[random.below(10) as usize];
    let sample = known >= 0x1b;
    let code = if random.below(8) == 0 { random.below(256) } else { known };
    let mostly = |random: &mut Random, bits: u32| {
        if random.below(8) == 0 {
            random.below(1 << bits)
        } else {
            0
        }
    };
    let dimensions = random.below(8);
    let parts = random.below(16);
    let [a, b, c, d] = [0; 4].map(|_| random.below(256));
    match arch {
        Arch::Gfx1100 => {
            let options = mostly(random, 18) & 0x3_f062;
            let separate = random.below(2);
            let first =
                0xf000_0000 | code << 18 | options | parts << 8 | random.below(2) << 7 | dimensions << 2 | separate;
            let sampler = if sample {
                random.below(26) << 26
            } else {
                mostly(random, 6) << 26
            };
            let second = sampler | mostly(random, 5) << 21 | random.below(25) << 16 | a << 8 | b;
            // What fields of an address have no use is most often zero.
            let third = (c | d << 8 | a << 16 | b << 24) & (0xffff_ffffu64 >> (8 * random.below(5))) as u32;
            vec![first, second, third]
        }
        Arch::Gfx1201 => {
            let top = if sample { 0xe400_0000 } else { 0xd000_0000 };
            let options = mostly(random, 14) & 0x3ff8;
            let first = top | parts << 22 | code << 14 | options | dimensions;
            let high = if sample {
                random.below(26) << 25
            } else {
                mostly(random, 8) << 24
            };
            let second = high | mostly(random, 6) << 18 | random.below(25) << 11 | mostly(random, 1) << 8 | a;
            let third = (c | d << 8 | a << 16 | b << 24) & (0xffff_ffffu64 >> (8 * random.below(4))) as u32;
            vec![first, second, third]
        }
    }
}

fn ask(arch: Arch, seed: u64, count: usize) -> Vec<llvm::Answer> {
    let mut random = Random(seed);
    let questions: Vec<Vec<u32>> = (0..count).map(|_| words(arch, &mut random)).collect();
    llvm::machine_code(arch, &questions)
}

fn check(arch: Arch, answers: &[llvm::Answer]) {
    let mut tally = Tally::default();
    answers.iter().for_each(|answer| tally.add(arch, answer));
    tally.finish(arch);
}

#[test]
fn recorded_images_have_llvms_verdict() {
    for arch in Arch::ALL {
        let answers = llvm::read(&corpus_file(recorded(arch)));
        assert!(answers.len() >= 3000);
        check(arch, &answers);
    }
}

#[test]
fn seeded_images_have_llvms_verdict() {
    if !llvm::installed("llvm-mc-19") {
        return;
    }
    for arch in Arch::ALL {
        check(arch, &ask(arch, 0x1a6e, 20_000));
    }
}

#[test]
#[ignore = "records LLVM's answers; needs llvm-mc-19"]
fn record() {
    for arch in Arch::ALL {
        llvm::record(&corpus_file(recorded(arch)), &ask(arch, 0x6d61_6765, 4000));
    }
}
