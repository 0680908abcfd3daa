//! Writes packs. Their reader is `rocmforge-kernels`; the layout is described there, in `pack.rs`.

use super::manifest::Manifest;
use super::{KernelsError, Objects};
use std::io;

/// High enough that more gains nothing on a few hundred kilobytes.
const ZSTD_LEVEL: i32 = 19;

/// `gfx1100.pack.zst`.
pub(super) fn file_name(arch: &str) -> String {
    format!("{arch}.pack.zst")
}

/// The uncompressed pack.
pub(super) fn write(arch: &str, objects: &Objects) -> Vec<u8> {
    let mut out = b"RFKPACK1".to_vec();
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

/// Compressed with a checksum.
pub(super) fn compress(pack: &[u8]) -> Result<Vec<u8>, KernelsError> {
    let packed = (|| {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(Some(pack.len() as u64))?;
        io::Write::write_all(&mut encoder, pack)?;
        encoder.finish()
    })();
    packed.map_err(|source| KernelsError::Io {
        path: "zstd".into(),
        source,
    })
}

/// The other way.
pub(super) fn decompress(packed: &[u8]) -> io::Result<Vec<u8>> {
    zstd::stream::decode_all(packed)
}

/// The Rust file that embeds the packs into `rocmforge-kernels`.
pub(super) fn registry(manifest: &Manifest) -> String {
    let mut text = "// Written by `cargo xtask kernels build`.\n\n/// Every embedded pack, by architecture.\n\
        pub(crate) static PACKS: &[(&str, &[u8])] = &[\n"
        .to_owned();
    for arch in manifest.targets.keys() {
        text.push_str(&format!("    (\"{arch}\", include_bytes!(\"{}\")),\n", file_name(arch)));
    }
    text.push_str("];\n");
    text
}
