//! Packing and unpacking, and the script that stands for the command.

use super::build::LAUNCHER;
use super::*;
use std::os::unix::fs::PermissionsExt;

/// A bundle of two test binaries and a model, and the folder it lies in.
fn packed() -> (tempfile::TempDir, PathBuf) {
    packed_with(|_| Vec::new())
}

fn packed_with(wholes: impl FnOnce(&Path) -> Vec<parts::Whole>) -> (tempfile::TempDir, PathBuf) {
    let work = tempfile::tempdir().unwrap();
    let (parts, bundle) = (work.path().join("parts"), work.path().join("bundle"));
    for (path, text, mode) in [
        ("tests/b/gpu", "#!/bin/sh\necho b\n", 0o755),
        ("tests/a/gpu", "#!/bin/sh\necho a\n", 0o755),
        ("models/all-MiniLM-L6-v2/vocab.txt", "a b c", 0o644),
        ("models/all-MiniLM-L6-v2/odd.safetensors", "1a2b3c4", 0o644),
    ] {
        let path = parts.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(&bundle).unwrap();
    payload::pack(&parts, &bundle, Some("v1-2-gabc".to_owned()), wholes(&bundle)).unwrap();
    (work, bundle)
}

#[test]
fn what_was_packed_is_unpacked_once_and_compared_each_time() {
    let (_work, bundle) = packed();
    let contents = Contents::of(&bundle).unwrap();
    assert_eq!(contents.revision.as_deref(), Some("v1-2-gabc"));
    let tests = contents.tests();
    let packages: Vec<&str> = tests.iter().map(|test| test.package.as_str()).collect();
    assert_eq!(packages, ["a", "b"]);
    assert!(contents.faults().is_empty());
    let said = Command::new(&tests[1].executable).output().unwrap();
    assert_eq!(said.stdout, b"b\n");
    let (variable, models) = contents.environment();
    assert_eq!(variable, "ROCMFORGE_MODELS_DIR");
    let vocab = Path::new(&models).join("all-MiniLM-L6-v2/vocab.txt");
    assert_eq!(fs::read_to_string(&vocab).unwrap(), "a b c");
    let odd = vocab.with_file_name("odd.safetensors");
    assert_eq!(fs::read_to_string(odd).unwrap(), "1a2b3c4");
    // The second time, what is there is used if it is right.
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&vocab).unwrap());
    let before = inode();
    Contents::of(&bundle).unwrap();
    assert_eq!(inode(), before);
    // As long, and another.
    fs::write(&vocab, "a b d").unwrap();
    for error in [contents.verify().unwrap_err(), Contents::of(&bundle).unwrap_err()] {
        let text = error.to_string();
        for part in [
            "models/all-MiniLM-L6-v2/vocab.txt",
            // Of "a b d" and "a b c", from sha256sum.
            "of SHA-256 4b71bbf7fd991ad862ac16878f15cf8937218093994058590c42f9a83e4ce96b",
            "not 5 bytes of SHA-256 0e9f64031fcb2bc708b531c2a20441580425d151a38503f38592a7dd36019d3b",
            "remove the folder `unpacked`",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// Puts something in the place of every file of an unpacked bundle in turn, and says how each is refused.
fn refused(change: impl Fn(&Path)) -> Vec<(String, String)> {
    let files = ["tests/a/gpu", "models/all-MiniLM-L6-v2/odd.safetensors", WHOLE_PATH];
    let errors = files.map(|file| {
        let (_work, bundle, _) = in_parts();
        let contents = Contents::of(&bundle).unwrap();
        change(&contents.file(file).unwrap());
        match Contents::of(&bundle).unwrap_err() {
            BundleError::Damaged { path, found, expected } => {
                assert_eq!(path, file);
                assert!(expected.contains(" bytes of SHA-256 "), "{expected}");
                (path, found)
            }
            other => panic!("{other}"),
        }
    });
    errors.into()
}

#[test]
fn every_unpacked_file_is_compared_and_nothing_but_a_file_is_opened() {
    let all = |change: &dyn Fn(&Path), said: &str| {
        for (path, found) in refused(change) {
            assert!(found.contains(said), "{path}: {found}");
        }
    };
    all(
        &|path| fs::write(path, "longer than any of them").unwrap(),
        "23 bytes long",
    );
    all(
        &|path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[0] ^= 1;
            fs::write(path, bytes).unwrap();
        },
        "of SHA-256 ",
    );
    let gone = |path: &Path| fs::remove_file(path).unwrap();
    all(
        &|path| {
            let copy = path.with_extension("copy");
            fs::rename(path, &copy).unwrap();
            std::os::unix::fs::symlink(copy, path).unwrap();
        },
        "a link",
    );
    all(
        &|path| {
            gone(path);
            let mode = rustix::fs::Mode::RUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        },
        "a FIFO",
    );
    all(
        &|path| {
            gone(path);
            fs::create_dir(path).unwrap();
        },
        "a folder",
    );
    // The folder on the way is a link to the very same files.
    all(
        &|path| {
            let folder = path.parent().unwrap();
            let moved = folder.with_extension("moved");
            fs::rename(folder, &moved).unwrap();
            std::os::unix::fs::symlink(moved, folder).unwrap();
        },
        "no file to read",
    );
}

#[test]
fn a_binary_that_the_manifest_does_not_name_is_not_run() {
    let (_work, bundle) = packed();
    let contents = Contents::of(&bundle).unwrap();
    let strange = contents.tests()[0].directory.with_file_name("strange");
    fs::create_dir(&strange).unwrap();
    fs::write(strange.join("gpu"), "#!/bin/sh\n").unwrap();
    let packages: Vec<String> = contents.tests().into_iter().map(|test| test.package).collect();
    assert_eq!(packages, ["a", "b"]);
}

#[test]
fn a_damaged_payload_is_refused_and_nothing_is_left() {
    let (_work, bundle) = packed();
    let manifest = bundle.join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("\"bytes\": 5", "\"bytes\": 4", 1)).unwrap();
    let error = Contents::of(&bundle).unwrap_err();
    assert!(matches!(error, BundleError::Damaged { .. }), "{error}");
    assert_eq!(fs::read_dir(bundle.join("unpacked")).unwrap().count(), 0);
    fs::write(&manifest, text.replace("tests/b/gpu", "../../gpu")).unwrap();
    let error = Contents::of(&bundle).unwrap_err().to_string();
    assert!(error.contains("is no usable name"), "{error}");
    fs::write(&manifest, "{}").unwrap();
    assert!(matches!(Contents::of(&bundle), Err(BundleError::Unreadable(..))));
}

#[test]
fn a_folder_that_is_something_else_is_not_replaced() {
    let work = tempfile::tempdir().unwrap();
    let args = Args {
        out: work.path().to_owned(),
        without_benches: true,
        parts: false,
    };
    let error = run(args, &crate::workspace::CurrentWorkspace::here())
        .unwrap_err()
        .to_string();
    assert!(error.contains("is no bundle"), "{error}");
}

#[test]
fn a_bundle_beyond_its_limit_is_refused_with_its_parts() {
    let work = tempfile::tempdir().unwrap();
    let file = fs::File::create(work.path().join("payload.zst")).unwrap();
    file.set_len(LARGEST).unwrap();
    assert_eq!(sizes(work.path()).unwrap(), LARGEST);
    file.set_len(LARGEST + 1).unwrap();
    let error = sizes(work.path()).unwrap_err().to_string();
    assert!(error.contains("payload.zst 60.0 MiB"), "{error}");
}

#[test]
fn the_script_unpacks_the_command_and_runs_it() {
    let work = tempfile::tempdir().unwrap();
    let script = work.path().join("xtask");
    let pack = |text: &str| {
        fs::write(&script, text).unwrap();
        assert!(
            Command::new("gzip")
                .args(["-n", "-f"])
                .arg(&script)
                .status()
                .unwrap()
                .success()
        );
        fs::write(&script, LAUNCHER.replace("NAME", "xtask")).unwrap();
    };
    let run = || {
        let output = Command::new("sh")
            .arg(&script)
            .args(["one", "two words"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    pack("#!/bin/sh\nprintf '%s|' \"$@\"\nexit 7\n");
    assert_eq!(run(), "one|two words|");
    assert_eq!(run(), "one|two words|");
}

/// Eleven bytes in three parts: four, four, three.
const WHOLE: &[u8] = b"eleven byte";
const WHOLE_PATH: &str = "models/language/whole.gguf";

/// A bundle as [`packed`] with the file above in parts, and the folder of its parts.
fn in_parts() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let (work, bundle) = packed_with(|bundle| {
        let from = bundle.with_file_name("whole");
        fs::write(&from, WHOLE).unwrap();
        vec![parts::cut_to(&from, WHOLE_PATH.to_owned(), bundle, 4).unwrap()]
    });
    let folder = bundle.join("parts");
    (work, bundle, folder)
}

/// Files under the unpacked folder of the model in parts.
fn joined(bundle: &Path) -> Vec<(String, Vec<u8>)> {
    let unpacked = fs::read_dir(bundle.join("unpacked")).into_iter().flatten().flatten();
    let folders = unpacked.map(|entry| entry.path().join("models/language"));
    let files = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    files
        .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
        .collect()
}

#[test]
fn parts_are_joined_once() {
    let (_work, bundle, folder) = in_parts();
    let mut sizes: Vec<(String, u64)> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                entry.metadata().unwrap().len(),
            )
        })
        .collect();
    sizes.sort();
    let expected = [1, 2, 3].map(|index| (format!("whole.gguf.part{index}-of-3"), if index < 3 { 4 } else { 3 }));
    assert_eq!(sizes, expected);

    let contents = Contents::of(&bundle).unwrap();
    let whole = Path::new(&contents.environment().1).join("language/whole.gguf");
    assert_eq!(fs::read(&whole).unwrap(), WHOLE);
    assert_eq!(fs::metadata(&whole).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(joined(&bundle).len(), 1, "nothing else is left");
    // The second time, what is there is used, and the parts are not needed.
    fs::remove_dir_all(&folder).unwrap();
    Contents::of(&bundle).unwrap();
    assert_eq!(fs::read(&whole).unwrap(), WHOLE);
}

#[test]
fn a_missing_part_is_named_and_may_come_later() {
    let (_work, bundle, folder) = in_parts();
    let (second, elsewhere) = (folder.join("whole.gguf.part2-of-3"), bundle.join("elsewhere"));
    fs::rename(&second, &elsewhere).unwrap();
    let error = Contents::of(&bundle).unwrap_err().to_string();
    // SHA-256 of "en b", from sha256sum.
    let hash = "48e6c0cd79693ca224fda50622b416f32b19357417b8b6bad3ec01da132ab56f";
    for wanted in [
        "parts/whole.gguf.part2-of-3",
        "4 bytes",
        hash,
        "copy it there",
        "without --parts",
    ] {
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    assert_eq!(joined(&bundle), []);
    fs::rename(&elsewhere, &second).unwrap();
    Contents::of(&bundle).unwrap();
    assert_eq!(joined(&bundle), [("whole.gguf".to_owned(), WHOLE.to_owned())]);
}

#[test]
fn a_damaged_part_is_named_and_nothing_is_left() {
    let (_work, bundle, folder) = in_parts();
    let third = folder.join("whole.gguf.part3-of-3");
    for (damaged, why) in [
        ("ytE", "it is damaged: its SHA-256 is"),
        ("yt", "it has 2 bytes"),
        ("yte.", "it has 4 bytes"),
    ] {
        fs::write(&third, damaged).unwrap();
        let error = Contents::of(&bundle).unwrap_err();
        assert!(
            matches!(&error, BundleError::Part { path, .. } if path.ends_with("parts/whole.gguf.part3-of-3")),
            "{error}"
        );
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(joined(&bundle), []);
    }
}

#[test]
fn parts_in_the_wrong_order_and_names_that_leave_the_bundle_are_refused() {
    let (_work, bundle, _) = in_parts();
    let manifest = bundle.join(MANIFEST);
    let text = fs::read_to_string(&manifest).unwrap();
    let change = |text: &str| fs::write(&manifest, text).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["wholes"][0]["parts"].as_array_mut().unwrap().swap(0, 1);
    change(&json.to_string());
    let error = Contents::of(&bundle).unwrap_err();
    assert!(
        matches!(&error, BundleError::Damaged { path, .. } if path == WHOLE_PATH),
        "{error}"
    );

    for (from, to) in [
        (WHOLE_PATH, "../whole.gguf"),
        (WHOLE_PATH, "/whole.gguf"),
        (WHOLE_PATH, ""),
        ("whole.gguf.part2-of-3", "../../whole"),
        ("\"bytes\": 3", "\"bytes\": 18446744073709551615"),
    ] {
        assert!(text.contains(from), "{from}");
        change(&text.replacen(from, to, 1));
        let error = Contents::of(&bundle).unwrap_err();
        assert!(matches!(error, BundleError::Unreadable(..)), "{to}: {error}");
    }
    assert_eq!(joined(&bundle), []);
}

#[test]
fn a_bundle_without_parts_needs_none() {
    let (_work, bundle) = packed();
    let manifest = bundle.join(MANIFEST);
    let mut json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    // As bundles were before there were parts.
    assert!(json.as_object_mut().unwrap().remove("wholes").is_some());
    fs::write(&manifest, json.to_string()).unwrap();
    Contents::of(&bundle).unwrap();
    assert!(!bundle.join("parts").exists());
}
