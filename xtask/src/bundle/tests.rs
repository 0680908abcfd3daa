//! Packing and unpacking, and the script that stands for the command.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// A bundle of two test binaries and a model, and the folder it lies in.
fn packed() -> (tempfile::TempDir, PathBuf) {
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
    payload::pack(&parts, &bundle, Some("v1-2-gabc".to_owned())).unwrap();
    (work, bundle)
}

#[test]
fn what_was_packed_is_unpacked_once() {
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
    assert_eq!(variable, "ROCMFORGE_MODELS");
    let vocab = Path::new(&models).join("all-MiniLM-L6-v2/vocab.txt");
    assert_eq!(fs::read_to_string(&vocab).unwrap(), "a b c");
    let odd = vocab.with_file_name("odd.safetensors");
    assert_eq!(fs::read_to_string(odd).unwrap(), "1a2b3c4");
    // The second time, what is there is used.
    fs::write(&vocab, "changed").unwrap();
    Contents::of(&bundle).unwrap();
    assert_eq!(fs::read_to_string(&vocab).unwrap(), "changed");
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
    };
    let error = run(args).unwrap_err().to_string();
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
        fs::write(&script, LAUNCHER).unwrap();
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
