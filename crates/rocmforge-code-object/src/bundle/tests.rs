//! Tests of offload bundles: plain, compressed, in memory without a length, and damaged.

use super::*;

/// A bundle as clang-offload-bundler lays it out.
fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = PLAIN.to_vec();
    out.extend((entries.len() as u64).to_le_bytes());
    let list: usize = entries.iter().map(|(target, _)| 24 + target.len()).sum();
    let mut offset = (out.len() + list) as u64;
    for (target, code) in entries {
        for number in [offset, code.len() as u64, target.len() as u64] {
            out.extend(number.to_le_bytes());
        }
        out.extend(target.as_bytes());
        offset += code.len() as u64;
    }
    for (_, code) in entries {
        out.extend(*code);
    }
    out
}

fn three() -> Vec<u8> {
    bundle(&[
        ("host-x86_64-unknown-linux--", b""),
        ("hipv4-amdgcn-amd-amdhsa--gfx11-generic", b"family"),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", b"first"),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", b"second"),
    ])
}

/// The same, compressed; other bytes follow.
fn compressed(version: u16, method: u16) -> Vec<u8> {
    let data = match method {
        0 => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            std::io::Write::write_all(&mut encoder, &three()).unwrap();
            encoder.finish().unwrap()
        }
        _ => zstd::encode_all(&three()[..], 1).unwrap(),
    };
    let unpacked = three().len();
    let mut file = COMPRESSED.to_vec();
    file.extend(version.to_le_bytes());
    file.extend(method.to_le_bytes());
    match version {
        1 => file.extend((unpacked as u32).to_le_bytes()),
        2 => {
            file.extend((24 + data.len() as u32).to_le_bytes());
            file.extend((unpacked as u32).to_le_bytes());
        }
        _ => {
            file.extend((32 + data.len() as u64).to_le_bytes());
            file.extend((unpacked as u64).to_le_bytes());
        }
    }
    file.extend(0u64.to_le_bytes());
    file.extend(data);
    file.extend(b"what follows");
    file
}

const PROCESSORS: [&str; 3] = ["gfx11-generic", "gfx1100", "gfx90a"];

fn processors(bundle: &Bundle<'_>) -> Vec<String> {
    bundle.entries().map(|entry| entry.arch().to_owned()).collect()
}

#[test]
fn a_bundle_gives_its_code_objects() {
    let file = three();
    let found = Bundle::parse(&file).unwrap().unwrap();
    assert_eq!(processors(&found), PROCESSORS);
    assert_eq!(Bundle::parse(b"something else"), Ok(None));
    for (processor, code) in [
        ("gfx1100", Some(&b"first"[..])),
        ("gfx1103", Some(b"family")),
        ("gfx1201", None),
    ] {
        assert_eq!(
            found.for_processor(processor).map(|entry| entry.bytes),
            code,
            "{processor}"
        );
    }
}

#[test]
fn compressed_bundles_are_unpacked() {
    for (version, method) in [(1, 1), (2, 1), (3, 1), (1, 0), (2, 0), (3, 0)] {
        let file = compressed(version, method);
        let found = Bundle::parse(&file).unwrap().unwrap();
        assert_eq!(processors(&found), PROCESSORS, "version {version}, method {method}");
    }
    assert_eq!(Bundle::parse(&compressed(4, 1)), Err(BundleError::Version(4)));
    assert_eq!(Bundle::parse(&compressed(3, 2)), Err(BundleError::Method(2)));
}

/// Tables that lead behind the end of what is there are read no further.
#[test]
fn an_image_that_is_cut_off_is_refused() {
    let whole = three();
    // Its magic number is read before anybody knows what it is.
    for kept in b"__CLANG_OFFLOAD_BUNDLE__".len()..whole.len() {
        let start = whole.as_ptr();
        let there = |from: *const u8, length: usize| from.addr() - start.addr() + length <= kept;
        // SAFETY: the whole bundle is there.
        let found = unsafe { Image::at_if(start, there) };
        assert!(!matches!(found, Ok(Some(_))), "{kept} of {} bytes", whole.len());
    }
    // SAFETY: nothing is read where nothing is there.
    let nothing = unsafe { Image::at_if(std::ptr::without_provenance(64), |_, _| false) };
    assert_eq!(nothing, Ok(None));
}

#[test]
fn an_image_in_memory_ends_where_its_tables_say() {
    let mut plain = three();
    let length = plain.len();
    plain.extend([0xFF; 100]);
    // SAFETY: a whole bundle lies there.
    let Ok(Some(Image::Bundle(found))) = (unsafe { Image::at(plain.as_ptr()) }) else {
        panic!()
    };
    assert_eq!((found.bytes.len(), processors(&found).len()), (length, 3));
    for (version, method) in [(1, 1), (2, 1), (3, 1), (1, 0), (3, 0)] {
        let file = compressed(version, method);
        // SAFETY: as above.
        let Ok(Some(Image::Bundle(found))) = (unsafe { Image::at(file.as_ptr()) }) else {
            panic!()
        };
        assert_eq!(processors(&found), PROCESSORS);
    }
    let mut elf = include_bytes!("../../tests/fixtures/gfx1100-v5.co").to_vec();
    let length = elf.len();
    elf.extend([0; 64]);
    // SAFETY: a whole ELF file lies there.
    assert_eq!(unsafe { Image::at(elf.as_ptr()) }, Ok(Some(Image::Elf(&elf[..length]))));
    // SAFETY: the first byte tells that it is neither.
    assert_eq!(unsafe { Image::at(b"?".as_ptr()) }, Ok(None));
}

#[test]
fn damaged_bundles_are_refused_at_every_byte() {
    let good = three();
    for cut in PLAIN.len()..good.len() {
        assert!(Bundle::parse(&good[..cut]).is_err(), "cut at {cut}");
    }
    for at in PLAIN.len()..good.len() {
        for value in [0, 0x7F, 0xFF] {
            let mut bad = good.clone();
            bad[at] = value;
            // Whatever it says, it says it without a panic.
            let _ = Bundle::parse(&bad);
        }
    }
    let mut many = PLAIN.to_vec();
    many.extend(u64::MAX.to_le_bytes());
    assert!(Bundle::parse(&many).is_err());
    // SAFETY: the count is refused before anything behind it is read.
    assert!(unsafe { Image::at(many.as_ptr()) }.is_err());
}
