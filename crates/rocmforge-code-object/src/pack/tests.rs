//! Tests of pack files: what is written is read, and hostile bytes are refused.

use super::*;

type Objects = BTreeMap<String, Vec<u8>>;

fn objects(list: &[(&str, &[u8])]) -> Objects {
    list.iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect()
}

fn sample() -> PackFile {
    PackFile::new(
        "gfx1100",
        "{\"a\":1}",
        &objects(&[("one", b"\x7fELF!"), ("host/two", b"")]),
    )
    .expect("small")
}

fn alone(_: Needed<'_>) -> Result<Option<PackFile>, PackError> {
    Ok(None)
}

/// Bytes that do not compress.
fn noise(seed: u64) -> Vec<u8> {
    let byte = |i: u64| ((i + seed).wrapping_mul(i * i + 7 * seed) >> 5) as u8;
    (0..100_000).map(byte).collect()
}

#[test]
fn what_is_written_is_read() {
    let file = sample();
    let read = PackFile::read(&file.compress(None, None).expect("in memory"), alone).expect("sound");
    assert_eq!(read, file);
    assert_eq!((read.target(), read.manifest()), ("gfx1100", "{\"a\":1}"));
    assert_eq!(read.object("one"), Some(&b"\x7fELF!"[..]));
    assert_eq!(read.object("two"), None);
    let names: Vec<&str> = read.objects().map(|(name, _)| name).collect();
    assert_eq!(names, ["host/two", "one"]);
}

#[test]
fn a_file_like_another_takes_little_room_and_needs_it() {
    let first = PackFile::new("gfx1100", "{}", &objects(&[("one", &noise(1))])).expect("small");
    let mut changed = noise(1);
    changed[50_000] ^= 1;
    let second = PackFile::new("gfx1101", "{}", &objects(&[("one", &changed)])).expect("small");
    let packed = second.compress(Some(&first), None).expect("in memory");
    assert!(packed.len() < 1_000, "{} bytes", packed.len());
    assert_eq!(
        PackFile::needs(&packed).expect("sound"),
        [Some(Needed::Target("gfx1100")), None]
    );
    let whole = first.compress(None, None).expect("in memory");
    assert_eq!(PackFile::needs(&whole).expect("sound"), [None, None]);
    assert!(PackFile::needs(&packed[..20]).is_err());
    let read = PackFile::read(&packed, |needed| {
        assert_eq!(needed, Needed::Target("gfx1100"));
        Ok(Some(first.clone()))
    });
    assert_eq!(read.expect("sound"), second);
    let error = PackFile::read(&packed, alone).unwrap_err();
    assert!(
        matches!(&error, PackError::NoNear { target, near } if target == "gfx1101" && near == "gfx1100"),
        "{error}"
    );
    // Another file than the one it was written against.
    let other = PackFile::new("gfx1100", "{}", &objects(&[("one", &noise(2))])).expect("small");
    let error = PackFile::read(&packed, |_| Ok(Some(other.clone()))).unwrap_err();
    assert!(matches!(error, PackError::Hash { .. } | PackError::Zstd(_)), "{error}");
}

#[test]
fn a_file_may_need_a_near_and_a_like_one_and_finds_both() {
    let root = std::env::temp_dir().join(format!("rocmforge-pack-like-{}", std::process::id()));
    let file = |target: &str, name: &str, seeds: [u64; 2]| {
        let code = seeds.map(noise).concat();
        PackFile::new(target, "{}", &objects(&[(name, &code)])).expect("small")
    };
    let write = |name: &str, bytes: Vec<u8>| {
        let place = root.join(name);
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("writable");
        std::fs::write(place, bytes).expect("writable");
    };
    let (near, like) = (file("a", "two", [1, 2]), file("b", "one", [3, 4]));
    let both = file("b", "two", [2, 3]);
    let packed = both.compress(Some(&near), Some(("one", &like))).expect("in memory");
    assert!(packed.len() < 1_000, "{} bytes", packed.len());
    let needs = PackFile::needs(&packed).expect("sound");
    assert_eq!(needs, [Some(Needed::Target("a")), Some(Needed::Name("one"))]);
    write("a/two.pack", near.compress(None, None).expect("in memory"));
    write("b/two.pack", packed);
    let absent = PackFile::open(&root.join("b/two.pack")).unwrap_err();
    write("b/one.pack", like.compress(None, None).expect("in memory"));
    let read = PackFile::open(&root.join("b/two.pack")).expect("sound");
    // A file that is like itself is a circle.
    write(
        "b/one.pack",
        like.compress(None, Some(("one", &like))).expect("in memory"),
    );
    let circle = PackFile::open(&root.join("b/two.pack")).unwrap_err();
    std::fs::remove_dir_all(&root).expect("there");
    assert_eq!(read, both);
    assert!(
        matches!(&absent, PackError::File { path, .. } if path.ends_with("b/one.pack")),
        "{absent}"
    );
    assert!(matches!(circle, PackError::Chain { .. }), "{circle}");
}

#[test]
fn every_truncation_and_every_extension_is_an_error() {
    let good = sample().compress(None, None).expect("in memory");
    for length in 0..good.len() {
        assert!(PackFile::read(&good[..length], alone).is_err(), "{length} bytes");
    }
    let long = [&good[..], &[0]].concat();
    assert!(PackFile::read(&long, alone).is_err());
    let contents = sample().contents;
    for length in 0..contents.len() {
        let parsed = PackFile::parse("gfx1100".to_owned(), contents[..length].to_vec());
        assert!(parsed.is_err(), "{length} bytes of contents");
    }
    let long = [&contents[..], &[0]].concat();
    assert!(PackFile::parse("gfx1100".to_owned(), long).is_err());
}

#[test]
fn damaged_bytes_are_an_error_behind_the_target_and_never_panic() {
    let good = sample().compress(None, None).expect("in memory");
    // The hash does not cover the target's name.
    let target = 12..12 + "gfx1100".len();
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, good[at] ^ 1] {
            let mut bad = good.clone();
            bad[at] = value;
            let read = PackFile::read(&bad, alone);
            // Some bytes of a frame may be anything; what it gives is the same then.
            let same = read.as_ref().is_ok_and(|read| read.contents == sample().contents);
            assert!(
                read.is_err() || (same && (bad == good || target.contains(&at) || at > target.end)),
                "byte {at}"
            );
        }
    }
    let contents = sample().contents;
    for at in 0..contents.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = contents.clone();
            bad[at] = value;
            // Some changes (a letter of a name) leave sound contents; all must return.
            let _ = PackFile::parse("gfx1100".to_owned(), bad);
        }
    }
}

/// A header with a frame of these bytes, whatever it says of them.
fn forged(size: u32, hash: [u8; 32], frame: &[u8]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    text(&mut file, "gfx1100");
    text(&mut file, "");
    text(&mut file, "");
    file.extend(size.to_le_bytes());
    file.extend(hash);
    file.extend(frame);
    file
}

#[test]
fn a_wrong_hash_and_a_wrong_size_have_figures() {
    let contents = sample().contents;
    let frame = zstd::encode_all(&contents[..], 1).expect("in memory");
    let size = contents.len() as u32;
    let hash = Sha256::digest(&contents).into();
    assert!(PackFile::read(&forged(size, hash, &frame), alone).is_ok());
    let error = PackFile::read(&forged(size, [7; 32], &frame), alone).unwrap_err();
    assert!(error.to_string().ends_with(&"07".repeat(32)), "{error}");
    for (claimed, more) in [(size + 5, false), (size - 1, true), (0, true)] {
        let error = PackFile::read(&forged(claimed, hash, &frame), alone).unwrap_err();
        assert!(
            matches!(error, PackError::Size { expected, more: m, .. } if expected == claimed as usize && m == more),
            "{error}"
        );
    }
}

#[test]
fn a_compression_bomb_is_refused() {
    let bomb = zstd::encode_all(std::io::repeat(0).take(MAX_CONTENTS as u64 + 10), 1).expect("in memory");
    assert!(bomb.len() < 1 << 20, "the point is that it is small");
    let error = PackFile::read(&forged(u32::MAX, [0; 32], &bomb), alone).unwrap_err();
    assert!(matches!(error, PackError::TooLarge { .. }), "{error}");
    let error = PackFile::read(&forged(1000, [0; 32], &bomb), alone).unwrap_err();
    assert!(
        matches!(
            error,
            PackError::Size {
                found: 1000,
                more: true,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_target_is_no_path() {
    for name in ["", "../x", "a/b", "gfx 1", "gfx\u{e4}"] {
        let mut file = sample();
        file.target = name.to_owned();
        assert!(
            PackFile::read(&file.compress(None, None).expect("in memory"), alone).is_err(),
            "{name:?}"
        );
    }
}

#[test]
fn too_many_objects_and_long_names_are_refused() {
    let many: Objects = (0..=MAX_OBJECTS).map(|i| (i.to_string(), Vec::new())).collect();
    assert!(PackFile::new("gfx1100", "", &many).is_err());
    let long = "x".repeat(MAX_NAME + 1);
    assert!(PackFile::new("gfx1100", "", &objects(&[(&long, b"")])).is_err());
}

#[test]
fn a_file_finds_its_near_one_beside_its_folder_and_no_circle() {
    let root = std::env::temp_dir().join(format!("rocmforge-pack-{}", std::process::id()));
    let place = |target: &str| root.join(target).join("one.pack");
    let file = |target: &str, seed| PackFile::new(target, "", &objects(&[("one", &noise(seed))])).expect("small");
    let (a, b) = (file("a", 1), file("b", 2));
    for (target, bytes) in [("a", a.compress(None, None)), ("b", b.compress(Some(&a), None))] {
        std::fs::create_dir_all(root.join(target)).expect("a folder");
        std::fs::write(place(target), bytes.expect("in memory")).expect("writable");
    }
    assert_eq!(PackFile::open(&place("b")).expect("sound"), b);
    std::fs::write(place("a"), a.compress(Some(&b), None).expect("in memory")).expect("writable");
    let circle = PackFile::open(&place("b")).unwrap_err();
    std::fs::remove_file(place("a")).expect("there");
    let absent = PackFile::open(&place("b")).unwrap_err();
    std::fs::remove_dir_all(&root).expect("there");
    assert!(matches!(circle, PackError::Chain { .. }), "{circle}");
    assert!(
        matches!(&absent, PackError::File { path, .. } if *path == place("a")),
        "{absent}"
    );
}
