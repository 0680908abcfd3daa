//! Packs: written and read back here. The product's reader is `rocmforge-kernels`; the layout is described there, in `pack.rs`.

use crate::targets::{fallback, near};
use crate::{KernelsError, at, prebuilt};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// A target's objects, by family.
pub(crate) type Objects = BTreeMap<String, Vec<u8>>;

/// High enough that more gains nothing on a few hundred kilobytes.
const ZSTD_LEVEL: i32 = 19;

/// Holds two packs, so that every byte of one can refer to the other.
const WINDOW_LOG: u32 = 24;

const MAGIC: &[u8] = b"RFKPACK1";

/// `gfx1100.pack.zst`.
pub(crate) fn file_name(arch: &str) -> String {
    format!("{arch}.pack.zst")
}

/// The uncompressed pack.
pub(crate) fn write(arch: &str, objects: &Objects) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let text = |out: &mut Vec<u8>, s: &str| {
        out.extend((s.len() as u32).to_le_bytes());
        out.extend(s.as_bytes());
    };
    text(&mut out, arch);
    out.extend((objects.len() as u32).to_le_bytes());
    for (family, bytes) in objects {
        text(&mut out, family);
        out.extend((bytes.len() as u64).to_le_bytes());
    }
    for bytes in objects.values() {
        out.extend(bytes);
    }
    out
}

/// Compressed with a checksum, as what differs from `near`: the unpacked pack of a target with almost the same code, or nothing.
pub(crate) fn compress(pack: &[u8], near: &[u8]) -> Result<Vec<u8>, KernelsError> {
    let packed = (|| {
        let mut encoder = zstd::stream::Encoder::with_ref_prefix(Vec::new(), ZSTD_LEVEL, near)?;
        encoder.include_checksum(true)?;
        if !near.is_empty() {
            encoder.window_log(WINDOW_LOG)?;
            encoder.long_distance_matching(true)?;
        }
        encoder.set_pledged_src_size(Some(pack.len() as u64))?;
        io::Write::write_all(&mut encoder, pack)?;
        encoder.finish()
    })();
    packed.map_err(at("zstd"))
}

/// The other way.
pub(crate) fn decompress(packed: &[u8], near: &[u8]) -> io::Result<Vec<u8>> {
    let mut pack = Vec::new();
    zstd::stream::read::Decoder::with_ref_prefix(packed, near)?.read_to_end(&mut pack)?;
    Ok(pack)
}

/// The committed pack of a target, uncompressed.
pub(crate) fn load(arch: &str) -> Result<Vec<u8>, KernelsError> {
    let near = near(arch).map_or(Ok(Vec::new()), load)?;
    let path = prebuilt().join(file_name(arch));
    decompress(&crate::read(&path)?, &near).map_err(at(path))
}

/// The objects of an uncompressed pack that [`write()`] made; `None` for other bytes.
pub(crate) fn read(pack: &[u8]) -> Option<Objects> {
    fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
        let (taken, left) = rest.split_at_checked(count)?;
        *rest = left;
        Some(taken)
    }
    fn number(rest: &mut &[u8]) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?)).ok()
    }
    fn text(rest: &mut &[u8]) -> Option<String> {
        let length = number(rest)?;
        String::from_utf8(take(rest, length)?.to_vec()).ok()
    }
    let mut rest = pack.strip_prefix(MAGIC)?;
    text(&mut rest)?;
    let mut sizes = Vec::new();
    for _ in 0..number(&mut rest)? {
        let family = text(&mut rest)?;
        let size = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
        sizes.push((family, usize::try_from(size).ok()?));
    }
    let objects = sizes
        .into_iter()
        .map(|(family, size)| Some((family, take(&mut rest, size)?.to_vec())));
    objects.collect()
}

/// The Rust file that embeds the packs into `rocmforge-kernels`.
pub(crate) fn registry<'a>(archs: impl Iterator<Item = &'a String>) -> String {
    let mut text = "// Written by `cargo xtask kernels build`.\n\n/// Every embedded pack.\n\
        pub(crate) static PACKS: &[Embedded] = &[\n"
        .to_owned();
    for arch in archs {
        let (fallback, near, file) = (fallback(arch), near(arch), file_name(arch));
        text.push_str(&format!(
            "    Embedded {{\n        arch: {arch:?},\n        fallback: {fallback:?},\n        near: {near:?},\n        packed: include_bytes!({file:?}),\n    }},\n"
        ));
    }
    text.push_str("];\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let objects: Objects = [("add", vec![1, 2, 3]), ("rope", Vec::new())]
            .map(|(family, bytes)| (family.to_owned(), bytes))
            .into();
        let pack = write("gfx1100", &objects);
        assert_eq!(read(&pack), Some(objects));
        assert_eq!(read(&pack[1..]), None);
    }

    #[test]
    fn a_pack_like_another_takes_little_room_and_needs_it() {
        let noise = |seed: u64| (0..100_000u64).map(move |i| ((i + seed).wrapping_mul(i * i + 7 * seed) >> 5) as u8);
        let first: Vec<u8> = noise(1).collect();
        let mut second = first.clone();
        second[50_000] ^= 1;
        let packed = compress(&second, &first).expect("in memory");
        assert!(packed.len() < 1_000, "{} bytes", packed.len());
        assert_eq!(decompress(&packed, &first).expect("what was packed"), second);
        assert!(decompress(&packed, &[]).is_err());
        let alone = compress(&second, &[]).expect("in memory");
        assert_eq!(decompress(&alone, &[]).expect("what was packed"), second);
    }
}
