//! Hostile bytes: damaged or crafted code objects give a typed error, never a panic.

use proptest::prelude::*;
use rocmforge_code_object::{CodeObject, Container, ParseError};

const REAL: &[u8] = include_bytes!("../fixtures/gfx1100-v5.co");
const NOTE: std::ops::Range<usize> = 0x238..0xac0;

fn refusal(bytes: &[u8]) -> String {
    CodeObject::parse(bytes).expect_err("it must be refused").to_string()
}

/// `REAL` with `from` replaced by `to` (of the same length) wherever it occurs in the note.
fn edited(from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = REAL.to_vec();
    let mut edits = 0;
    for at in NOTE.start..NOTE.end - from.len() {
        if REAL[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
            edits += 1;
        }
    }
    assert!(edits > 0, "the note has no {from:?}");
    bytes
}

#[test]
fn containers_are_named_with_what_to_do() {
    let cases: [(&[u8], Container, &str); 8] = [
        (
            b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0",
            Container::OffloadBundle,
            "--unbundle",
        ),
        (
            b"CCOB\x02\0\x01\0",
            Container::CompressedOffloadBundle,
            "-no-offload-compress",
        ),
        (b"FPIH\x01\0\0\0", Container::FatBinaryWrapper, "unpack"),
        (b"BC\xc0\xde\x35\x14", Container::Bitcode, "compile and link"),
        (b"!<arch>\n/", Container::Archive, "ar x"),
        (b"\x28\xb5\x2f\xfd\x04\0", Container::Zstd, "decompress"),
        (
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0",
            Container::HostElf,
            ".hip_fatbin",
        ),
        (
            b"\x7fELF\x02\x01\x01\x33\x07\0\0\0\0\0\0\0\x02\0\xbe\0",
            Container::Cubin,
            "NVIDIA",
        ),
    ];
    for (bytes, container, hint) in cases {
        assert_eq!(CodeObject::parse(bytes), Err(ParseError::Container(container)));
        assert!(refusal(bytes).contains(hint), "{}", refusal(bytes));
    }
    let ourselves = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(
        CodeObject::parse(&ourselves),
        Err(ParseError::Container(Container::HostElf))
    );
}

/// What a table entry of an ELF file says: where in the header its table starts and how many entries it has, the size of
/// one, and the entry's offset and size of the described bytes.
const TABLES: [(usize, usize, usize, usize, usize); 2] = [(32, 56, 56, 8, 32), (40, 60, 64, 24, 32)];

#[test]
fn no_table_points_outside_of_the_file() {
    let number = |at: usize| u64::from_le_bytes(REAL[at..at + 8].try_into().unwrap());
    for (table, count_at, entry, offset, size) in TABLES {
        let count = u16::from_le_bytes([REAL[count_at], REAL[count_at + 1]]);
        for n in 0..usize::from(count) {
            let at = number(table) as usize + n * entry;
            let no_bytes = entry == 64 && REAL[at + 4] == 8;
            for (field, value) in [
                (offset, u64::MAX),
                (size, u64::MAX),
                (size, 0x3000_0000),
                (offset, 0x3000_0000),
            ] {
                let mut bad = REAL.to_vec();
                bad[at + field..at + field + 8].copy_from_slice(&value.to_le_bytes());
                assert!(
                    no_bytes || CodeObject::parse(&bad).is_err(),
                    "table {table}, entry {n}, {value:#x}"
                );
            }
        }
        let mut bad = REAL.to_vec();
        bad[table..table + 8].copy_from_slice(&0x3000_0000u64.to_le_bytes());
        bad[count_at..count_at + 2].copy_from_slice(&[0, 0]);
        assert!(
            CodeObject::parse(&bad).is_err(),
            "table {table} far away, with no entries"
        );
    }
}

#[test]
fn every_truncation_of_the_loaded_part_is_refused() {
    // Behind the last segment are only debug information and the section table, which the header points to.
    for len in 0..REAL.len() {
        let error = CodeObject::parse(&REAL[..len]).expect_err("truncated");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn header_fields_are_checked() {
    let with = |at: usize, value: u8| {
        let mut bytes = REAL.to_vec();
        bytes[at] = value;
        CodeObject::parse(&bytes).expect_err("refused")
    };
    assert_eq!(with(8, 0), ParseError::Version(2));
    assert_eq!(with(8, 1), ParseError::Version(3));
    assert_eq!(with(8, 5), ParseError::Version(7));
    assert_eq!(with(8, 255), ParseError::Version(255));
    assert!(matches!(with(7, 65), ParseError::NotAmdGpu(why) if why.contains("65 is PAL")));
    assert!(matches!(with(16, 1), ParseError::NotAmdGpu(why) if why.contains("not linked")));
    assert!(matches!(with(18, 0xf7), ParseError::NotAmdGpu(why) if why.contains("247")));
    assert!(matches!(with(4, 1), ParseError::NotAmdGpu(why) if why.contains("64-bit")));
    // gfx1030's processor number in an object whose metadata says gfx1100.
    assert!(matches!(with(48, 0x36), ParseError::NotAmdGpu(why) if why.contains("gfx1100")));
}

#[test]
fn contradictions_name_the_kernel() {
    // The compiler writes the size 280 as the 16-bit number cd 01 18.
    let kernarg = edited(b"\xcd\x01\x18", b"\xcd\x00\x18");
    assert!(
        refusal(&kernarg).contains("kernel \"clamp_sum\": argument"),
        "{}",
        refusal(&kernarg)
    );

    let mut overlap = REAL.to_vec();
    let key = b".offset";
    let offsets: Vec<usize> = NOTE
        .filter(|at| REAL[*at..].starts_with(key))
        .map(|at| at + key.len())
        .collect();
    overlap[offsets[1]] = 4; // the second pointer of `scale`, 8 bytes at 8
    assert!(refusal(&overlap).contains("starts before 8"), "{}", refusal(&overlap));

    let wave = edited(b".wavefront_size\x20", b".wavefront_size\x40");
    assert!(
        refusal(&wave).contains("wavefront: metadata says 64, the descriptor says 32"),
        "{}",
        refusal(&wave)
    );
    let wave = edited(b".wavefront_size\x20", b".wavefront_size\x21");
    assert!(refusal(&wave).contains("33 lanes"), "{}", refusal(&wave));

    let symbol = edited(b"gather.kd", b"gather.kx");
    assert!(
        refusal(&symbol).contains("no symbol \"gather.kx\""),
        "{}",
        refusal(&symbol)
    );
    let target = edited(b"amdgcn-amd-amdhsa--gfx1100", b"amdgcn-amd-amdpal--gfx1100");
    assert!(matches!(CodeObject::parse(&target), Err(ParseError::Target(_))));
    let missing = edited(b".kernarg_segment_size", b".kernarg_segment_sizf");
    assert!(
        refusal(&missing).contains(".kernarg_segment_size is missing"),
        "{}",
        refusal(&missing)
    );
    // A negative count.
    let negative = edited(b".vgpr_count\x04", b".vgpr_count\xff");
    assert!(
        refusal(&negative).contains(".vgpr_count is no 32-bit number"),
        "{}",
        refusal(&negative)
    );
}

#[test]
fn an_entry_outside_of_the_code_is_refused() {
    let mut bytes = REAL.to_vec();
    // scale.kd is at 0xc80 of the file; its entry offset at 16.
    bytes[0xc80 + 16..0xc80 + 24].copy_from_slice(&0x7fff_ffff_ffff_f000_i64.to_le_bytes());
    assert!(refusal(&bytes).contains("scale"), "{}", refusal(&bytes));
    bytes[0xc80 + 16..0xc80 + 24].copy_from_slice(&(0x1e00_i64 - 0xc80 + 4).to_le_bytes());
    assert!(refusal(&bytes).contains("not a multiple of 256"), "{}", refusal(&bytes));
    bytes[0xc80 + 16..0xc80 + 24].copy_from_slice(&(0x100_i64 - 0xc80).to_le_bytes());
    assert!(
        refusal(&bytes).contains("in no executable segment"),
        "{}",
        refusal(&bytes)
    );
}

#[test]
fn overlapping_segments_are_refused() {
    let mut bytes = REAL.to_vec();
    // The third program header is the code's; its address becomes that of the first segment.
    let header = 64 + 2 * 56;
    assert_eq!(bytes[header..header + 4], [1, 0, 0, 0], "the code's program header");
    bytes[header + 16..header + 24].copy_from_slice(&0x100_u64.to_le_bytes());
    assert!(refusal(&bytes).contains("overlap"), "{}", refusal(&bytes));
}

/// The note's MessagePack replaced by other bytes, padded with zeros.
fn with_document(document: &[u8]) -> Vec<u8> {
    let mut bytes = REAL.to_vec();
    let start = NOTE.start + 12 + 8;
    bytes[start..NOTE.end].fill(0);
    bytes[start..start + document.len()].copy_from_slice(document);
    bytes
}

#[test]
fn absurd_counts_and_depth_are_refused() {
    let array = with_document(b"\xdd\xff\xff\xff\xff"); // 4 Gi entries
    assert!(refusal(&array).contains("MessagePack"), "{}", refusal(&array));
    let map = with_document(b"\xdf\xff\xff\xff\xff");
    assert!(refusal(&map).contains("MessagePack"), "{}", refusal(&map));
    let text = with_document(b"\xdb\xff\xff\xff\xff");
    assert!(refusal(&text).contains("MessagePack"), "{}", refusal(&text));
    let deep = with_document(&[0x91; 2000]); // arrays of one array
    assert!(refusal(&deep).contains("MessagePack"), "{}", refusal(&deep));
    let number = with_document(b"\x01");
    assert!(refusal(&number).contains("not a map"), "{}", refusal(&number));
}

fn word(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// A symbol table in which every name is nearly the whole file: reading them all would take its square.
#[test]
fn endless_symbol_names_are_refused_before_they_cost_much() {
    let mut bytes = REAL.to_vec();
    let sections = u64::from_le_bytes(REAL[40..48].try_into().unwrap()) as usize;
    let (symtab, strtab) = (sections + 20 * 64, sections + 22 * 64);
    assert_eq!(
        (bytes[symtab + 4], bytes[strtab + 4]),
        (2, 3),
        "SHT_SYMTAB and SHT_STRTAB"
    );
    let (count, length) = (100_000_u64, 4_000_000_u64);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    word(&mut bytes, symtab + 24, REAL.len().next_multiple_of(8) as u64);
    word(&mut bytes, symtab + 32, count * 24);
    for name in 0..count {
        // st_name, st_info, st_other, st_shndx (.text), st_value, st_size
        bytes.extend((name as u32).to_le_bytes());
        bytes.extend([0x11, 0, 7, 0]);
        bytes.extend([0; 16]);
    }
    let at = bytes.len() as u64;
    word(&mut bytes, strtab + 24, at);
    word(&mut bytes, strtab + 32, length);
    bytes.resize(bytes.len() + length as usize - 1, b'a');
    bytes.push(0);
    let error = CodeObject::parse(&bytes).unwrap_err();
    assert!(
        matches!(
            error,
            ParseError::TooLarge {
                what: "symbol names in bytes",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn too_many_program_headers_are_refused() {
    let mut bytes = REAL.to_vec();
    let at = bytes.len().next_multiple_of(8);
    bytes.resize(at + 1000 * 56, 0);
    word(&mut bytes, 32, at as u64);
    bytes[56..58].copy_from_slice(&1000_u16.to_le_bytes());
    assert!(
        refusal(&bytes).contains("program headers: 1000 is over the limit of 256"),
        "{}",
        refusal(&bytes)
    );
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn mutations_never_panic(
        edits in prop::collection::vec((0..REAL.len(), any::<u8>()), 1..24),
        len in 0..=REAL.len(),
        truncate in any::<bool>(),
    ) {
        let mut bytes = REAL.to_vec();
        for (at, value) in edits {
            bytes[at] = value;
        }
        if truncate {
            bytes.truncate(len);
        }
        if let Ok(object) = CodeObject::parse(&bytes) {
            for kernel in &object.kernels {
                prop_assert!(kernel.args.iter().all(|arg| arg.offset + arg.size <= kernel.kernarg_size));
            }
        }
    }

    /// The same, where it hurts: headers, note, descriptors.
    #[test]
    fn mutations_of_structure_never_panic(
        edits in prop::collection::vec((prop_oneof![0..0x238_usize, NOTE, 0xc80..0xd40_usize], any::<u8>()), 1..6),
    ) {
        let mut bytes = REAL.to_vec();
        for (at, value) in edits {
            bytes[at] = value;
        }
        let _ = CodeObject::parse(&bytes);
    }

    #[test]
    fn any_document_never_panics(document in prop::collection::vec(any::<u8>(), 0..512)) {
        prop_assert!(CodeObject::parse(&with_document(&document)).is_err());
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(CodeObject::parse(&bytes).is_err());
    }
}
