//! The program as a user runs it: what it prints, what it writes, how it exits; and that it never panics, whatever it is
//! given.

use clap::Parser;
use object::{Object, ObjectSection};
use rocmforge_sanitize::{Cli, Exit, LaunchFile, ObjectFile, main};
use rocmforge_test_support::Random;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory with the example of the manual.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in ["reverse.co", "reverse.toml"] {
        std::fs::copy(example().join(file), directory.path().join(file)).unwrap();
    }
    directory
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

struct Ran {
    exit: Exit,
    out: String,
    err: String,
}

fn run(args: &[&str]) -> Ran {
    let cli = Cli::try_parse_from(std::iter::once("rocmforge-sanitize").chain(args.iter().copied())).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = main(&cli, &mut out, &mut err);
    Ran {
        exit,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

/// Runs `text` as a launch file beside the example's object.
fn run_file(text: &str, args: &[&str]) -> Ran {
    let directory = directory();
    let path = directory.path().join("launch.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_string_lossy().into_owned();
    run(&[&[path.as_str()], args].concat())
}

#[test]
fn the_manuals_example_prints_what_the_manual_says() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sanitize.md");
    let Ok(manual) = std::fs::read_to_string(manual) else {
        return; // a packaged crate is without the manual
    };
    let (_, rest) = manual.split_once("$ rocmforge-sanitize reverse.toml\n").unwrap();
    let (printed, _) = rest.split_once("```").unwrap();
    let toml = std::fs::read_to_string(example().join("reverse.toml")).unwrap();
    assert!(manual.contains(&toml), "the launch file is in the manual:\n{toml}");
    assert_eq!(toml.lines().count(), 5);
    let path = example().join("reverse.toml");
    let ran = run(&[&path.to_string_lossy()]);
    assert_eq!(ran.exit, Exit::Found, "{}", ran.err);
    // The manual runs it in the example's own directory.
    let out = ran.out.replace(&format!("{}/", example().display()), "");
    assert_eq!(out, printed);
}

#[test]
fn the_missing_barrier_is_a_race_with_both_lines_in_json_too() {
    let path = example().join("reverse.toml");
    let ran = run(&[&path.to_string_lossy(), "--format", "json", "--seeds", "3"]);
    let page: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (page["version"].as_u64(), page["status"].as_str()),
        (Some(1), Some("reports"))
    );
    assert_eq!(page["seeds"], 3);
    let findings = page["findings"].as_array().unwrap();
    let race = findings.iter().find(|f| f["report"]["kind"] == "lds_race").unwrap();
    assert_eq!((&race["seeds"], &race["first_seed"]), (&3.into(), &0.into()));
    let report = &race["report"];
    assert_eq!(report["tool"], "racecheck");
    let mut lines = [
        report["frames"][0]["line"].as_u64().unwrap(),
        report["other"]["frames"][0]["line"].as_u64().unwrap(),
    ];
    lines.sort_unstable();
    assert_eq!(lines, [5, 6], "{report:#}");
    assert!(report["frames"][0]["file"].as_str().unwrap().ends_with("reverse.hip"));
}

#[test]
fn a_clean_run_exits_with_0_and_writes_its_outputs() {
    let directory = directory();
    let path = directory.path().join("launch.toml");
    // Only barriers are checked, and there is none.
    let text = r#"
        object = "reverse.co"
        seeds = [7]
        tools = ["memcheck"]
        [buffers]
        y = "f32[2, 32] -> y.npy"
        [[launch]]
        kernel = "reverse"
        block = 64
        args = ["f32[64] iota -> x.bin", "y"]
    "#;
    std::fs::write(&path, text).unwrap();
    let ran = run(&[&path.to_string_lossy(), "--tools", "synccheck"]);
    assert_eq!(ran.exit, Exit::Clean, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("nothing found in 1 launch (1 seed"), "{}", ran.out);
    let x = std::fs::read(directory.path().join("x.bin")).unwrap();
    let iota: Vec<u8> = (0..64).flat_map(|i| (i as f32).to_le_bytes()).collect();
    assert_eq!(x, iota);
    let y = std::fs::read(directory.path().join("y.npy")).unwrap();
    assert!(y.starts_with(b"\x93NUMPY"));
    assert_eq!(y.len() % 64, 0, "header and 256 B of data");
    // And it can be an input again.
    let again = text.replace(
        "\"f32[2, 32] -> y.npy\"",
        "{ dtype = \"f32\", shape = 64, file = \"y.npy\" }",
    );
    std::fs::write(&path, again).unwrap();
    assert_eq!(
        run(&[&path.to_string_lossy(), "--tools", "synccheck"]).exit,
        Exit::Clean
    );
}

#[test]
fn kernels_and_templates_are_printed() {
    let object = example().join("reverse.co");
    let ran = run(&["--kernels", &object.to_string_lossy()]);
    assert_eq!(ran.exit, Exit::Clean);
    assert!(ran.out.contains("gfx1100, 1 kernel\n\nreverse(pointer"), "{}", ran.out);
    let ran = run(&["--template", &object.to_string_lossy()]);
    // It goes beside the object, wherever that is.
    let file = LaunchFile::parse(&object.with_file_name("launch.toml"), &ran.out).unwrap();
    assert_eq!((&file.objects[0].path, file.launches.len()), (&object, 1));
}

/// What is wrong with a launch file, and what the message must say.
const REFUSED: &[(&str, &[&str])] = &[
    ("object = ", &["launch.toml:1:"]),
    ("[[launch]]\nkernel = \"k\"\nblock = 1", &["`object`"]),
    ("object = \"reverse.co\"", &["`launch`"]),
    ("object = \"reverse.co\"\nlaunch = []", &["`launch`"]),
    (
        "object = \"absent.co\"\n[[launch]]\nkernel = \"k\"\nblock = 1",
        &["absent.co"],
    ),
    (
        "object = \"reverse.toml\"\n[[launch]]\nkernel = \"k\"\nblock = 1",
        &["not an ELF file"],
    ),
    (
        "objekt = \"reverse.co\"\nobject = \"reverse.co\"\n[[launch]]\nkernel = \"k\"\nblock = 1",
        &["launch.toml:1:", "objekt", "seeds"],
    ),
    (
        "object = \"reverse.co\"\n\n[[launch]]\nkernel = \"revers\"\nblock = 64",
        &["launch.toml:3:", "`revers`", "reverse"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64",
        &["takes 2 arguments, 0 are given", "reverse(pointer"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [1, \"f32[4]\"]",
        &["argument 0", "pointer", "1 is given"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [{ u32 = 1 }, \"f32[4]\"]",
        &["argument 0", "4 B are given"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"x\", \"f32[4]\"]",
        &["launch.toml:5:", "no buffer `x`"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f33[4]\", \"f32[4]\"]",
        &["launch.toml:5:", "f33", "bf16"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"u8[4] 256\", \"f32[4]\"]",
        &["256", "u8"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"u8[4] some\", \"f32[4]\"]",
        &["iota"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[99999999999]\", \"f32[4]\"]",
        &["more than"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[0]\", \"f32[4]\"]",
        &["no elements"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 2000\nargs = [\"f32[4]\", \"f32[4]\"]",
        &["launch.toml:2:", "2000 work-items"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = [1, 1, 1, 1]",
        &["three sizes"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 0",
        &["from 1 to"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nlds = 70000\nargs = [\"f32[4]\", \"f32[4]\"]",
        &["65536"],
    ),
    (
        "object = \"reverse.co\"\nseeds = 0\n[[launch]]\nkernel = \"reverse\"\nblock = 64",
        &["launch.toml:2:", "seeds"],
    ),
    (
        "object = \"reverse.co\"\nseeds = \"9..3\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64",
        &["no seed"],
    ),
    (
        "object = \"reverse.co\"\ntools = [\"leakcheck\"]\n[[launch]]\nkernel = \"reverse\"\nblock = 64",
        &["leakcheck", "racecheck"],
    ),
    (
        "object = \"reverse.co\"\nschedule = \"fast\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64",
        &["fast", "pct"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nafter = [\"later\"]",
        &["later"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nblok = 3\nargs = [\"f32[64]\", \"f32[64]\"]",
        &["launch.toml:5:", "blok"],
    ),
    (
        "object = \"reverse.co\"\n[buffers]\nx = { dtype = \"f32\", shape = 4, file = \"reverse.toml\" }\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"x\", \"x\"]",
        &["launch.toml:3:", "16 B"],
    ),
    (
        "object = \"reverse.co\"\n[buffers]\nx = { dtype = \"i8\", shape = 4, fill = \"random\", low = -200 }\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"x\", \"x\"]",
        &["-200"],
    ),
    (
        "object = \"reverse.co\"\n[buffers]\nx = \"f32[64]\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [{ buffer = \"x\", offset = 257 }, \"x\"]",
        &["257 B into a buffer of 256 B"],
    ),
    (
        "object = \"reverse.co\"\ntools = []\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[64]\", \"f32[64]\"]",
        &["launch.toml:2:", "nothing would be checked"],
    ),
    (
        "object = \"reverse.co\"\narch = \"gfx1201\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64",
        &["reverse.co", "code for gfx1100, not for gfx1201"],
    ),
    (
        "object = \"reverse.co\"\narch = \"gfx942\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64",
        &["launch.toml:2:", "gfx942", "gfx1201"],
    ),
    (
        "object = \"/dev/zero\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64",
        &["/dev/zero", "leads outside of", "--allow-outside"],
    ),
    (
        "object = \"reverse.co\"\n[buffers]\nx = { dtype = \"f32\", shape = 4, file = \"/dev/zero\" }\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"x\", \"x\"]",
        &["/dev/zero", "leads outside of", "--allow-outside"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[64] -> y\", \"f32[64] -> y\"]",
        &["launch.toml:5:", "another buffer's"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[64] -> reverse.co\", \"f32[64]\"]",
        &["launch.toml:5:", "the object"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[64] -> \", \"f32[64]\"]",
        &["launch.toml:5:", "y.npy"],
    ),
    (
        "object = \"reverse.co\"\n[buffers]\nx = { dtype = \"u8\", shape = 4, fill = \"random\", high = 256.5 }\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"x\", \"x\"]",
        &["256.5", "u8"],
    ),
    (
        "object = \"reverse.co\"\n[buffers]\nx = { dtype = \"f16\", shape = 4, fill = \"random\", high = 1e6 }\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"x\", \"x\"]",
        &["1000000", "f16"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\ngrid = [1, 70000]\nblock = 64\nargs = [\"f32[4]\", \"f32[4]\"]",
        &["launch.toml:2:", "`grid`", "65536"],
    ),
    (
        "object = \"reverse.co\"\n[[launch]]\nkernel = \"reverse\"\ngrid = 100000000\nblock = 64\nargs = [\"f32[4]\", \"f32[4]\"]",
        &["launch.toml:2:", "`grid`", "4294967295"],
    ),
];

#[test]
fn what_cannot_run_exits_with_2_and_says_where_and_why() {
    for (text, needles) in REFUSED {
        let ran = run_file(text, &[]);
        assert_eq!(ran.exit, Exit::CannotRun, "{text}\n{}", ran.out);
        for needle in *needles {
            assert!(
                ran.err.contains(needle),
                "{needle:?} is not said of\n{text}\n{}",
                ran.err
            );
        }
    }
    let path = example().join("reverse.toml");
    for option in [["--seeds", "many"], ["--tools", "none"]] {
        let ran = run(&[&[&*path.to_string_lossy()], &option[..]].concat());
        assert_eq!(ran.exit, Exit::CannotRun);
        assert!(ran.err.contains(option[0].trim_end_matches('s')), "{}", ran.err);
    }
}

/// A launch file in `inside`, beside whose folder there is a file that is none of its business.
fn hostile_folder() -> TempDir {
    let outer = tempfile::tempdir().unwrap();
    let inside = outer.path().join("inside");
    std::fs::create_dir_all(inside.join("folder")).unwrap();
    let co = example().join("reverse.co");
    std::fs::copy(&co, inside.join("reverse.co")).unwrap();
    std::fs::copy(&co, outer.path().join("secret")).unwrap();
    std::fs::copy(&co, inside.join("folder/reverse.co")).unwrap();
    use std::os::unix::fs::symlink;
    symlink("../secret", inside.join("link")).unwrap();
    symlink("..", inside.join("up")).unwrap();
    symlink("/dev/zero", inside.join("zero")).unwrap();
    symlink("reverse.co", inside.join("alias")).unwrap();
    symlink("nowhere", inside.join("dangling")).unwrap();
    let here = rustix::fs::CWD;
    rustix::fs::mkfifoat(here, inside.join("fifo"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    outer
}

/// Runs the program in time, or says that it hangs.
fn run_in_time(args: &[&str]) -> Ran {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let what = args.join(" ");
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(run(&args.iter().map(String::as_str).collect::<Vec<_>>())));
    ended
        .recv_timeout(std::time::Duration::from_secs(60))
        .unwrap_or_else(|_| panic!("{what} hangs"))
}

/// Paths of [`hostile_folder`], and what is said of each without and with `--allow-outside`; nothing: it can be used.
const PATHS: &[(&str, &str, &str)] = &[
    ("../secret", "leads outside of", ""),
    ("folder/../../secret", "leads outside of", ""),
    ("OUTER/secret", "leads outside of", ""),
    ("link", "leads outside of", ""),
    ("up/secret", "leads outside of", ""),
    ("zero", "leads outside of", "is a character device"),
    ("/dev/zero", "leads outside of", "is a character device"),
    ("fifo", "is a pipe (FIFO)", "is a pipe (FIFO)"),
    ("folder", "is a directory", "is a directory"),
    ("folder/reverse.co", "", ""),
    ("alias", "", ""),
];

#[test]
fn a_launch_file_reads_nothing_outside_of_its_folder_and_nothing_that_blocks() {
    let outer = hostile_folder();
    let (root, inside) = (outer.path().display().to_string(), outer.path().join("inside"));
    let size = std::fs::metadata(inside.join("reverse.co")).unwrap().len();
    for (path, without, with) in PATHS {
        let path = path.replace("OUTER", &root);
        let as_object = format!(
            "object = \"{path}\"\nseeds = 1\n[[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[64] iota\", \"f32[64]\"]"
        );
        let as_input = format!(
            "object = \"reverse.co\"\nseeds = 1\n[buffers]\nx = {{ dtype = \"u8\", shape = {size}, file = \"{path}\" }}\n\
             [[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"x\", \"f32[64]\"]"
        );
        for text in [as_object, as_input] {
            let file = inside.join("launch.toml");
            std::fs::write(&file, &text).unwrap();
            let file = file.to_string_lossy();
            for (args, wanted) in [(vec![&*file], without), (vec![&*file, "--allow-outside"], with)] {
                let ran = run_in_time(&args);
                let refused = !wanted.is_empty();
                assert_eq!(ran.exit == Exit::CannotRun, refused, "{args:?}\n{text}\n{}", ran.err);
                let name = path.rsplit('/').next().unwrap();
                assert!(
                    ran.err.contains(wanted) && (!refused || ran.err.contains(name)),
                    "{args:?}\n{text}\n{}",
                    ran.err
                );
            }
        }
    }
    // The launch file itself, and objects that are named on the command line.
    for path in ["fifo", "folder", "zero"] {
        let path = inside.join(path).display().to_string();
        for args in [vec![&*path], vec!["--kernels", &path], vec!["--template", &path]] {
            let ran = run_in_time(&args);
            assert_eq!(ran.exit, Exit::CannotRun, "{args:?}");
            assert!(ran.err.contains(&path) && ran.err.contains("is a "), "{}", ran.err);
        }
    }
}

#[test]
fn a_launch_file_writes_nothing_outside_of_its_folder_and_over_nothing_but_files() {
    let outer = hostile_folder();
    let (root, inside) = (outer.path().display().to_string(), outer.path().join("inside"));
    let before = std::fs::read(outer.path().join("secret")).unwrap();
    let run_with = |path: &str, more: &[&str]| {
        let text = format!(
            "object = \"reverse.co\"\nseeds = 1\n[buffers]\ny = \"f32[64] -> {path}\"\n\
             [[launch]]\nkernel = \"reverse\"\nblock = 64\nargs = [\"f32[64] iota\", \"y\"]"
        );
        let file = inside.join("launch.toml");
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        run_in_time(&[&[file.as_str(), "--tools", "synccheck"], more].concat())
    };
    let refused = [
        ("../secret", "leads outside of"),
        ("../new", "leads outside of"),
        ("OUTER/new", "leads outside of"),
        ("link", "leads outside of"),
        ("up/new", "leads outside of"),
        ("zero", "leads outside of"),
        ("fifo", "is a pipe (FIFO)"),
        ("folder", "is a directory"),
        ("alias", "is a symbolic link"),
        ("dangling", "is a symbolic link"),
    ];
    for (path, wanted) in refused {
        let ran = run_with(&path.replace("OUTER", &root), &[]);
        assert_eq!(ran.exit, Exit::CannotRun, "{path}: {}", ran.out);
        assert!(
            ran.out.is_empty(),
            "{path} is refused before anything runs: {}",
            ran.out
        );
        let name = path.rsplit('/').next().unwrap();
        assert!(
            ran.err.contains(wanted) && ran.err.contains(name),
            "{path}: {}",
            ran.err
        );
    }
    assert_eq!(std::fs::read(outer.path().join("secret")).unwrap(), before);
    assert!(!outer.path().join("new").exists());
    for (path, more, at) in [
        ("y", &[][..], "inside/y"),
        ("folder/y", &[], "inside/folder/y"),
        ("../new", &["--allow-outside"], "new"),
        ("link", &["--allow-outside"], "secret"),
    ] {
        let ran = run_with(path, more);
        assert_eq!(ran.exit, Exit::Clean, "{path}: {}", ran.err);
        assert_eq!(std::fs::metadata(outer.path().join(at)).unwrap().len(), 256, "{path}");
    }
    let ran = run_with("zero", &["--allow-outside"]);
    assert!(ran.err.contains("is a character device"), "{}", ran.err);
    let left = |folder: &Path| {
        let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".part")).count()
    };
    assert_eq!((left(outer.path()), left(&inside)), (0, 0));
}

#[test]
fn a_race_between_launches_names_both_lines_of_the_launch_file() {
    let text = r#"
        object = "reverse.co"
        seeds = 2
        tools = ["racecheck"]
        [buffers]
        y = "f32[64]"
        [[launch]]
        kernel = "reverse"
        block = 32
        args = ["f32[64] iota", "y"]
        [[launch]]
        kernel = "reverse"
        block = 32
        args = ["f32[64] random", "y"]
        stream = "other"
    "#;
    let ran = run_file(text, &[]);
    assert_eq!(ran.exit, Exit::Found, "{}", ran.err);
    let both = ran
        .out
        .lines()
        .find(|line| line.contains("; the other is"))
        .unwrap_or_else(|| panic!("{}", ran.out));
    assert!(
        both.contains("launch 1 at ") && both.contains("launch.toml:11;"),
        "{both}"
    );
    assert!(
        both.contains("launch 0 at ") && both.ends_with("launch.toml:7"),
        "{both}"
    );
    let ran = run_file(text, &["--format", "json"]);
    let page: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let finding = &page["findings"][0];
    assert_eq!((&finding["launch"], &finding["other_launch"]), (&1.into(), &0.into()));
}

#[test]
fn a_bundle_gives_the_code_for_the_processor_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let codes = ["gfx1100", "gfx1201"].map(|arch| {
        let pack = rocmforge_kernels::Pack::embedded(arch).unwrap();
        (
            format!("hipv4-amdgcn-amd-amdhsa--{arch}"),
            pack.object("elementwise").unwrap().unwrap(),
        )
    });
    // As clang-offload-bundler lays one out.
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.extend((codes.len() as u64).to_le_bytes());
    let mut offset = (bundle.len() + codes.iter().map(|(target, _)| 24 + target.len()).sum::<usize>()) as u64;
    for (target, code) in &codes {
        for number in [offset, code.len() as u64, target.len() as u64] {
            bundle.extend(number.to_le_bytes());
        }
        bundle.extend(target.as_bytes());
        offset += code.len() as u64;
    }
    bundle.extend(codes.iter().flat_map(|(_, code)| code));
    std::fs::write(directory.path().join("both.hipfb"), bundle).unwrap();
    let path = directory.path().join("launch.toml");
    for (line, arch) in [
        ("", "gfx1100"),
        ("arch = \"gfx1201\"", "gfx1201"),
        ("arch = \"gfx1100\"", "gfx1100"),
    ] {
        let text = format!(
            "object = \"both.hipfb\"\nseeds = 1\n{line}\n[[launch]]\nkernel = \"scale\"\nblock = 64\n\
             args = [\"f32[64] iota\", \"f32[64]\", 64, 0.5]"
        );
        std::fs::write(&path, text).unwrap();
        let ran = run(&[&path.to_string_lossy(), "--format", "json"]);
        assert_eq!(ran.exit, Exit::Clean, "{}{}", ran.out, ran.err);
        let page: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(page["arch"], arch);
    }
}

#[test]
fn an_object_whose_tables_point_outside_of_it_is_refused() {
    let directory = directory();
    let good = std::fs::read(directory.path().join("reverse.co")).unwrap();
    let number = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
    // The size of the first section that has bytes: what is loaded does not need it, but the length of the image is
    // taken from it.
    let mut bad = good.clone();
    let size = number(40) as usize + 64 + 32;
    bad[size..size + 8].copy_from_slice(&0x3000_0000u64.to_le_bytes());
    std::fs::write(directory.path().join("reverse.co"), bad).unwrap();
    let ran = run(&[&directory.path().join("reverse.toml").to_string_lossy()]);
    assert_eq!(ran.exit, Exit::CannotRun);
    assert!(ran.err.contains("outside of the file"), "{}", ran.err);
}

#[test]
fn a_null_pointer_is_called_one() {
    let text = r#"
        object = "reverse.co"
        seeds = 1
        [[launch]]
        kernel = "reverse"
        block = 32
        args = [0, "f32[64]"]
    "#;
    let ran = run_file(text, &[]);
    assert_eq!(ran.exit, Exit::Found, "{}", ran.err);
    assert!(ran.out.contains("0x0 B from a null pointer"), "{}", ran.out);
}

#[test]
fn findings_are_printed_also_when_an_output_cannot_be_written() {
    let text = r#"
        object = "reverse.co"
        seeds = 1
        [[launch]]
        kernel = "reverse"
        block = 64
        args = ["f32[64] iota -> absent/x.npy", "f32[64]"]
    "#;
    let ran = run_file(text, &[]);
    assert_eq!(ran.exit, Exit::CannotRun);
    assert!(ran.out.contains("race in LDS"), "{}", ran.out);
    assert!(
        ran.err.contains("cannot write") && ran.err.contains("absent/x.npy"),
        "{}",
        ran.err
    );
}

/// A printer that is out of paper, or whose reader has gone.
struct Full(std::io::ErrorKind);

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn findings_that_cannot_be_printed_are_no_clean_run() {
    let path = example().join("reverse.toml");
    let cli = Cli::try_parse_from(["rocmforge-sanitize", "--seeds", "1", &*path.to_string_lossy()]).unwrap();
    let mut err = Vec::new();
    let exit = main(&cli, &mut Full(std::io::ErrorKind::StorageFull), &mut err);
    assert_eq!(exit, Exit::CannotRun, "{}", String::from_utf8_lossy(&err));
    let exit = main(&cli, &mut Full(std::io::ErrorKind::BrokenPipe), &mut err);
    assert_eq!(exit, Exit::Found, "who has seen enough is no error");
}

#[test]
fn random_numbers_fill_the_widest_ranges() {
    for (dtype, low, high) in [
        ("i64", "-9223372036854775808", "9223372036854775807"),
        ("f64", "-1.7e308", "1.7e308"),
        ("u8", "0", "256"),
    ] {
        let text = format!(
            "object = \"reverse.co\"\nseeds = 1\ntools = [\"initcheck\"]\n[buffers]\n\
             x = {{ dtype = \"{dtype}\", shape = 512, fill = \"random\", low = {low}, high = {high} }}\n\
             [[launch]]\nkernel = \"reverse\"\nblock = 32\nargs = [\"x\", \"f32[64]\"]"
        );
        let ran = run_file(&text, &[]);
        assert!(
            !ran.out.contains("memory that was never written"),
            "{dtype}: {}",
            ran.out
        );
        assert!(ran.err.is_empty(), "{dtype}: {}", ran.err);
    }
}

const PARTS: &[&str] = &[
    "object",
    "seeds",
    "launch",
    "kernel",
    "args",
    "block",
    "buffers",
    "=",
    "[",
    "]",
    "{",
    "}",
    "[[",
    "]]",
    "\"",
    "\n",
    ",",
    ".",
    "f32[64] iota",
    "->",
    "-1",
    "1e400",
    "nan",
    "0x",
    "99999999999999999999999",
    "\u{0}",
    "é",
    " ",
    "#",
    "true",
    "random(",
    "1979-05-27",
    "f32[,]",
    "f32[]",
    "[64]",
    "a",
    "..",
    "0..",
    "'''",
];

#[test]
fn no_launch_file_makes_it_panic() {
    let good: Vec<&str> = REFUSED.iter().map(|(text, _)| *text).collect();
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let mut text: Vec<char> = good[random.index(good.len())].chars().collect();
        for _ in 0..=random.index(4) {
            let at = random.index(text.len() + 1);
            let end = (at + random.index(6)).min(text.len());
            text.splice(at..end, PARTS[random.index(PARTS.len())].chars());
        }
        let text: String = text.into_iter().collect();
        // Whatever it says, it says it without a panic.
        let _ = LaunchFile::parse(Path::new("launch.toml"), &text);
    }
}

#[test]
fn code_for_a_family_runs_on_the_member_that_is_simulated() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rocmforge-amdgcn/tests/fixtures");
    for (family, processor, other) in [("gfx11", "gfx1100", "gfx1201"), ("gfx12", "gfx1201", "gfx1100")] {
        let path = fixtures.join(format!("{family}-generic.co"));
        let object = ObjectFile::read(&path, None).unwrap();
        assert_eq!(object.processor, processor);
        object.check(["scale"].into_iter()).unwrap();
        assert!(ObjectFile::read(&path, Some(other)).is_err());
    }
}

#[test]
fn a_kernel_that_cannot_run_is_named_with_its_reason() {
    let mut elf = std::fs::read(example().join("reverse.co")).unwrap();
    let kernel = ObjectFile::parse(&elf, None).unwrap().meta.kernels[0].clone();
    let entry = kernel.code.unwrap().entry_address;
    let text = {
        let file = object::File::parse(&*elf).unwrap();
        let text = file.section_by_name(".text").unwrap();
        text.file_range().unwrap().0 + entry - text.address()
    };
    // s_rfe_b64 s[0:1]
    elf[text as usize..][..4].copy_from_slice(&0xbe80_4a00_u32.to_le_bytes());
    let object = ObjectFile::parse(&elf, None).unwrap();
    let why = object
        .check([kernel.name.as_str()].into_iter())
        .unwrap_err()
        .to_string();
    assert!(why.contains(&kernel.name) && why.contains("s_rfe_b64"), "{why}");
    object.check(["another"].into_iter()).unwrap();
    let page = rocmforge_sanitize::describe(&object);
    assert!(page.contains("cannot run: at") && page.contains("s_rfe_b64"), "{page}");
    let none = rocmforge_sanitize::template(&object, Path::new("x.co")).unwrap_err();
    assert_eq!(none.to_string(), why);
}

#[test]
fn damaged_objects_are_refused_without_a_panic() {
    let good = std::fs::read(example().join("reverse.co")).unwrap();
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let mut bad = good.clone();
        for _ in 0..=random.index(3) {
            let at = random.index(bad.len());
            bad[at] = random.index(256) as u8;
        }
        if random.index(4) == 0 {
            bad.truncate(random.index(bad.len()));
        }
        if let Ok(object) = ObjectFile::parse(&bad, None) {
            let _ = object.check(["reverse"].into_iter());
            let _ = rocmforge_sanitize::describe(&object);
            if let Ok(template) = rocmforge_sanitize::template(&object, Path::new("x.co")) {
                LaunchFile::parse(Path::new("launch.toml"), &template).unwrap_or_else(|e| panic!("{e}\n{template}"));
            }
        }
    }
}
